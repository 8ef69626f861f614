//! Attributes: both directions, and the specification's numbers.

use super::*;

#[test]
fn attributes_survive_encode_and_decode() {
    for seed in 0..=255_u8 {
        let data: Vec<u8> = (0..192).map(|n: u8| n.wrapping_mul(31).wrapping_add(seed)).collect();
        let node = NodeInfo::decode(&data);
        assert_eq!(NodeInfo::decode(&node.encode()), node);
        let port = PortInfo::decode(&data);
        assert_eq!(PortInfo::decode(&port.encode()), port);
        let counters = PortCounters::decode(&data);
        assert_eq!(PortCounters::decode(&counters.encode()), counters);
        let extended = ExtendedCounters::decode(&data);
        assert_eq!(ExtendedCounters::decode(&extended.encode()), extended);
        let list = pkeys(&data);
        assert_eq!(pkeys(&pkey_block(&list)), list);
    }
}

#[test]
fn each_error_counter_has_bytes_of_its_own() {
    for (n, error) in ERRORS.iter().enumerate() {
        let mut counters = PortCounters::default();
        counters.errors[n] = 9;
        assert_eq!(PortCounters::decode(&counters.encode()), counters, "{}", error.name);
    }
}

#[test]
fn short_data_is_zeros() {
    assert_eq!(NodeInfo::decode(&[]).node_guid, 0);
    assert_eq!(PortInfo::decode(&[0; 10]), PortInfo::default());
    assert_eq!(description(b"host1 mlx5_0\0junk"), "host1 mlx5_0");
    assert_eq!(description(b"\x1b[31m\xff"), "[31m\u{fffd}");
}

#[test]
fn widths_and_speeds_have_their_names() {
    let port = PortInfo {
        width_supported: 0x0b,
        width_active: 2,
        speed_supported: 7,
        speed_active: 4,
        ..PortInfo::default()
    };
    assert_eq!((port.lanes(), port.lanes_max()), (4, 12));
    assert_eq!((port.speed().1, port.speed_max().1), ("QDR", "QDR"));
    assert_eq!(port.bytes_per_second(), 4_000_000_000);
    let newer = PortInfo { speed_extended_active: 2, speed_extended_supported: 7, ..port };
    assert_eq!((newer.speed().1, newer.speed_max().1), ("EDR", "HDR"));
}
