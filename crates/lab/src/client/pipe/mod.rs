//! What all NFS clients share: a connection that costs little. Many calls leave in one send, all
//! replies of one receive are taken at once, and the data of a large READ is checked while it
//! streams through a buffer that stays in the cache.
//!
//! - [`link`]: the socket; [`outbox`]: operations → bytes; [`inbox`]: bytes → completions;
//!   [`calls`]: which call a reply answers; [`judge`]: is what came back right; [`fill`]: files
//!   with their content.
//!
//! A version of the protocol is a [`Dialect`]: how a call is written and its results are read. What
//! carries its calls is a [`CallChannel`]: a [`Pipe`], or a connection by RDMA
//! ([`super::rdma`]).

pub mod calls;
pub mod fill;
pub mod header;
pub mod inbox;
pub mod judge;
pub mod link;
pub mod outbox;
pub mod outgoing;

use super::fill::Slots;
use super::{Checker, ClientError, Completion, Fault, Op, Transport};
use inbox::Inbox;
use judge::Judge;
use link::Link;
use outbox::Outbox;
use std::os::fd::RawFd;
use std::time::Duration;
use wire::xdr::{DecodeError, Reader, Writer};

/// Receives that one wait may take before the driver looks at its clock again.
const RECEIVES_PER_WAIT: u32 = 16;

/// What became of an operation: bytes moved, or the fault.
pub type Outcome = Result<u32, Fault>;

/// One version of NFS, as far as calls and results are concerned.
pub trait Dialect: Send {
    /// Whether one more call may be in flight. When not, operations wait until one has ended.
    #[inline]
    fn has_room(&self) -> bool {
        true
    }

    /// Appends the call of `op`, header included; of a WRITE all but the data, which follows.
    fn encode(&mut self, w: &mut Writer<'_>, xid: u32, slot: u32, op: Op);

    /// Reads the results that follow the header of a reply.
    ///
    /// # Errors
    /// They are not what the protocol prescribes.
    fn decode(
        &mut self,
        r: &mut Reader<'_>,
        slot: u32,
        op: Op,
        judge: &mut Judge,
    ) -> Result<Outcome, DecodeError>;

    /// Reads what precedes the data of a successful READ and returns the data's length, at most
    /// `record`; `None`, with nothing changed, when it was no success.
    ///
    /// # Errors
    /// As [`Dialect::decode`].
    fn read_head(
        &mut self,
        r: &mut Reader<'_>,
        slot: u32,
        record: usize,
    ) -> Result<Option<usize>, DecodeError>;

    /// The slot's call has ended.
    #[inline]
    fn ended(&mut self, _slot: u32) {}
}

/// One connection that carries the calls of a dialect.
pub trait CallChannel<D>: Slots + Send {
    /// The language.
    fn dialect(&self) -> &D;

    /// The same, to change.
    fn dialect_mut(&mut self) -> &mut D;

    /// The number of the client, from which the content of files is made.
    fn set_client(&mut self, client: u32);

    /// One call when nothing else is in flight, written by `write` with its transaction number;
    /// returns the whole reply.
    ///
    /// # Errors
    /// The connection is gone, the peer breaks the protocol, or no reply comes within `timeout`.
    fn exchange(
        &mut self,
        timeout: Duration,
        write: &dyn Fn(&mut Writer<'_>, u32),
    ) -> Result<Vec<u8>, ClientError>;

    /// As [`super::Client::granted`].
    fn granted(&self) -> Option<u32> {
        None
    }

    /// As [`super::Client::descriptor`].
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// As [`super::Client::transport`].
    fn transport(&self) -> Option<Transport> {
        None
    }
}

impl<D: Dialect> CallChannel<D> for Pipe<D> {
    fn dialect(&self) -> &D {
        &self.dialect
    }

    fn dialect_mut(&mut self) -> &mut D {
        &mut self.dialect
    }

    fn set_client(&mut self, client: u32) {
        Self::set_client(self, client);
    }

    fn exchange(
        &mut self,
        timeout: Duration,
        write: &dyn Fn(&mut Writer<'_>, u32),
    ) -> Result<Vec<u8>, ClientError> {
        Self::exchange(self, timeout, write)
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.link.descriptor())
    }

