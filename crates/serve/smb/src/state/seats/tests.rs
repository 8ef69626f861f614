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
