//! Names of users and groups for NFSv4: this machine's passwd and group files, read again when
//! they change.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use base::limits::NFS4_NAMES_FILE_MAX;
use serve::nfs4::IdMap;
use serve::nfs4::idmap::Whose;

/// What tells one state of a file from another: its number, size and time of change.
type Stamp = (u64, u64, i64, i64);

/// A file of names, and how it was when it was read.
struct Source {
    whose: Whose,
    path: PathBuf,
    read: Option<Stamp>,
}

/// The names, kept as the files have them.
#[derive(Clone)]
pub struct Owners {
    map: Arc<IdMap>,
    sources: Arc<Mutex<Vec<Source>>>,
}

impl Owners {
    /// Names in `domain`, by this machine's files; without one, numbers.
    pub fn start(domain: Option<&str>) -> Self {
        let files = [(Whose::User, "/etc/passwd".into()), (Whose::Group, "/etc/group".into())];
        Self::of(domain, files)
    }

    fn of(domain: Option<&str>, files: [(Whose, PathBuf); 2]) -> Self {
        let (map, files) = match domain {
            Some(domain) => (IdMap::names(domain), files.to_vec()),
            None => (IdMap::numbers(), Vec::new()),
        };
        let source = |(whose, path)| Source { whose, path, read: None };
        let sources = files.into_iter().map(source).collect();
        let owners = Self { map: Arc::new(map), sources: Arc::new(Mutex::new(sources)) };
        owners.look();
        owners
    }

    /// For the service.
    pub fn map(&self) -> Arc<IdMap> {
        self.map.clone()
    }

    /// Reads what has changed. To be called every now and then, where waiting for a disk is no
    /// harm. A file that cannot be read leaves the names as they were.
    pub fn look(&self) {
        for source in &mut *self.sources.lock().unwrap_or_else(PoisonError::into_inner) {
            let Ok(meta) = std::fs::metadata(&source.path) else { continue };
            let stamp = (meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec());
            if source.read == Some(stamp) {
                continue;
            }
            let mut bytes = Vec::new();
            let file = File::open(&source.path);
            let read = file.and_then(|f| f.take(NFS4_NAMES_FILE_MAX).read_to_end(&mut bytes));
            if read.is_ok() {
                self.map.set(source.whose, &String::from_utf8_lossy(&bytes));
                source.read = Some(stamp);
            }
        }
    }
}
