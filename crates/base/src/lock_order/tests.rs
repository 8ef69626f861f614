//! Ranks must rise, whatever the order in which locks are given back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::*;

const OUTER: Rank = Rank::new(1, "outer");
const INNER: Rank = Rank::new(2, "inner");

#[test]
fn ranks_may_rise() {
    let (outer, inner) = (OrderedMutex::new(OUTER, 1), OrderedMutex::new(INNER, 2));
    let (one, two) = (outer.lock(), inner.lock());
    assert_eq!((*one, *two), (1, 2));
    drop(one);
    drop(two);
    *outer.lock() += 1;
    assert_eq!(*outer.lock(), 2);
}

#[cfg(debug_assertions)]
#[test]
fn ranks_must_not_fall_or_stay() {
    let (outer, inner) = (OrderedMutex::new(OUTER, ()), OrderedMutex::new(INNER, ()));
    let other = OrderedMutex::new(INNER, ());
    let held = inner.lock();
    for wrong in [&outer, &other] {
        let taken = catch_unwind(AssertUnwindSafe(|| drop(wrong.lock())));
        let why = taken.expect_err("it panics");
        let why = why.downcast_ref::<String>().expect("a message");
        assert!(why.contains("lock order") && why.contains("inner"), "{why}");
    }
    drop(held);
    // Nothing of that is held any more.
    drop((outer.lock(), inner.lock()));
}

#[test]
fn a_panic_poisons_nothing() {
    let mutex = OrderedMutex::new(OUTER, 1);
    let panics = catch_unwind(AssertUnwindSafe(|| {
        let _held = mutex.lock();
        panic!("planted");
    }));
    assert!(panics.is_err());
    assert_eq!(*mutex.lock(), 1);
}

#[test]
fn a_guard_that_waits_is_woken() {
    let shared = Arc::new((OrderedMutex::new(OUTER, false), Condvar::new()));
    let other = Arc::clone(&shared);
    let waiter = std::thread::spawn(move || {
        let mut done = other.0.lock();
        while !*done {
            done = done.wait(&other.1);
        }
    });
    *shared.0.lock() = true;
    shared.1.notify_all();
    waiter.join().expect("it is woken");
}

#[test]
fn ranks_rise_and_are_those_of_the_guide() {
    let guide = include_str!("../../../../docs/howto/locks-and-threads.md");
    let rows = guide.lines().filter_map(|line| {
        let (place, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        let (name, _) = rest.split_once(" | ")?;
        Some((place.parse::<u8>().ok()?, name.to_owned()))
    });
    let rows: Vec<_> = rows.collect();
    let ranks: Vec<_> = ranks::ALL.iter().map(|rank| (rank.place, rank.name.to_owned())).collect();
    assert_eq!(rows, ranks);
    assert!(ranks.is_sorted_by_key(|(place, _)| *place));
}
