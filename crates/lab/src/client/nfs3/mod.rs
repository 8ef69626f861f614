//! An NFSv3 client over TCP (RFC 1813, RFC 5531), made to cost little: many calls in one send,
//! all replies of one receive at once, large reads checked while they stream through a buffer
//! that stays in the cache.
//!
//! - [`link`]: the socket; [`calls`]: operations → bytes; [`replies`]: bytes → completions;
//!   [`setup`]: mount, files, cleaning.

mod calls;
mod link;
mod replies;
mod setup;

use super::target::Nfs3At;
use super::{Checker, Client, ClientError, Completion, FileSet, Op, Options, Transport};
use calls::Calls;
use link::Link;
use replies::Replies;
use std::time::Duration;

/// A file handle, at most 64 bytes (RFC 1813 §2.5, NFS3_FHSIZE).
pub(crate) type Handle = Vec<u8>;

/// One connection to one share.
pub struct Nfs3Client {
    link: Link,
    calls: Calls,
    replies: Replies,
    root: Handle,
    ready: Vec<Completion>,
}

/// What slots need to know of the client's files while calls are made and replies read.
#[derive(Default)]
pub(crate) struct Files {
    /// The client's directory.
    pub dir: Handle,
    /// Handles by file number.
    pub handles: Vec<Handle>,
    /// Number of the client, for the content.
    pub client: u32,
}

impl Files {
    fn key(&self, file: u32) -> u64 {
        u64::from(self.client) << 32 | u64::from(file)
    }
}

/// Receives that one wait may take before the driver looks at its clock again.
const RECEIVES_PER_WAIT: u32 = 16;

impl Nfs3Client {
    /// Connects and mounts.
    ///
    /// # Errors
    /// When either port cannot be reached or the mount is refused.
    pub fn open(at: &Nfs3At, checker: Checker, options: &Options) -> Result<Self, ClientError> {
        let root = setup::mount(at, options.bind)?;
        let link = Link::open(&at.host, at.port, options.bind)?;
        let calls = Calls::new(checker.content.clone());
        let replies = Replies::new(checker);
        Ok(Self { link, calls, replies, root, ready: Vec::new() })
    }

    /// Sends all that is due; takes in replies whenever the socket is full, so that neither side
    /// waits for the other.
    fn push(&mut self) -> Result<(), ClientError> {
        while self.calls.encode(&mut self.replies.files) {
            let sent = self.link.send_some(self.calls.bytes())?;
            self.calls.sent(sent);
            if sent == 0 && self.link.wait_both()? {
                self.pull()?;
            }
        }
        Ok(())
    }

    /// One receive and everything in it. False when nothing came within the link's timeout.
    fn pull(&mut self) -> Result<bool, ClientError> {
        let got = self.link.receive(self.replies.space())?;
        if got == 0 {
            return Ok(false);
        }
        self.replies.take(got, &mut self.calls, &mut self.ready)?;
        Ok(true)
    }
}

impl Client for Nfs3Client {
    fn prepare(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.prepare_files(set)
    }

    fn clean(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.remove_files(set)
    }

    #[inline]
    fn submit(&mut self, slot: u32, op: Op) -> Result<(), ClientError> {
        self.calls.queue(slot, op);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        self.push()
    }

    fn wait(&mut self, timeout: Duration, done: &mut Vec<Completion>) -> Result<(), ClientError> {
        self.link.set_timeout(timeout)?;
        for _ in 0..RECEIVES_PER_WAIT {
            if !self.ready.is_empty() || !self.pull()? {
                break;
            }
        }
        done.append(&mut self.ready);
        Ok(())
    }

    fn transport(&self) -> Option<Transport> {
        self.link.transport()
    }

    fn calls(&self) -> u64 {
        self.calls.made
    }
}

#[cfg(test)]
mod tests;
