//! What a connection has received: buffers taken when there is data and given back when there is
//! none, records found in place.
//!
//! A large record (a WRITE) gets a buffer of exactly its size, which the pool can take over. After
//! one large record the next is expected to be as large, so that in a stream of them nothing is
//! copied.

use std::future::poll_fn;
use std::ops::Range;
use std::task::Poll;

use base::clock::stamp;
use base::limits::{LARGE_RECORD, RECEIVE_BUFFER};
use tokio::io::ReadBuf;
use wire::rpc::{Framed, Framer};

use super::Ended;
use crate::rpc::back::Back;
use crate::rpc::core::Core;
use engine::transport::budget::Need;
use engine::transport::link::Link;

/// Free room below which what is left of a buffer is moved to its front before the next receive.
const ROOM_MIN: usize = 8 << 10;

/// Bytes of a record's marker (RFC 5531 §11).
const MARKER: usize = 4;

/// What stands at the front of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Not a whole record yet.
    Partial,
    /// A record; [`Input::message`] is its RPC message.
    Record,
}

/// The received bytes that are not consumed yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    buf: Vec<u8>,
    start: usize,
    /// Bytes from `start` that the next record needs, as far as known.
    need: usize,
    /// Size of the last large record, if the last one was large.
    expect: usize,
    /// The message of the record at `start`, in `buf` or, if it came in fragments, in `whole`.
    at: Range<usize>,
    consumed: usize,
    whole: Option<Vec<u8>>,
    framer: Framer,
    /// Whether the buffer is held above the budget.
    overdraft: bool,
    /// When the last receive brought something.
    pub(super) arrived_ns: u64,
}

impl Input {
    /// Whether everything received is consumed.
    pub(super) fn is_empty(&self) -> bool {
        self.start >= self.buf.len()
    }

    /// Drops what is not consumed.
    pub(super) fn clear(&mut self) {
        self.buf.clear();
        self.start = 0;
        self.need = 0;
        self.whole = None;
    }

    /// Gives the buffer back to the core.
    pub(super) fn put_back(&mut self, core: &Core) {
        self.clear();
        if self.buf.capacity() > 0 {
            let buf = std::mem::take(&mut self.buf);
            self.give_up(core, buf.capacity());
            if buf.capacity() == RECEIVE_BUFFER {
                core.buffers.give_receive(buf);
            } else {
                core.engine.large.give(buf);
            }
        }
    }

    /// Gives a buffer's part of the budget back.
    fn give_up(&mut self, core: &Core, bytes: usize) {
        core.budget.give_bytes(bytes);
        if std::mem::take(&mut self.overdraft) {
            core.budget.give_overdraft();
        }
    }

    /// How large a buffer it needs.
    fn size(&self) -> usize {
        let held = self.buf.len() - self.start;
        let need = self.need.max(if held == 0 { self.expect } else { 0 });
        let size = if need >= LARGE_RECORD { need } else { RECEIVE_BUFFER };
        if need > self.buf.capacity() && self.buf.capacity() > RECEIVE_BUFFER {
            // It grows fragment by fragment: not each of them shall copy what came before.
            return size.max(2 * self.buf.capacity()).min(Framer::INPUT_MAX);
        }
        size
    }

    /// What [`Input::make_room`] has found no room for.
    pub(super) fn need(&self) -> Need {
        let size = self.size();
        let need = if size > RECEIVE_BUFFER { Need::large(size) } else { Need::bytes(size) };
        need.or_overdraft()
    }

    /// Makes room to receive into. False when the budget has none.
    pub(super) fn make_room(&mut self, core: &Core) -> bool {
        if self.is_empty() {
            self.clear();
        }
        let size = self.size();
        if self.buf.capacity() < size || (self.buf.capacity() == 0) {
            let large = size > RECEIVE_BUFFER;
            let room =
                if large { core.budget.has_large(size) } else { core.budget.has_bytes(size) };
            if !room && !self.overdraft {
                // Without the luxury of one buffer for a record that may not even come.
                self.expect = 0;
                if !core.budget.take_overdraft() {
                    return false;
                }
                self.overdraft = true;
                return self.make_room(core);
            }
            let mut larger = match size {
                RECEIVE_BUFFER => core.buffers.take_receive(),
                _ => core.engine.large.take(size),
            };
            core.budget.take_bytes(larger.capacity());
            larger.extend_from_slice(&self.buf[self.start..]);
            let (need, overdraft) = (self.need, std::mem::take(&mut self.overdraft));
            self.put_back(core);
            (self.buf, self.need, self.overdraft) = (larger, need, overdraft);
        } else if self.start > 0 && self.buf.capacity() - self.buf.len() < ROOM_MIN {
            self.buf.drain(..self.start);
            self.start = 0;
        }
        true
    }

