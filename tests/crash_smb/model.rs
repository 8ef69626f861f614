//! The states that a file may have after a power cut, derived from the requests and their
//! acknowledgements. A block of a file is one word all over; a file has one request in flight at
//! most.

use e2e::smb::scene::UID;
use sim::forget::ForgetFs;

/// Bytes of a block.
pub const BLOCK: usize = 4096;
/// Blocks of a file.
pub const BLOCKS: usize = 6;

/// The bytes of a block of this word; 0 is what was never written.
pub fn bytes(word: u64) -> Vec<u8> {
    word.to_be_bytes().repeat(BLOCK / 8)
}

/// The words that a block may have: in the order in which they were sent.
#[derive(Debug, Clone)]
struct Block {
    words: Vec<u64>,
    /// The last one that was acknowledged.
    acknowledged: usize,
    /// The last one that must outlive a power cut.
    durable: usize,
}

impl Default for Block {
    fn default() -> Self {
        Self { words: vec![0], acknowledged: 0, durable: 0 }
    }
}

/// A file, or the place of one.
#[derive(Debug, Clone, Default)]
pub struct File {
    /// Its name; `None` if there is none.
    pub name: Option<String>,
    /// The name that a request in flight would give it, or none.
    pub next: Option<Option<String>>,
    /// Names that it must not have any more.
    gone: Vec<String>,
    blocks: [Block; BLOCKS],
}

impl File {
    /// A word is sent for a block; gives its number.
    pub fn send(&mut self, block: usize, word: u64) -> usize {
        let block = &mut self.blocks[block];
        block.words.push(word);
        block.words.len() - 1
    }

    /// It was acknowledged; durably, or into memory.
    pub fn wrote(&mut self, block: usize, number: usize, durable: bool) {
        let block = &mut self.blocks[block];
        block.acknowledged = number;
        if durable {
            self.flushed();
        }
    }

    /// All that was acknowledged before is durable: a flush is of the whole file.
    pub fn flushed(&mut self) {
        for block in &mut self.blocks {
            block.durable = block.durable.max(block.acknowledged);
        }
    }

    /// A change of its name was acknowledged.
    pub fn named(&mut self) {
        let Some(next) = self.next.take() else { return };
        if next.is_none() || self.name.is_none() {
            self.blocks = Default::default();
        }
        self.gone.extend(std::mem::replace(&mut self.name, next));
    }

    /// What is wrong with it after a power cut; from now on it is what is there.
    pub fn cut(&mut self, image: &ForgetFs) -> Option<String> {
        let look = |name: &str| image.look(&format!("share/{name}"));
        if let Some(name) = self.gone.iter().find(|name| look(name).is_some()) {
            return Some(format!("{name} is there again"));
        }
        let next = self.next.take();
        // A CREATE that was not acknowledged may leave a name on disk that is still root's.
        let may_be_roots = self.name.is_none() && next.is_some();
        let there = |name: &Option<String>| name.as_ref().is_some_and(|name| look(name).is_some());
        let name = match &next {
            None if self.name.is_some() && !there(&self.name) => {
                return Some(format!("{:?} has gone", self.name));
            }
            None => self.name.clone(),
            // One of the two; a name and then another are never both there.
            Some(next) => match (there(&self.name), there(next)) {
                (true, true) => return Some(format!("both {:?} and {next:?}", self.name)),
                (true, false) => self.name.clone(),
                (false, true) => next.clone(),
                (false, false) if self.name.is_none() || next.is_none() => None,
                (false, false) => return Some(format!("neither {:?} nor {next:?}", self.name)),
            },
        };
        if name.is_none() || self.name.is_none() {
            self.blocks = Default::default();
        }
        self.gone.clear();
        self.name = name;
        let left = self.name.as_deref().and_then(look);
        match left.as_ref().map(|left| left.uid) {
            // The file is not used any more.
            Some(0) if may_be_roots => self.name = None,
            Some(uid) if uid != UID => return Some(format!("{:?} belongs to {uid}", self.name)),
            _ => {}
        }
        let data = left.map(|left| left.data).unwrap_or_default();
        let wrong = self.blocks.iter_mut().enumerate().find_map(|(at, block)| block.cut(at, &data));
        wrong.map(|what| format!("{:?}: {what}", self.name))
    }
}

impl Block {
    fn cut(&mut self, at: usize, data: &[u8]) -> Option<String> {
        let mut there = data.get(at * BLOCK..).unwrap_or_default().to_vec();
        there.resize(BLOCK, 0);
        there.truncate(BLOCK);
        let possible = self.words.get(self.durable..).unwrap_or_default();
        let Some(word) = possible.iter().find(|word| there == bytes(**word)).copied() else {
            return Some(format!("block {at} has {:02x?}, not one of {possible:x?}", &there[..8]));
        };
        *self = Self { words: vec![word], acknowledged: 0, durable: 0 };
        None
    }
}
