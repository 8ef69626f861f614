//! One client has a part of all, and everything comes back.

use std::net::Ipv4Addr;

use super::*;

fn client(n: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, n))
}

#[test]
fn one_client_leaves_room_to_others() {
    let seats = Arc::<OpenBudget>::default();
    let large = SMB_OPEN_UNIT * (SMB_OPEN_UNITS_PER_CLIENT - 1);
    let first = seats.take(client(1), large).expect("all that one client may have");
    assert!(seats.take(client(1), 0).is_none());
    let others: Vec<_> = (2..5).map(|n| seats.take(client(n), large).expect("room")).collect();
    assert!(seats.take(client(5), 0).is_none(), "all together have no more");
    drop(first);
    assert!(seats.take(client(5), 0).is_some());
    drop(others);
    assert_eq!(seats.taken(), 0);
    assert!(seats.inner().by_client.is_empty());
}

#[test]
fn an_open_takes_more_if_its_path_becomes_longer() {
    let seats = Arc::<OpenBudget>::default();
    let one = seats.take(client(1), 10).expect("room");
    assert_eq!(one.resize(3 * SMB_OPEN_UNIT), Some(1));
    assert_eq!(seats.taken(), 4);
    // What is too much changes nothing; less never is.
    assert_eq!(one.resize(SMB_OPEN_UNITS_PER_CLIENT * SMB_OPEN_UNIT), None);
    assert_eq!(seats.taken(), 4);
    assert!(one.change(2));
    drop(one);
    assert_eq!(seats.taken(), 0);
}
