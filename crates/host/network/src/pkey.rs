//! P_Keys of InfiniBand: 15 bits name a partition, the highest bit is the kind of membership
//! (InfiniBand Architecture Specification, volume 1, section 10.9.1).

use std::fmt;
use std::str::FromStr;

/// Set in the P_Key of a full member.
const FULL: u16 = 0x8000;

/// A P_Key that names a partition: not 0x0000 and not 0x8000.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(try_from = "u16", into = "u16")]
pub struct Pkey(u16);

/// Why a number or text is not a P_Key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPkey {
    /// The partition's number is 0.
    #[error("P_Key {0:#06x} is invalid: the number of a partition is 0x0001 to 0x7fff")]
    Zero(u16),
    /// Not a number of 16 bits.
    #[error("{0:?} is not a P_Key: give four hexadecimal digits, for example 0x8001")]
    Text(String),
}

impl TryFrom<u16> for Pkey {
    type Error = NotPkey;

    fn try_from(number: u16) -> Result<Self, NotPkey> {
        Self::new(number)
    }
}

impl From<Pkey> for u16 {
    fn from(pkey: Pkey) -> Self {
        pkey.0
    }
}

impl Pkey {
    /// From its number.
    ///
    /// # Errors
    /// It is 0x0000 or 0x8000.
    pub fn new(number: u16) -> Result<Self, NotPkey> {
        if number & !FULL == 0 { Err(NotPkey::Zero(number)) } else { Ok(Self(number)) }
    }

    /// The partition: the lower 15 bits. Two P_Keys with the same one name the same partition.
    pub fn partition(self) -> u16 {
        self.0 & !FULL
    }

    /// The P_Key of a limited member of its partition.
    pub fn limited(self) -> u16 {
        self.partition()
    }

    /// The P_Key of a full member of its partition; the kernel names links by this one.
    pub fn full(self) -> u16 {
        self.0 | FULL
    }

    /// Whether it is that of a full member.
    pub fn is_full(self) -> bool {
        self.0 & FULL != 0
    }
}

/// The partition, with the P_Keys of both kinds of members.
impl fmt::Display for Pkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limited, full) = (self.limited(), self.full());
        write!(f, "{limited:#06x} (limited {limited:#06x}, full {full:#06x})")
    }
}

impl FromStr for Pkey {
    type Err = NotPkey;

    fn from_str(text: &str) -> Result<Self, NotPkey> {
        let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
        let is_hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let number = is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten();
        Self::new(number.ok_or_else(|| NotPkey::Text(text.to_owned()))?)
    }
}

#[cfg(test)]
mod tests;
