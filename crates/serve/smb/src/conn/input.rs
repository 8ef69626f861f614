//! What has come over a connection and was not taken yet. Buffers are taken when there is data and
//! given back when there is none.
//!
//! A large frame (a WRITE) gets a buffer of exactly its size, which its request takes over. After
//! one large frame the next is expected to be as large, so that in a stream of them nothing is
//! copied.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base::clock::{Deadline, stamp};
use base::limits::{
    LARGE_RECORD, RECEIVE_BUFFER, RECORD_LOOK, SMB_FRAME_TIME_MAX, SMB_MESSAGE_MAX,
};
use bytes::BufMut;
use tokio::net::TcpStream;
use wire::smb::codec::SmbError;
use wire::smb::frame::{KEEP_ALIVE, PREFIX, length};

use crate::frame::{FrameBytes, copied};
use engine::transport::budget::Need;
use engine::transport::send::Peer;
use files::Core;

/// Free room below which what is left of a buffer is moved to its front before the next receive.
const ROOM_MIN: usize = 8 << 10;

/// What receiving has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// Something, or nothing that was there.
    Some,
    /// Nothing: the budget has no room for it now.
    NoRoom,
    /// Nothing more comes.
    End,
}

/// Received bytes.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    at: usize,
    /// Bytes of the last frame with its prefix, if that was large.
    expect: usize,
    /// When the last of them came.
    pub(super) arrived_ns: u64,
    /// Until when the frame that has begun must have come.
    until: Option<Deadline>,
    /// Whether its buffer is held above the budget.
    overdraft: bool,
}

