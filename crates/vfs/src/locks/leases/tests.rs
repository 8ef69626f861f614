//! Leases and oplocks of SMB: what is granted, how breaks continue and end, and what they are not
//! in the way of.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::*;
use super::*;
use crate::attr::{Attr, FileType, Time};

pub(super) const KEY: FileKey = FileKey { fsid: 7, fileid: 42, generation: 3 };
pub(super) const SLOT: u64 = 5;
const R: Caching = Caching::READ;
const RH: Caching = Caching::of_bits(3);
const RW: Caching = Caching::READ_WRITE;
const RWH: Caching = Caching::ALL;
const NONE: Caching = Caching::NONE;
const READS: Share = Share { access: SHARE_READ, deny: 0 };

/// Keeps what it is notified of.
#[derive(Default)]
pub(super) struct Log(Mutex<Vec<Break>>);

impl Log {
    pub(super) fn taken(&self) -> Vec<Break> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Recall for Log {
    fn recall(&self, _: FileKey, _: &Owner, what: Break) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

pub(super) fn open_of(id: u64) -> Owner {
    let client = ClientKey { protocol: Protocol::Smb, id };
    Owner::new(client, &id.to_be_bytes()).expect("short")
}

fn lease_of(key: u8) -> Owner {
    Owner::new(ClientKey { protocol: Protocol::Smb, id: 0 }, &[key; 32]).expect("short")
}

pub(super) fn attr(nlink: u32) -> Attr {
    let (time, kind) = (Time::default(), FileType::Regular);
    Attr {
        kind,
        mode: 0o644,
        nlink,
        uid: 0,
        gid: 0,
        size: 0,
        used: 0,
        rdev: (0, 0),
        fsid: KEY.fsid,
        fileid: KEY.fileid,
        generation: KEY.generation,
        atime: time,
        mtime: time,
        ctime: time,
        change: 0,
        birth: None,
    }
}

pub(super) fn take(
    table: &LockTable,
    (lease, open): (&Owner, &Owner),
    (is_oplock, wanted): (bool, Caching),
    log: &Arc<Log>,
) -> Granted {
    let notice = Arc::<Log>::clone(log);
    let request =
        LeaseRequest { slot: SLOT, key: KEY, lease, open, is_oplock, wanted, epoch: 0, notice };
    table.lease(&request).expect("nothing changes")
}

struct Scene {
    table: LockTable,
    log: Arc<Log>,
}

impl Scene {
    fn new() -> Self {
        Self { table: LockTable::default(), log: Arc::default() }
    }

    /// A client opens the file with a lease of a key.
    fn open(&self, id: u64, key: u8, wanted: Caching) -> Granted {
        let (open, lease) = (open_of(id), lease_of(key));
        let opening = OpenOptions { lease: Some(&lease), ..OpenOptions::default() };
        self.table.open_smb(KEY, &open, READS, (false, opening)).expect("nothing in the way");
        take(&self.table, (&lease, &open), (false, wanted), &self.log)
    }
}

#[test]
fn a_grant_is_what_others_leave() {
    for (held, wanted, granted) in [
        (R, R, R),
        (R, RH, RH),
        (R, RW, R),
        (R, RWH, RH),
        (RH, R, R),
        (RH, RH, RH),
        (RH, RW, R),
        (RH, RWH, RH),
    ] {
        let s = Scene::new();
        assert_eq!(s.open(1, 1, held).caching, held);
        assert_eq!(s.open(2, 2, wanted).caching, granted, "{wanted:?} next to {held:?}");
        assert!(s.log.taken().is_empty(), "nothing is broken for a grant");
    }
    let s = Scene::new();
    for wanted in [Caching::HANDLE, Caching::WRITE, Caching::of_bits(6)] {
        assert_eq!(s.open(1, 1, wanted).caching, NONE, "{wanted:?} is not granted");
    }
}

#[test]
fn opens_with_one_key_share_a_lease() {
    let s = Scene::new();
    let granted = s.open(1, 1, RH);
    assert_eq!((granted.caching, granted.epoch, granted.is_breaking), (RH, 1, false));
    assert_eq!(s.open(2, 1, RW).caching, RH, "no part more");
    let more = s.open(3, 1, RWH);
    assert_eq!((more.caching, more.epoch, more.is_breaking), (RWH, 2, false));
    assert_eq!(granted.view.caching(), RWH, "all opens see it");
    assert_eq!(s.open(4, 1, R).caching, RWH, "nothing is lost by asking for less");
    (1..4).for_each(|id| s.table.release(KEY, &open_of(id)));
    assert!(s.table.is_leased(SLOT) && s.table.is_written_back(SLOT));
    s.table.release(KEY, &open_of(4));
    assert!(!s.table.is_leased(SLOT) && !s.table.has_leases(), "with the last open it ends");
}

#[test]
fn oplocks_and_leases_of_handles_exclude_each_other() {
    let s = Scene::new();
    s.open(1, 1, RH);
    let open = open_of(2);
    assert_eq!(take(&s.table, (&open, &open), (true, RWH), &s.log).caching, NONE);
    s.table.release(KEY, &open_of(1));
    assert_eq!(take(&s.table, (&open, &open), (true, RWH), &s.log).caching, RWH);
    assert_eq!(s.table.acknowledge(KEY, &open, R), Err(AckRefused::NotBreaking));
    assert!(!s.table.may(KEY, Trigger::Read));
    assert_eq!(s.table.acknowledge(KEY, &open, R), Ok(R));
    assert_eq!(s.open(3, 3, RH).caching, R);
}

#[test]
fn a_write_ends_the_level_ii_of_its_own_open() {
    let s = Scene::new();
    let open = open_of(1);
    for (wanted, kept) in [(R, NONE), (RW, RW)] {
        assert_eq!(take(&s.table, (&open, &open), (true, wanted), &s.log).caching, wanted);
        let acting = ByOwners::acting(std::slice::from_ref(&open));
        assert!(s.table.may(KEY, Trigger::Write));
        drop(acting);
        assert_eq!(s.table.lease_of(KEY, &open), Some((kept, false)));
        s.table.release(KEY, &open);
    }
}

#[test]
fn an_open_that_removes_takes_handles() {
    let s = Scene::new();
    s.open(1, 1, RH);
    let open = |removes| {
        let opening = OpenOptions { removes, ..OpenOptions::default() };
        s.table.open_smb(KEY, &open_of(2), READS, (false, opening))
    };
    assert_eq!(open(false), Ok(READS));
    assert_eq!(open(true), Err(Refused::Recalling));
    assert_eq!(s.log.taken().last().map(|what| (what.from, what.to)), Some((RH, R)));
}

#[test]
fn a_break_is_acknowledged_once_and_to_no_more_than_offered() {
    let s = Scene::new();
    let (holder, other) = (lease_of(1), open_of(2));
    s.open(1, 1, RWH);
    let open = |again| {
        let opening = OpenOptions { again, ..OpenOptions::default() };
        s.table.open_smb(KEY, &other, READS, (false, opening))
    };
    assert_eq!(open(false), Err(Refused::Recalling));
    let sent = Break { from: RWH, to: RH, epoch: 2, must_acknowledge: true };
    assert_eq!(s.log.taken(), [sent]);
    assert_eq!(open(true), Err(Refused::Recalling));
    assert_eq!(s.table.acknowledge(KEY, &lease_of(9), RH), Err(AckRefused::NoLease));
    assert_eq!(s.table.acknowledge(KEY, &holder, RW), Err(AckRefused::TooMuch));
    let woken = Arc::<AtomicU64>::default();
    let wake = Arc::clone(&woken);
    let released = Box::new(move || {
        wake.fetch_add(1, Ordering::SeqCst);
    });
    assert!(s.table.when_released(KEY, released).is_some_and(|(_, left)| left.is_some()));
    assert_eq!(s.table.acknowledge(KEY, &holder, RH), Ok(RH));
    assert_eq!(woken.load(Ordering::SeqCst), 1);
    assert_eq!(s.table.acknowledge(KEY, &holder, RH), Err(AckRefused::NotBreaking));
    assert_eq!(open(true), Ok(READS));
}

#[test]
fn what_is_taken_during_a_break_follows_in_steps() {
    let s = Scene::new();
    let holder = lease_of(1);
    s.open(1, 1, RWH);
    assert!(!s.table.may(KEY, Trigger::Read));
    assert!(!s.table.may(KEY, Trigger::Write), "it is written back first");
    let steps = |log: &Log| log.taken().iter().map(|b| (b.from, b.to)).collect::<Vec<_>>();
    assert_eq!(steps(&s.log), [(RWH, RH)], "one at a time");
    assert_eq!(s.table.acknowledge(KEY, &holder, RH), Ok(RH));
    assert_eq!(steps(&s.log), [(RH, R)]);
    assert_eq!(s.table.acknowledge(KEY, &holder, R), Ok(R));
    assert_eq!(steps(&s.log), [(R, NONE)]);
    assert_eq!(s.table.lease_of(KEY, &holder), Some((NONE, false)));
    assert!(!s.table.is_leased(SLOT));
}

#[test]
fn a_holder_that_does_not_answer_in_time_loses_all() {
    let mut lease = Lease::new(lease_of(1), Style::Lease, SLOT, Arc::<Log>::default());
    lease.caching = RWH;
    assert!(lease.take(Caching::WRITE, 100).is_some());
    assert!(!lease.expire(99) && lease.is_breaking());
    assert!(lease.expire(100) && !lease.is_breaking());
    assert_eq!(lease.caching, NONE);
}

#[test]
fn no_lease_with_byte_ranges_nor_while_the_file_changes() {
    let s = Scene::new();
    let changing = s.table.changing(SLOT);
    let (open, lease) = (open_of(1), lease_of(1));
    let notice = Arc::<Log>::clone(&s.log);
    let (lease, open) = (&lease, &open);
    let request = LeaseRequest {
        slot: SLOT,
        key: KEY,
        lease,
        open,
        is_oplock: false,
        wanted: R,
        epoch: 0,
        notice,
    };
    assert!(s.table.lease(&request).is_none());
    drop(changing);
    s.table.lock(KEY, &open_of(2), Range::to_end(0), Kind::Read).expect("free");
    let granted = s.table.lease(&request).map(|granted| (granted.caching, granted.epoch));
    assert_eq!(granted, Some((NONE, 0)), "nothing has changed for its client");
    s.table.unlock_all(KEY, &open_of(2));
    s.table.release(KEY, open);
    assert_eq!(s.table.lease(&request).map(|granted| granted.caching), Some(R));
}

#[test]
fn changes_of_another_file_in_another_slot_recall_nothing() {
    let s = Scene::new();
    s.open(1, 1, RWH);
    assert!(s.table.is_leased(SLOT) && !s.table.is_leased(SLOT + 1));
    drop(s.table.changing(SLOT));
    assert!(!s.table.slot(SLOT).in_progress());
}

#[test]
fn a_look_at_the_security_descriptor_leaves_no_writing_to_leases() {
    let s = Scene::new();
    let (look, open, lease) = (open_of(1), open_of(2), lease_of(2));
    let looking = OpenOptions { looks: true, ..OpenOptions::default() };
    s.table.open_smb(KEY, &look, Share::default(), (false, looking)).expect("free");
    assert_eq!(s.open(2, 2, RWH).caching, RH);
    s.table.release(KEY, &open);
    assert_eq!(take(&s.table, (&open, &open), (true, RWH), &s.log).caching, RWH, "an oplock");
    s.table.release(KEY, &open);
    s.table.release(KEY, &look);
    assert_eq!(s.open(2, 2, RWH).caching, RWH);
    assert!(s.table.lease_of(KEY, &lease).is_some());
}

/// Clients that open files, each with a lease of its own.
struct Crowd {
    table: LockTable,
    log: Arc<Log>,
    next: u64,
}

impl Crowd {
    /// The lease of everything that a client at an address gets with one more open of this file.
    fn lease(&mut self, fileid: u64, (client, at): (u64, u8), wanted: Caching) -> Caching {
        self.next += 1;
        let client = ClientKey { protocol: Protocol::Smb, id: client };
        let owner = |end: &[u8]| {
            let opaque = [&self.next.to_be_bytes(), end].concat();
            Owner::new(client, &opaque).expect("short").at([192, 0, 2, at].into())
        };
        let (lease, open) = (owner(b"lease"), owner(b"open"));
        let request = LeaseRequest {
            slot: fileid,
            key: FileKey { fileid, ..KEY },
            lease: &lease,
            open: &open,
            is_oplock: false,
            wanted,
            epoch: 0,
            notice: Arc::<Log>::clone(&self.log),
        };
        self.table.lease(&request).expect("nothing changes").caching
    }

    /// Takes what a client gets, each of the next file or all of one; the number of leases.
    fn fill(&mut self, of: (u64, u8), file: Option<u64>, wanted: Caching) -> u64 {
        let first = self.next;
        while self.lease(file.unwrap_or(1_000_000 + self.next), of, wanted) == wanted {}
        self.next - first - 1
    }
}

#[test]
fn leases_of_a_client_and_of_an_address_leave_a_part_to_others() {
    let of = |most: u64| (most * 9 / 16, most * 3 / 4);
    let mut crowd = Crowd { table: LockTable::default(), log: Arc::default(), next: 0 };
    let (of_client, of_address) = of(base::limits::LEASES_PER_FILE_MAX as u64);
    let first = crowd.fill((1, 1), Some(1), R);
    assert!(first.abs_diff(of_client) <= 1, "of one file: {first}");
    let all = first + crowd.fill((2, 1), Some(1), R) + crowd.fill((3, 1), Some(1), R);
    assert!(all > first + 100 && all <= of_address + 1, "of one file: {all}");
    // Opens that were refused a lease take none from others.
    for _ in 0..base::limits::LEASES_PER_FILE_MAX {
        assert_eq!(crowd.lease(1, (1, 1), R), NONE);
    }
    assert_eq!(crowd.table.counts().leases, all);
    assert_eq!(crowd.lease(1, (1, 2), R), R, "another address");
    assert_eq!(crowd.lease(2, (1, 1), RWH), RWH, "another file");
    let (of_client, of_address) = of(base::limits::LEASES_MAX);
    let held = all + 1;
    let first = crowd.fill((4, 3), None, RWH);
    assert!(first <= of_client && first > of_client - 2 * held, "of all: {first}");
    let all = first + crowd.fill((5, 3), None, RWH);
    assert!(all > first + 1_000 && all <= of_address, "of all: {all}");
    // Without a lease, but opened; others still get one.
    assert_eq!(crowd.lease(3, (4, 3), RWH), NONE);
    assert_eq!(crowd.lease(3, (1, 4), R), R, "another address");
}
