//! Penalties of clients, and their duration.

use base::limits::{SSH_PENALTY_LATE, SSH_PENALTY_NOBODY};

use super::*;

const SECOND: u64 = 1_000_000_000;

fn client(n: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, n])
}

/// How many connections of a client that end at once are let in, one after the other.
fn let_in(all: &Unsigned, from: IpAddr, penalty: Duration, now_ns: u64) -> usize {
    let mut count = 0;
    while let Some(place) = all.enter(from, now_ns, None) {
        place.charge(penalty, now_ns);
        count += 1;
        assert!(count < 1_000, "never turned away");
    }
    count
}

#[test]
fn addresses_that_connect_repeatedly_wait_and_no_others() {
    let all = Unsigned::default();
    let first = let_in(&all, client(1), SSH_PENALTY_NOBODY, SECOND);
    // ssh-audit calls fewer than 20 a second safe (CVE-2002-20001).
    assert!((10..20).contains(&first), "{first}");
    assert!(all.enter(client(2), SECOND, None).is_some());
    // A second later one more: as many as time takes off.
    assert_eq!(let_in(&all, client(1), SSH_PENALTY_NOBODY, 2 * SECOND), 1);
    assert_eq!(let_in(&all, client(1), SSH_PENALTY_NOBODY, 12 * SECOND), 10);
    assert_eq!(let_in(&all, client(1), SSH_PENALTY_NOBODY, 1_000 * SECOND), first);
}

#[test]
fn addresses_that_only_hold_permits_wait_longer_but_not_for_ever() {
    let all = Unsigned::default();
    let held: Vec<_> = (0..100).filter_map(|_| all.enter(client(1), SECOND, None)).collect();
    assert!(held.len() > SSH_UNSIGNED_PEER_MAX, "the oldest make room");
    assert_eq!(all.count(), SSH_UNSIGNED_PEER_MAX);
    held.iter().for_each(|place| place.charge(SSH_PENALTY_LATE, SECOND));
    drop(held);
    assert_eq!((all.count(), all.lock().here.clients()), (0, 0));
    let until = SECOND + (SSH_PENALTY_MAX - SSH_PENALTY_MIN).as_nanos() as u64;
    assert!(all.enter(client(1), until - 1, None).is_none());
    assert!(all.enter(client(1), until, None).is_some());
}

#[test]
fn signing_in_clears_the_delay() {
    let all = Unsigned::default();
    for _ in 0..10_000 {
        assert!(all.enter(client(1), SECOND, None).is_some());
    }
}

#[test]
fn accounts_are_bounded_and_those_that_are_even_make_room() {
    let all = Unsigned::default();
    let of = |n: u32| IpAddr::from(n.to_be_bytes());
    let far = |from: u32, now_ns| {
        for n in from..from + SSH_PENALTIES_KEPT as u32 + 10 {
            all.lock().charge(of(n), SSH_PENALTY_NOBODY, now_ns);
        }
        assert_eq!(all.lock().owed.len(), SSH_PENALTIES_KEPT);
    };
    far(1, SECOND);
    assert!(all.lock().owed.contains_key(&of(1)));
    far(1 << 30, 100 * SECOND);
    assert!(!all.lock().owed.contains_key(&of(1)));
}
