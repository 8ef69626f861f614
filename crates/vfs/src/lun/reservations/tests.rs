//! Tests of persistent reservations, action by action.

use std::net::IpAddr;

use base::limits::{
    LUN_REGISTRATIONS_ADDRESS_MAX, LUN_REGISTRATIONS_INITIATOR_MAX, LUN_REGISTRATIONS_MAX,
};

use super::{Access, Effect, Kind, Notice, Origin, Port, Refused, Reservations};

fn address(host: u8) -> IpAddr {
    [192, 0, 2, host].into()
}

/// A request from the address that most tests use.
fn at(port: &Port) -> Origin<'_> {
    Origin { port, address: address(1) }
}

fn port(number: u8) -> Port {
    Port { name: format!("iqn.{number}"), isid: [number; 6] }
}

/// Ports 1 to `count`, each registered with its number as the key.
fn registered(count: u8) -> Reservations {
    (1..=count).fold(Reservations::default(), |state, number| {
        let key = u64::from(number);
        state.register(at(&port(number)), Some(0), key, &[], false).expect("register").state
    })
}

fn done(effect: Result<Effect, Refused>) -> Reservations {
    effect.expect("done").state
}

#[test]
fn registrations_come_change_and_go() {
    let state = registered(2);
    assert_eq!(state.generation(), 2);
    assert_eq!(state.register(at(&port(1)), Some(9), 5, &[], false), Err(Refused::Conflict));
    assert_eq!(state.register(at(&port(3)), Some(9), 5, &[], false), Err(Refused::Conflict));
    let state = done(state.register(at(&port(1)), Some(1), 5, &[], true));
    assert!(state.persists() && state.key_of(&port(1)) == Some(5));
    let state = done(state.register(at(&port(1)), None, 6, &[], false));
    assert!(!state.persists() && state.key_of(&port(1)) == Some(6));
    let state = done(state.register(at(&port(1)), Some(6), 0, &[], false));
    assert_eq!((state.key_of(&port(1)), state.generation()), (None, 5));
    let same = done(state.register(at(&port(1)), Some(0), 0, &[], false));
    assert_eq!(same, state, "nothing to take away");
    let state = done(state.register(at(&port(1)), Some(0), 7, &[port(4), port(5)], false));
    assert!([1, 4, 5].iter().all(|n| state.key_of(&port(*n)) == Some(7)));
    let joined = done(state.register(at(&port(8)), Some(0), 9, &[port(4), port(6)], false));
    let keys = [1, 4, 6, 8].map(|n| joined.key_of(&port(n)));
    assert_eq!(keys, [Some(7), Some(7), Some(9), Some(9)], "who is registered keeps its key");
    let again = state.register(at(&port(1)), Some(7), 7, &[port(6)], false);
    assert_eq!(again, Err(Refused::InvalidParameter));
    let many: Vec<_> =
        (0..=255).map(|n| Port { name: format!("iqn.many{n}"), isid: [0; 6] }).collect();
    assert!(many.len() + 4 > LUN_REGISTRATIONS_MAX);
    assert_eq!(state.register(at(&port(9)), Some(0), 7, &many, false), Err(Refused::Full));
}

#[test]
fn each_type_admits_its_holders() {
    // Columns: the holder, a registered initiator, one that is not registered.
    let cases = [
        (Kind::WriteExclusive, [true, true], [true, false], [true, false]),
        (Kind::ExclusiveAccess, [true, true], [false, false], [false, false]),
        (Kind::WriteExclusiveRegistrants, [true, true], [true, true], [true, false]),
        (Kind::ExclusiveAccessRegistrants, [true, true], [true, true], [false, false]),
        (Kind::WriteExclusiveAll, [true, true], [true, true], [true, false]),
        (Kind::ExclusiveAccessAll, [true, true], [true, true], [false, false]),
    ];
    for (kind, holder, member, stranger) in cases {
        let state = done(registered(2).reserve(&port(1), 1, kind));
        for (number, expect) in [(1, holder), (2, member), (3, stranger)] {
            let got =
                [Access::Read, Access::Write].map(|access| state.permits(&port(number), access));
            assert_eq!(got, expect, "{kind:?} for port {number}");
        }
        assert_eq!(state.holds(&port(2)), kind.is_held_by_all());
    }
    let free = registered(1);
    assert!(free.permits(&port(3), Access::Write));
    assert_eq!(Kind::ALL.map(|kind| Kind::of(kind as u8)), Kind::ALL.map(Some));
    assert_eq!(Kind::of(2), None);
}

