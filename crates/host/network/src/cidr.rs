//! An address with the length of its network's prefix, `192.0.2.1/24`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address with the length of its network's prefix.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Cidr {
    /// The address.
    pub address: IpAddr,
    /// Bits of the prefix: at most 32 or 128.
    pub prefix: u8,
}

/// Why a text is not an address with a prefix length.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not ADDRESS/LENGTH, for example 192.0.2.1/24 or 2001:db8::1/64")]
pub struct NotCidr(String);

impl TryFrom<String> for Cidr {
    type Error = NotCidr;

    fn try_from(text: String) -> Result<Self, NotCidr> {
        text.parse()
    }
}

impl From<Cidr> for String {
    fn from(cidr: Cidr) -> Self {
        cidr.to_string()
    }
}

impl Cidr {
    /// From its parts; `None` if the prefix is longer than the address.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        (prefix <= bits(address)).then_some(Self { address, prefix })
    }

    /// Whether it is of IPv4.
    pub fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// The network: the address without its host part.
    pub fn network(&self) -> Self {
        Self { address: masked(self.address, self.prefix), prefix: self.prefix }
    }

    /// The last address of the network: the broadcast address in IPv4.
    pub fn last(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(a) => {
                let host = u32::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
                IpAddr::V4((u32::from(a) | host).into())
            }
            IpAddr::V6(a) => {
                let host = u128::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
                IpAddr::V6((u128::from(a) | host).into())
            }
        }
    }

    /// Whether the network has this address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && masked(address, self.prefix) == self.network().address
    }

    /// Whether the two networks have addresses in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.prefix <= other.prefix {
            self.contains(other.address)
        } else {
            other.contains(self.address)
        }
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(a) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4((u32::from(a) & mask).into())
        }
        IpAddr::V6(a) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6((u128::from(a) & mask).into())
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Cidr {
    type Err = NotCidr;

    fn from_str(text: &str) -> Result<Self, NotCidr> {
        let parts = text.split_once('/');
        let parsed = parts.and_then(|(address, prefix)| {
            let is_number = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
            let prefix = is_number.then(|| prefix.parse().ok()).flatten()?;
            Self::new(address.parse().ok()?, prefix)
        });
        parsed.ok_or_else(|| NotCidr(text.to_owned()))
    }
}

#[cfg(test)]
mod tests;
