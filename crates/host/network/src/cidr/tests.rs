//! Addresses with prefix lengths.

use super::*;

fn cidr(text: &str) -> Cidr {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn texts_are_read_and_written() {
    for text in ["192.0.2.1/24", "0.0.0.0/0", "10.0.0.1/32", "2001:db8::1/64", "::/0"] {
        assert_eq!(cidr(text).to_string(), text);
    }
    for text in ["", "10.0.0.1", "10.0.0.1/", "10.0.0.1/33", "10.0.0.1/+8", "::1/129", "a/8"] {
        assert!(text.parse::<Cidr>().is_err(), "{text}");
    }
}

#[test]
fn a_network_has_its_addresses() {
    let a = cidr("192.0.2.130/25");
    assert_eq!(a.network(), cidr("192.0.2.128/25"));
    assert_eq!(a.last().to_string(), "192.0.2.255");
    assert!(a.contains("192.0.2.200".parse().expect("an address")));
    assert!(!a.contains("192.0.2.1".parse().expect("an address")));
    assert!(!a.contains("::1".parse().expect("an address")));
    assert!(cidr("0.0.0.0/0").contains("198.51.100.1".parse().expect("an address")));
    assert_eq!(cidr("::/0").last().to_string(), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

#[test]
fn networks_overlap_in_both_directions() {
    let (wide, narrow) = (cidr("10.0.0.0/8"), cidr("10.1.0.0/16"));
    assert!(wide.overlaps(&narrow) && narrow.overlaps(&wide));
    assert!(!narrow.overlaps(&cidr("10.2.0.0/16")));
    assert!(!wide.overlaps(&cidr("::/0")));
}
