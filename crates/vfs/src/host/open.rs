//! Descriptors for reading and writing, kept for the next caller.
//!
//! They are kept by file, caller and mode. Rights were checked when the file was opened; they
//! still hold as long as mode, owner, group and change time are what they were. The attributes
//! that a reply needs anyway show it, so the check costs no call of its own.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::attr::{Attr, Time};
use crate::cred::Cred;
use crate::host::descriptors::Counted;
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
    pub(super) fn covers(self, wanted: Self) -> bool {
        (self.read || !wanted.read) && (self.write || !wanted.write)
    }
}

/// A descriptor that its caller may use.
pub struct OpenFile {
    /// The descriptor.
    pub fd: Arc<OwnedFd>,
    /// What it was opened for.
    pub mode: Mode,
    /// The identity for which the rights were checked.
    pub cred: Cred,
    /// The attributes with which they were checked.
    pub stamp: Mutex<Stamp>,
    /// Parts of it that are sent from memory.
    pub windows: Windows,
    pub(super) used: AtomicBool,
    _counted: Counted,
}

impl OpenFile {
    /// A descriptor opened for `cred` when the file had the attributes `attr`.
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
