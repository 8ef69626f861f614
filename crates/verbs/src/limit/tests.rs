//! What is woken when bytes are given back, and what is not.

use std::sync::atomic::AtomicU64;
use std::task::{Context, Wake};

use super::*;

#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// One that waits.
#[derive(Default)]
struct Waiter {
    next: NextBytes,
    wakes: Arc<Count>,
}

impl Waiter {
    fn of(limit: &Arc<ByteLimit>, bytes: usize) -> Self {
        let mut waiter = Self::default();
        waiter.next.wait_for(limit, bytes);
        assert!(!waiter.is_ready(), "{bytes} are not there");
        waiter
    }

    fn is_ready(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.next.poll(&mut Context::from_waker(&waker)).is_ready()
    }

    fn wakes(&self) -> u64 {
        self.wakes.0.load(SeqCst)
    }
}

fn full(max: usize) -> Arc<ByteLimit> {
    let limit = ByteLimit::new(max);
    assert!(limit.try_take(max) && !limit.try_take(1) && !limit.has_room(1));
    limit
}

#[test]
fn bytes_next_to_others_are_taken_as_far_as_both_fit() {
    let limit = ByteLimit::new(100);
    assert!(!limit.try_take_next_to(60, 41) && limit.try_take_next_to(60, 40));
    assert!(!limit.try_take_next_to(1, usize::MAX) && !limit.try_take_next_to(usize::MAX, 1));
    assert_eq!(limit.used(), 60);
}

#[test]
fn those_that_fit_are_woken_in_order_and_no_others() {
    let limit = full(100);
    let mut all = [60, 30, 30, 10].map(|bytes| Waiter::of(&limit, bytes));
    limit.give(45);
    assert_eq!(all.each_ref().map(Waiter::wakes), [0, 1, 0, 1], "30 and 10 fit together");
    assert_eq!(all.each_mut().map(Waiter::is_ready), [false, true, false, true]);
    limit.give(1);
    assert_eq!(all.each_ref().map(Waiter::wakes), [0, 1, 0, 1], "nothing more fits");
    limit.give(14);
    // The first comes before those behind it, which have not taken theirs.
    assert_eq!(all.each_ref().map(Waiter::wakes), [1, 1, 0, 1]);
}

#[test]
fn one_that_does_not_need_it_leaves_it_to_others() {
    let limit = full(10);
    let mut all = [10, 10].map(|bytes| Waiter::of(&limit, bytes));
    limit.give(10);
    assert_eq!(all.each_ref().map(Waiter::wakes), [1, 0]);
    all[0].next.clear();
    assert_eq!(all.each_ref().map(Waiter::wakes), [1, 1]);
    assert!(!all[0].next.waits() && all[1].is_ready());
}

#[test]
fn one_that_finds_it_gone_keeps_its_place_and_is_not_woken_without_cause() {
    let limit = full(10);
    let mut all = [6, 6].map(|bytes| Waiter::of(&limit, bytes));
    limit.give(6);
    assert!(all[0].is_ready());
    // Another one, which did not wait, was faster.
    assert!(limit.try_take(6));
    all[0].next.wait_for(&limit, 6);
    assert!(all[0].next.waits() && !all[0].is_ready());
    assert_eq!(all.each_ref().map(Waiter::wakes), [1, 0]);
    limit.give(6);
    assert_eq!(all.each_ref().map(Waiter::wakes), [2, 0], "it is the first still");
}

#[test]
fn what_is_given_back_before_the_wait_begins_is_found() {
    let limit = full(10);
    limit.give(10);
    let mut next = NextBytes::default();
    next.wait_for(&limit, 10);
    assert!(next.poll(&mut Context::from_waker(Waker::noop())).is_ready());
    let other = full(10);
    next.wait_for(&other, 10);
    assert!(next.poll(&mut Context::from_waker(Waker::noop())).is_pending(), "of another limit");
    assert!(limit.lock().is_empty() && next.waits());
}

#[test]
fn beyond_the_limit_nothing_fits() {
    let limit = full(10);
    limit.take(5);
    let mut none = Waiter::of(&limit, 0);
    limit.give(4);
    assert!(!none.is_ready() && none.wakes() == 0);
    limit.give(1);
    assert!(none.is_ready() && limit.has_room(0));
}
