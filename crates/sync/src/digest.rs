//! The hash over what was sent of a file.

use std::io;

use base::limits::DSYNC_PIECE;
use wire::dsync::Data;

use crate::tree::Tree;

/// BLAKE3 over pieces, each with where it lies: holes are neither sent nor hashed.
#[derive(Default)]
pub struct Digest(blake3::Hasher);

impl Digest {
    /// Takes a piece.
    pub fn piece(&mut self, offset: u64, bytes: &[u8]) {
        self.0.update(&offset.to_be_bytes());
        self.0.update(bytes);
    }

    /// Takes a piece as it came.
    pub fn data(&mut self, data: &Data<'_>) {
        self.piece(data.offset, data.bytes);
    }

    /// The hash.
    pub fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
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
