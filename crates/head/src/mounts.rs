//! What two mounts of one file system promise to two heads, found by trying: locks, coherence,
//! names, handles, flushes. What one mount alone shows is examined by each head at its start.

mod checks;
mod one;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use one::{ceph_client, examine, fences};

/// What was found about one promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which promise.
    pub id: &'static str,
    /// Whether heads can rely on it.
    pub fit: bool,
    /// What was seen.
    pub found: String,
}

/// All findings about two mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The mounts.
    pub directories: [PathBuf; 2],
    /// Type of the file system, as mountinfo(5) has it.
    pub file_system: String,
    /// Whether resources may be there.
    pub fit: bool,
    /// One for each promise.
    pub findings: Vec<Finding>,
    /// What to change.
    pub advice: Option<&'static str>,
}

/// What makes GlusterFS coherent: with its defaults a mount has data for seconds that another one
/// has overwritten.
const GLUSTER: &str = "set performance.open-behind, quick-read, io-cache, read-ahead, \
    stat-prefetch, write-behind and readdir-ahead of the volume to off, and mount it with \
    direct-io-mode=enable,attribute-timeout=0,entry-timeout=0";
/// What makes ceph-fuse coherent: by default the kernel caches data that others have overwritten.
const CEPH_FUSE: &str =
    "set fuse_disable_pagecache = true for clients in ceph.conf, and mount it again";
/// For others.
const OTHER: &str = "use CephFS, GlusterFS with coherent options, or another file system of which \
    mounts see each other's locks and changes";

/// The directories of one examination, removed at its end.
pub(crate) struct Scratch {
    pub(crate) a: PathBuf,
    pub(crate) b: PathBuf,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is left: its name shows what it is.
        let _left = std::fs::remove_dir_all(&self.a);
    }
}

/// Tries what two mounts of one file system promise. A directory is made in both and removed.
///
/// # Errors
/// Nothing can be created in the first, or the second is not the same file system.
pub fn compare(a: &Path, b: &Path) -> io::Result<Report> {
    let name = format!(".plimsoll-doctor-{}", std::process::id());
    let scratch = Scratch { a: a.join(&name), b: b.join(&name) };
    DirBuilder::new().mode(0o700).create(&scratch.a)?;
    if !checks::appears(&scratch.b) {
        let (a, b) = (a.display(), b.display());
        let why = format!("{a} and {b} are not the same file system: a new directory is not seen");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let findings: Vec<Finding> = checks::ALL
        .iter()
        .map(|(id, check)| match check(&scratch) {
            Ok(found) => Finding { id, fit: true, found },
            Err(unfit) => Finding { id, fit: false, found: unfit.0 },
        })
        .collect();
    let fit = findings.iter().all(|finding| finding.fit);
    let file_system = one::file_system(a).unwrap_or_default();
    let advice = match (fit, file_system.as_str()) {
        (true, _) => None,
        (false, "fuse.glusterfs") => Some(GLUSTER),
        (false, "fuse.ceph" | "fuse.ceph-fuse") => Some(CEPH_FUSE),
        (false, _) => Some(OTHER),
    };
    let directories = [a.to_owned(), b.to_owned()];
    Ok(Report { directories, file_system, fit, findings, advice })
}

#[cfg(test)]
mod tests;
