//! The table of opens and locks for runs of replication, which work on directories of shares in
//! processes of their own: to clients such a run is another client.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::protocol::Protocol;
use sync::guard::Access;
use sync::guard::serve::{Refusal, ShareLayer, serve};
use vfs::host::key_of;
use vfs::locks::exclusive::Inode;
use vfs::locks::{ClientKey, FileKey, LockTable, Owner, Refused, SHARE_READ, SHARE_WRITE, Share};

/// Numbers of runs: each is a client of its own.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// The table, for one run.
struct Table {
    locks: Arc<LockTable>,
    client: ClientKey,
    next: AtomicU64,
}

/// A file that a run has open.
struct Entry {
    locks: Arc<LockTable>,
    key: FileKey,
    owner: Owner,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.locks.close(self.key, &self.owner);
    }
}

impl ShareLayer for Table {
    type Open = Entry;

    fn wait(&self) -> Duration {
        self.locks.recall_patience()
    }

    fn hidden(&self) -> Vec<Inode> {
        self.locks.exclusive().list()
    }

    fn keeps_name(&self, (device, inode): Inode) -> bool {
        let exclusive = self.locks.exclusive();
        exclusive.contains(device, inode) || exclusive.keeps_name(device, inode)
    }

    fn open(&self, path: &Path, file: Inode, access: Access) -> Result<Entry, Refusal> {
        if self.locks.exclusive().contains(file.0, file.1) {
            return Err(Refusal::InUse);
        }
        let key = key_of(path).map_err(|_| Refusal::InUse)?;
        // Another file has its name by now.
        if key.fileid != file.1 {
            return Err(Refusal::InUse);
        }
        if access == Access::Remove && !self.locks.may_rename(key) {
            return Err(Refusal::InUse);
        }
        let bits = if access == Access::Read { SHARE_READ } else { SHARE_READ | SHARE_WRITE };
        let id = self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let owner = Owner::new(self.client, &id).ok_or(Refusal::InUse)?;
        let opened = self.locks.open(key, &owner, Share { access: bits, deny: 0 });
        opened.map_err(|refused| match refused {
            Refused::Recalling => Refusal::Recalling,
            Refused::Grace => Refusal::Grace,
            _ => Refusal::InUse,
        })?;
        Ok(Entry { locks: Arc::clone(&self.locks), key, owner })
    }
}

/// The end of a connection to the table, for one run.
///
/// # Errors
/// The system gives no sockets, or no thread.
pub fn connect(locks: &Arc<LockTable>) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let client = ClientKey { protocol: Protocol::Dsync, id: RUNS.fetch_add(1, Ordering::Relaxed) };
    let table = Table { locks: Arc::clone(locks), client, next: AtomicU64::new(0) };
    let thread = std::thread::Builder::new().name("replication-opens".into());
    thread.spawn(move || serve(ours, &table))?;
    Ok(theirs.into())
}

#[cfg(test)]
mod tests;
