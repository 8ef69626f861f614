//! Counters of interfaces, and what a controller may have an end do.

use super::*;
use crate::agent::allow::{Allowed, Owner};
use lab_net::engine::Ports;

#[test]
fn counters_of_interfaces_are_read() {
    let text = "Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n    \
        lo: 100 2 0 0 0 0 0 0 300 4 0 0 0 0 0 0\nveth0:7 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n";
    let lo =
        Interface { name: "lo".into(), rx_bytes: 100, rx_packets: 2, tx_bytes: 300, tx_packets: 4 };
    let read = parse_interfaces(text);
    assert_eq!((read.len(), &read[0]), (2, &lo));
    assert_eq!((read[1].rx_bytes, read[1].tx_bytes), (7, 9));
}

#[test]
fn both_ports_of_an_other_end_must_be_listed() {
    let targets = vec!["10.0.0.1:5000".to_owned()];
    let listed = Allowed::open(&Owner { targets, ..Owner::default() }).expect("a list");
    let origin = Origin::Tcp(listed);
    let of = |tcp, udp| {
        let address = "10.0.0.1".parse().expect("an address");
        allowed(&[Peer { host: 0, address, ports: Ports { tcp, udp } }], &origin)
    };
    assert_eq!(of(5000, 5000), Ok(()));
    for (tcp, udp) in [(5000, 53), (53, 5000)] {
        let why = of(tcp, udp).expect_err("a port that is not listed");
        assert!(why.starts_with("net://10.0.0.1:53: not listed"), "{why}");
    }
}
