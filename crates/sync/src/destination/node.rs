//! A directory with operations in progress: its own times and mode are set when all have ended.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use wire::dsync::Meta;

use super::{Shared, why};
use crate::stop::lock;
use crate::tree::{Tree, join};

/// How far a directory of the source has one here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalEntry {
    /// It is there.
    There,
    /// A run that is not a dry one would have made it.
    Would,
    /// It cannot be: what is in it is passed over.
    Not,
}

/// A directory of the source's tree.
pub struct Node {
    /// The way to it.
    pub path: Vec<u8>,
    /// Whether it is here.
    pub here: LocalEntry,
    /// What it should be.
    wanted: Meta,
    above: Option<Arc<Node>>,
    /// Operations in progress in it: its own listing, directories, files, links.
    pending: AtomicUsize,
    /// Whether it has to be made what it should be.
    changed: AtomicBool,
    /// What runs that broke off have left in it.
    asides: Mutex<Vec<Vec<u8>>>,
}

impl Node {
    /// A directory while it is listed.
    pub fn new(
        path: Vec<u8>,
        here: LocalEntry,
        wanted: Meta,
        above: Option<Arc<Self>>,
    ) -> Arc<Self> {
        let (pending, changed) = (AtomicUsize::new(1), AtomicBool::new(false));
        Arc::new(Self { path, here, wanted, above, pending, changed, asides: Mutex::default() })
    }

    /// Something that a run has left, which is taken up or swept.
    pub fn left(&self, aside: Vec<u8>) {
        lock(&self.asides).push(aside);
    }

    /// Whether a run has left this.
    pub fn has(&self, aside: &[u8]) -> bool {
        lock(&self.asides).iter().any(|left| left == aside)
    }

    /// All that was left; the caller owns it afterwards.
    pub fn take_left(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut lock(&self.asides))
    }

    /// It is no longer what it was.
    pub fn touch(&self) {
        self.changed.store(true, Ordering::Release);
    }

    /// One more operation is in progress in it.
    pub fn hold(&self) {
        self.pending.fetch_add(1, Ordering::AcqRel);
    }
}

impl<T: Tree> Shared<T> {
    /// An operation in a directory has ended. With the last one the directory gets its metadata,
    /// and the one above has one operation less.
    pub(super) fn release(&self, node: &Arc<Node>) {
        let mut at = Some(Arc::clone(node));
        while let Some(node) = at.take() {
            if node.pending.fetch_sub(1, Ordering::AcqRel) > 1 {
                return;
            }
            self.settle(&node);
            at.clone_from(&node.above);
        }
    }

    fn settle(&self, node: &Node) {
        let real = node.here == LocalEntry::There && !self.options.dry_run;
        if !real || !node.changed.load(Ordering::Acquire) {
            return;
        }
        let set = self.tree.dir(&node.path).and_then(|dir| {
            // Everything in it has ended well, or has failed: nothing will be taken up any more.
            for aside in node.take_left() {
                self.sweep(&dir, &join(&node.path, &aside), &aside);
            }
            self.tree.set(&dir, b"", &node.wanted, self.keep)
        });
        if let Err(e) = set {
            self.fail(&node.path, &format!("its metadata: {}", why(&e)));
        }
    }
}
