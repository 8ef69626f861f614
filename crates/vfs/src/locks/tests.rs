//! The lock table: opens, waiting, leases, clearing up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::waits::LockOutcome;
use super::*;
use crate::attr::{Attr, FileType, Time};

const KEY: FileKey = FileKey { fsid: 7, fileid: 42, generation: 3 };
const READ: Share = Share { access: SHARE_READ, deny: 0 };
const WRITE: Share = Share { access: SHARE_WRITE, deny: 0 };
const BOTH: Share = Share { access: SHARE_READ | SHARE_WRITE, deny: 0 };

fn client(id: u64) -> ClientKey {
    ClientKey { protocol: Protocol::Nfs4, id }
}

fn owner(id: u64) -> Owner {
    Owner::new(client(id), &id.to_be_bytes()).expect("short")
}

fn range(start: u64, len: u64) -> Range {
    Range::new(start, len).expect("good")
}

fn attr(nlink: u32) -> Attr {
    Attr {
        kind: FileType::Regular,
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
        atime: Time::default(),
        mtime: Time::default(),
        ctime: Time::default(),
        change: 0,
        birth: None,
    }
}

#[test]
fn shares_exclude_other_owners() {
    let table = LockTable::default();
    let (a, b) = (owner(1), owner(2));
    let deny_write = Share { access: SHARE_READ, deny: SHARE_WRITE };
    assert_eq!(table.open(KEY, &a, deny_write), Ok(deny_write));
    assert_eq!(table.open(KEY, &b, WRITE), Err(Refused::Shared(a.clone())));
    assert_eq!(table.open(KEY, &b, READ), Ok(READ));
    // One's own open is no obstacle: it is an upgrade.
    assert_eq!(table.open(KEY, &a, WRITE), Ok(deny_write.union(WRITE)));
    assert_eq!(table.io_denied(KEY, None, SHARE_WRITE), Some(a.clone()));
    assert_eq!(table.io_denied(KEY, Some(&a), SHARE_WRITE), None);
    assert_eq!(table.downgrade(KEY, &b, BOTH), Err(Refused::NotHeld));
    assert_eq!(table.downgrade(KEY, &a, READ), Ok(()));
    assert_eq!(table.open(KEY, &b, WRITE), Ok(BOTH));
    assert!(table.is_written(KEY));
    let shut = Share { access: 0, deny: SHARE_READ };
    assert_eq!(table.open(KEY, &a, shut), Err(Refused::Shared(b.clone())));
    assert_eq!(table.close(KEY, &b), Some(BOTH));
    assert_eq!(table.close(KEY, &b), None);
    assert_eq!((table.counts().opens, table.counts().denied), (1, 2));
    table.release_client(client(1));
    assert_eq!(table.counts().opens, 0);
    assert!(table.list(None, 10).is_empty());
}

/// Continuations record the owners woken and the results.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(u64, Waited)>>>);

impl Log {
    fn woken(&self, id: u64) -> Woken {
        let log = self.clone();
        Box::new(move |how| log.0.lock().expect("no panic under it").push((id, how)))
    }
    fn taken(&self) -> Vec<(u64, Waited)> {
        std::mem::take(&mut self.0.lock().expect("no panic under it"))
    }
}

#[test]
fn waits_in_turn() {
    let (table, log) = (LockTable::default(), Log::default());
    let ask =
        |id: u64, at: Range, kind| table.lock_or_wait(KEY, &owner(id), at, kind, log.woken(id));
    let all = Range::to_end(0);
    assert_eq!(ask(1, all, Kind::Read), Ok(LockOutcome::Granted));
    assert!(matches!(ask(2, range(0, 10), Kind::Write), Ok(LockOutcome::Waiting(..))));
    // A reader that comes later waits behind the writer; one elsewhere does not.
    assert!(matches!(ask(3, range(5, 1), Kind::Read), Ok(LockOutcome::Waiting(..))));
    assert_eq!(ask(4, range(20, 1), Kind::Read), Ok(LockOutcome::Granted));
    // The same request once more is the same request.
    assert!(matches!(ask(2, range(0, 10), Kind::Write), Ok(LockOutcome::Waiting(1, _))));
    assert_eq!(table.counts().waiting, 2);
    table.unlock(KEY, &owner(1), range(0, 8)).expect("room");
    assert_eq!(log.taken(), [], "two bytes are still in the way");
    table.unlock(KEY, &owner(1), all).expect("room");
    assert_eq!(log.taken(), [(2, Waited::Granted)]);
    assert!(table.test(KEY, &owner(9), range(0, 1), Kind::Read).is_some());
    table.unlock_all(KEY, &owner(2));
    assert_eq!(log.taken(), [(3, Waited::Granted)]);
    assert_eq!((table.counts().locks, table.counts().waiting), (2, 0));
}

