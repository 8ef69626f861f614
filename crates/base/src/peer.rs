//! Whom an address stands for, where peers are told apart to share something out among them.

use std::net::{IpAddr, Ipv6Addr};

/// The address itself, or for IPv6 its /64, which is what one site has.
pub fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}
