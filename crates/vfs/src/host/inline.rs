//! What may run on a connection's own thread.

use std::sync::atomic::AtomicBool;

/// What may run on a connection's own thread, by file system; what turns out not to work is
/// switched off when it first fails.
#[derive(Debug, Default)]
pub(super) struct Inline {
    /// It lives in memory: nothing waits.
    pub(super) all: bool,
    /// Attributes of a file that we hold are in memory.
    pub(super) attr: bool,
    /// Names can be asked from the cache only.
    pub(super) lookup: AtomicBool,
    /// Data can be asked from the cache only.
    pub(super) read: AtomicBool,
}

impl Inline {
    pub(super) fn of(magic: u64) -> Self {
        const TMPFS: u64 = 0x0102_1994;
        const RAMFS: u64 = 0x8584_58f6;
        const EXT4: u64 = 0xef53;
        const XFS: u64 = 0x5846_5342;
        const BTRFS: u64 = 0x9123_683e;
        let all = matches!(magic, TMPFS | RAMFS);
        let local = all || matches!(magic, EXT4 | XFS | BTRFS);
        let (lookup, read) = (AtomicBool::new(local), AtomicBool::new(local));
        Self { all, attr: local, lookup, read }
    }
}
