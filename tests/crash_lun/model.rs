//! What each block of a unit may hold after a power cut, from what was sent and what of it was
//! acknowledged. A block is one word all over.

use std::collections::HashSet;

use e2e::iscsi::BLOCK;

/// What one block may hold.
#[derive(Debug, Clone)]
struct Block {
    /// Every word that was sent for it, in order, since it was last known.
    words: Vec<u64>,
    /// The last one that was acknowledged.
    acknowledged: usize,
    /// The last one that must outlive a power cut.
    durable: usize,
}

/// What blocks from the first on have been sent, as numbers for each in its history.
#[derive(Debug, Clone)]
pub struct Sent {
    /// First block.
    pub lba: u64,
    versions: Vec<usize>,
}

/// All blocks.
pub struct Model {
    blocks: Vec<Block>,
    /// Blocks with a command in flight.
    busy: HashSet<u64>,
}

/// The bytes of a block of this word.
pub fn bytes(word: u64) -> [u8; BLOCK] {
    std::array::from_fn(|at| word.to_be_bytes()[at % 8])
}

impl Model {
    /// `count` blocks of zeros.
    pub fn new(count: usize) -> Self {
        let block = Block { words: vec![0], acknowledged: 0, durable: 0 };
        Self { blocks: vec![block; count], busy: HashSet::new() }
    }

    /// Whether no command for these blocks is in flight.
    pub fn is_free(&self, lba: u64, count: usize) -> bool {
        (lba..lba + count as u64).all(|lba| !self.busy.contains(&lba))
    }

    /// What a read of a block returns: the block must be free.
    pub fn word(&self, lba: u64) -> u64 {
        self.blocks[lba as usize].words.last().copied().unwrap_or_default()
    }

    /// These words are sent for the blocks from `lba` on, which are free.
    pub fn send(&mut self, lba: u64, words: &[u64]) -> Sent {
        let mut versions = Vec::new();
        for (at, word) in (lba..).zip(words) {
            let block = &mut self.blocks[at as usize];
            block.words.push(*word);
            versions.push(block.words.len() - 1);
            self.busy.insert(at);
        }
        Sent { lba, versions }
    }

    /// They were acknowledged; durably, or into the cache.
    pub fn acknowledge(&mut self, sent: &Sent, durable: bool) {
        for (lba, version) in (sent.lba..).zip(&sent.versions) {
            let block = &mut self.blocks[lba as usize];
            block.acknowledged = *version;
            if durable {
                block.durable = *version;
            }
            self.busy.remove(&lba);
        }
    }

    /// What is acknowledged now, for each block: what a flush that is asked for now must cover.
    pub fn acknowledged(&self) -> Vec<usize> {
        self.blocks.iter().map(|block| block.acknowledged).collect()
    }

    /// A flush that covers this much was acknowledged.
    pub fn flushed(&mut self, covered: &[usize]) {
        for (block, covered) in self.blocks.iter_mut().zip(covered) {
            block.durable = block.durable.max(*covered);
        }
    }

    /// What is wrong with the unit after a power cut; from now on it holds this.
    pub fn cut(&mut self, unit: &[u8]) -> Option<String> {
        self.busy.clear();
        let mut wrong = None;
        for (lba, (block, there)) in self.blocks.iter_mut().zip(unit.chunks(BLOCK)).enumerate() {
            let possible = block.words.get(block.durable..).unwrap_or_default();
            let word = possible.iter().find(|word| *there == bytes(**word)).copied();
            if word.is_none() && wrong.is_none() {
                let first = &there[..8];
                let torn = if there.chunks(8).all(|w| w == first) { "" } else { ", torn" };
                wrong =
                    Some(format!("block {lba} has {first:02x?}{torn}, not one of {possible:x?}"));
            }
            *block = Block { words: vec![word.unwrap_or_default()], acknowledged: 0, durable: 0 };
        }
        wrong
    }
}
