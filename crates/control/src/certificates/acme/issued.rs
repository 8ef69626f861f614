//! Certificates issued by CAs: `STATE/certificates/NAME.json` (0600), with the account at the CA
//! and the private key. They are in no configuration and no export, and can be issued again.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::state::files::{read_if_there, write_atomic};
use crate::state::{StateError, make_private};

use super::Acme;

/// One of them.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Issued {
    /// The CA of the account.
    pub directory: String,
    /// The account, with its key.
    pub account: Option<Json>,
    /// The names that the certificate is for.
    pub domains: Vec<String>,
    /// The chain, PEM.
    pub chain: Option<String>,
    /// The private key, PEM.
    pub key: Option<String>,
}

/// The folder of them.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// That of a state directory.
    pub fn of(state: &Path) -> Self {
        Self(state.join("certificates"))
    }

    /// Reads one.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn read(&self, name: &str) -> Result<Option<Issued>, StateError> {
        let path = self.file(name);
        let Some(bytes) = read_if_there(&path)? else { return Ok(None) };
        let damaged = |e: serde_json::Error| StateError::Damaged {
            path: path.clone(),
            reason: e.to_string(),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    /// Writes one.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn write(&self, name: &str, issued: &Issued) -> Result<(), StateError> {
        make_private(&self.0)?;
        let text = serde_json::to_vec_pretty(issued)
            .map_err(|e| StateError::Damaged { path: self.file(name), reason: e.to_string() })?;
        write_atomic(&self.file(name), &text, 0o600)
    }

    /// Renames a certificate. A missing one is no error.
    pub fn rename(&self, from: &str, to: &str) {
        // A missing certificate is ordered again.
        let _ = fs::rename(self.file(from), self.file(to));
    }

    /// Removes all but these.
    pub fn keep_only(&self, names: &dyn Fn(&str) -> bool) {
        let Ok(files) = fs::read_dir(&self.0) else { return };
        for file in files.flatten() {
            let path = file.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if name.and_then(|name| name.strip_suffix(".json")).is_some_and(|name| !names(name)) {
                // It is tried again at the next look.
                let _ = fs::remove_file(&path);
            }
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }
}

impl Issued {
    /// Whether this is for the configured order.
    pub fn is_for(&self, acme: &Acme) -> bool {
        self.chain.is_some() && self.directory == acme.directory && self.domains == acme.domains
    }
}
