//! Secrets: passwords' hashes, keys, tokens. A document has the number of a secret, this file has
//! the secret (`STATE/secrets.json`, 0600). It is written before any document refers to it.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::limits::CONFIGURATION_REVISIONS_MAX;
use base::node::Path;
use serde::{Deserialize, Serialize};

use super::document::Document;
use super::store::{Disk, write_whole};

const FILE: &str = "secrets.json";

/// The secrets of all revisions.
pub struct Secrets {
    disk: Arc<dyn Disk>,
    table: Mutex<Table>,
    /// With more than these it is time to look which ones are not needed any more.
    many: AtomicUsize,
}

#[derive(Default, Clone, Serialize, Deserialize)]
struct Table {
    /// Never used again, so that an old document cannot find another's secret.
    next: i64,
    secrets: BTreeMap<i64, StoredSecret>,
}

#[derive(Clone, Serialize, Deserialize)]
struct StoredSecret {
    path: String,
    property: String,
    value: String,
}

impl Secrets {
    /// Reads the file; none is an empty one.
    ///
    /// # Errors
    /// It cannot be read, or is not what we wrote.
    pub fn open(disk: Arc<dyn Disk>) -> io::Result<Self> {
        let table = match disk.read(FILE)? {
            None => Table { next: 1, secrets: BTreeMap::new() },
            Some(bytes) => serde_json::from_slice(&bytes)
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?,
        };
        let many = AtomicUsize::new(CONFIGURATION_REVISIONS_MAX);
        Ok(Self { disk, table: Mutex::new(table), many })
    }

    /// The secret that a document refers to: as it was sealed.
    pub fn get(&self, document: &Document, path: &Path, property: &str) -> Option<String> {
        let id = document.set_value(path, property)?.as_integer()?;
        self.table().secrets.get(&id).map(|kept| kept.value.clone())
    }

    /// Whether there is a secret of this number.
    pub(super) fn has(&self, id: i64) -> bool {
        self.table().secrets.contains_key(&id)
    }

    /// A number for a secret that may come.
    pub(super) fn reserve(&self) -> i64 {
        let mut table = self.table();
        let id = table.next.max(1);
        table.next = id + 1;
        id
    }

    /// Enters secrets and has them on disk.
    pub(super) fn put(&self, new: &[(i64, Path, String, String)]) -> io::Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        let mut table = self.table();
        let mut next = table.clone();
        for (id, path, property, value) in new {
            let (path, property) = (path.to_string(), property.clone());
            next.secrets.insert(*id, StoredSecret { path, property, value: value.clone() });
        }
        self.write(&next)?;
        *table = next;
        Ok(())
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.table().secrets.len()
    }

    /// Whether it is time to look which ones are not needed any more; it is again when there are
    /// twice as many: looking means reading every revision.
    pub(super) fn are_many(&self) -> bool {
        let count = self.table().secrets.len();
        let many = count > self.many.load(Relaxed);
        if many {
            self.many.store(count * 2, Relaxed);
        }
        many
    }

    /// Drops what no revision refers to that is still kept.
    pub(super) fn keep_only(&self, used: &dyn Fn(i64) -> bool) -> io::Result<()> {
        let mut table = self.table();
        let mut next = table.clone();
        next.secrets.retain(|id, _| used(*id));
        if next.secrets.len() == table.secrets.len() {
            return Ok(());
        }
        self.write(&next)?;
        self.many.store((next.secrets.len() * 2).max(CONFIGURATION_REVISIONS_MAX), Relaxed);
        *table = next;
        Ok(())
    }

    fn write(&self, table: &Table) -> io::Result<()> {
        write_whole(&*self.disk, FILE, &serde_json::to_vec_pretty(table)?)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
