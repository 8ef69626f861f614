//! The packets that announce an address, byte by byte.

use super::*;

#[test]
fn arp_requests_the_address_of_its_sender() {
    let packet = gratuitous([2, 0, 0, 0, 0, 7], Ipv4Addr::new(192, 0, 2, 9));
    let expected = [
        0, 1, 8, 0, 6, 4, 0, 1, // Ethernet, IPv4, request
        2, 0, 0, 0, 0, 7, 192, 0, 2, 9, // from
        0, 0, 0, 0, 0, 0, 192, 0, 2, 9, // for
    ];
    assert_eq!(packet, expected);
}

#[test]
fn an_advertisement_overrides() {
    let packet = advertisement([2, 0, 0, 0, 0, 7], Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9));
    assert_eq!(packet.len(), 32);
    assert_eq!(packet[..8], [136, 0, 0, 0, 0x20, 0, 0, 0]);
    assert_eq!(packet[24..], [2, 1, 2, 0, 0, 0, 0, 7]);
}
