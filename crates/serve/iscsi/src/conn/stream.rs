//! The bytes of a connection: what has come and was not taken, and what is to be sent.

use std::rc::Rc;

use base::limits::{ISCSI_SEPARATE_DATA, RECEIVE_BUFFER};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use vfs::mapped::Slice;
use wire::iscsi::data::DataIn;
use wire::iscsi::frame::{CutError, Framed, Framer, Pdu, PutPdu, tail};
use wire::iscsi::{Bhs, Digests};

use super::unsent::Unsent;
use crate::core::Core;
use engine::exec::Span;
use engine::transport::budget::ReservedBytes;
use engine::transport::buffers::ReplyBuf;
use engine::transport::send::{self, Peer, SendError};

/// A part of what is to be sent.
enum Part {
    /// Bytes up to here of those put together.
    Together(usize),
    /// A piece of a buffer, from where it is.
    Separate(Rc<ReplyBuf>, std::ops::Range<usize>),
    /// Bytes of a file, from the page cache.
    Mapped(Slice),
}

/// A socket with its two directions.
pub(crate) struct Wire {
    core: Rc<Core>,
    stream: TcpStream,
    peer: Peer,
    framer: Framer,
    digests: Digests,
    inbox: Vec<u8>,
    /// Where the next PDU begins.
    at: usize,
    /// Bytes that it takes, as far as that is known.
    need: usize,
    /// Room that is made for what comes, at least.
    room: usize,
    held: ReservedBytes,
    together: Vec<u8>,
    parts: Vec<Part>,
    /// Bytes that are to be sent.
    size: usize,
    /// The memory of those.
    sending: ReservedBytes,
    /// Commands that end when their part of it is sent.
    unsent: Unsent,
}

impl Wire {
    /// A connection in its login: no digests, short data segments.
    pub fn new(core: &Rc<Core>, stream: TcpStream, data_max: usize) -> Self {
        let peer = Peer::new(&stream, core.engine.budgets.limits().pace);
        Self {
            core: Rc::clone(core),
            stream,
            peer,
            framer: Framer::new(Digests::default(), data_max),
            digests: Digests::default(),
            inbox: Vec::new(),
            at: 0,
            need: 0,
            // Before login a connection holds what its requests take: thousands may be open.
            room: (2 * data_max).min(RECEIVE_BUFFER),
            held: core.budget.hold(0),
            together: Vec::new(),
            parts: Vec::new(),
            size: 0,
            sending: core.budget.hold(0),
            unsent: Unsent::new(core),
        }
    }

    /// From the next PDU on, in both directions.
    pub fn set(&mut self, digests: Digests, data_max: usize) {
        self.room = RECEIVE_BUFFER;
        self.framer = Framer::new(digests, data_max);
        self.digests = digests;
    }

    /// Receives bytes and returns their number, 0 at the end. Cancel safe: nothing is lost.
    pub async fn receive(&mut self) -> std::io::Result<usize> {
        if self.at == self.inbox.len() {
            self.inbox.clear();
            self.at = 0;
        } else if self.at >= RECEIVE_BUFFER {
            self.inbox.drain(..self.at);
            self.at = 0;
        }
        let missing = (self.at + self.need).saturating_sub(self.inbox.len());
        self.inbox.reserve(missing.max(self.room));
        self.held.set(self.inbox.capacity());
        let count = self.stream.read_buf(&mut self.inbox).await?;
        self.peer.arrivals.received(count);
        self.core.budget.count_moved(count);
        Ok(count)
    }

    /// Receives if it `reads`; otherwise waits for the end of the peer, which shows nowhere else.
    /// Cancel safe.
    pub async fn received_or_ended(&mut self, reads: bool) -> std::io::Result<usize> {
        if reads {
            return self.receive().await;
        }
        send::peer_ended(&self.stream).await;
        Ok(0)
    }

    /// Whether no more than a receive buffer is held of what has come: so much every session may.
    pub fn is_small(&self) -> bool {
        self.held.bytes() <= 2 * RECEIVE_BUFFER
    }

    /// Gives memory back when there is nothing to do.
    pub fn rest(&mut self) {
        let is_large = || self.inbox.capacity() > 2 * RECEIVE_BUFFER;
        if self.at == self.inbox.len() && (is_large() || !self.core.budget.has_bytes(0)) {
            (self.inbox, self.at) = (Vec::new(), 0);
            self.held.set(0);
        }
        let is_large = self.together.capacity() > 2 * RECEIVE_BUFFER;
        if self.size == 0 && (is_large || !self.core.budget.has_bytes(0)) {
            self.together = Vec::new();
            self.sending.set(0);
        }
    }

