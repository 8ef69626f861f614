//! Which servers may be targets: a network, a host, or a scheme and a host.
//!
//! A network covers targets that are named by address only. What a name resolves to is decided by
//! others, and again at each connection: a name is listed as such.

use base::text::decimal;
use std::net::IpAddr;

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TargetRule {
    scheme: Option<String>,
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    Network(IpAddr, u32),
    Name(String),
}

impl TargetRule {
    /// Reads `10.0.0.0/8`, `HOST`, `HOST:PORT` or `SCHEME://HOST[:PORT]`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_owned()), rest.trim_end_matches('/')),
            None => (None, text),
        };
        if scheme.as_deref() == Some("") {
            return None;
        }
        if scheme.is_none()
            && let Some((network, bits)) = rest.split_once('/')
        {
            let network: IpAddr = network.parse().ok()?;
            let bits = decimal(bits).filter(|bits| *bits <= width(network))?;
            return Some(Self { scheme, hosts: Hosts::Network(network, bits), port: None });
        }
        let (host, port) = host_and_port(rest)?;
        let hosts = match host.parse() {
            Ok(address) => Hosts::Network(address, width(address)),
            Err(_) if host.contains('/') => return None,
            Err(_) => Hosts::Name(host.to_ascii_lowercase()),
        };
        Some(Self { scheme, hosts, port })
    }

    /// Whether a target is covered.
    pub(super) fn fits(&self, scheme: &str, host: &str, port: u16) -> bool {
        let host_fits = match (&self.hosts, host.parse()) {
            (Hosts::Network(network, bits), Ok(address)) => covers(*network, *bits, address),
            (Hosts::Name(name), Err(_)) => *name == host.to_ascii_lowercase(),
            _ => false,
        };
        host_fits
            && self.scheme.as_deref().is_none_or(|own| own == scheme)
            && self.port.is_none_or(|own| own == port)
    }
}

/// `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`, or an address of IPv6 alone.
fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.rsplit_once(':') {
        Some(_) if text.parse::<IpAddr>().is_ok() || text.ends_with(']') => (text, None),
        Some((host, port)) => (host, Some(decimal(port)?)),
        None => (text, None),
    };
    let host = host.trim_matches(['[', ']']);
    (!host.is_empty()).then_some((host, port))
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { u32::BITS } else { u128::BITS }
}

fn covers(network: IpAddr, bits: u32, address: IpAddr) -> bool {
    let number = |address: IpAddr| match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    };
    // An address of IPv4 within one of IPv6 leads to the same server.
    let (network, address) = (network.to_canonical(), address.to_canonical());
    let mask =
        |address| number(address).checked_shr(width(network).saturating_sub(bits)).unwrap_or(0);
    network.is_ipv4() == address.is_ipv4() && mask(network) == mask(address)
}

#[cfg(test)]
mod tests;