    fn transport(&self) -> Option<Transport> {
        self.link.transport()
    }
}

/// One connection over TCP that speaks a dialect.
pub struct Pipe<D> {
    /// The socket.
    pub link: Link,
    /// What is sent.
    pub outbox: Outbox,
    /// What is received.
    pub inbox: Inbox,
    /// The language.
    pub dialect: D,
    ready: Vec<Completion>,
}

impl<D: Dialect> Pipe<D> {
    /// A pipe over a connected socket, for `slots` calls at once.
    pub fn new(link: Link, checker: Checker, dialect: D, slots: u32) -> Self {
        let outbox = Outbox::new(checker.content.clone(), slots);
        let inbox = Inbox::new(Judge::new(checker));
        Self { link, outbox, inbox, dialect, ready: Vec::new() }
    }

    /// The number of the client, from which the content of files is made.
    pub fn set_client(&mut self, client: u32) {
        self.outbox.client = client;
        self.inbox.judge.client = client;
    }

    /// Starts `op` in `slot`.
    #[inline]
    pub fn submit(&mut self, slot: u32, op: Op) {
        self.outbox.queue(slot, op);
    }

    /// Sends all that is due; takes in replies whenever the socket is full, so that neither side
    /// waits for the other.
    ///
    /// # Errors
    /// The connection is gone, or the peer breaks the protocol.
    pub fn push(&mut self) -> Result<(), ClientError> {
        while self.outbox.encode(&mut self.dialect) {
            let sent = self.link.send_some(self.outbox.bytes())?;
            self.outbox.sent(sent);
            if sent == 0 && self.link.wait_both()? {
                self.pull()?;
            }
        }
        Ok(())
    }

    /// One receive and everything in it. False when nothing came within the link's timeout.
    fn pull(&mut self) -> Result<bool, ClientError> {
        let got = self.link.receive(self.inbox.space())?;
        if got == 0 {
            return Ok(false);
        }
        self.inbox.take(got, &mut self.dialect, &mut self.outbox, &mut self.ready)?;
        Ok(true)
    }

    /// Takes in what has come, or comes within `timeout`.
    ///
    /// # Errors
    /// As [`Pipe::push`].
    pub fn wait(
        &mut self,
        timeout: Duration,
        done: &mut Vec<Completion>,
    ) -> Result<(), ClientError> {
        self.link.set_timeout(timeout)?;
        for _ in 0..RECEIVES_PER_WAIT {
            if !self.ready.is_empty() || !self.pull()? {
                break;
            }
        }
        done.append(&mut self.ready);
        Ok(())
    }

    /// One call when nothing else is in flight, written by `write` with its transaction number;
    /// returns the whole reply.
    ///
    /// # Errors
    /// As [`Pipe::push`], and when no reply comes within `timeout`.
    pub fn exchange(
        &mut self,
        timeout: Duration,
        write: impl FnOnce(&mut Writer<'_>, u32),
    ) -> Result<Vec<u8>, ClientError> {
        let (xid, bytes) = self.outbox.single(write);
        let record = exchange(&mut self.link, bytes, &mut self.inbox, timeout);
        self.outbox.single_sent();
        let record = record?;
        match inbox::answer(&mut Reader::new(&record))? {
            found if found == xid => Ok(record),
            _ => Err(ClientError::Protocol("a reply to another call".into())),
        }
    }

    /// TCP statistics of the connection.
    pub fn transport(&self) -> Option<Transport> {
        self.link.transport()
    }
}

/// Sends `out`, one call, and returns the next record.
///
/// # Errors
/// The connection is gone, or no record comes within `timeout`.
pub fn exchange(
    link: &mut Link,
    out: &[u8],
    inbox: &mut Inbox,
    timeout: Duration,
) -> Result<Vec<u8>, ClientError> {
    link.set_timeout(timeout)?;
    let mut sent = 0;
    while let Some(rest) = out.get(sent..).filter(|rest| !rest.is_empty()) {
        let n = link.send_some(rest)?;
        sent += n;
        if n == 0 {
            link.wait_both()?;
        }
    }
    inbox.whole(|space| match link.receive(space)? {
        0 => Err(ClientError::Silent("a call", timeout)),
        n => Ok(n),
    })
}

/// What every client over a [`Pipe`], in its field `pipe`, has of
/// [`Client`](crate::client::Client): operations go through the pipe, files are its own business.
macro_rules! over_pipe {
    () => {
        fn prepare(&mut self, set: &FileSet) -> Result<(), ClientError> {
            self.prepare_files(set)
        }

        fn clean(&mut self, set: &FileSet) -> Result<(), ClientError> {
            self.remove_files(set)
        }

        $crate::client::operations_through!(pipe);

        fn descriptor(&self) -> Option<RawFd> {
            Some(self.pipe.link.descriptor())
        }

        fn transport(&self) -> Option<Transport> {
            self.pipe.transport()
        }
    };
}

pub(super) use over_pipe;
