//! A table that is exchanged: seen at once by every thread, and let go of when its calls have
//! ended.

use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;
use crate::mem::MemFs;
use crate::share::{New, ServiceRules, tag};

fn table(names: &[&str]) -> ShareTable {
    let mut table = ShareTable::default();
    for name in names {
        table.add(name, MemFs::new(tag(name), 1 << 20), false).expect("new");
    }
    table
}

#[test]
fn an_exchange_is_seen_by_the_next_call() {
    let shares = Shares::new(table(&["a"]));
    let other = Shares::new(table(&["z"]));
    let first = shares.load();
    assert!(first.by_path(b"/export/a").is_some());
    // Another one's table is never taken for ours.
    assert!(other.load().by_path(b"/export/a").is_none());
    assert!(Arc::ptr_eq(&first, &shares.load()));
    let before = shares.replace(table(&["b"]));
    assert!(Arc::ptr_eq(&first, &before));
    assert!(shares.load().by_path(b"/export/a").is_none());
    assert!(shares.load().by_path(b"/export/b").is_some());
    // A call in progress retains the table that it found; after that there is no reference left.
    assert!(first.by_path(b"/export/a").is_some());
    drop(before);
    let gone = Arc::downgrade(&first);
    drop(first);
    assert!(gone.upgrade().is_none());
}

#[test]
fn concurrent_readers_see_the_old_or_the_new_value() {
    let shares = Shares::new(table(&["a", "x"]));
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    // Looked at before the look, so that there is one after the last exchange.
                    let last = end.load(Ordering::Acquire);
                    let table = shares.load();
                    let names: Vec<_> = table.iter().map(|share| share.name.as_str()).collect();
                    assert!(names == ["a", "x"] || names == ["a", "y"], "{names:?}");
                    if last {
                        assert_eq!(names, ["a", "x"], "the last exchange is seen");
                        return;
                    }
                }
            });
        }
        let spare = ["x", "y"].map(|name| MemFs::new(tag(name), 1 << 20));
        for round in 0..2_000 {
            let (gone, new) = if round % 2 == 0 { ("x", "y") } else { ("y", "x") };
            let mut next = ShareTable::clone(&shares.load());
            next.remove(gone).expect("there");
            let fs = spare[usize::from(new == "y")].clone();
            let rules = ServiceRules::default();
            let new =
                New { name: new, fs, read_only: false, id: 2, rules, snapshots: None, tree: 0 };
            next.put(new).expect("new");
            shares.replace(next);
        }
        end.store(true, Ordering::Release);
    });
}
