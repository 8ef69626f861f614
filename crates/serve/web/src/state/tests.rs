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
fn ended_sessions_are_not_known_any_more() {
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

#[test]
fn one_user_does_not_end_the_sessions_of_others() {
    let sessions = Sessions::default();
    sessions.keep(b"other", false, (person("b"), 1), 0);
    for n in 0..=HTTP_SESSIONS_MAX as u64 {
        sessions.keep(&n.to_be_bytes(), false, (person("a"), 1), 1 + n);
    }
    assert_eq!(sessions.count(), HTTP_SESSIONS_MAX);
    assert!(sessions.find(b"other", IDLE, seconds(1)).is_some());
}

#[test]
fn uploads_of_a_user_and_of_an_address_have_a_part() {
    let address = |n: u8| IpAddr::from([192, 0, 2, n]);
    let names: Vec<String> = (0..5).map(|n| n.to_string()).collect();
    let of = |users: usize, from: u8, each: usize| {
        let users = names.iter().take(users);
        users.flat_map(move |user| vec![(&**user, address(from)); each]).collect::<Vec<_>>()
    };
    let may = |all: &[(&str, IpAddr)], by: &Person, from: u8| {
        permits(all.iter().copied(), by, address(from))
    };
    let [zero, four] = ["0", "4"].map(person);
    let one = of(1, 1, HTTP_UPLOADS_PER_USER);
    assert!(!may(&one, &zero, 1) && !may(&one, &zero, 2) && may(&one, &four, 1));
    let four_users = of(4, 1, HTTP_UPLOADS_PER_USER);
    assert!(!may(&four_users, &four, 1), "the part of the address");
    assert!(may(&four_users, &four, 2), "another address");
    let anonymous = Person { anonymous: true, ..(*zero).clone() };
    assert!(!may(&one, &anonymous, 1) && may(&one, &anonymous, 2));
}
