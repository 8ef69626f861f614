//! Descriptors for reading and writing, kept for the next caller.
//!
//! They are kept by file, caller and mode. Rights were checked when the file was opened; they
//! still hold as long as mode, owner, group and change time are what they were. The attributes
//! that a reply needs anyway show it, so the check costs no call of its own.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use base::limits::OPEN_FILES_PER_NODE;

use crate::attr::{Attr, Time};
use crate::cred::Cred;
use crate::host::node::{Node, lock};

/// What the rights were decided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    mode: u32,
    uid: u32,
    gid: u32,
    ctime: Time,
}

impl Stamp {
    /// Of these attributes.
    pub fn of(attr: &Attr) -> Self {
        Self { mode: attr.mode, uid: attr.uid, gid: attr.gid, ctime: attr.ctime }
    }

    /// Whether everything but the change time is the same.
    pub fn same_mode(&self, attr: &Attr) -> bool {
        self.mode == attr.mode && self.uid == attr.uid && self.gid == attr.gid
    }

    /// Whether nothing at all has changed.
    pub fn same(&self, attr: &Attr) -> bool {
        *self == Self::of(attr)
    }
}

/// A descriptor that its caller may use.
pub struct OpenFile {
    /// For reading or for writing; a new file's descriptor is kept as both.
    pub fd: Arc<OwnedFd>,
    /// Whether it is for writing.
    pub write: bool,
    /// Whose rights were checked.
    pub cred: Cred,
    /// By what.
    pub stamp: Mutex<Stamp>,
    used: AtomicBool,
}

impl OpenFile {
    /// A descriptor opened for `cred` when the file was as `attr` says.
    pub fn new(fd: Arc<OwnedFd>, write: bool, cred: &Cred, attr: &Attr) -> Self {
        Self {
            fd,
            write,
            cred: cred.clone(),
            stamp: Mutex::new(Stamp::of(attr)),
            used: AtomicBool::new(true),
        }
    }
}

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
    pub fn get(&self, node: &Node, cred: &Cred, write: bool) -> Option<Arc<OpenFile>> {
        let files = lock(&node.files);
        let file = files.iter().find(|file| file.write == write && file.cred == *cred)?;
        file.used.store(true, Ordering::Relaxed);
        Some(Arc::clone(file))
    }

    /// Keeps a descriptor.
    pub fn keep(&self, node: &Arc<Node>, file: Arc<OpenFile>) {
        let mut files = lock(&node.files);
        files.retain(|other| other.cred != file.cred || other.write != file.write);
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
            // Closed already, with its node or by somebody else's descriptor.
            let (Some(node), Some(file)) = (node.upgrade(), file.upgrade()) else { continue };
            if file.used.swap(false, Ordering::Relaxed) && tries > self.capacity / 2 {
                order.push_back((Arc::downgrade(&node), Arc::downgrade(&file)));
                continue;
            }
            lock(&node.files).retain(|other| !Arc::ptr_eq(other, &file));
        }
    }

    /// Gives up a descriptor whose rights no longer hold.
    pub fn give_up(&self, node: &Node, file: &Arc<OpenFile>) {
        lock(&node.files).retain(|other| !Arc::ptr_eq(other, file));
    }

    /// Descriptors kept, for statistics.
    pub fn len(&self) -> usize {
        lock(&self.order).iter().filter(|(_, file)| file.strong_count() > 0).count()
    }
}
