//! Names of users and groups for NFSv4: this machine's passwd and group files, read again when
//! they change.

use std::sync::Arc;

use control::accounts::machine::Names;
use parking_lot::Mutex;
use serve::nfs4::IdMap;
use serve::nfs4::idmap::OwnerKind;

/// The names, kept as the files have them.
pub struct Owners {
    /// For the service.
    pub map: Arc<IdMap>,
    sources: Mutex<Vec<(OwnerKind, Names)>>,
}

impl Owners {
    /// Names in `domain`, by this machine's files; without one, numbers.
    pub fn start(domain: Option<&str>) -> Self {
        let owners = Self { map: Arc::new(IdMap::numbers()), sources: Mutex::default() };
        owners.set_domain(domain);
        owners
    }

    /// From now on names in this domain; without one, numbers.
    pub fn set_domain(&self, domain: Option<&str>) {
        let files = [(OwnerKind::User, "/etc/passwd"), (OwnerKind::Group, "/etc/group")];
        // Without a domain there are no names.
        let files = files.into_iter().filter(|_| domain.is_some());
        *self.sources.lock() = files.map(|(whose, path)| (whose, Names::at(path))).collect();
        self.map.set_domain(domain);
        self.look();
    }

    /// Reads what has changed. To be called every now and then, where waiting for a disk is no
    /// harm. A file that cannot be read leaves the names as they were.
    pub fn look(&self) {
        for (whose, names) in &mut *self.sources.lock() {
            if names.look() {
                self.map.set(*whose, names.text());
            }
        }
    }
}