#[test]
fn a_continuation_that_panics_keeps_no_other_from_its_lock() {
    let (table, log) = (LockTable::default(), Log::default());
    let before = continuation::panics();
    let all = Range::to_end(0);
    table.lock(KEY, &owner(1), all, Kind::Write).expect("free");
    let panics: Woken = Box::new(|_| panic!("planted"));
    table.lock_or_wait(KEY, &owner(2), range(0, 1), Kind::Write, panics).expect("waits");
    let woken = log.woken(3);
    table.lock_or_wait(KEY, &owner(3), range(1, 1), Kind::Write, woken).expect("waits");
    assert_eq!(table.unlock(KEY, &owner(1), all), Ok(()));
    assert_eq!(log.taken(), [(3, Waited::Granted)]);
    assert_eq!(continuation::panics() - before, 1);
}

#[test]
fn a_writer_that_becomes_a_reader_lets_readers_in() {
    let (table, log) = (LockTable::default(), Log::default());
    let all = Range::to_end(0);
    table.lock(KEY, &owner(1), all, Kind::Write).expect("free");
    let asked = table.lock_or_wait(KEY, &owner(2), all, Kind::Read, log.woken(2));
    assert!(matches!(asked, Ok(LockOutcome::Waiting(..))));
    table.lock(KEY, &owner(1), all, Kind::Read).expect("its own");
    assert_eq!(log.taken(), [(2, Waited::Granted)]);
}

#[test]
fn waiting_is_cancelled() {
    let (table, log) = (LockTable::default(), Log::default());
    let all = Range::to_end(0);
    table.lock(KEY, &owner(1), all, Kind::Read).expect("free");
    let ask = |id, kind| table.lock_or_wait(KEY, &owner(id), all, kind, log.woken(id));
    ask(2, Kind::Write).expect("waits");
    ask(3, Kind::Read).expect("waits behind it");
    assert!(!table.cancel(KEY, &owner(2), all, Kind::Read), "not that one");
    assert!(table.cancel(KEY, &owner(2), all, Kind::Write));
    assert_eq!(log.taken(), [(2, Waited::Cancelled), (3, Waited::Granted)]);
    ask(4, Kind::Write).expect("waits");
    table.release_client(client(4));
    assert_eq!(log.taken(), [(4, Waited::Cancelled)]);
    assert_eq!((table.counts().locks, table.counts().waiting), (2, 0));
}

#[test]
fn a_circle_of_waiting_is_refused() {
    let (table, log) = (LockTable::default(), Log::default());
    let (a, b) = (range(0, 1), range(1, 1));
    table.lock(KEY, &owner(1), a, Kind::Write).expect("free");
    table.lock(KEY, &owner(2), b, Kind::Write).expect("free");
    let ask = |id, at| table.lock_or_wait(KEY, &owner(id), at, Kind::Write, log.woken(id));
    ask(1, b).expect("waits");
    assert_eq!(ask(2, a), Err(Refused::Deadlock));
    table.unlock_all(KEY, &owner(2));
    assert_eq!(log.taken(), [(1, Waited::Granted)]);
    assert!(ask(2, a).is_ok(), "nobody waits for it any more");
}

/// Counts recalls.
#[derive(Default)]
struct RecallCount(AtomicU64);