    /// The PDU at the front, if it is whole.
    ///
    /// # Errors
    /// [`CutError`]: where the next one begins is not known any more.
    pub fn front(&mut self) -> Result<Option<Pdu<'_>>, CutError> {
        let rest = self.inbox.get(self.at..).unwrap_or_default();
        match self.framer.next(rest)? {
            Framed::Need(bytes) => {
                self.need = bytes;
                Ok(None)
            }
            Framed::Complete(pdu) => Ok(Some(pdu)),
        }
    }

    /// Takes everything that has come out of the way, to be given back by [`Wire::restore`] with
    /// how much of it was taken: so that it can be looked at while answers are put.
    pub fn lend(&mut self) -> (Vec<u8>, usize, Framer) {
        (std::mem::take(&mut self.inbox), self.at, self.framer)
    }

    /// See [`Wire::lend`].
    pub fn restore(&mut self, inbox: Vec<u8>, at: usize, need: usize) {
        (self.inbox, self.at, self.need) = (inbox, at, need);
    }

    /// When the byte had come that lies `behind` bytes before the end of what was received.
    pub fn arrived(&mut self, behind: usize) -> u64 {
        self.peer.arrivals.at(behind)
    }

    /// Bytes that are to be sent.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Adds a PDU.
    pub fn put(&mut self, pdu: &dyn PutPdu) {
        let before = self.together.len();
        pdu.put(&mut self.together, self.digests);
        self.size += self.together.len() - before;
    }

    /// Adds a Data-In with a piece of `buffer` as its data segment.
    pub fn put_data(
        &mut self,
        pdu: &DataIn<'_>,
        buffer: &Rc<ReplyBuf>,
        piece: std::ops::Range<usize>,
    ) {
        let data = buffer.as_slice().get(piece.clone()).unwrap_or_default();
        let before = self.together.len();
        if data.len() < ISCSI_SEPARATE_DATA {
            DataIn { data, ..*pdu }.put(&mut self.together, self.digests);
            self.size += self.together.len() - before;
            return;
        }
        pdu.put_head(&mut self.together, self.digests, data.len());
        self.parts.push(Part::Together(self.together.len()));
        self.parts.push(Part::Separate(Rc::clone(buffer), piece));
        let tail = tail(data, self.digests);
        self.together.extend_from_slice(tail.bytes());
        self.size += self.together.len() - before + data.len();
        self.sending.set(self.size);
    }

    /// Adds a Data-In with this data segment. Without digests of data, and only of
    /// lengths that need no padding.
    pub fn put_mapped(&mut self, pdu: &DataIn<'_>, slice: Slice) {
        let (before, length) = (self.together.len(), slice.raw().1);
        pdu.put_head(&mut self.together, self.digests, length);
        self.size += self.together.len() - before + length;
        self.parts.push(Part::Together(self.together.len()));
        self.parts.push(Part::Mapped(slice));
    }

    /// The response that was put last ends a command.
    pub fn ends(&mut self, span: Span) {
        self.unsent.add(self.size, span);
    }

    /// Sends everything.
    ///
    /// # Errors
    /// When it cannot be sent to the end.
    pub async fn send(&mut self) -> Result<(), SendError> {
        // Whatever it is, it is held for as long as the peer takes it.
        self.sending.set(self.sending.bytes().max(self.together.capacity()));
        self.parts.push(Part::Together(self.together.len()));
        let parts = std::mem::take(&mut self.parts);
        let (mut from, mut left) = (0, self.size);
        for part in parts {
            // An empty part at the end must not leave the kernel waiting for it.
            let buffer = match &part {
                Part::Together(to) => self.together.get(std::mem::replace(&mut from, *to)..*to),
                Part::Separate(buffer, piece) => buffer.as_slice().get(piece.clone()),
                Part::Mapped(slice) => {
                    left = left.saturating_sub(slice.raw().1);
                    send::slice(&self.stream, slice, left > 0, &mut self.peer).await?;
                    self.unsent.sent(self.size.saturating_sub(left), self.peer.acks.get());
                    continue;
                }
            };
            let bytes = buffer.unwrap_or_default();
            left = left.saturating_sub(bytes.len());
            send::bytes(&self.stream, bytes, left > 0, &mut self.peer).await?;
            self.unsent.sent(self.size.saturating_sub(left), self.peer.acks.get());
            if let Part::Separate(buffer, _) = part
                && let Ok(buffer) = Rc::try_unwrap(buffer)
            {
                self.core.buffers.give_reply(buffer);
            }
        }
        self.together.clear();
        self.together.shrink_to(4 * RECEIVE_BUFFER);
        self.core.budget.count_moved(std::mem::take(&mut self.size));
        self.sending.set(self.together.capacity());
        Ok(())
    }
}

/// The header of a PDU as a Reject brings it back.
pub(crate) fn header(bhs: &Bhs) -> &[u8] {
    &bhs.0
}

#[cfg(test)]
mod tests;
