//! Tests of ranges that commands hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::RangeLock;
use crate::status::Status;

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn only_what_overlaps_waits() {
    let lock = RangeLock::default();
    let held = lock.take(100, 100, false).expect("free");
    for (offset, length) in [(0, 100), (200, 5), (150, 0)] {
        assert!(lock.take(offset, length, false).is_ok(), "{offset}+{length}");
    }
    for (offset, length) in [(0, 101), (199, 1), (0, u64::MAX)] {
        assert_eq!(lock.take(offset, length, false).err(), Some(Status::WouldBlock));
    }
    drop(held);
    assert_eq!(lock.count(), 0);
    assert!(lock.take(0, u64::MAX, false).is_ok());
}

#[test]
fn a_waiter_gets_the_range_when_it_is_free() {
    let lock = Arc::new(RangeLock::default());
    let held = lock.take(0, 10, false).expect("free");
    let (done, is_done) = channel();
    let other = Arc::clone(&lock);
    let waiter = thread::spawn(move || {
        let _guard = other.take(5, 1, true).expect("it waits");
        done.send(()).expect("somebody listens");
    });
    let before = lock.snapshot();
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    let cx = Context::from_waker(&waker);
    assert!(lock.poll_released(&before, &cx).is_pending());
    // Asked twice, it is woken once.
    assert!(lock.poll_released(&before, &cx).is_pending());
    assert_eq!(woken.0.load(SeqCst), 0);
    drop(held);
    assert_eq!(woken.0.load(SeqCst), 1);
    assert!(lock.poll_released(&before, &cx).is_ready());
    is_done.recv_timeout(Duration::from_secs(60)).expect("it got it");
    waiter.join().expect("no panic");
}

/// Under constant writes a large range would never be free otherwise.
#[test]
fn a_later_range_waits_behind_those_that_wait_for_the_same_bytes() {
    let lock = RangeLock::default();
    thread::scope(|scope| {
        let held = lock.take(0, 10, false).expect("free");
        let waiter = scope.spawn(|| lock.take(5, 15, true).map(drop));
        let end = Instant::now() + Duration::from_secs(60);
        while lock.waiting() == 0 {
            assert!(Instant::now() < end, "it waits");
            thread::yield_now();
        }
        let later = |offset, length| lock.take(offset, length, false).map(drop);
        assert_eq!(later(10, 10), Err(Status::WouldBlock), "what is waited for, though free");
        assert_eq!(later(20, 10), Ok(()), "nothing of that");
        drop(held);
        assert_eq!(waiter.join().expect("no panic"), Ok(()));
        assert_eq!((lock.waiting(), later(0, u64::MAX)), (0, Ok(())));
    });
}

#[test]
fn a_range_that_is_abandoned_lets_those_behind_it_pass() {
    let lock = RangeLock::default();
    let held = lock.take(0, 10, false).expect("free");
    let all = lock.take_all(Duration::from_millis(1)).map(drop);
    assert_eq!((all, lock.waiting()), (Err(Status::Busy), 0));
    assert!(lock.take(10, 10, false).is_ok());
    drop(held);
    assert!(lock.take_all(Duration::ZERO).is_ok(), "it need not wait");
}

#[test]
fn increments_under_the_lock_are_atomic() {
    let lock = Arc::new(RangeLock::default());
    let value = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (lock, value) = (Arc::clone(&lock), Arc::clone(&value));
            thread::spawn(move || {
                for _ in 0..500 {
                    let _guard = lock.take(0, 512, true).expect("it waits");
                    let now = value.load(std::sync::atomic::Ordering::Relaxed);
                    thread::yield_now();
                    value.store(now + 1, std::sync::atomic::Ordering::Relaxed);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(value.load(std::sync::atomic::Ordering::Relaxed), 2000);
}
