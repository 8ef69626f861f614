//! Tests of sessions by their identity.

use std::sync::Arc;

use base::limits::ISCSI_SESSIONS_CLIENT_MAX;
use vfs::lun::reservations::Port;

use super::{Order, SessionRefused, Sessions};

fn port(number: u8) -> Port {
    Port { name: format!("iqn.{number}"), isid: [number; 6] }
}

#[test]
fn a_login_takes_the_place_of_the_same_session() {
    let sessions = Arc::new(Sessions::default());
    let peer = "127.0.0.1:1".parse().expect("an address");
    let enter = |number, target: &str| {
        sessions.enter(port(number), Some(target.to_owned()), peer).expect("room")
    };
    let (one, other) = (enter(1, "iqn.t"), enter(2, "iqn.t"));
    assert!(one.tsih != 0 && one.tsih != other.tsih);
    assert!(sessions.replace(&port(1), Some("iqn.u")).is_none(), "another target");
    assert!(sessions.replace(&port(3), Some("iqn.t")).is_none(), "another initiator");
    let ended = sessions.replace(&port(1), Some("iqn.t")).expect("it is there");
    assert_eq!(*one.order.borrow(), Order::Replaced);
    assert_eq!(*other.order.borrow(), Order::Stay);
    assert!(ended.has_changed().is_ok(), "it is still there");
    let again = sessions.enter(port(1), Some("iqn.t".to_owned()), peer);
    assert_eq!(again.err(), Some(SessionRefused::InUse), "two of one name");
    let discovery = [(); 2].map(|()| sessions.enter(port(1), None, peer).is_ok());
    assert_eq!(discovery, [true; 2], "for discovery there may be");
    drop(one);
    assert!(ended.has_changed().is_err(), "it has ended");
    assert_eq!(sessions.rows().len(), 1);
    assert!(sessions.log_out(other.tsih) && !sessions.log_out(0));
    assert_eq!(*other.order.borrow(), Order::Logout);
}

#[test]
fn one_address_leaves_sessions_to_others() {
    let sessions = Arc::new(Sessions::default());
    let enter = |peer: &str| {
        sessions.enter(port(1), None, format!("{peer}:1").parse().expect("an address"))
    };
    let held: Vec<_> =
        (0..=ISCSI_SESSIONS_CLIENT_MAX).map_while(|_| enter("192.0.2.1").ok()).collect();
    assert_eq!(held.len(), ISCSI_SESSIONS_CLIENT_MAX);
    assert_eq!(enter("192.0.2.1").err(), Some(SessionRefused::Full));
    assert!(enter("192.0.2.2").is_ok());
}
