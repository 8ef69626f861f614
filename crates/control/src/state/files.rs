//! Files that are whole or absent: written aside, flushed, renamed into place, folder flushed.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base::random::{Random, SystemRandom};
use base::text::hex;

use super::StateError;

/// Replaces `path` by `content` with permission bits `mode`. After a power cut there is either the
/// old file or the new one.
///
/// # Errors
/// [`StateError::Io`]; the old file is untouched then.
pub fn write_atomic(path: &Path, content: &[u8], mode: u32) -> Result<(), StateError> {
    let aside = path.with_extension(format!("tmp-{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        // A left-over of a killed server with our pid would keep its old mode.
        match fs::remove_file(&aside) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = File::options().write(true).create_new(true).mode(mode).open(&aside)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&aside, path)?;
        match path.parent() {
            Some(dir) => File::open(dir)?.sync_all(),
            None => Ok(()),
        }
    };
    write().map_err(|e| {
        // Already failing: what is left aside does no harm.
        let _ = fs::remove_file(&aside);
        StateError::io("write", path, e)
    })
}

/// Reads `path`, or `None` if there is no such file.
///
/// # Errors
/// [`StateError::Io`] for any other reason.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StateError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(StateError::io("read", path, e)),
    }
}

/// The stored form of a secret with enough entropy: its BLAKE3 hash. Passwords need more, see
/// [`accounts`](crate::accounts).
pub type Digest = [u8; 32];

/// The digest of a token.
pub fn digest(token: &str) -> Digest {
    *blake3::hash(token.as_bytes()).as_bytes()
}

/// A digest as lower-case hex.
pub fn digest_hex(token: &str) -> String {
    hex(&digest(token))
}

/// `N` random bytes as lower-case hex: tokens, session ids.
pub fn random_hex<const N: usize>() -> String {
    let mut bytes = [0; N];
    SystemRandom.fill(&mut bytes);
    hex(&bytes)
}
