//! What has come over a connection and was not taken yet. Buffers are taken when there is data and
//! given back when there is none.
//!
//! A large frame (a WRITE) gets a buffer of exactly its size, which its request takes over. After
//! one large frame the next is expected to be as large, so that in a stream of them nothing is
//! copied.

use std::io;

use base::clock::stamp;
use base::limits::{LARGE_RECORD, RECEIVE_BUFFER, SMB_MESSAGE_MAX};
use bytes::BufMut;
use tokio::net::TcpStream;
use wire::smb::codec::SmbError;
use wire::smb::frame::{PREFIX, length};

use crate::exec::Core;

/// Free room below which what is left of a buffer is moved to its front before the next receive.
const ROOM_MIN: usize = 8 << 10;

/// Received bytes.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    at: usize,
    /// Bytes of the last frame with its prefix, if that was large.
    expect: usize,
    /// When the last of them came.
    pub(super) arrived_ns: u64,
}

impl Input {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
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
    ) -> Result<Option<(Vec<u8>, usize)>, SmbError> {
        let Some((head, rest)) = self.rest().split_first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let size = length(*head, max)?;
        let (Some(frame), whole) = (rest.get(..size), PREFIX + size) else { return Ok(None) };
        let expect = if whole >= LARGE_RECORD { whole } else { 0 };
        if whole >= LARGE_RECORD && self.at == 0 && self.bytes.len() == whole {
            self.expect = expect;
            let bytes = std::mem::take(&mut self.bytes);
            core.budget.give_bytes(bytes.capacity());
            return Ok(Some((bytes, PREFIX)));
        }
        let mut copy = if size >= LARGE_RECORD {
            core.engine.large.take(size)
        } else {
            Vec::with_capacity(size)
        };
        copy.extend_from_slice(frame);
        (self.at, self.expect) = (self.at + whole, expect);
        Ok(Some((copy, 0)))
    }

    /// Receives what is there, without waiting; false at the end of the stream.
    ///
    /// # Errors
    /// The connection is gone.
    pub(super) fn receive(&mut self, stream: &TcpStream, core: &Core) -> io::Result<bool> {
        let most = self.make_room(core);
        let received = stream.try_read_buf(&mut (&mut self.bytes).limit(most));
        match received {
            Ok(count) => {
                self.arrived_ns = stamp();
                core.budget.count_moved(count);
                Ok(count > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Makes room to receive into; how many bytes may come.
    fn make_room(&mut self, core: &Core) -> usize {
        if self.is_empty() {
            self.bytes.clear();
            self.at = 0;
        }
        let held = self.bytes.len() - self.at;
        let need = match self.rest().first_chunk::<PREFIX>() {
            Some(head) => PREFIX + length(*head, SMB_MESSAGE_MAX).unwrap_or(0),
            None if held == 0 => self.expect,
            None => 0,
        };
        let is_alone = self.at == 0 && self.bytes.capacity() >= need;
        if need >= LARGE_RECORD && (is_alone || core.budget.has_large(need)) {
            if !is_alone {
                self.exchange(core, need);
            }
            // Only that frame, so that the next one begins a new buffer.
            return need.saturating_sub(held).max(1);
        }
        if self.bytes.capacity() == 0 {
            self.exchange(core, RECEIVE_BUFFER);
        } else if self.bytes.capacity() - self.bytes.len() < ROOM_MIN {
            // It grows with what comes: the account has no room for the whole of a large frame.
            let before = self.bytes.capacity();
            self.bytes.drain(..self.at);
            self.at = 0;
            self.bytes.reserve(ROOM_MIN);
            core.budget.take_bytes(self.bytes.capacity().saturating_sub(before));
        }
        self.bytes.capacity() - self.bytes.len()
    }

    /// Moves what is there to a buffer of this size.
    fn exchange(&mut self, core: &Core, size: usize) {
        let mut other = match size {
            RECEIVE_BUFFER => core.buffers.take_receive(),
            _ => core.engine.large.take(size),
        };
        core.budget.take_bytes(other.capacity());
        other.extend_from_slice(self.rest());
        self.put_back(core);
        self.bytes = other;
    }

    /// Gives the buffer back; what is in it is gone.
    pub(super) fn put_back(&mut self, core: &Core) {
        self.at = 0;
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.capacity() > 0 {
            core.budget.give_bytes(bytes.capacity());
            match bytes.capacity() {
                RECEIVE_BUFFER => core.buffers.give_receive(bytes),
                _ => core.engine.large.give(bytes),
            }
        }
    }
}
