//! Programs of load threads: what each thread does next, on which file, with how many bytes.
//!
//! Pure: nothing here opens a file or a socket, and no clock is read. The same text, settings and
//! seed give the same calls for each thread, on one machine or on many.
//!
//! - [`dist`]: distributions of sizes, counts and indexes.
//! - [`tree`]: the files of a set: names and sizes as functions of seed and index.
//! - [`members`]: which files of a set exist.
//! - [`program`]: threads, their acts, and the files that these use.
//! - [`cursor`]: one thread in its program.
//! - [`wml`]: the workload model language of Filebench, read into a program.
//! - [`limits`]: bounds of all of it.

pub mod cursor;
pub mod dist;
pub mod limits;
pub mod members;
pub mod program;
pub mod tree;
pub mod wml;

use base::random::{Random, SeededRandom};

/// A seed for one part of a program: the same for the same three numbers, unlike for others.
pub fn seed_of(seed: u64, part: u64, index: u64) -> u64 {
    let mut first = SeededRandom::new(seed ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93));
    let mut second = SeededRandom::new(first.next_u64() ^ index);
    second.next_u64()
}
