//! The hash over what was sent of a file.

use std::io;

use base::limits::DSYNC_PIECE;

use crate::tree::Tree;

/// The sum of the hashes of pieces, each with where it lies: they come in any order, over several
/// streams. Holes are neither sent nor hashed.
///
/// A sum of hashes detects faults, and not what a source does on purpose; that could send something
/// else at once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Digest([u64; 4]);

/// BLAKE3 of a piece.
pub fn piece(offset: u64, bytes: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&offset.to_be_bytes());
    hasher.update(bytes);
    *hasher.finalize().as_bytes()
}

impl Digest {
    /// Takes a piece.
    pub fn piece(&mut self, offset: u64, bytes: &[u8]) {
        self.add(piece(offset, bytes));
    }

    /// Takes a block that the other side has, by its strong sum: that was made to find it.
    pub fn block(&mut self, offset: u64, strong: &[u8; 16]) {
        self.piece(offset, strong);
    }

    /// Takes the hash of a piece, as [`piece`] gives it.
    pub fn add(&mut self, hash: [u8; 32]) {
        let mut carry = false;
        for (lane, bytes) in self.0.iter_mut().zip(hash.as_chunks().0) {
            let (sum, over) = lane.overflowing_add(u64::from_le_bytes(*bytes));
            let (sum, more) = sum.overflowing_add(u64::from(carry));
            (*lane, carry) = (sum, over || more);
        }
    }

    /// The sum, the lowest byte first.
    pub fn finish(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (out, lane) in bytes.as_chunks_mut().0.iter_mut().zip(self.0) {
            *out = lane.to_le_bytes();
        }
        bytes
    }
}

/// The strong sum of a block: the first half of its BLAKE3, 2^64 work to have two blocks meet.
pub fn strong(block: &[u8]) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&blake3::hash(block).as_bytes()[..16]);
    half
}

/// BLAKE3 of a file's bytes, holes as zeros.
pub fn content<T: Tree>(tree: &T, file: &T::File) -> io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    let (mut bytes, mut at) = (vec![0; DSYNC_PIECE], 0);
    loop {
        match tree.read(file, &mut bytes, at)? {
            0 => return Ok(*hasher.finalize().as_bytes()),
            n => {
                hasher.update(&bytes[..n]);
                at += n as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests;
