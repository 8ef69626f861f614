//! Names of users and groups for NFSv4: this machine's passwd and group files, read again when
//! they change.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
        let owners = Self { map: Arc::new(IdMap::numbers()), sources: Arc::default() };
        owners.set_domain(domain);
        owners
    }

    /// From now on names in this domain; without one, numbers.
    pub fn set_domain(&self, domain: Option<&str>) {
        let files = [(Whose::User, "/etc/passwd"), (Whose::Group, "/etc/group")];
        let source = |(whose, path)| Source { whose, path: PathBuf::from(path), read: None };
        // Without a domain nobody has a name.
        let files = files.into_iter().filter(|_| domain.is_some());
        *self.lock() = files.map(source).collect();
        self.map.set_domain(domain);
        self.look();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Source>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the service.
    pub fn map(&self) -> Arc<IdMap> {
        self.map.clone()
    }

    /// Reads what has changed. To be called every now and then, where waiting for a disk is no
    /// harm. A file that cannot be read leaves the names as they were.
    pub fn look(&self) {
        for source in &mut *self.lock() {
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
