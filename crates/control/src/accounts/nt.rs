//! The hash of a password that NTLM uses (MS-NLMP §3.3.1, NTOWFv1): MD4, without salt. It is
//! equivalent to the password for SMB, so it is stored only while SMB is enabled: with the
//! password's own hash, in the same secret, for passwords that are set from then on.

use std::fmt;

use base::text::hex;

/// What stands between both hashes in a secret.
const BETWEEN: &str = " nt=";

/// The hash. It is shown nowhere.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NtHash(pub [u8; 16]);

impl fmt::Debug for NtHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NtHash(..)")
    }
}

impl NtHash {
    /// That of a password.
    pub fn of(password: &str) -> Self {
        let units: Vec<u8> = password.encode_utf16().flat_map(u16::to_le_bytes).collect();
        Self(base::md4::digest(&units))
    }

    fn parse(text: &str) -> Option<Self> {
        if text.len() != 32 || !text.is_ascii() {
            return None;
        }
        let mut hash = [0; 16];
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(hash))
    }
}

/// Both hashes as one secret.
pub fn join(password: &str, hash: NtHash) -> String {
    format!("{password}{BETWEEN}{}", hex(&hash.0))
}

/// The hash of a password, and this one if it is there.
pub fn split(secret: &str) -> (&str, Option<NtHash>) {
    match secret.split_once(BETWEEN) {
        Some((password, hash)) => (password, NtHash::parse(hash)),
        None => (secret, None),
    }
}

#[cfg(test)]
mod tests;
