//! A network of clients, and the server's address there: `10.1.0.0/24=10.1.0.1`.

use base::text::decimal;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Clients on this machine connect from the network's address plus this and their number.
const FIRST_CLIENT: u32 = 11;

/// A network, and the server's address there: `10.1.0.0/24=10.1.0.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subnet {
    network: IpAddr,
    prefix: u32,
    /// The server's address.
    pub server: IpAddr,
}

impl FromStr for Subnet {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = "is not NETWORK/PREFIX=SERVER, as in 10.1.0.0/24=10.1.0.1";
        let (network, server) = text.split_once('=').ok_or(form)?;
        let (network, prefix) = network.split_once('/').ok_or(form)?;
        let network: IpAddr = network.parse().map_err(|_| form)?;
        let (prefix, server) = (decimal(prefix).ok_or(form)?, server.parse().map_err(|_| form)?);
        let bits = if network.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS };
        if prefix > bits {
            return Err("has a prefix that is longer than its address");
        }
        Ok(Self { network, prefix, server })
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

impl Subnet {
    /// Whether an address is in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, bits: u32| {
            let host = bits - self.prefix;
            host >= 128 || a >> host == b >> host
        };
        match (self.network, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                same(a.to_bits().into(), b.to_bits().into(), Ipv4Addr::BITS)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), Ipv6Addr::BITS),
            _ => false,
        }
    }

    /// The address of a client on this machine.
    pub(super) fn local_address(&self, number: u32) -> IpAddr {
        let further = FIRST_CLIENT + number;
        match self.network {
            IpAddr::V4(network) => Ipv4Addr::from_bits(network.to_bits() + further).into(),
            IpAddr::V6(network) => {
                Ipv6Addr::from_bits(network.to_bits() + u128::from(further)).into()
            }
        }
    }
}