#[test]
fn reserve_and_release() {
    let kind = Kind::WriteExclusiveRegistrants;
    let state = registered(3);
    assert_eq!(state.reserve(&port(1), 2, kind), Err(Refused::Conflict), "the key");
    assert_eq!(state.reserve(&port(9), 0, kind), Err(Refused::Conflict), "not registered");
    let state = done(state.reserve(&port(1), 1, kind));
    assert_eq!(done(state.reserve(&port(1), 1, kind)), state, "once more");
    let other = Kind::ExclusiveAccess;
    assert_eq!(state.reserve(&port(1), 1, other), Err(Refused::Conflict));
    assert_eq!(state.reserve(&port(2), 2, kind), Err(Refused::Conflict));
    assert_eq!(done(state.release(&port(2), 2, kind)), state, "not his");
    assert_eq!(state.release(&port(1), 1, other), Err(Refused::InvalidRelease));
    let effect = state.release(&port(1), 1, kind).expect("released");
    let notice = |n| (port(n), Notice::ReservationsReleased);
    assert_eq!(effect.notices, [notice(2), notice(3)]);
    assert_eq!(effect.state.holding(), None);
    let exclusive = done(registered(2).reserve(&port(1), 1, other));
    let effect = exclusive.release(&port(1), 1, other).expect("released");
    assert_eq!(effect.notices, [], "nobody else had anything of it");
}

#[test]
fn unregistering_releases_the_reservation() {
    for kind in Kind::ALL {
        let state = done(registered(2).reserve(&port(1), 1, kind));
        let effect = state.register(at(&port(1)), Some(1), 0, &[], false).expect("unregistered");
        assert_eq!(effect.state.holding().is_some(), kind.is_held_by_all(), "{kind:?}");
        let is_notified =
            matches!(kind, Kind::WriteExclusiveRegistrants | Kind::ExclusiveAccessRegistrants);
        assert_eq!(!effect.notices.is_empty(), is_notified, "{kind:?}");
        let last = done(effect.state.register(at(&port(2)), Some(2), 0, &[], false));
        assert!(last.is_empty(), "{kind:?}: nobody is left");
    }
}

#[test]
fn clear_takes_everything_away() {
    let state = done(registered(3).reserve(&port(1), 1, Kind::ExclusiveAccess));
    assert_eq!(state.clear(&port(2), 9), Err(Refused::Conflict));
    let effect = state.clear(&port(2), 2).expect("cleared");
    assert!(effect.state.is_empty() && effect.state.generation() == 4);
    let notice = |n| (port(n), Notice::ReservationsPreempted);
    assert_eq!(effect.notices, [notice(1), notice(3)]);
}

#[test]
fn preempt_takes_over() {
    let (old, new) = (Kind::WriteExclusiveRegistrants, Kind::ExclusiveAccess);
    let state = done(registered(3).reserve(&port(1), 1, old));
    assert_eq!(state.preempt(&port(2), 9, 1, new), Err(Refused::Conflict), "the key");
    assert_eq!(state.preempt(&port(2), 2, 9, new), Err(Refused::Conflict), "nobody has it");
    assert_eq!(state.preempt(&port(2), 2, 0, new), Err(Refused::InvalidParameter));
    let effect = state.preempt(&port(2), 2, 1, new).expect("preempted");
    assert_eq!(effect.removed, [port(1)]);
    let expect =
        [(port(1), Notice::RegistrationsPreempted), (port(3), Notice::ReservationsReleased)];
    assert_eq!(effect.notices, expect);
    assert!(effect.state.holds(&port(2)) && effect.state.key_of(&port(1)).is_none());
    assert_eq!(effect.state.holding().map(|holding| holding.kind), Some(new));
    // Only a registration, not the reservation.
    let effect = state.preempt(&port(2), 2, 3, new).expect("preempted");
    assert_eq!(effect.removed, [port(3)]);
    assert!(effect.state.holds(&port(1)));
    // The holder itself, with its own key: another type.
    let effect = state.preempt(&port(1), 1, 1, new).expect("preempted");
    assert_eq!(effect.removed, []);
    assert_eq!(effect.state.key_of(&port(1)), Some(1));
    assert_eq!(effect.state.holding().map(|holding| holding.kind), Some(new));
}

