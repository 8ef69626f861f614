//! `users.json`: names and Argon2id hashes, as every version so far has written it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::files::{read_if_there, write_atomic};
use super::{StateDir, StateError};
use crate::accounts::{Table, User, password};

/// The table of users, kept in `users.json`.
pub struct Users {
    path: PathBuf,
    hashes: Mutex<BTreeMap<String, String>>,
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
        Ok(Self { path, hashes: Mutex::new(hashes) })
    }

    /// Makes `user` or changes his password.
    ///
    /// # Errors
    /// [`StateError::Hash`], [`StateError::Io`].
    pub fn set(&self, user: &str, password: &str) -> Result<(), StateError> {
        let hash = password::hash(password)?;
        let mut hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        hashes.insert(user.to_owned(), hash);
        let text =
            serde_json::to_vec_pretty(&*hashes).map_err(|e| StateError::Hash(e.to_string()))?;
        write_atomic(&self.path, &text, 0o600)
    }

    /// Those users, who may do everything.
    pub fn table(&self) -> Table {
        let hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        let user = |(name, hash): (&String, &String)| {
            (name.clone(), User::administrator(Some(hash.clone())))
        };
        Table { users: hashes.iter().map(user).collect(), ..Table::default() }
    }
}
