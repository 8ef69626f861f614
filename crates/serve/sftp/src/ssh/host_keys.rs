//! The server's own keys, in a directory: made at the first start, read at all later ones. Files of
//! the administrator's, in the same two formats, take their place.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base::random::SystemRandom;
use wire::ssh::host_key::{HostKey, KeyError};

/// File names, the preferred key first.
const ED25519: &str = "ssh_host_ed25519_key";
const RSA: &str = "ssh_host_rsa_key";

/// A host key that cannot be loaded or created.
#[derive(Debug, thiserror::Error)]
#[error("the SSH host key {}", path.display())]
pub struct HostKeyError {
    path: PathBuf,
    #[source]
    source: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("cannot be read or written")]
    Io(#[from] io::Error),
    #[error("cannot be used")]
    Key(#[from] KeyError),
}

/// Reads the keys in `directory`, or makes them if there are none: on disk before this returns, for
/// clients remember them. An RSA key takes a second to make, and only serves old clients.
///
/// # Errors
/// A key cannot be read, created or used. An existing key is never replaced.
pub fn read_or_make(directory: &Path) -> Result<Vec<HostKey>, HostKeyError> {
    let make_ed25519 = || HostKey::new_ed25519(&mut SystemRandom);
    Ok(vec![
        one(&directory.join(ED25519), make_ed25519)?,
        one(&directory.join(RSA), HostKey::new_rsa)?,
    ])
}

fn one(
    path: &Path,
    make: impl FnOnce() -> Result<HostKey, KeyError>,
) -> Result<HostKey, HostKeyError> {
    let failed = |source: Cause| HostKeyError { path: path.to_owned(), source };
    match fs::read_to_string(path) {
        Ok(text) => HostKey::from_pem(&text).map_err(|e| failed(e.into())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let key = make().map_err(|e| failed(e.into()))?;
            let pem = key.to_pem().map_err(|e| failed(e.into()))?;
            store(path, pem.as_bytes()).map_err(|e| failed(e.into()))?;
            Ok(key)
        }
        Err(e) => Err(failed(e.into())),
    }
}

/// Writes the file atomically, and readable for its owner only.
fn store(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::File::open(directory)?.sync_all()
}
