//! An NFSv3 client over TCP (RFC 1813, RFC 5531) or RDMA (RFC 8166).
//!
//! - [`dialect`]: what each operation looks like; [`setup`]: mount, files, cleaning; [`files`]:
//!   files of programs. The
//!   connection is a [`CallChannel`]: a [`Pipe`](super::pipe::Pipe) or a
//!   [`RdmaConnection`](super::rdma::RdmaConnection).

pub(super) mod dialect;
pub(super) mod files;
mod setup;

use super::pipe::link::Link;
use super::pipe::{CallChannel, Pipe};
use super::rdma::RdmaConnection;
use super::target::Nfs3At;
use super::{Checker, Client, ClientError, Completion, FileSet, Op, Options, Transport};
use dialect::V3;
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::time::Duration;
use verbs::Verbs;

/// A file handle, at most 64 bytes (RFC 1813 §2.5, NFS3_FHSIZE).
pub(crate) type Handle = Vec<u8>;

/// One connection to one share.
pub struct Nfs3Client<C = Pipe<V3>> {
    channel: C,
    root: Handle,
    /// Calls of [`Nfs3Client::ask`] that were answered, by procedure.
    by_name: BTreeMap<&'static str, u64>,
}

impl Nfs3Client {
    /// Connects and mounts.
    ///
    /// # Errors
    /// When either port cannot be reached or the mount is refused.
    pub fn open(at: &Nfs3At, checker: Checker, options: &Options) -> Result<Self, ClientError> {
        let root = setup::mount(at, options.bind)?;
        let link = Link::open(&at.host, at.port, options.bind)?;
        let channel = Pipe::new(link, checker, V3::new(), options.slots);
        Ok(Self { channel, root, by_name: BTreeMap::new() })
    }
}

impl Nfs3Client<RdmaConnection<V3>> {
    /// Mounts over TCP, and connects over RDMA.
    ///
    /// # Errors
    /// When the server cannot be reached either way, the mount is refused, or this machine lacks
    /// what RDMA needs.
    pub fn open_rdma(
        at: &Nfs3At,
        checker: Checker,
        options: &Options,
        verbs: &dyn Verbs,
    ) -> Result<Self, ClientError> {
        // What is missing on this machine is reported first.
        let channel =
            RdmaConnection::open(verbs, (&at.host, at.port), checker, V3::new(), options)?;
        Ok(Self { channel, root: setup::mount(at, options.bind)?, by_name: BTreeMap::new() })
    }
}

impl<C: CallChannel<V3>> Client for Nfs3Client<C> {
    fn prepare(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.prepare_files(set)
    }

    fn clean(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.remove_files(set)
    }

    #[inline]
    fn submit(&mut self, slot: u32, op: Op) -> Result<(), ClientError> {
        self.channel.submit(slot, op)
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        self.channel.flush()
    }

    fn wait(&mut self, timeout: Duration, done: &mut Vec<Completion>) -> Result<(), ClientError> {
        self.channel.wait(timeout, done)
    }

    fn granted(&self) -> Option<u32> {
        self.channel.granted()
    }

    fn calls(&self) -> u64 {
        self.channel.dialect().made
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.channel.descriptor()
    }

    fn transport(&self) -> Option<Transport> {
        self.channel.transport()
    }
}

#[cfg(test)]
mod tests;
