//! Buffers used again: receive buffers per core, large ones for all, and reply buffers into which
//! file data is read without being cleared first.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Mutex;

use base::limits::{
    BUFFERS_KEPT, LARGE_BUFFERS_KEPT, LARGE_RECORD, LARGE_REPLIES_KEPT, RECEIVE_BUFFER,
};

/// A reply under construction: a `Vec` that remembers how much of its memory has ever been written,
/// so that room for file data need not be cleared each time.
#[derive(Debug, Default)]
pub struct ReplyBuf {
    bytes: Vec<u8>,
    /// Bytes from the start that are known to be initialised, while address and capacity are these.
    written: usize,
    known: (usize, usize),
    /// Data among the bytes that a device may send apart from the rest, in order.
    items: Vec<Range<usize>>,
}

impl ReplyBuf {
    /// A buffer with room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        let bytes = Vec::with_capacity(capacity);
        Self { bytes, written: 0, known: (0, 0), items: Vec::new() }
    }

    /// The bytes so far, to append to. The `Vec` must not be exchanged for another.
    pub fn vec(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that fit without asking for memory.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes everything from `len` on back.
    pub fn truncate(&mut self, len: usize) {
        self.note();
        self.bytes.truncate(len);
        self.items.retain(|item| item.end <= len);
    }

    /// Notes data that a device may send apart from the rest, behind what was noted before.
    pub fn note_item(&mut self, item: Range<usize>) {
        self.items.push(item);
    }

    /// The same of several, as offsets from `start` on.
    pub fn note_items(&mut self, start: usize, items: impl IntoIterator<Item = Range<usize>>) {
        let items = items.into_iter();
        self.items.extend(items.map(|item| start + item.start..start + item.end));
    }

    /// Takes what was noted, as offsets from `start` on: nothing was noted before that.
    pub fn take_items(&mut self, start: usize) -> Vec<Range<usize>> {
        let mut items = std::mem::take(&mut self.items);
        for item in &mut items {
            *item = item.start.saturating_sub(start)..item.end.saturating_sub(start);
        }
        items
    }

    /// Removes and returns everything from `at` on.
    pub fn split_off(&mut self, at: usize) -> Vec<u8> {
        let tail = self.bytes.get(at..).unwrap_or_default().to_vec();
        self.truncate(at);
        tail
    }

    /// The bytes, given away.
    pub fn into_vec(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends `count` bytes of whatever was there before and returns where they start; the caller
    /// overwrites them or truncates.
    pub fn extend_stale(&mut self, count: usize) -> usize {
        self.note();
        let start = self.bytes.len();
        self.bytes.reserve(count);
        let place = self.place();
        if place != self.known {
            // Moved: only what the Vec itself carried over is known to be initialised.
            self.known = place;
            self.written = start;
        }
        let end = start + count;
        if self.written < end {
            self.bytes.resize(end, 0);
            self.written = end;
        } else {
            // SAFETY: `end` is within the capacity just reserved, and by `written` every byte below
            // it was initialised in this same allocation (`known`), which nothing de-initialises.
            unsafe { self.bytes.set_len(end) };
        }
        start
    }

    /// Takes account of what was appended since.
    fn note(&mut self) {
        let place = self.place();
        if place != self.known {
            self.known = place;
            self.written = 0;
        }
        self.written = self.written.max(self.bytes.len());
    }

    fn place(&self) -> (usize, usize) {
        (self.bytes.as_ptr() as usize, self.bytes.capacity())
    }
}

/// One core's spare buffers.
#[derive(Debug, Default)]
pub struct CoreBuffers {
    receive: RefCell<Vec<Vec<u8>>>,
    replies: RefCell<Vec<ReplyBuf>>,
}

impl CoreBuffers {
    /// An empty receive buffer of [`RECEIVE_BUFFER`] bytes.
    pub fn take_receive(&self) -> Vec<u8> {
        self.receive.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(RECEIVE_BUFFER))
    }

    /// Takes a receive buffer back; one of another size is freed.
    pub fn give_receive(&self, mut buffer: Vec<u8>) {
        let mut kept = self.receive.borrow_mut();
        if buffer.capacity() == RECEIVE_BUFFER && kept.len() < BUFFERS_KEPT {
            buffer.clear();
            kept.push(buffer);
        }
    }

    /// An empty reply buffer.
    pub fn take_reply(&self) -> ReplyBuf {
        self.replies.borrow_mut().pop().unwrap_or_else(|| ReplyBuf::with_capacity(RECEIVE_BUFFER))
    }

    /// Takes a reply buffer back. Of those grown by large reads a few are kept, and given out
    /// first: to clear a fresh megabyte for each read would cost as much as sending it.
    pub fn give_reply(&self, mut buffer: ReplyBuf) {
        let mut kept = self.replies.borrow_mut();
        let large = |b: &ReplyBuf| b.capacity() > 2 * RECEIVE_BUFFER;
        let many = large(&buffer) && kept.iter().filter(|b| large(b)).count() >= LARGE_REPLIES_KEPT;
        if kept.len() < BUFFERS_KEPT && !many && buffer.capacity() > 0 {
            buffer.truncate(0);
            kept.push(buffer);
        }
    }
}

/// Large buffers, shared by the cores and the pool: a fresh megabyte costs more in page faults than
/// the data costs to copy.
#[derive(Debug, Default)]
pub struct LargeBuffers {
    spare: Mutex<Vec<Vec<u8>>>,
}

impl LargeBuffers {
    /// An empty buffer with room for at least `size` bytes.
    pub fn take(&self, size: usize) -> Vec<u8> {
        let mut spare = self.spare.lock().unwrap_or_else(|e| e.into_inner());
        let fit = spare.iter().position(|b| b.capacity() >= size);
        match fit {
            Some(index) => spare.swap_remove(index),
            None => {
                drop(spare);
                Vec::with_capacity(size)
            }
        }
    }

    /// Takes a buffer back; small ones are freed.
    pub fn give(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() < LARGE_RECORD {
            return;
        }
        let mut spare = self.spare.lock().unwrap_or_else(|e| e.into_inner());
        if spare.len() < LARGE_BUFFERS_KEPT {
            buffer.clear();
            spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests;
