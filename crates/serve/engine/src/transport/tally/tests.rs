//! Counts that come and go.

use std::net::IpAddr;

use super::Tally;

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
