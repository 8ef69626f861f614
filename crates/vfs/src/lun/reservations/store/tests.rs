//! Tests of reservations over a restart.

use super::{Store, decode, encode};
use crate::lun::reservations::{Kind, Port, Reservations};
use crate::lun::tests::Folder;

fn port(number: u8) -> Port {
    Port { name: format!("iqn.2026-01.test:{number}"), isid: [number; 6] }
}

fn state(kind: Kind) -> Reservations {
    let state = Reservations::default();
    let state = state.register(&port(1), Some(0), 11, &[port(2)], true).expect("register").state;
    state.reserve(&port(1), 11, kind).expect("reserve").state
}

#[test]
fn a_record_says_all() {
    for kind in Kind::ALL {
        assert_eq!(decode(&encode(&state(kind))), Some(state(kind)));
    }
    let all = state(Kind::WriteExclusiveAll);
    let left = all.register(&port(1), Some(11), 0, &[], true).expect("unregister").state;
    let read = decode(&encode(&left)).expect("read");
    assert!(read.holds(&port(2)) && !read.holds(&port(1)));
    let bytes = encode(&all);
    for end in 0..bytes.len() {
        assert_eq!(decode(&bytes[..end]), None, "cut off at {end}");
    }
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
    let off = reserved.register(&port(1), Some(11), 12, &[], false).expect("register").state;
    open().save(&unit, &off).expect("save");
    assert!(open().load(&unit).is_empty(), "without APTPL nothing is kept");
    open().save(&unit, &reserved).expect("save");
    open().forget(&unit).expect("forget");
    assert!(open().load(&unit).is_empty());
}
