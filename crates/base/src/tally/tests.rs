//! Counts that come and go.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::{AddressPermits, Tally, evict_of_most};

#[test]
fn each_has_its_amount_and_those_without_are_forgotten() {
    let [a, b] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
    let (mut tally, limits) = (Tally::default(), (5, 3));
    tally.remove(a, 1);
    assert_eq!((tally.of(a), tally.all()), (0, 0), "nothing was added");
    assert!(tally.add(a, 2, limits) && tally.add(b, 1, limits));
    assert_eq!((tally.of(a), tally.of(b), tally.all()), (2, 1, 3));
    assert!(!tally.add(a, 2, limits), "more than an address may have");
    assert!(!tally.add(b, 3, (5, 9)), "more than there may be");
    assert!(!tally.add(a, u64::MAX, (u64::MAX, u64::MAX)), "more than can be counted");
    tally.remove(a, 1);
    tally.remove(b, 7);
    assert_eq!((tally.of(a), tally.of(b), tally.all()), (1, 0, 1));
    assert_eq!(tally.each.len(), 1);
}

#[test]
fn permits_in_all_and_for_each_address() {
    let (permits, limits) = (Arc::<AddressPermits>::default(), (3, 2));
    let [a, b] = [1, 2].map(|n| IpAddr::from([192, 0, 2, n]));
    let first = permits.take(a, limits);
    let second = permits.take(a, limits);
    assert!(first.is_some() && second.is_some() && permits.take(a, limits).is_none());
    let third = permits.take(b, limits);
    assert!(third.is_some() && permits.take(b, limits).is_none());
    drop(first);
    assert_eq!(permits.taken(), 2);
    assert!(permits.take(a, limits).is_some());
    drop((second, third));
    assert_eq!(permits.taken(), 0);
    assert!(permits.addresses() == 0);
}

#[test]
fn a_full_table_loses_the_oldest_entry_of_the_owner_with_most() {
    // User, address, age.
    let rows = [("a", 1, 0), ("b", 1, 1), ("b", 2, 2), ("b", 2, 3), ("a", 1, 4)];
    let mut table: HashMap<usize, (&str, u8, u64)> = rows.into_iter().enumerate().collect();
    let mut evict = || evict_of_most(&mut table, |row| (row.0, row.1), |row| row.2);
    assert_eq!(evict(), Some(("b", 2, 2)), "of the user and the address with most");
    assert_eq!(evict(), Some(("a", 1, 0)), "of equals, the oldest");
    assert_eq!(evict(), Some(("b", 1, 1)));
    assert_eq!((evict(), evict(), evict()), (Some(("b", 2, 3)), Some(("a", 1, 4)), None));
}
