//! The duplicate-request cache, with a clock of our own.

use super::*;

const LIMITS: ReplayLimits = ReplayLimits { entries: 3, bytes: 100, age_ns: 1000, waiters: 2 };

const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
/// CREATE of NFSv3.
const CREATE: (u32, u32, u32) = (100_003, 3, 8);

fn key(xid: u32) -> Key {
    Key::new((LOCAL, &Cred::root()), xid, CREATE, b"arguments")
}

fn table() -> ReplayTable<&'static str> {
    ReplayTable::new(LIMITS)
}

#[test]
fn a_finished_call_is_replayed() {
    let mut table = table();
    assert_eq!(table.look(&key(1), 0), ReplayState::New);
    assert!(table.begin(key(1)));
    assert_eq!(table.look(&key(1), 1), ReplayState::InProgress);
    assert!(!table.begin(key(1)), "begun once only");
    assert!(table.finish(key(1), b"reply", 2).is_empty());
    assert_eq!(table.look(&key(1), 3), ReplayState::Done((*b"reply").into()));
}

#[test]
fn other_calls_are_other_calls() {
    let mut table = table();
    table.finish(key(1), b"reply", 0);
    let same = key(1);
    let others = [
        Key { client: [127, 0, 0, 2].into(), ..same },
        Key { xid: 2, ..same },
        Key { proc: (CREATE.0, CREATE.1, 9), ..same },
        Key { proc: (CREATE.0 + 1, CREATE.1, CREATE.2), ..same },
        Key { proc: (CREATE.0, 4, CREATE.2), ..same },
        Key::new((LOCAL, &Cred::root()), 1, CREATE, b"argumentz"),
        Key::new((LOCAL, &Cred::root()), 1, CREATE, b"arguments\0"),
        Key::new((LOCAL, &Cred { uid: 1, ..Cred::root() }), 1, CREATE, b"arguments"),
        Key::new((LOCAL, &Cred { gid: 1, ..Cred::root() }), 1, CREATE, b"arguments"),
        Key::new((LOCAL, &Cred { groups: vec![0], ..Cred::root() }), 1, CREATE, b"arguments"),
    ];
    for other in others {
        assert_eq!(table.look(&other, 0), ReplayState::New, "{other:?}");
    }
}

#[test]
fn repeats_wait_and_surplus_ones_are_dropped() {
    let mut table = table();
    table.begin(key(1));
    for waits in ["a", "b"] {
        assert_eq!(table.park(&key(1), waits), Parked::Waits);
    }
    assert_eq!(table.park(&key(1), "c"), Parked::Full);
    assert_eq!(table.finish(key(1), b"reply", 0), ["a", "b"]);
}

/// A call may end after a repeat has found it in progress.
#[test]
fn a_repeat_of_a_call_that_ends_meanwhile_is_looked_at_again() {
    let mut table = table();
    table.begin(key(1));
    assert_eq!(table.look(&key(1), 0), ReplayState::InProgress);
    table.finish(key(1), b"reply", 0);
    assert_eq!(table.park(&key(1), "late"), Parked::Ended);
    assert_eq!(table.look(&key(1), 0), ReplayState::Done((*b"reply").into()));
    table.begin(key(2));
    assert_eq!(table.look(&key(2), 0), ReplayState::InProgress);
    table.abandon(&key(2));
    assert_eq!(table.park(&key(2), "late"), Parked::Ended);
    assert_eq!(table.look(&key(2), 0), ReplayState::New, "the repeat is carried out");
}

#[test]
fn an_abandoned_call_may_be_done_again() {
    let mut table = table();
    table.begin(key(1));
    table.park(&key(1), "a");
    assert_eq!(table.abandon(&key(1)), ["a"]);
    assert_eq!(table.look(&key(1), 0), ReplayState::New);
    table.finish(key(1), b"reply", 0);
    assert!(table.abandon(&key(1)).is_empty());
    assert_ne!(table.look(&key(1), 0), ReplayState::New, "a finished call is not abandoned");
}

#[test]
fn a_call_that_has_not_begun_is_withdrawn_unless_a_repeat_waits() {
    let mut table = table();
    assert!(!table.withdraw(&key(1)), "there is none");
    table.begin(key(1));
    assert!(table.withdraw(&key(1)));
    assert_eq!(table.look(&key(1), 0), ReplayState::New);
    table.begin(key(1));
    table.park(&key(1), "a");
    assert!(!table.withdraw(&key(1)), "its reply is waited for");
    assert_eq!(table.finish(key(1), b"reply", 0), ["a"]);
    assert!(!table.withdraw(&key(1)), "it was carried out");
    assert_ne!(table.look(&key(1), 0), ReplayState::New);
}

#[test]
fn age_forgets() {
    let mut table = table();
    table.finish(key(1), b"reply", 100);
    table.begin(key(2));
    assert_ne!(table.look(&key(1), 1099), ReplayState::New);
    assert_eq!(table.look(&key(1), 1100), ReplayState::New);
    assert_eq!(table.look(&key(2), 1_000_000), ReplayState::InProgress, "work is never forgotten");
    assert_eq!((table.len(), table.bytes()), (1, 0));
}

#[test]
fn number_and_size_forget_the_oldest() {
    let mut table = table();
    (1..=4).for_each(|xid| drop(table.finish(key(xid), b"reply", u64::from(xid))));
    assert_eq!(table.look(&key(1), 5), ReplayState::New);
    assert_ne!(table.look(&key(2), 5), ReplayState::New);
    table.finish(key(5), &[0; 95], 6);
    assert_eq!((table.len(), table.bytes()), (2, 100));
    assert_ne!(table.look(&key(4), 7), ReplayState::New);
    table.finish(key(6), &[0; 101], 8);
    assert_eq!((table.len(), table.bytes()), (0, 0), "a reply above the limit is not kept");
}

#[test]
fn finishing_twice_counts_once() {
    let mut table = table();
    table.finish(key(1), b"first", 0);
    table.finish(key(1), b"second", 10);
    assert_eq!((table.len(), table.bytes()), (1, 6));
    assert_eq!(table.look(&key(1), 1005), ReplayState::Done((*b"second").into()));
    assert_eq!(table.look(&key(1), 1010), ReplayState::New);
}

#[test]
fn one_client_does_not_push_out_the_results_of_others() {
    let mut table = table();
    let other = Key { client: [192, 0, 2, 1].into(), ..key(1) };
    table.finish(other, b"other", 0);
    (1..=1_000).for_each(|xid| drop(table.finish(key(xid), b"reply", 1)));
    assert_eq!(table.look(&other, 1), ReplayState::Done((*b"other").into()));
    assert_eq!((table.len(), table.bytes()), (3, 15));
    assert_ne!(table.look(&key(1_000), 1), ReplayState::New, "the last of those are retained");
    assert!(table.finished.len() <= 2 * NUMBERS_MIN + 1, "forgotten calls take no memory");
    assert_eq!(table.look(&other, 1_000), ReplayState::New);
    table.expire(2_000);
    assert_eq!((table.len(), table.clients.len(), table.by_size.len()), (0, 0, 0));
}
