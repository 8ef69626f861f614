//! Wrong passwords under a clock that the test moves.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::limits::{
    SIGN_IN_FREE_FAILURES, SIGN_IN_KNOWN_AGE, SIGN_IN_KNOWN_MAX, SIGN_IN_MEMORY,
    SIGN_IN_NAME_FREE_FAILURES, SIGN_IN_NAME_WAIT_MAX, SIGN_IN_NAMES_MAX, SIGN_IN_PEERS_MAX,
    SIGN_IN_WAIT_MAX, USER_NAME_MAX,
};

use super::Throttle;

const PEER: IpAddr = peer(7);

const fn peer(n: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + n))
}

fn ns(time: Duration) -> u64 {
    time.as_nanos() as u64
}

#[test]
fn patience_with_an_address_doubles_up_to_a_limit() {
    let mut throttle = Throttle::default();
    let mut now = 0;
    for _ in 0..SIGN_IN_FREE_FAILURES {
        assert_eq!(throttle.must_wait(PEER, "a", now), None);
        throttle.failed(PEER, "a", now);
    }
    for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
        let wait = throttle.must_wait(PEER, "a", now).unwrap();
        assert_eq!(wait, Duration::from_secs(expected).min(SIGN_IN_WAIT_MAX));
        assert_eq!(throttle.must_wait(PEER, "b", now), Some(wait), "whatever the name");
        assert!(throttle.must_wait(PEER, "a", now + ns(wait) - 1).is_some());
        now += ns(wait);
        assert_eq!(throttle.must_wait(PEER, "a", now), None);
        throttle.failed(PEER, "a", now);
    }
    assert_eq!(throttle.must_wait(peer(8), "b", now), None, "others are not held responsible");
    throttle.succeeded(PEER, "a", now);
    assert_eq!(throttle.must_wait(PEER, "a", now), None);
}

#[test]
fn a_name_tried_from_many_addresses_waits_except_where_its_owner_has_been() {
    let mut throttle = Throttle::default();
    let desk = peer(1_000_000);
    throttle.succeeded(desk, "anna", 0);
    for n in 0..SIGN_IN_NAME_FREE_FAILURES {
        assert_eq!(throttle.must_wait(peer(n), "anna", 1), None);
        throttle.failed(peer(n), "anna", 1);
    }
    assert_eq!(throttle.must_wait(peer(500), "anna", 1), Some(Duration::from_secs(1)));
    assert_eq!(throttle.must_wait(peer(500), "bert", 1), None);
    assert_eq!(throttle.must_wait(desk, "anna", 1), None, "she is not locked out");
    for n in 0..1_000 {
        throttle.failed(peer(n), "anna", 1);
    }
    assert_eq!(throttle.must_wait(peer(5_000), "anna", 1), Some(SIGN_IN_NAME_WAIT_MAX));
    let later = ns(SIGN_IN_KNOWN_AGE);
    for n in 0..1_000 {
        throttle.failed(peer(n), "anna", later);
    }
    assert!(throttle.must_wait(desk, "anna", later).is_some(), "known for a month only");
}

#[test]
fn names_that_cannot_exist_are_treated_alike() {
    let mut throttle = Throttle::default();
    for n in 0..=SIGN_IN_NAME_FREE_FAILURES {
        throttle.failed(peer(n), &format!("{n}{}", "x".repeat(USER_NAME_MAX)), 0);
    }
    let other = "y".repeat(USER_NAME_MAX + 1);
    assert!(throttle.must_wait(peer(500), &other, 0).is_some());
    assert_eq!(throttle.names.len(), 1);
}

#[test]
fn an_ipv6_site_counts_as_one() {
    let mut throttle = Throttle::default();
    let at = |text: &str| text.parse::<IpAddr>().unwrap();
    for n in 0..SIGN_IN_FREE_FAILURES {
        throttle.failed(at(&format!("2001:db8:1:2::{n:x}")), &format!("user{n}"), 0);
    }
    assert!(throttle.must_wait(at("2001:db8:1:2:ffff::1"), "a", 0).is_some());
    assert_eq!(throttle.must_wait(at("2001:db8:1:3::1"), "a", 0), None);
    for n in 0..SIGN_IN_FREE_FAILURES {
        throttle.failed(at("::ffff:10.0.0.9"), &format!("user{n}"), 0);
    }
    assert!(throttle.must_wait(at("10.0.0.9"), "a", 0).is_some(), "mapped is the same");
}

#[test]
fn wrong_passwords_are_forgotten_and_the_tables_are_bounded() {
    let mut throttle = Throttle::default();
    let many = 2 * SIGN_IN_PEERS_MAX.max(SIGN_IN_NAMES_MAX) as u32;
    for n in 0..many {
        throttle.failed(peer(n), &n.to_string(), u64::from(n));
    }
    assert_eq!(throttle.addresses.len(), SIGN_IN_PEERS_MAX);
    assert_eq!(throttle.names.len(), SIGN_IN_NAMES_MAX);
    throttle.failed(PEER, "a", 2 * ns(SIGN_IN_MEMORY));
    assert_eq!((throttle.addresses.len(), throttle.names.len()), (1, 1));
    for n in 0..SIGN_IN_KNOWN_MAX as u32 + 10 {
        throttle.succeeded(peer(n), "a", u64::from(n));
    }
    assert_eq!(throttle.known.len(), SIGN_IN_KNOWN_MAX);
    assert!(!throttle.is_known("a", peer(9), 0) && throttle.is_known("a", peer(10), 0));
}