impl Input {
    /// What another core has received.
    pub(super) fn begun(core: &Core, bytes: Vec<u8>) -> Self {
        core.budget.take_bytes(bytes.capacity());
        Self { bytes, arrived_ns: stamp(), ..Self::default() }
    }

    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Bytes that came and were not taken.
    pub(super) fn unread(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// Whether everything that came was taken.
    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Takes the next frame, if it is whole: a buffer, and where in it the frame begins.
    ///
    /// # Errors
    /// What came is no frame of at most `max` bytes.
    pub(super) fn take(
        &mut self,
        max: usize,
        core: &Core,
    ) -> Result<Option<(FrameBytes, usize)>, SmbError> {
        while self.rest().starts_with(&KEEP_ALIVE) {
            self.at += PREFIX;
        }
        let Some((head, rest)) = self.rest().split_first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let size = length(*head, max)?;
        let (Some(frame), whole) = (rest.get(..size), PREFIX + size) else { return Ok(None) };
        let expect = if whole >= LARGE_RECORD { whole } else { 0 };
        if whole >= LARGE_RECORD && self.at == 0 && self.bytes.len() == whole {
            (self.expect, self.until) = (expect, None);
            let bytes = std::mem::take(&mut self.bytes);
            self.give_back(core, bytes.capacity());
            return Ok(Some((Arc::new(bytes), PREFIX)));
        }
        let copy = copied(core, frame);
        (self.at, self.expect, self.until) = (self.at + whole, expect, None);
        Ok(Some((copy, 0)))
    }

    /// Receives what is there, without waiting.
    ///
    /// # Errors
    /// The connection is gone.
    pub(super) fn receive(
        &mut self,
        stream: &TcpStream,
        peer: &mut Peer,
        core: &Core,
    ) -> io::Result<Received> {
        let Some(most) = self.make_room(core) else { return Ok(Received::NoRoom) };
        let received = stream.try_read_buf(&mut (&mut self.bytes).limit(most));
        match received {
            Ok(0) => Ok(Received::End),
            Ok(count) => {
                peer.arrivals.received(count);
                self.arrived_ns = stamp();
                self.until = self.until.or(Some(Deadline::after(SMB_FRAME_TIME_MAX)));
                core.budget.count_moved(count);
                Ok(Received::Some)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Received::Some),
            Err(error) => Err(error),
        }
    }

    /// Whether the frame that has begun takes too long, or stands still while others wait for the
    /// room that it takes.
    pub(super) fn is_too_slow(&self, core: &Core) -> bool {
        let now = stamp();
        let still = Duration::from_nanos(now.saturating_sub(self.arrived_ns)) >= RECORD_LOOK;
        let is_over = self.until.is_some_and(Deadline::passed);
        !self.is_empty() && (is_over || still && core.under_backpressure(now))
    }

    /// What [`Input::receive`] has found no room for.
    pub(super) fn need(&self) -> Need {
        if self.bytes.capacity() == 0 {
            return Need::bytes(RECEIVE_BUFFER).or_overdraft();
        }
        Need::large(self.frame_bytes()).or_overdraft()
    }

    /// Bytes of the frame that comes, as far as known.
    fn frame_bytes(&self) -> usize {
        match self.rest().first_chunk::<PREFIX>() {
            Some(head) => PREFIX + length(*head, SMB_MESSAGE_MAX).unwrap_or(0),
            None if self.is_empty() => self.expect,
            None => 0,
        }
    }

    /// Makes room to receive into; how many bytes may come. `None` when the budget has none: of
    /// those that have begun a few may end nevertheless.
    fn make_room(&mut self, core: &Core) -> Option<usize> {
        if self.is_empty() {
            self.bytes.clear();
            self.at = 0;
        }
        let held = self.bytes.len() - self.at;
        let need = self.frame_bytes();
        let is_alone = self.at == 0 && self.bytes.capacity() >= need;
        if need >= LARGE_RECORD && (is_alone || core.budget.has_large(need)) {
            if !is_alone {
                self.exchange(core, need);
            }
            // Only that frame, so that the next one begins a new buffer.
            return Some(need.saturating_sub(held).max(1));
        }
        if self.bytes.capacity() == 0 {
            if !core.budget.has_bytes(RECEIVE_BUFFER) && !self.take_overdraft(core) {
                return None;
            }
            self.exchange(core, RECEIVE_BUFFER);
        } else if self.bytes.capacity() - self.bytes.len() < ROOM_MIN {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        if self.bytes.capacity() == self.bytes.len() {
            // The rest of a frame that has begun and is larger than the buffer.
            if !core.budget.has_large(need) && !self.take_overdraft(core) {
                return None;
            }
            self.exchange(core, need.max(self.bytes.len() + ROOM_MIN));
        }
        Some(self.bytes.capacity() - self.bytes.len())
    }

    fn take_overdraft(&mut self, core: &Core) -> bool {
        self.overdraft = self.overdraft || core.budget.take_overdraft();
        self.overdraft
    }

    /// Gives bytes back that a buffer has taken of the budget.
    fn give_back(&mut self, core: &Core, bytes: usize) {
        core.budget.give_bytes(bytes);
        if std::mem::take(&mut self.overdraft) {
            core.budget.give_overdraft();
        }
    }

    /// Moves what is there to a buffer of this size.
    fn exchange(&mut self, core: &Core, size: usize) {
        let mut other = match size {
            RECEIVE_BUFFER => core.buffers.take_receive(),
            _ => core.engine.large.take(size),
        };
        core.budget.take_bytes(other.capacity());
        other.extend_from_slice(self.rest());
        let (until, overdraft) = (self.until, std::mem::take(&mut self.overdraft));
        self.put_back(core);
        (self.bytes, self.until, self.overdraft) = (other, until, overdraft);
    }

    /// Gives the buffer back; what is in it is gone.
    pub(super) fn put_back(&mut self, core: &Core) {
        (self.at, self.until) = (0, None);
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.capacity() > 0 {
            self.give_back(core, bytes.capacity());
            match bytes.capacity() {
                RECEIVE_BUFFER => core.buffers.give_receive(bytes),
                _ => core.engine.large.give(bytes),
            }
        }
    }
}