impl Recall for RecallCount {
    fn recall(&self, _: FileKey, _: &Owner, _: Break) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn notified(count: &RecallCount) -> u64 {
    count.0.load(Ordering::Relaxed)
}

#[test]
fn leases_are_recalled_once_and_by_others_only() {
    let (table, notice) = (LockTable::default(), Arc::new(RecallCount::default()));
    let (a, b, c) = (owner(1), owner(2), owner(3));
    let grant = |who: &Owner, kind| table.grant(5, &attr(1), who, kind, notice.clone());
    assert!(table.may_change(KEY, None) && !table.has_leases());
    table.open(KEY, &a, READ).expect("free");
    grant(&a, Caching::READ).expect("nobody writes");
    grant(&b, Caching::READ).expect("nobody writes");
    assert_eq!(grant(&c, Caching::READ_WRITE), Err(Refused::NoLease));
    assert!(table.may_read(KEY, Some(client(3))), "readers do not disturb readers");
    assert_eq!(table.open(KEY, &c, READ), Ok(READ));
    assert_eq!(notified(&notice), 0);
    assert_eq!(table.open(KEY, &c, BOTH), Err(Refused::Recalling));
    assert_eq!(notified(&notice), 2);
    assert!(!table.may_change(KEY, Some(client(1))), "the other's is in the way");
    assert_eq!(notified(&notice), 2, "told once");
    assert_eq!(table.share_of(KEY, &c), Some(READ), "a refused open changed nothing");
    assert_eq!(grant(&c, Caching::READ), Err(Refused::NoLease), "not while one is recalled");
    assert_eq!(table.lease_of(KEY, &b), Some((Caching::READ, true)));
    assert!(table.end_lease(KEY, &b) && !table.end_lease(KEY, &b));
    assert!(table.may_change(KEY, Some(client(1))), "its own is not in the way");
    assert!(table.end_lease(KEY, &a) && !table.has_leases());
    assert_eq!(table.open(KEY, &c, BOTH), Ok(BOTH));
    assert_eq!(grant(&a, Caching::READ), Err(Refused::NoLease), "somebody writes");
}

#[test]
fn a_write_lease_conflicts_with_all_other_clients() {
    let (table, notice) = (LockTable::default(), Arc::new(RecallCount::default()));
    table.open(KEY, &owner(1), BOTH).expect("free");
    let grant = |id| table.grant(5, &attr(1), &owner(id), Caching::READ_WRITE, notice.clone());
    assert_eq!(grant(2), Err(Refused::NoLease), "another client has it open");
    grant(1).expect("nobody else has it open");
    assert!(table.has_write_leases() && table.may_read(KEY, Some(client(1))));
    assert!(!table.may_read(KEY, None));
    assert_eq!(table.open(KEY, &owner(2), READ), Err(Refused::Recalling));
    assert_eq!(notified(&notice), 1);
    table.release_client(client(1));
    assert!(!table.has_leases() && !table.has_write_leases());
    assert_eq!(table.open(KEY, &owner(2), READ), Ok(READ));
}

#[test]
fn a_delegation_and_locks_that_its_holder_could_take_locally_exclude_each_other() {
    let (table, notice) = (LockTable::default(), Arc::new(RecallCount::default()));
    let grant = |kind| table.grant(5, &attr(1), &owner(1), kind, notice.clone());
    let lock = |id, kind| table.relock(KEY, &owner(id), range(0, 9), kind);
    for (held, reading) in [(Kind::Read, Ok(())), (Kind::Write, Err(Refused::NoLease))] {
        lock(2, held).expect("free");
        assert_eq!(grant(Caching::READ), reading, "next to {held:?}");
        table.end_lease(KEY, &owner(1));
        assert_eq!(grant(Caching::READ_WRITE), Err(Refused::NoLease), "next to {held:?}");
        table.unlock(KEY, &owner(2), range(0, 9)).expect("no limit");
    }
    // A request that waits gets its lock without a look at leases.
    lock(1, Kind::Write).expect("free");
    let waits = table.lock_or_wait(KEY, &owner(2), range(0, 9), Kind::Read, Box::new(drop));
    assert!(matches!(waits, Ok(LockOutcome::Waiting(..))), "{waits:?}");
    assert_eq!(grant(Caching::READ_WRITE), Err(Refused::NoLease), "another client waits");
    table.release_client(client(2));
    grant(Caching::READ_WRITE).expect("no other client");
    let waits = table.lock_or_wait(KEY, &owner(2), range(0, 9), Kind::Read, Box::new(drop));
    assert_eq!(waits, Err(Refused::Recalling), "the holder may have locked more");
    assert_eq!(lock(2, Kind::Read).err().map(|why| matches!(why, Refused::Locked(_))), Some(true));
    assert_eq!(notified(&notice), 1);
    lock(1, Kind::Write).expect("its own is not in the way");
    table.unlock(KEY, &owner(1), range(0, 9)).expect("no limit");
    assert_eq!(lock(2, Kind::Read), Err(Refused::Recalling), "it is not returned");
    assert!(table.end_lease(KEY, &owner(1)));
    assert_eq!(lock(2, Kind::Read), Ok(()));
}

#[test]
fn no_lease_while_a_change_is_in_progress() {
    let (table, notice) = (LockTable::default(), Arc::new(RecallCount::default()));
    let grant = |nlink| table.grant(5, &attr(nlink), &owner(1), Caching::READ, notice.clone());
    assert_eq!(grant(2), Err(Refused::NoLease), "several names, several handles");
    let changing = table.changing(5);
    assert_eq!(grant(1), Err(Refused::NoLease));
    drop(changing);
    let changing = table.names_changing();
    assert_eq!(grant(1), Err(Refused::NoLease));
    drop(changing);
    assert!(!table.has_leases(), "a refused lease is not counted");
    assert_eq!(grant(1), Ok(()));
    table.recall_client(client(1));
    assert_eq!(notified(&notice), 1);
}

#[test]
fn limits_hold() {
    let table = LockTable::default();
    for at in 0..base::limits::LOCKS_PER_FILE_MAX as u64 {
        match table.lock(KEY, &owner(1), range(at * 2, 1), Kind::Write) {
            Ok(()) => {}
            Err(refused) => {
                assert_eq!(refused, Refused::Full);
                assert!(at + 2 >= base::limits::LOCKS_PER_FILE_MAX as u64 - 1);
            }
        }
    }
    let most = base::limits::LOCKS_PER_FILE_MAX as u64;
    assert!(table.counts().locks <= most);
    table.unlock(KEY, &owner(1), Range::to_end(0)).expect("takes no room");
    assert_eq!(table.counts().locks, 0);
    let long = vec![0; base::limits::LOCK_OWNER_MAX + 1];
    assert_eq!(Owner::new(client(1), &long), None);
}

#[test]
fn the_list_has_holders_of_opens_locks_and_leases() {
    let table = LockTable::default();
    table.open(KEY, &owner(1), READ).expect("free");
    table.lock(KEY, &owner(1), range(3, 4), Kind::Read).expect("free");
    table.lock(KEY, &owner(2), range(3, 4), Kind::Read).expect("shared");
    assert_eq!(table.list(Some(client(1)), 10).len(), 2);
    assert_eq!(table.list(None, 2).len(), 2);
    let rows = table.list(Some(client(2)), 10);
    let what = What::Lock(range(3, 4), Kind::Read);
    assert_eq!(rows, [Row { key: KEY, owner: owner(2), what }]);
    let tally = table.tally();
    let one = Tally { opens: 1, read_locks: 1, ..Tally::default() };
    assert_eq!(tally.get(&client(1)), Some(&one));
    assert_eq!(tally.get(&client(2)).map(Tally::locks), Some(1));
    let opens = table.find(&|_, what| matches!(what, What::Open(_)), 10);
    assert_eq!(opens, [Row { key: KEY, owner: owner(1), what: What::Open(READ) }]);
    table.release_client(client(1));
    assert_eq!(table.tally().len(), 1, "who holds nothing is not counted");
}

/// 1,000 requests for the whole file wait behind a lock at the end of 6,000 that they do not
/// conflict with: each change of that lock costs a search for each, not one look at each lock.
#[test]
fn what_waits_costs_a_search_each() {
    let table = LockTable::default();
    for at in 0..6_000 {
        table.lock(KEY, &owner(1), range(at * 2, 1), Kind::Read).expect("free");
    }
    let last = range(1_000_000, 1);
    table.lock(KEY, &owner(2), last, Kind::Write).expect("free");
    for n in 0..1_000_u64 {
        let who = Owner::new(ClientKey { protocol: Protocol::Smb, id: n }, b"w").expect("short");
        let asked = table.lock_or_wait(KEY, &who, Range::to_end(0), Kind::Read, Box::new(|_| {}));
        assert!(matches!(asked, Ok(LockOutcome::Waiting(..))), "{asked:?}");
    }
    ranges::STEPS.set(0);
    // What it holds already it may have again.
    table.lock(KEY, &owner(2), last, Kind::Write).expect("its own");
    // A look at each lock for each of those that wait would be six millions.
    let most = 1_000 * 4 * base::limits::LOCK_GROUP_MAX as u64;
    assert!(ranges::STEPS.get() < most, "{} steps", ranges::STEPS.get());
    assert_eq!(table.counts().waiting, 1_000);
}
