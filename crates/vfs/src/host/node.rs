//! A file we hold a descriptor on.
//!
//! The descriptor is O_PATH: it gives no access, pins the inode (so that its number cannot be
//! used again meanwhile) and is the base of every call on the file.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use probe::op::FileId;

use crate::attr::{Attr, FileType, Time};
use crate::handle::Handle;
use crate::host::descriptors::{Counted, CountedRetained};
use crate::host::flush_state::FlushState;
use crate::host::ids::{self, Ident};
use crate::host::lock::lock;
use crate::host::open::OpenFile;
use crate::host::stream::Stream;
use crate::host::xattr_cache::CachedXattr;

/// A file we hold.
pub struct Node {
    /// O_PATH.
    pub fd: OwnedFd,
    /// Inode number.
    pub ino: u64,
    /// Kind of file; it never changes for an inode.
    pub kind: FileType,
    /// Its handle.
    pub handle: Handle,
    /// What identifies it, for handles of files in it (a directory) and for the tables.
    pub ident: Ident,
    /// Distinguishes it from others that had its inode number ([`Attr::generation`]).
    pub generation: u64,
    /// The statistics' id.
    pub id: FileId,
    /// Descriptors for reading and writing.
    pub files: Mutex<Vec<Arc<OpenFile>>>,
    /// Listings in progress.
    pub streams: Mutex<Vec<Stream>>,
    /// What is not on disk yet.
    pub flush: FlushState,
    /// Whether it has an access control list: 0 not asked yet, 1 no, 2 yes.
    pub acl: AtomicU8,
    /// The change time at which `acl` was found, folded to 64 bits.
    pub acl_ctime: AtomicU64,
    /// Distinguishes changes within one tick of the file system's clock.
    pub changes: Changes,
    /// Birth time, once it was requested.
    pub birth: OnceLock<Option<Time>>,
    /// Attributes and time of creation as Windows has them ([`crate::dos`]).
    pub dos: CachedXattr,
    pub(super) used: AtomicBool,
    pub(super) pinned: bool,
    /// By how many it is retained; changed under the lock of its part.
    pub(super) retained: AtomicUsize,
    /// As which it counts then.
    pub(super) retained_as: Mutex<Option<CountedRetained>>,
    /// Whether it was found to have no name any more while it was retained.
    pub(super) removed: AtomicBool,
    _counted: Counted,
}

impl Node {
    /// A node over an O_PATH descriptor.
    pub fn new(fd: OwnedFd, ino: u64, kind: FileType, handle: Handle, ident: Ident) -> Self {
        Self {
            fd,
            ino,
            kind,
            handle,
            ident,
            generation: ident.generation(),
            id: ids::file_id(&handle),
            files: Mutex::default(),
            streams: Mutex::default(),
            flush: FlushState::default(),
            acl: AtomicU8::new(0),
            acl_ctime: AtomicU64::new(0),
            changes: Changes::default(),
            birth: OnceLock::new(),
            dos: CachedXattr::default(),
            used: AtomicBool::new(false),
            pinned: false,
            retained: AtomicUsize::new(0),
            retained_as: Mutex::default(),
            removed: AtomicBool::new(false),
            _counted: Counted::new(),
        }
    }

    /// Attributes of this file with what only its node knows.
    #[inline]
    pub fn completed(&self, attr: Attr) -> Attr {
        let birth = attr.birth.or_else(|| self.birth.get().copied().flatten());
        let (change, generation) = (self.changes.value(attr.change), self.generation);
        Attr { change, birth, generation, ..attr }
    }

    /// Never forgotten.
    pub fn pinned(mut self) -> Self {
        self.pinned = true;
        self
    }

    /// Whether it stays usable when its last name is removed.
    pub fn is_retained(&self) -> bool {
        self.retained.load(Ordering::Acquire) > 0
    }

    /// The O_PATH descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The change attribute: the change time, and one more for each further change in its tick.
///
/// A change is counted after it was made, so that no client gets its number with the old data.
#[derive(Default)]
pub struct Changes {
    made: AtomicU64,
    reported: AtomicU64,
    last: AtomicU64,
    step: Mutex<()>,
}

impl Changes {
    /// We have made another change.
    pub fn add(&self) {
        self.made.fetch_add(1, Ordering::AcqRel);
    }

    /// How many changes we have made.
    #[inline]
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Acquire)
    }

    /// The value to report for the change time `ctime` (nanoseconds).
    #[inline]
    fn value(&self, ctime: u64) -> u64 {
        if self.made.load(Ordering::Acquire) != self.reported.load(Ordering::Acquire) {
            self.step(ctime);
        }
        self.last.load(Ordering::Acquire).max(ctime)
    }

    fn step(&self, ctime: u64) {
        let _step = lock(&self.step);
        let made = self.made.load(Ordering::Acquire);
        if made != self.reported.load(Ordering::Acquire) {
            let last = self.last.load(Ordering::Acquire);
            self.last.store(ctime.max(last + 1), Ordering::Release);
            self.reported.store(made, Ordering::Release);
        }
    }
}
