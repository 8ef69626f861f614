//! Records of operations: the threads of a run send them to the core of their connection, the only
//! writer.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::stamp;
use probe::op::{FileId, OpRecord, Protocol, flag};
use probe::phases::{Phase, PhaseParts};
use tokio::sync::mpsc;
use vfs::fs::Result;

use files::Caller;

/// Operations, by their numbers in `schema/dsync.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// The names in a directory.
    List = 0,
    /// What an entry is.
    Look = 1,
    /// Opening a file.
    Open = 2,
    /// Where its data is.
    Seek = 3,
    /// Reading.
    Read = 4,
    /// Writing.
    Write = 5,
    /// Making a file.
    Create = 6,
    /// Size, owner, mode, times.
    SetAttr = 7,
    /// Extended attributes and access control lists.
    SetXattr = 8,
    /// Making a directory.
    Mkdir = 9,
    /// Making a symbolic link.
    Symlink = 10,
    /// Making a special file.
    Mknod = 11,
    /// Giving a file another name.
    Link = 12,
    /// Putting a file in its place.
    Rename = 13,
    /// Taking an entry away.
    Remove = 14,
    /// Bringing everything to disk.
    Flush = 15,
    /// Sharing what another file has.
    Clone = 16,
}

/// A part of a file that was read or written.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// Where it begins.
    pub offset: u64,
    /// How many bytes were requested.
    pub asked: usize,
    /// How many there were.
    pub moved: usize,
}

/// Writes the operations of one run down.
pub struct Tally {
    all: OpRecord,
    /// How long operations took, over all threads.
    waited_ns: AtomicU64,
    to: mpsc::Sender<OpRecord>,
}

impl Tally {
    /// For the operations of a caller that is connected to a core.
    pub fn new(who: &Caller, core: u8, to: mpsc::Sender<OpRecord>) -> Self {
        let all = OpRecord {
            client: who.client,
            user: who.person.cred.uid,
            protocol: Protocol::Dsync as u8,
            core,
            // They run on threads that may block.
            phases: PhaseParts::all_in(Phase::Pool),
            ..OpRecord::default()
        };
        Self { all, waited_ns: AtomicU64::new(0), to }
    }

    /// How long operations took, over all threads, in nanoseconds.
    pub fn waited_ns(&self) -> u64 {
        self.waited_ns.load(Relaxed)
    }

    /// Of one share from now on.
    pub fn on(&mut self, share: u16) {
        self.all.share = share;
    }

    /// An operation that began at `since_ns` ([`stamp`]) has ended. Waits while the queue of the
    /// core is full; after the connection has ended the record is dropped.
    pub fn note<T>(
        &self,
        op: Op,
        since_ns: u64,
        (file, range): (FileId, Option<Range>),
        done: &Result<T>,
    ) {
        let done_ns = stamp();
        let latency_ns = done_ns.saturating_sub(since_ns);
        self.waited_ns.fetch_add(latency_ns, Relaxed);
        let mut record = OpRecord {
            done_ns,
            latency_ns,
            file,
            op: op as u8,
            status: done.as_ref().err().map_or(0, |status| status.errno() as u16),
            flags: if file == 0 { 0 } else { flag::HAS_FILE },
            ..self.all
        };
        if let Some(Range { offset, asked, moved }) = range {
            (record.offset, record.size, record.bytes) = (offset, asked as u32, moved as u32);
            record.flags |= flag::HAS_RANGE;
        }
        if op == Op::Write {
            record.flags |= flag::INWARD;
        }
        let _gone = self.to.blocking_send(record);
    }
}
