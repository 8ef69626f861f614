//! The site that an address stands for, where peers share a limited resource; and the name by which
//! a peer calls this host.

use std::net::{IpAddr, Ipv6Addr};

/// The address itself, or for IPv6 its /64, which is what one site has.
pub fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}

/// The name in the host of a URL or of a request's `Host`, without its port and without the dot
/// that may end it; `None` if it is an address, or nothing.
pub fn host_name(host: &str) -> Option<&str> {
    if host.starts_with('[') {
        return None;
    }
    let name = match host.rsplit_once(':') {
        // More colons are an address of version 6.
        Some((name, _)) if name.contains(':') => return None,
        Some((name, _)) => name,
        None => host,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    (!name.is_empty() && name.parse::<IpAddr>().is_err()).then_some(name)
}

#[cfg(test)]
mod tests;
