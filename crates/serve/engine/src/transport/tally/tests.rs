//! Counts that come and go.

use std::net::IpAddr;
use std::sync::Arc;

use super::{AddressPermits, Tally};

#[test]
fn each_has_its_count_and_those_without_are_forgotten() {
    let [a, b] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
    let mut tally = Tally::default();
    tally.remove(a);
    assert_eq!((tally.of(a), tally.all()), (0, 0), "nothing was added");
    tally.add(a);
    tally.add(a);
    tally.add(b);
    assert_eq!((tally.of(a), tally.of(b), tally.all()), (2, 1, 3));
    tally.remove(a);
    tally.remove(b);
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