    /// Receives what is there, without waiting: completions may come meanwhile.
    /// Returns how many bytes came.
    pub(super) async fn receive(&mut self, link: &mut Link) -> Result<usize, Ended> {
        let old = self.buf.len();
        // Into a buffer for one large record only that record, so that the next starts a new one.
        let want = match self.need.max(if old == 0 { self.expect } else { 0 }) {
            need if need >= LARGE_RECORD => (self.start + need).saturating_sub(old),
            _ => usize::MAX,
        };
        let spare = self.buf.spare_capacity_mut();
        let room = spare.len().min(want.max(1));
        let mut into = ReadBuf::uninit(&mut spare[..room]);
        let polled = poll_fn(|cx| Poll::Ready(link.poll_receive(cx, &mut into)));
        let Poll::Ready(received) = polled.await else { return Ok(0) };
        received?;
        let n = into.filled().len();
        if n == 0 {
            return Err(Ended::Closed);
        }
        // SAFETY: `poll_read` has filled, and so initialised, `n` bytes of the spare capacity.
        unsafe { self.buf.set_len(old + n) };
        self.arrived_ns = stamp();
        Ok(n)
    }

    /// Finds the next record.
    pub(super) fn next(&mut self) -> Result<Next, Ended> {
        let bytes = &self.buf[self.start..];
        match self.framer.next(bytes)? {
            Framed::Need(need) => {
                self.need = need.min(Framer::INPUT_MAX);
                Ok(Next::Partial)
            }
            Framed::Record { body, consumed } => {
                // In one fragment it lies behind its marker, where it came; else in the framer.
                let here = body.len() + MARKER == consumed;
                self.whole = if here { None } else { Some(body.to_vec()) };
                let start = self.start + MARKER;
                self.at = start..start + body.len();
                self.consumed = consumed;
                Ok(Next::Record)
            }
        }
    }

    /// Bytes that came behind the record found.
    pub(super) fn behind(&self) -> usize {
        self.buf.len().saturating_sub(self.start + self.consumed)
    }

    /// The message of the record found.
    pub(super) fn message(&self) -> &[u8] {
        match &self.whole {
            Some(whole) => whole,
            None => self.buf.get(self.at.clone()).unwrap_or_default(),
        }
    }

    /// Whether the record is the reply to a call of this server, which is then handled.
    pub(super) fn is_answer(&mut self, back: &Back) -> bool {
        let answers = back.answered(self.message());
        if answers {
            self.consume();
        }
        answers
    }

    /// Goes past the record found.
    pub(super) fn consume(&mut self) {
        self.expect = if self.consumed >= LARGE_RECORD { self.consumed } else { 0 };
        self.start += self.consumed;
        self.consumed = 0;
        self.need = 0;
        self.whole = None;
    }

    /// Whether the record found goes with its buffer: a large one that is alone in it.
    pub(super) fn goes_with_buffer(&self) -> bool {
        let is_large = self.whole.is_none() && self.consumed >= LARGE_RECORD;
        is_large && self.start + self.consumed == self.buf.len()
    }

    /// Takes the record found out: its buffer, and where in it the message is. A large record that
    /// is alone in its buffer is not copied.
    pub(super) fn take_record(&mut self, core: &Core) -> (Vec<u8>, Range<usize>) {
        let taken = if self.goes_with_buffer() {
            let buf = std::mem::take(&mut self.buf);
            self.give_up(core, buf.capacity());
            (buf, self.at.clone())
        } else if let Some(whole) = self.whole.take() {
            let len = whole.len();
            (whole, 0..len)
        } else {
            let message = self.message();
            let len = message.len();
            let mut copy =
                if len >= LARGE_RECORD { core.engine.large.take(len) } else { Vec::new() };
            copy.extend_from_slice(message);
            (copy, 0..len)
        };
        self.consume();
        if self.start > self.buf.len() {
            self.start = 0;
        }
        taken
    }
}
