//! Sessions under a clock that the test moves.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use base::limits::{
    LOGIN_ONCE_AGE, LOGIN_ONCE_MAX, SESSION_AGE, SESSION_IDLE, SESSIONS_MAX, SIGN_IN_FREE_FAILURES,
    SIGN_IN_MEMORY, SIGN_IN_PEERS_MAX, SIGN_IN_WAIT_MAX,
};

use super::Sessions;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));

fn ns(time: Duration) -> u64 {
    time.as_nanos() as u64
}

#[test]
fn a_session_ends_when_unused_and_when_old() {
    let mut sessions = Sessions::default();
    sessions.open("a".into(), "admin", 0);
    let nearly = ns(SESSION_IDLE) - 1;
    assert_eq!(sessions.user("a", nearly).as_deref(), Some("admin"));
    assert_eq!(sessions.user("a", 2 * nearly).as_deref(), Some("admin"), "use prolongs it");
    assert_eq!(sessions.user("a", 2 * nearly + ns(SESSION_IDLE)), None);

    sessions.open("b".into(), "admin", 0);
    let mut now = 0;
    while now + nearly < ns(SESSION_AGE) {
        now += nearly;
        assert!(sessions.user("b", now).is_some(), "in use at {now}");
    }
    assert_eq!(sessions.user("b", ns(SESSION_AGE)), None, "use does not prolong it for ever");
}

#[test]
fn signing_out_ends_it() {
    let mut sessions = Sessions::default();
    sessions.open("a".into(), "admin", 0);
    sessions.close("a");
    assert_eq!(sessions.user("a", 1), None);
}

#[test]
fn a_full_table_drops_the_longest_unused() {
    let mut sessions = Sessions::default();
    for n in 0..SESSIONS_MAX as u64 {
        sessions.open(n.to_string(), "admin", n);
    }
    assert!(sessions.user("0", SESSIONS_MAX as u64).is_some());
    sessions.open("new".into(), "admin", SESSIONS_MAX as u64);
    assert!(sessions.user("0", SESSIONS_MAX as u64).is_some(), "just used");
    assert!(sessions.user("1", SESSIONS_MAX as u64).is_none());
    assert_eq!(sessions.sessions.len(), SESSIONS_MAX);
}

#[test]
fn a_one_time_token_works_once_and_not_too_late() {
    let mut sessions = Sessions::default();
    sessions.offer_once("t".into(), "admin", 0);
    assert_eq!(sessions.take_once("t", 1).as_deref(), Some("admin"));
    assert_eq!(sessions.take_once("t", 2), None);
    sessions.offer_once("late".into(), "admin", 0);
    assert_eq!(sessions.take_once("late", ns(LOGIN_ONCE_AGE)), None);
    for n in 0..100 {
        sessions.offer_once(n.to_string(), "admin", n);
    }
    assert_eq!(sessions.once.len(), LOGIN_ONCE_MAX);
}

#[test]
fn patience_with_wrong_passwords_doubles_up_to_a_limit() {
    let mut sessions = Sessions::default();
    let mut now = 0;
    for _ in 0..SIGN_IN_FREE_FAILURES {
        assert_eq!(sessions.must_wait(PEER, now), None);
        sessions.failed(PEER, now);
    }
    for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
        let wait = sessions.must_wait(PEER, now).unwrap();
        assert_eq!(wait, Duration::from_secs(expected).min(SIGN_IN_WAIT_MAX));
        assert!(sessions.must_wait(PEER, now + ns(wait) - 1).is_some());
        now += ns(wait);
        assert_eq!(sessions.must_wait(PEER, now), None);
        sessions.failed(PEER, now);
    }
    let other = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 8));
    assert_eq!(sessions.must_wait(other, now), None, "others are not held responsible");
    sessions.succeeded(PEER);
    assert_eq!(sessions.must_wait(PEER, now), None);
}

#[test]
fn wrong_passwords_are_forgotten_and_the_table_is_bounded() {
    let mut sessions = Sessions::default();
    for n in 0..2 * SIGN_IN_PEERS_MAX as u32 {
        sessions.failed(IpAddr::V4(Ipv4Addr::from(n)), u64::from(n));
    }
    assert_eq!(sessions.failures.len(), SIGN_IN_PEERS_MAX);
    sessions.failed(PEER, 2 * ns(SIGN_IN_MEMORY));
    assert_eq!(sessions.failures.len(), 1);
}
