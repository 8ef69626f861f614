//! When peers are too slow.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// After how many seconds of `bytes` bytes each a peer is disconnected; `None` if not within a day.
fn timeout_at(bytes: u64) -> Option<u64> {
    let mut pace = SlowPeerBudget::default();
    (1..86_400).find(|_| {
        pace.waited(SECOND, bytes);
        pace.left().is_none()
    })
}

#[test]
fn peers_that_stand_still_or_trickle_are_disconnected() {
    let patience = PEER_PATIENCE.as_secs();
    assert_eq!(timeout_at(0), Some(patience));
    assert!(timeout_at(1).is_some_and(|after| after <= patience + 1), "{:?}", timeout_at(1));
    assert!(timeout_at(PEER_RATE_MIN / 2).is_some_and(|after| after <= 2 * patience));
}

#[test]
fn peers_that_are_slow_but_keep_the_rate_are_not() {
    assert_eq!(timeout_at(PEER_RATE_MIN), None);
    // A pause just short of the patience, then the least rate.
    let mut pace = SlowPeerBudget::default();
    pace.waited(PEER_PATIENCE - SECOND, 0);
    for _ in 0..10_000 {
        pace.waited(SECOND, PEER_RATE_MIN);
        assert!(pace.left().is_some());
    }
}

#[test]
fn a_gigabyte_earns_no_more_than_the_patience() {
    let mut pace = SlowPeerBudget::default();
    pace.waited(SECOND, 1 << 30);
    assert_eq!(pace.left(), Some(PEER_PATIENCE));
    pace.waited(Duration::ZERO, u64::MAX);
    pace.waited(PEER_PATIENCE, 0);
    assert_eq!(pace.left(), None);
}
