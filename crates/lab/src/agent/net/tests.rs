//! Counters of interfaces.

use super::{Interface, parse_interfaces};

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
