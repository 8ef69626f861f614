//! Sessions: found by their secret, bounded, and over in time.

use vfs::cred::Cred;

use super::*;

const IDLE: Duration = Duration::from_secs(100);

fn person(name: &str) -> Arc<Person> {
    Arc::new(Person { name: name.to_owned(), cred: Cred::root(), home: None, anonymous: false })
}

fn seconds(n: u64) -> u64 {
    n * 1_000_000_000
}

#[test]
fn a_session_is_found_until_it_rests_too_long() {
    let sessions = Sessions::default();
    sessions.keep(b"a", false, (person("alice"), 1), 0);
    assert!(sessions.find(b"b", IDLE, 0).is_none());
    for n in 1..5 {
        let known = sessions.find(b"a", IDLE, seconds(n * 90)).unwrap();
        assert_eq!((known.person.name.as_str(), known.generation), ("alice", 1));
    }
    assert!(sessions.find(b"a", IDLE, seconds(4 * 90 + 101)).is_none());
    assert_eq!(sessions.count(), 0);
    sessions.keep(b"a", false, (person("alice"), 1), 0);
    sessions.forget(b"a");
    assert!(sessions.find(b"a", IDLE, 0).is_none());
}

#[test]
fn a_password_is_believed_for_a_bounded_time_however_often_it_is_used() {
    let sessions = Sessions::default();
    sessions.keep(b"a", true, (person("alice"), 1), 0);
    let fresh = HTTP_BASIC_FRESH.as_secs();
    for n in 0..=fresh {
        assert!(sessions.find(b"a", IDLE, seconds(n)).is_some());
    }
    assert!(sessions.find(b"a", IDLE, seconds(fresh + 1)).is_none());
}

#[test]
fn who_is_gone_is_not_known_any_more() {
    let sessions = Sessions::default();
    sessions.keep(b"a", false, (person("alice"), 1), 0);
    sessions.renew(b"a", Some(person("alice")), 2);
    assert_eq!(sessions.find(b"a", IDLE, 0).unwrap().generation, 2);
    sessions.renew(b"a", None, 3);
    assert!(sessions.find(b"a", IDLE, 0).is_none());
}

#[test]
fn the_one_used_longest_ago_makes_room() {
    let sessions = Sessions::default();
    for n in 0..HTTP_SESSIONS_MAX as u64 {
        sessions.keep(&n.to_be_bytes(), false, (person("a"), 1), n);
    }
    assert!(sessions.find(&0_u64.to_be_bytes(), IDLE, seconds(1)).is_some());
    sessions.keep(b"new", false, (person("a"), 1), seconds(1));
    assert_eq!(sessions.count(), HTTP_SESSIONS_MAX);
    assert!(sessions.find(&0_u64.to_be_bytes(), IDLE, seconds(1)).is_some());
    assert!(sessions.find(&1_u64.to_be_bytes(), IDLE, seconds(1)).is_none());
}
