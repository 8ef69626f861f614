//! What is known of files of several names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use wire::dsync::FileId;

use super::node::Node;

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
#[derive(Default)]
pub struct Links {
    pub(super) firsts: HashMap<FileId, First>,
    pub(super) others: Vec<Other>,
    /// Files here of several names that a file of the source has kept already.
    pub(super) taken: HashSet<FileId>,
    pub(super) full: bool,
}
