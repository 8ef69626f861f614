//! Tests of reservations over a restart.

use base::limits::LUN_REGISTRATIONS_INITIATOR_MAX;

use super::{Store, decode, encode};
use crate::lun::reservations::{Kind, Origin, Port, Refused, Reservations};
use crate::lun::tests::Folder;

fn port(number: u8) -> Port {
    Port { name: format!("iqn.2026-01.test:{number}"), isid: [number; 6] }
}

fn at(port: &Port) -> Origin<'_> {
    Origin { port, address: [192, 0, 2, 1].into() }
}

fn state(kind: Kind) -> Reservations {
    let state = Reservations::default();
    let state =
        state.register(at(&port(1)), Some(0), 11, &[port(2)], true).expect("register").state;
    state.reserve(&port(1), 11, kind).expect("reserve").state
}

#[test]
fn a_record_is_complete() {
    for kind in Kind::ALL {
        assert_eq!(decode(&encode(&state(kind))), Some(state(kind)));
    }
    let all = state(Kind::WriteExclusiveAll);
    let left = all.register(at(&port(1)), Some(11), 0, &[], true).expect("unregister").state;
    let read = decode(&encode(&left)).expect("read");
    assert!(read.holds(&port(2)) && !read.holds(&port(1)));
    let bytes = encode(&all);
    let without_addresses = bytes.len() - 2 * 16;
    for end in (0..bytes.len()).filter(|end| *end != without_addresses) {
        assert_eq!(decode(&bytes[..end]), None, "cut off at {end}");
    }
}

/// An earlier version stored no addresses: those registrations count for their initiator names.
#[test]
fn registrations_without_an_address_count() {
    let mut old = Reservations::default();
    let of = |n: usize| Port { name: "one".to_owned(), isid: [n as u8; 6] };
    for n in 0..LUN_REGISTRATIONS_INITIATOR_MAX {
        old = old.register(at(&of(n)), Some(0), 7, &[], true).expect("register").state;
    }
    let bytes = encode(&old);
    let bytes = &bytes[..bytes.len() - 16 * LUN_REGISTRATIONS_INITIATOR_MAX];
    let read = decode(bytes).expect("read");
    assert_eq!(read.registrations().count(), LUN_REGISTRATIONS_INITIATOR_MAX);
    let port = of(LUN_REGISTRATIONS_INITIATOR_MAX);
    let elsewhere = Origin { port: &port, address: [192, 0, 2, 9].into() };
    assert_eq!(read.register(elsewhere, Some(0), 7, &[], true), Err(Refused::Full));
    assert!(read.register(at(&of(0)), Some(7), 8, &[], true).is_ok(), "it is registered");
    let other = Port { name: "other".to_owned(), ..port };
    assert!(read.register(at(&other), Some(0), 7, &[], true).is_ok());
}

#[test]
fn what_persists_is_there_after_a_restart() {
    let folder = Folder::new("reservations");
    let (path, unit) = (folder.0.join("reservations"), [7; 16]);
    let open = || Store::open(&path).expect("open").0;
    let reserved = state(Kind::ExclusiveAccess);
    open().save(&unit, &reserved).expect("save");
    assert_eq!(open().load(&unit), reserved);
    assert_eq!(open().load(&[8; 16]), Reservations::default());
    let off = reserved.register(at(&port(1)), Some(11), 12, &[], false).expect("register").state;
    open().save(&unit, &off).expect("save");
    assert!(open().load(&unit).is_empty(), "without APTPL nothing is kept");
    open().save(&unit, &reserved).expect("save");
    open().forget(&unit).expect("forget");
    assert!(open().load(&unit).is_empty());
}
