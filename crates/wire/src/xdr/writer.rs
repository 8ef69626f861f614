//! Appends XDR to a buffer that the caller owns and reuses, and patches what is known only later.

use std::ops::Range;

/// Longest zero padding of an opaque.
const PAD: [u8; 3] = [0; 3];

/// Appends XDR items to a `Vec`. It allocates only when the vector must grow, so a caller that
/// reserves once, or reuses its buffer, writes without allocation.
#[derive(Debug)]
pub struct Writer<'b> {
    buf: &'b mut Vec<u8>,
}

impl<'b> Writer<'b> {
    /// Appends to `buf`, after what is there.
    #[inline]
    pub fn new(buf: &'b mut Vec<u8>) -> Self {
        Self { buf }
    }

    /// Bytes in the buffer, also those before this writer began.
    #[inline]
    pub fn len(&self) -> usize {
        self.buf.len()
    }

    /// Whether the buffer holds nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }

    /// Makes room for `bytes` more.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) {
        self.buf.reserve(bytes);
    }

    /// Bytes as they are, without length or padding.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// Unsigned 32-bit integer (RFC 4506 §4.2).
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    /// Unsigned 64-bit integer (§4.5).
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.raw(&value.to_be_bytes());
    }

    /// Boolean (§4.4).
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.u32(u32::from(value));
    }

    /// Fixed-length opaque with its padding (§4.9).
    #[inline]
    pub fn fixed(&mut self, bytes: &[u8]) {
        self.raw(bytes);
        self.raw(&PAD[..padding(bytes.len())]);
    }

    /// Variable-length opaque or string (§4.10, §4.11). A length beyond 32 bits cannot be sent; no
    /// buffer is that large.
    #[inline]
    pub fn opaque(&mut self, bytes: &[u8]) {
        debug_assert!(u32::try_from(bytes.len()).is_ok());
        self.u32(bytes.len() as u32);
        self.fixed(bytes);
    }

    /// `count` zero bytes, to be filled in later.
    #[inline]
    pub fn zeros(&mut self, count: usize) -> Range<usize> {
        let start = self.buf.len();
        self.buf.resize(start + count, 0);
        start..start + count
    }

    /// Replaces the integer that was written at `at`. Our own offsets only: out of range panics.
    #[inline]
    pub fn patch_u32(&mut self, at: usize, value: u32) {
        self.patch(at, &value.to_be_bytes());
    }

    /// Replaces bytes that were written at `at`. Our own offsets only: out of range panics.
    #[inline]
    pub fn patch(&mut self, at: usize, bytes: &[u8]) {
        self.buf[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Bytes that were written, to be filled in place. Our own offsets only.
    #[inline]
    pub fn slice_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.buf[range]
    }

    /// What was written from `start` on.
    #[inline]
    pub fn written_since(&self, start: usize) -> &[u8] {
        &self.buf[start..]
    }

    /// Forgets everything from `len` on, to write something else instead.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.buf.truncate(len);
    }

    /// Takes out bytes that turned out not to be needed; what follows moves up.
    pub fn remove(&mut self, range: Range<usize>) {
        self.buf.drain(range);
    }
}

/// Zero bytes that follow an opaque of `len` bytes (0 to 3).
#[inline]
pub const fn padding(len: usize) -> usize {
    len.wrapping_neg() & 3
}
