//! A random order in which each record comes once, as IOzone's shuffled list of all records has it.
//! Each position is computed when it is due, by a Feistel network: no list is made, so that a file
//! of any number of records takes no memory and no time before the test begins.

use crate::operations::mixed;
use base::random::{Random, SeededRandom};

/// Rounds of the network: with four the order is as good as random (Luby and Rackoff).
const ROUNDS: usize = 4;

/// The numbers below `all`, each once, in an order of their seed.
#[derive(Debug, Clone)]
pub(super) struct Shuffle {
    all: u64,
    /// Bits of each half of a number.
    half: u32,
    keys: [u64; ROUNDS],
}

impl Shuffle {
    /// The same order for the same seed.
    pub(super) fn new(all: u64, seed: u64) -> Self {
        let bits = u64::BITS - all.saturating_sub(1).leading_zeros();
        let mut random = SeededRandom::new(seed);
        let keys = std::array::from_fn(|_| random.next_u64());
        Self { all, half: bits.div_ceil(2).max(1), keys }
    }

    /// The number at a position below `all`.
    pub(super) fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.all, "{position} of {}", self.all);
        // The network is of the next power of four: what lies beyond `all` is mapped once more,
        // which leads back to `position` at the latest.
        let mut at = self.network(position);
        while at >= self.all {
            at = self.network(at);
        }
        at
    }

    fn network(&self, number: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let halves = (number >> self.half, number & mask);
        let (left, right) = self
            .keys
            .iter()
            .fold(halves, |(left, right), key| (right, left ^ (mixed(right ^ key) & mask)));
        left << self.half | right
    }
}

#[cfg(test)]
mod tests;
