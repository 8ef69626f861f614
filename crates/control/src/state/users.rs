//! Who may sign in: names and Argon2id hashes (RFC 9106), in one small file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use base::limits::{PASSWORD_MAX, USER_NAME_MAX};
use base::random::{Random, SystemRandom};

use super::files::{read_if_there, write_atomic};
use super::{StateDir, StateError};

/// The table of users, kept in `users.json`.
pub struct Users {
    path: PathBuf,
    hashes: Mutex<BTreeMap<String, String>>,
    /// Checked when the name is unknown, so that the answer takes as long.
    decoy: String,
}

impl Users {
    /// Reads the table; a missing file is an empty one.
    ///
    /// # Errors
    /// [`StateError::Damaged`] if it is not what we wrote.
    pub fn open(state: &StateDir) -> Result<Self, StateError> {
        let path = state.file("users.json");
        let hashes = match read_if_there(&path)? {
            None => BTreeMap::new(),
            Some(bytes) => serde_json::from_slice(&bytes)
                .map_err(|e| StateError::Damaged { path: path.clone(), reason: e.to_string() })?,
        };
        Ok(Self { path, hashes: Mutex::new(hashes), decoy: hash(&generate_password())? })
    }

    /// Whether nobody may sign in yet.
    pub fn is_empty(&self) -> bool {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Makes `user` or changes his password. Nothing is written if it is the same already.
    ///
    /// # Errors
    /// [`StateError::Hash`], [`StateError::Io`].
    pub fn set(&self, user: &str, password: &str) -> Result<(), StateError> {
        if self.verify(user, password) {
            return Ok(());
        }
        let hash = hash(password)?;
        let mut hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        hashes.insert(user.to_owned(), hash);
        let text =
            serde_json::to_vec_pretty(&*hashes).map_err(|e| StateError::Hash(e.to_string()))?;
        write_atomic(&self.path, &text, 0o600)
    }

    /// Whether the password is right. Slow on purpose, and as slow for an unknown name.
    pub fn verify(&self, user: &str, password: &str) -> bool {
        if user.len() > USER_NAME_MAX || password.len() > PASSWORD_MAX {
            return false;
        }
        let known = self.hashes.lock().unwrap_or_else(PoisonError::into_inner).get(user).cloned();
        let stored = known.as_deref().unwrap_or(&self.decoy);
        let right = PasswordHash::new(stored).is_ok_and(|stored| {
            Argon2::default().verify_password(password.as_bytes(), &stored).is_ok()
        });
        right && known.is_some()
    }
}

fn hash(password: &str) -> Result<String, StateError> {
    Argon2::default()
        .hash_password(password.as_bytes())
        .map(|hash| hash.to_string())
        .map_err(|e| StateError::Hash(e.to_string()))
}

/// A password for a first start: 16 letters and digits that cannot be mistaken for one another
/// (80 bits), in groups of four.
pub fn generate_password() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 16];
    SystemRandom.fill(&mut bytes);
    let letters: String = bytes.iter().map(|b| char::from(LETTERS[usize::from(b % 32)])).collect();
    [&letters[0..4], &letters[4..8], &letters[8..12], &letters[12..16]].join("-")
}
