//! What is known of files of several names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use base::limits::DSYNC_LINKS_MAX;
use wire::dsync::FileId;

use super::node::Node;
use crate::memory::{Reserved, RunMemory};

/// It is the file that was there.
pub(super) const KEPT: u8 = 0;

/// It is another file than it was.
pub(super) const NEW: u8 = 1;

/// It could not be had.
pub(super) const FAILED: u8 = 2;

/// What becomes of a file.
#[derive(Debug, Clone, Default)]
pub struct LinkOutcome(Arc<AtomicU8>);

impl LinkOutcome {
    /// It is another file than it was.
    pub fn set_new(&self) {
        self.0.store(NEW, Ordering::Release);
    }

    /// It could not be had.
    pub fn set_failed(&self) {
        self.0.store(FAILED, Ordering::Release);
    }

    pub(super) fn get(&self) -> u8 {
        self.0.load(Ordering::Acquire)
    }
}

/// The first name of a file of the source.
pub(super) struct First {
    pub(super) path: Vec<u8>,
    pub(super) fate: LinkOutcome,
    pub(super) own: Option<FileId>,
}

/// Another name of a file.
pub(super) struct Other {
    pub(super) path: Vec<u8>,
    pub(super) node: Arc<Node>,
    pub(super) file: FileId,
    pub(super) own: Option<FileId>,
}

/// All files of several names.
pub struct Links {
    pub(super) firsts: HashMap<FileId, First>,
    pub(super) others: Vec<Other>,
    /// Files here of several names that a file of the source has kept already.
    pub(super) taken: HashSet<FileId>,
    pub(super) full: bool,
    held: Reserved,
}

/// What a path takes in the table in addition to its bytes: a row and its outcome.
const ROW_BYTES: u64 = (size_of::<FileId>() + size_of::<First>() + 2 * size_of::<usize>()) as u64;

impl Links {
    /// No file.
    pub(super) fn new(memory: &Arc<RunMemory>) -> Self {
        let (firsts, others, taken) = Default::default();
        Self { firsts, others, taken, full: false, held: memory.reserve() }
    }

    /// Whether there is room for one more, with a path of that length.
    pub(super) fn has_room(&mut self, path: usize) -> bool {
        let known = self.firsts.len() + self.others.len() + self.taken.len();
        known < DSYNC_LINKS_MAX && self.held.grow(ROW_BYTES + path as u64).is_ok()
    }
}
