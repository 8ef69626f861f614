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
use crate::host::node::{Counted, Node, lock};
use crate::mapped::Windows;

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

/// What a descriptor is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// For reading.
    pub read: bool,
    /// For writing.
    pub write: bool,
}

impl Mode {
    /// Reading only.
    pub const READ: Self = Self { read: true, write: false };
    /// Writing only.
    pub const WRITE: Self = Self { read: false, write: true };
    /// Both: a new file's.
    pub const BOTH: Self = Self { read: true, write: true };

    /// Whether it is good for everything that `wanted` is.
    fn covers(self, wanted: Self) -> bool {
        (self.read || !wanted.read) && (self.write || !wanted.write)
    }
}

/// A descriptor that its caller may use.
pub struct OpenFile {
    /// The descriptor.
    pub fd: Arc<OwnedFd>,
    /// What it was opened for.
    pub mode: Mode,
    /// Whose rights were checked.
    pub cred: Cred,
    /// By what.
    pub stamp: Mutex<Stamp>,
    /// Parts of it that are sent from memory.
    pub windows: Windows,
    used: AtomicBool,
    _counted: Counted,
}

impl OpenFile {
    /// A descriptor opened for `cred` when the file was as `attr` says.
    pub fn new(fd: Arc<OwnedFd>, mode: Mode, cred: &Cred, attr: &Attr) -> Arc<Self> {
        Arc::new(Self {
            fd,
            mode,
            cred: cred.clone(),
            stamp: Mutex::new(Stamp::of(attr)),
            windows: Windows::default(),
            used: AtomicBool::new(true),
            _counted: Counted::new(),
        })
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

    /// Gives up the descriptors of a file that nobody has used since the last call: one for
    /// writing keeps the file from being run, and its file system from being made read-only.
    pub fn give_up_idle(node: &Node) {
        lock(&node.files).retain(|file| file.used.swap(false, Ordering::Relaxed));
    }

    /// Descriptors kept, for statistics.
    pub fn len(&self) -> usize {
        lock(&self.order).iter().filter(|(_, file)| file.strong_count() > 0).count()
    }
}
