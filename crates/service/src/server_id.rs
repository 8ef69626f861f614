//! By what clients recognise the server over restarts, and when its state directory moves: kept in
//! the state directory. `docs/formats/state.md` has the format.
//!
//! A Linux client of NFSv4.1 reclaims its locks only from the server owner and scope that it knows
//! (RFC 8881 §2.10.5). Versions before this file made both of the machine and the path of the state
//! directory; a directory of theirs keeps that value, so that an upgrade loses no client's locks.

use std::path::Path;

use base::limits::NFS4_OPAQUE_LIMIT;
use base::random::Random;
use base::text::hex;
use control::state::StateError;
use control::state::files::{read_if_there, write_atomic};

/// Its file in the state directory.
pub const FILE: &str = "server-id";
/// Bytes of the random part.
const RANDOM_LEN: usize = 16;

/// The identity of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerId {
    /// `ServerGuid` of SMB.
    pub guid: [u8; RANDOM_LEN],
    /// `so_major_id` and `eir_server_scope` of NFSv4.
    pub owner: Vec<u8>,
}

impl ServerId {
    /// Reads the identity of a state directory, or makes one. `before` is the owner that an older
    /// version gave to clients from this directory, if it gave any.
    ///
    /// # Errors
    /// [`StateError::Damaged`] if the file has another form; [`StateError::Io`].
    pub fn open(
        state: &Path,
        before: impl FnOnce() -> Option<Vec<u8>>,
        random: &mut dyn Random,
    ) -> Result<Self, StateError> {
        let path = state.join(FILE);
        if let Some(bytes) = read_if_there(&path)? {
            return Self::parse(&bytes).ok_or_else(|| StateError::Damaged {
                reason: "32 hexadecimal digits and a line end expected".to_owned(),
                path,
            });
        }
        let mut guid = [0; RANDOM_LEN];
        random.fill(&mut guid);
        // A longer one could not be encoded: no client has it.
        let before = before().filter(|owner| owner.len() <= NFS4_OPAQUE_LIMIT);
        let mut text = format!("{}\n", hex(&guid)).into_bytes();
        if let Some(owner) = &before {
            text.extend_from_slice(owner);
        }
        write_atomic(&path, &text, 0o600)?;
        Ok(Self { guid, owner: before.unwrap_or_else(|| own(&guid)) })
    }

    /// Parses the content of a file.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (digits, rest) = bytes.split_at_checked(2 * RANDOM_LEN)?;
        let owner = rest.strip_prefix(b"\n")?;
        let digits = std::str::from_utf8(digits).ok()?;
        // `from_str_radix` takes a sign as well.
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) || owner.len() > NFS4_OPAQUE_LIMIT
        {
            return None;
        }
        let guid = u128::from_str_radix(digits, 16).ok()?.to_be_bytes();
        let owner = if owner.is_empty() { own(&guid) } else { owner.to_vec() };
        Some(Self { guid, owner })
    }
}

/// The owner of a server that never had another one.
fn own(guid: &[u8]) -> Vec<u8> {
    format!("plimsoll {}", hex(guid)).into_bytes()
}

#[cfg(test)]
mod tests;
