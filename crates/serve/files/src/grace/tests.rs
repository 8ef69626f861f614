//! A run waits for the end of the grace period however long that is, and no longer than it lasts.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use vfs::locks::Protocol;

use super::*;

fn in_grace() -> LockTable {
    let locks = LockTable::default();
    // Requests of clients would be refused at once.
    locks.set_grace_patience(Duration::ZERO);
    locks.begin_grace(Protocol::Nfs4);
    locks
}

#[test]
fn a_run_waits_longer_than_requests_of_clients() {
    let (locks, looks) = (in_grace(), AtomicUsize::new(0));
    let continues = || looks.fetch_add(1, SeqCst) < 1_000;
    thread::scope(|scope| {
        let run = scope.spawn(|| ended_blocking(&locks, continues));
        while looks.load(SeqCst) < 2 {
            thread::yield_now();
        }
        locks.end_grace(Protocol::Nfs4);
        assert!(run.join().expect("no panic"));
    });
    assert!(ended_blocking(&locks, || false), "there is no grace period");
}

#[test]
fn a_run_that_is_cancelled_waits_no_longer() {
    let (locks, continues) = (in_grace(), AtomicBool::new(true));
    thread::scope(|scope| {
        let run = scope.spawn(|| ended_blocking(&locks, || continues.load(SeqCst)));
        continues.store(false, SeqCst);
        assert!(!run.join().expect("no panic"));
    });
    assert!(locks.in_grace());
}
