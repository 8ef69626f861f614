//! Sessions under a clock that the test moves.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use base::limits::{LOGIN_ONCE_AGE, LOGIN_ONCE_MAX, SESSION_AGE, SESSION_IDLE, SESSIONS_MAX};

use super::{Lifetime, Sessions};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));

fn ns(time: Duration) -> u64 {
    time.as_nanos() as u64
}

fn user(sessions: &mut Sessions, token: &str, now_ns: u64) -> Option<String> {
    sessions.find(token, now_ns).map(|seen| seen.user)
}

#[test]
fn a_session_ends_when_unused_and_when_old() {
    let mut sessions = Sessions::default();
    sessions.open("a", "admin", PEER, 0);
    let nearly = ns(SESSION_IDLE) - 1;
    assert_eq!(user(&mut sessions, "a", nearly), Some("admin".into()));
    assert_eq!(user(&mut sessions, "a", 2 * nearly), Some("admin".into()), "use prolongs it");
    assert_eq!(user(&mut sessions, "a", 2 * nearly + ns(SESSION_IDLE)), None);

    sessions.open("b", "admin", PEER, 0);
    let mut now = 0;
    while now + nearly < ns(SESSION_AGE) {
        now += nearly;
        assert!(user(&mut sessions, "b", now).is_some(), "in use at {now}");
    }
    assert_eq!(user(&mut sessions, "b", ns(SESSION_AGE)), None, "use does not prolong it for ever");
}

#[test]
fn signing_out_ends_it() {
    let mut sessions = Sessions::default();
    sessions.open("a", "admin", PEER, 0);
    sessions.close("a");
    assert_eq!(user(&mut sessions, "a", 1), None);
}

#[test]
fn a_full_table_drops_the_longest_unused() {
    let mut sessions = Sessions::default();
    for n in 0..SESSIONS_MAX as u64 {
        sessions.open(&n.to_string(), "admin", PEER, n);
    }
    assert!(user(&mut sessions, "0", SESSIONS_MAX as u64).is_some());
    sessions.open("new", "admin", PEER, SESSIONS_MAX as u64);
    assert!(user(&mut sessions, "0", SESSIONS_MAX as u64).is_some(), "just used");
    assert!(user(&mut sessions, "1", SESSIONS_MAX as u64).is_none());
    assert_eq!(sessions.sessions.len(), SESSIONS_MAX);
}

#[test]
fn one_user_or_address_does_not_end_the_sessions_of_others() {
    let mut sessions = Sessions::default();
    sessions.open("other user", "root", PEER, 0);
    sessions.open("other address", "admin", IpAddr::from([10, 0, 0, 8]), 0);
    for n in 0..2 * SESSIONS_MAX as u64 {
        sessions.open(&n.to_string(), "admin", PEER, 1 + n);
    }
    assert_eq!(sessions.sessions.len(), SESSIONS_MAX);
    let now = 2 * SESSIONS_MAX as u64;
    assert!(user(&mut sessions, "other user", now).is_some());
    assert!(user(&mut sessions, "other address", now).is_some());
    // The addresses of a /64 are one.
    for n in 0..2 * SESSIONS_MAX as u64 {
        let from = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, n as u16]);
        sessions.open(&format!("v6 {n}"), "admin", from, now + n);
    }
    assert!(user(&mut sessions, "other address", 2 * now).is_some());
}

#[test]
fn a_one_time_token_works_once_and_not_too_late() {
    let mut sessions = Sessions::default();
    sessions.offer_once("t", "admin", 0);
    assert_eq!(sessions.take_once("t", 1).as_deref(), Some("admin"));
    assert_eq!(sessions.take_once("t", 2), None);
    sessions.offer_once("late", "admin", 0);
    assert_eq!(sessions.take_once("late", ns(LOGIN_ONCE_AGE)), None);
    for n in 0..100 {
        sessions.offer_once(&n.to_string(), "admin", n);
    }
    assert_eq!(sessions.once.len(), LOGIN_ONCE_MAX);
}

#[test]
fn sessions_are_listed_and_ended_by_a_name_that_opens_nothing() {
    let mut sessions = Sessions::default();
    sessions.open("a", "anna", PEER, 0);
    sessions.open("b", "bert", "::ffff:10.0.0.9".parse().unwrap(), ns(Duration::from_secs(5)));
    let now = ns(Duration::from_secs(10));
    let listed = sessions.list(now);
    let names: Vec<(&str, &str)> = listed.iter().map(|s| (&*s.id, &*s.user)).collect();
    assert_eq!(names, [("s1", "anna"), ("s2", "bert")]);
    assert_eq!(listed[1].from.to_string(), "10.0.0.9");
    assert_eq!(listed[1].open, Duration::from_secs(5));
    assert_eq!(listed[0].idle, Duration::from_secs(10), "looking at the list is no use of it");
    assert_eq!(user(&mut sessions, "s1", now), None, "the name is no token");

    assert!(sessions.end("s1", now));
    assert!(!sessions.end("s1", now) && !sessions.end("s9", now));
    assert_eq!(user(&mut sessions, "a", now), None);
    assert_eq!(user(&mut sessions, "b", now), Some("bert".into()));
    sessions.open("c", "anna", PEER, now);
    assert_eq!(sessions.list(now).last().unwrap().id, "s3", "names are not used again");
}

#[test]
fn a_removed_user_has_no_session_and_no_one_time_url() {
    let mut sessions = Sessions::default();
    for name in ["anna", "bert"] {
        sessions.open(name, name, PEER, 0);
        sessions.offer_once(name, name, 0);
    }
    sessions.end_others(|name| name != "bert");
    assert_eq!(sessions.list(1).len(), 1);
    assert_eq!(sessions.take_once("bert", 1), None);
    assert_eq!(sessions.take_once("anna", 1), Some("anna".into()));
}

#[test]
fn a_shorter_lifetime_is_in_effect_at_once() {
    let mut sessions = Sessions::default();
    sessions.open("a", "anna", PEER, 0);
    let idle = Duration::from_secs(60);
    sessions.set_lifetime(Lifetime { idle, ..Lifetime::default() });
    assert!(user(&mut sessions, "a", ns(idle) - 1).is_some());
    assert!(user(&mut sessions, "a", 2 * ns(idle)).is_none());
    sessions.open("b", "anna", PEER, 0);
    sessions.set_lifetime(Lifetime { idle, age: idle });
    assert!(sessions.list(ns(idle)).is_empty());
}
