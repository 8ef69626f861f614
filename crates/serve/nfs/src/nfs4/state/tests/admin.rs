//! What the administrator sees of clients.

use std::net::{IpAddr, Ipv4Addr};

use base::limits::NFS4_CLIENT_ADDRESSES_MAX;

use super::*;

fn address(n: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, n))
}

#[test]
fn a_client_is_shown_with_where_it_speaks_from() {
    let state = state();
    let (client, _) = client41(&state, b"c", 5);
    let before = state.client_info(client.id, 5).unwrap();
    assert_eq!((before.minor, before.addresses), (0, Vec::new()));
    state.meet(client.id, 2, address(1));
    state.meet(client.id, 2, IpAddr::V6(Ipv4Addr::new(10, 0, 0, 2).to_ipv6_mapped()));
    state.meet(client.id, 1, address(1));
    let info = state.client_info(client.id, 5 + LEASE).unwrap();
    assert_eq!(info.addresses, [address(1), address(2)], "the latest first, each once");
    assert_eq!((info.minor, info.sessions, info.is_lapsed), (1, 1, false));
    assert_eq!(info.silent_ns, LEASE);
    (0..40).for_each(|n| state.meet(client.id, 1, address(n)));
    let info = state.client_info(client.id, 5).unwrap();
    assert_eq!(info.addresses.len(), NFS4_CLIENT_ADDRESSES_MAX);
    assert_eq!(info.addresses.first(), Some(&address(39)));
    state.meet(77, 1, address(1));
    assert_eq!(state.client_info(77, 5), None, "nobody");
}

#[test]
fn lapsed_clients_are_counted_separately() {
    let state = state();
    client40(&state, b"gone", 0);
    client41(&state, b"there", LEASE);
    let counts = state.client_counts(LEASE + 1);
    assert_eq!(counts, ClientCounts { active: 1, courtesy: 1, sessions: 1 });
    let clients = state.clients(LEASE + 1);
    let gone = clients.iter().find(|c| c.name == b"gone").unwrap();
    assert!(gone.is_lapsed && !gone.has_sessions);
    assert!(state.expire(gone.id) && !state.expire(gone.id));
    assert_eq!(state.client_counts(LEASE + 1).courtesy, 0);
}
