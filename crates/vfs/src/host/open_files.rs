//! All descriptors for reading and writing that are kept for the next caller, so that there are not
//! too many.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use base::limits::OPEN_FILES_PER_NODE;

use crate::cred::Cred;
use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::open::{Mode, OpenFile};

/// All of them, so that there are not too many.
pub struct OpenFiles {
    order: Mutex<VecDeque<(Weak<Node>, Weak<OpenFile>)>>,
    capacity: usize,
}

impl OpenFiles {
    /// How many descriptors it keeps at most.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// At most `capacity` descriptors.
    pub fn new(capacity: usize) -> Self {
        Self { order: Mutex::default(), capacity: capacity.max(1) }
    }

    /// The kept descriptor of `node` for `cred`.
    #[inline]
    pub fn get(&self, node: &Node, cred: &Cred, mode: Mode) -> Option<Arc<OpenFile>> {
        let files = lock(&node.files);
        let file = files.iter().find(|file| file.mode.covers(mode) && file.cred == *cred)?;
        file.used.store(true, Ordering::Relaxed);
        Some(Arc::clone(file))
    }

    /// Keeps a descriptor.
    pub fn keep(&self, node: &Arc<Node>, file: Arc<OpenFile>) {
        let mut files = lock(&node.files);
        files.retain(|other| other.cred != file.cred || !file.mode.covers(other.mode));
        if files.len() >= OPEN_FILES_PER_NODE {
            files.remove(0);
        }
        files.push(Arc::clone(&file));
        drop(files);
        let mut order = lock(&self.order);
        order.push_back((Arc::downgrade(node), Arc::downgrade(&file)));
        let mut tries = order.len();
        while order.len() > self.capacity && tries > 0 {
            tries -= 1;
            let Some((node, file)) = order.pop_front() else { break };
            // Closed already, with its node or when another descriptor replaced it.
            let (Some(node), Some(file)) = (node.upgrade(), file.upgrade()) else { continue };
            if file.used.swap(false, Ordering::Relaxed) && tries > self.capacity / 2 {
                order.push_back((Arc::downgrade(&node), Arc::downgrade(&file)));
                continue;
            }
            lock(&node.files).retain(|other| !Arc::ptr_eq(other, &file));
        }
    }

    /// Closes a descriptor if its rights are no longer valid.
    pub fn give_up(&self, node: &Node, file: &Arc<OpenFile>) {
        lock(&node.files).retain(|other| !Arc::ptr_eq(other, file));
    }

    /// Closes the descriptors of a file that were not used since the last call: one for writing
    /// keeps the file from being executed, and its file system from being made read-only.
    pub fn give_up_idle(node: &Node) {
        lock(&node.files).retain(|file| file.used.swap(false, Ordering::Relaxed));
    }

    /// Descriptors kept, for statistics.
    pub fn len(&self) -> usize {
        lock(&self.order).iter().filter(|(_, file)| file.strong_count() > 0).count()
    }
}