#[test]
fn preempt_of_what_all_hold() {
    let state = done(registered(3).reserve(&port(1), 1, Kind::WriteExclusiveAll));
    let effect = state.preempt(&port(2), 2, 0, Kind::ExclusiveAccess).expect("preempted");
    assert_eq!(effect.removed, [port(1), port(3)]);
    assert!(effect.state.holds(&port(2)));
    let effect = state.preempt(&port(2), 2, 1, Kind::ExclusiveAccess).expect("preempted");
    assert_eq!(effect.removed, [port(1)]);
    assert_eq!(effect.state.holding().map(|h| h.kind), Some(Kind::WriteExclusiveAll));
    assert!(effect.state.holds(&port(3)));
}

#[test]
fn a_reservation_is_moved() {
    let kind = Kind::ExclusiveAccess;
    let state = done(registered(2).reserve(&port(1), 1, kind));
    let moved =
        |who: u8, keys, to: u8| state.transfer(at(&port(who)), keys, &port(to), true, false);
    assert_eq!(moved(2, (2, 9), 3), Err(Refused::Conflict), "not the holder");
    assert_eq!(moved(1, (1, 0), 3), Err(Refused::InvalidParameter));
    assert_eq!(moved(1, (1, 9), 1), Err(Refused::InvalidParameter));
    let next = done(moved(1, (1, 9), 3));
    assert!(next.holds(&port(3)) && next.key_of(&port(3)) == Some(9));
    assert_eq!(next.key_of(&port(1)), None);
    let all = done(registered(2).reserve(&port(1), 1, Kind::WriteExclusiveAll));
    assert_eq!(all.transfer(at(&port(1)), (1, 9), &port(3), false, false), Err(Refused::Conflict));
}

/// Registers this port of an initiator from an address.
fn add(state: &mut Reservations, (name, isid): (&str, usize), host: u8) -> Result<(), Refused> {
    let isid = [isid as u8, (isid >> 8) as u8, 0, 0, 0, 0];
    let port = Port { name: name.to_owned(), isid };
    let origin = Origin { port: &port, address: address(host) };
    *state = state.register(origin, Some(0), 7, &[], false)?.state;
    Ok(())
}

#[test]
fn one_initiator_and_one_address_leave_registrations_to_others() {
    let mut state = Reservations::default();
    for n in 0..LUN_REGISTRATIONS_INITIATOR_MAX {
        assert_eq!(add(&mut state, ("one", n), 1), Ok(()));
    }
    assert_eq!(add(&mut state, ("one", 999), 1), Err(Refused::Full));
    // A client at another address may have, or use, the same name.
    assert_eq!(add(&mut state, ("one", 999), 2), Ok(()));
    for n in LUN_REGISTRATIONS_INITIATOR_MAX..LUN_REGISTRATIONS_ADDRESS_MAX {
        assert_eq!(add(&mut state, (&format!("many-{n}"), n), 1), Ok(()));
    }
    assert_eq!(add(&mut state, ("new", 0), 1), Err(Refused::Full));
    let (key, first) = (Some(7), Port { name: "one".to_owned(), isid: [0; 6] });
    assert!(state.register(at(&first), key, 8, &[], false).is_ok(), "a port that is registered");
    let left = LUN_REGISTRATIONS_MAX - LUN_REGISTRATIONS_ADDRESS_MAX;
    for n in 1..left {
        assert_eq!(add(&mut state, (&format!("other-{n}"), n), 2), Ok(()));
    }
    assert_eq!(add(&mut state, ("last", 0), 3), Err(Refused::Full), "there are no more");
    state = done(state.register(at(&first), key, 0, &[], false));
    assert_eq!(add(&mut state, ("last", 0), 3), Ok(()));
}

#[test]
fn ports_that_another_initiator_registers_count_as_its_own() {
    let victim = |isid: u8| Port { name: "victim".to_owned(), isid: [isid; 6] };
    let ports = |isids: std::ops::Range<u8>| isids.map(victim).collect::<Vec<_>>();
    let state = Reservations::default();
    let state = done(state.register(at(&port(1)), Some(0), 7, &ports(0..64), false));
    let again = state.register(at(&port(2)), Some(0), 7, &ports(64..65), false);
    assert_eq!(again, Err(Refused::Full));
    let held = done(state.reserve(&port(1), 7, Kind::ExclusiveAccess));
    assert_eq!(held.transfer(at(&port(1)), (7, 9), &victim(64), false, false), Err(Refused::Full));
    let home = victim(99);
    let origin = Origin { port: &home, address: address(2) };
    assert!(state.register(origin, Some(0), 7, &[], false).is_ok());
}
