//! `users.json`: names and Argon2id hashes, as versions before the tree kept them. Only read, to be
//! taken over into the configuration.

use std::collections::BTreeMap;

use super::files::read_if_there;
use super::{StateDir, StateError};

/// Its name in the state directory.
pub const FILE: &str = "users.json";

/// Names and hashes; none if there is no such file.
///
/// # Errors
/// [`StateError::Damaged`] if it is not what we wrote.
pub fn read(state: &StateDir) -> Result<BTreeMap<String, String>, StateError> {
    let path = state.file(FILE);
    let Some(bytes) = read_if_there(&path)? else { return Ok(BTreeMap::new()) };
    serde_json::from_slice(&bytes).map_err(|e| StateError::Damaged { path, reason: e.to_string() })
}

/// Takes it away, after its users are in the configuration.
///
/// # Errors
/// [`StateError::Io`].
pub fn remove(state: &StateDir) -> Result<(), StateError> {
    let path = state.file(FILE);
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(StateError::io("remove", &path, e))
        }
        _ => Ok(()),
    }
}
