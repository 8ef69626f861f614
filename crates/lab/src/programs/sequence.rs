//! What threads were asked to do, as a hash: the calls of each thread in their order, whatever they
//! returned. Two runs of one seed have the same hash of a repeatable program.

use crate::operations::{Lane, Mark, mixed};
use lab_program::cursor::Call;

/// Calls of one thread so far.
#[derive(Debug, Clone, Default)]
pub struct Sequence {
    count: u64,
    hash: u64,
    marks: Vec<Mark>,
}

impl Sequence {
    /// Takes the next call. The hash is retained after the first 1, 4, 16, … of them.
    #[inline]
    pub fn add(&mut self, call: &Call) {
        let what = u64::from(call.act) << 40 | u64::from(call.set) << 8 | call.op as u64;
        let range = mixed(call.offset) ^ call.len ^ call.entry.rotate_left(32);
        self.hash = mixed(self.hash.rotate_left(5) ^ mixed(what) ^ range);
        self.count += 1;
        if self.count.is_power_of_two() && self.count.trailing_zeros().is_multiple_of(2) {
            self.marks.push(Mark(self.hash));
        }
    }

    /// As the sequence of a client.
    pub fn lane(&self) -> Lane {
        Lane { lane: 0, count: self.count, marks: self.marks.clone() }
    }
}
