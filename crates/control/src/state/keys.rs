//! Secrets of a server: API token, the secret of file handles; what a certificate and its key are.

use std::path::Path;

use base::random::{Random, SystemRandom};

use super::files::{random_hex, read_if_there, write_atomic};
use super::{StateDir, StateError};

/// A certificate chain and its key, PEM. What has it may not be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, with a first line that names what it is good for.
    pub certificate_pem: String,
    /// Its private key.
    pub key_pem: String,
}

/// Secrets of one state directory, made at first start.
#[derive(Debug)]
pub struct Keys {
    /// The bearer token of the API.
    pub api_token: String,
    /// Key of the handles' MAC.
    pub handle_secret: [u8; 32],
}

impl Keys {
    /// Reads the secrets, and makes those that are missing.
    ///
    /// # Errors
    /// [`StateError::Damaged`] if a secret has the wrong size; [`StateError::Io`].
    pub fn open(state: &StateDir) -> Result<Self, StateError> {
        Ok(Self {
            api_token: api_token(&state.file("api-token"))?,
            handle_secret: handle_secret(&state.file("handle-secret"))?,
        })
    }

    /// A number of this state directory, which stays and reveals nothing about its secrets. After
    /// copying a directory, both must not be used at once.
    pub fn number(&self) -> u64 {
        let hash =
            blake3::derive_key("plimsoll 2026 number of a state directory", &self.handle_secret);
        hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

fn api_token(path: &Path) -> Result<String, StateError> {
    if let Some(bytes) = read_if_there(path)? {
        let token = String::from_utf8_lossy(&bytes).trim().to_owned();
        if token.len() < 32 {
            let reason = format!("a token has at least 32 characters, not {}", token.len());
            return Err(StateError::Damaged { path: path.to_owned(), reason });
        }
        return Ok(token);
    }
    let token = random_hex::<32>();
    write_atomic(path, format!("{token}\n").as_bytes(), 0o600)?;
    Ok(token)
}

fn handle_secret(path: &Path) -> Result<[u8; 32], StateError> {
    if let Some(bytes) = read_if_there(path)? {
        return <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| StateError::Damaged {
            path: path.to_owned(),
            reason: format!("32 bytes expected, {} found", bytes.len()),
        });
    }
    let mut secret = [0; 32];
    SystemRandom.fill(&mut secret);
    write_atomic(path, &secret, 0o600)?;
    Ok(secret)
}
