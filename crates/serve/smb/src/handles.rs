//! The file of persistent handles in the state directory: each open, lock and close of one is on
//! disk before it is answered (MS-SMB2 §3.3.5.9.10). The format is `docs/formats/smb-handles.md`.
//!
//! One thread writes, in the order in which requests ask for it; what has come meanwhile is flushed
//! together. A handle is forgotten with its open, unless the service ends: then its record stays,
//! for the next start.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use base::limits::{
    SMB_HANDLE_RECORD_MAX, SMB_HANDLE_RECORDS_MAX, SMB_HANDLES_FILE_MAX, SMB_HANDLES_GROUP,
    SMB_HANDLES_MAX,
};
use base::peer::network;
use base::refusals;
use thiserror::Error;
use tokio::sync::oneshot;
use vfs::journal::{Journal, JournalError, Limits, read};
use vfs::locks::parts::{Limit, PartOf};

use super::node::NODE;
use super::state::leases::ClientGuid;
use engine::transport::tasks::Ending;

pub mod record;

use record::Record;

/// What the file begins with.
pub const MAGIC: [u8; 8] = *b"PLMsmbh1";

/// A handle cannot be recorded: the machine's fault, or too many are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the handle cannot be recorded")]
pub struct NotRecorded;

/// A change of a record, for the thread that writes.
struct Change {
    number: u64,
    /// Its value; nothing if it is forgotten.
    value: Option<Vec<u8>>,
    /// Notifies the request that waits for it.
    done: Option<oneshot::Sender<bool>>,
}

/// The file.
pub struct HandleStore {
    journal: Arc<Journal>,
    /// To the thread that writes, once there is one.
    writer: Mutex<Option<Sender<Change>>>,
    held: Mutex<HandleCounts>,
    /// Of the service: handles that are dropped when it ends are not forgotten.
    ending: Mutex<Option<Ending>>,
}

/// Handles of clients.
#[derive(Default)]
struct HandleCounts {
    numbers: HashSet<u64>,
    bytes: u64,
    by_client: HashMap<IpAddr, HashMap<ClientGuid, u64>>,
}

impl HandleCounts {
    fn part_of(&self, address: IpAddr, client: &ClientGuid) -> PartOf {
        let Some(clients) = self.by_client.get(&network(address)) else {
            return PartOf::default();
        };
        let client = clients.get(client).copied().unwrap_or_default();
        PartOf { address: clients.values().sum(), client }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks panics half way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handles in the bytes of a file: what `plimsoll inspect` shows.
///
/// # Errors
/// `InvalidData` if the bytes are something else.
pub fn inspect(bytes: &[u8]) -> io::Result<Vec<(u64, Record)>> {
    Ok(decoded(read(bytes, MAGIC)?).0)
}

/// Records that are understood, and the keys of others.
fn decoded(records: vfs::journal::Records) -> (Vec<(u64, Record)>, Vec<Vec<u8>>) {
    let (mut all, mut others) = (Vec::new(), Vec::new());
    for (key, value) in records {
        let number = key.first_chunk().copied().map(u64::from_be_bytes);
        match number.filter(|_| key.len() == 8).zip(Record::decode(&value)) {
            Some(one) => all.push(one),
            None => others.push(key),
        }
    }
    (all, others)
}

impl HandleStore {
    /// Opens or makes the file. If it cannot be written now, that is the second value: no handle is
    /// persistent until it can be.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub fn open(path: &Path) -> Result<(Arc<Self>, Option<JournalError>), JournalError> {
        let limits = Limits {
            record_max: SMB_HANDLE_RECORD_MAX,
            file_max: SMB_HANDLES_FILE_MAX,
            compact: SMB_HANDLES_FILE_MAX / 1024,
        };
        let (journal, unwritten) = Journal::open(path, MAGIC, limits)?;
        let store = Self {
            journal: Arc::new(journal),
            writer: Mutex::default(),
            held: Mutex::default(),
            ending: Mutex::default(),
        };
        Ok((Arc::new(store), unwritten))
    }

    /// Handles that no open has: those of before the start. What is not understood is forgotten.
    pub fn left(&self) -> Vec<(u64, Record)> {
        let (mut all, others) = decoded(self.journal.records());
        let keys: Vec<&[u8]> = others.iter().map(Vec::as_slice).collect();
        // If that fails they are there at the next start as well.
        let _ = self.journal.remove(&keys);
        let held = held(&self.held);
        all.retain(|(number, _)| !held.numbers.contains(number));
        all
    }

    /// The service runs until this turns true.
    pub fn set_ending(&self, ending: Ending) {
        *held(&self.ending) = Some(ending);
    }

    fn is_ending(&self) -> bool {
        held(&self.ending).as_ref().is_some_and(|ending| *ending.borrow())
    }

    /// A handle that is counted; `None` if there are too many, of all or of its client.
    pub(crate) fn hold(
        self: &Arc<Self>,
        number: u64,
        user: &str,
        (address, client): (IpAddr, ClientGuid),
    ) -> Option<PersistentHandle> {
        let mut held = held(&self.held);
        let limit = Limit { most: SMB_HANDLES_MAX, used: held.numbers.len() as u64 };
        let has_room = limit.permits(held.part_of(address, &client), 1)
            && held.bytes <= SMB_HANDLE_RECORDS_MAX
            && held.numbers.insert(number);
        if !has_room {
            refusals::Limit::SmbParked.count();
            return None;
        }
        *held.by_client.entry(network(address)).or_default().entry(client).or_default() += 1;
        drop(held);
        let (store, user, bytes) = (Arc::clone(self), user.into(), Mutex::new(0));
        let is_forgotten = false;
        Some(PersistentHandle { store, number, user, address, client, bytes, is_forgotten })
    }

    /// Forgets a handle that no open has.
    pub(crate) fn discard(&self, number: u64) {
        // If that fails it is there at the next start as well.
        let _ = self.send(Change { number, value: None, done: None });
    }

    /// Hands a change to the thread that writes.
    fn send(&self, change: Change) -> Result<(), NotRecorded> {
        let mut writer = held(&self.writer);
        if writer.is_none() {
            let (to, from) = channel();
            let journal = Arc::clone(&self.journal);
            let thread = thread::Builder::new().name("smb-handles".to_owned());
            thread.spawn(move || write(&journal, &from)).map_err(|_| NotRecorded)?;
            *writer = Some(to);
        }
        let sent = writer.as_ref().map(|to| to.send(change));
        sent.and_then(Result::ok).ok_or(NotRecorded)
    }
}

/// Writes what is asked for, with one flush for all that has come meanwhile.
fn write(journal: &Journal, from: &Receiver<Change>) {
    let mut has_failed = false;
    while let Ok(first) = from.recv() {
        let more = from.try_iter().take(SMB_HANDLES_GROUP - 1);
        let all: Vec<Change> = std::iter::once(first).chain(more).collect();
        let keys: Vec<[u8; 8]> = all.iter().map(|one| one.number.to_be_bytes()).collect();
        let changes = keys.iter().zip(&all).map(|(key, one)| (&key[..], one.value.as_deref()));
        let done = journal.change(&changes.collect::<Vec<_>>());
        if let Err(why) = &done
            && !has_failed
        {
            let until = "persistent handles are refused until they can be recorded";
            base::error!(NODE.name, "{until}: {why}");
        }
        has_failed = done.is_err();
        for one in all {
            if let Some(to) = one.done {
                // The request may be gone.
                let _ = to.send(done.is_ok());
            }
        }
    }
}

/// A handle with a record, as long as this lives.
pub(crate) struct PersistentHandle {
    store: Arc<HandleStore>,
    /// Its number.
    pub number: u64,
    /// The user.
    pub user: Box<str>,
    /// The address of the client that has made it.
    pub address: IpAddr,
    /// ClientGuid.
    pub client: ClientGuid,
    /// Bytes of its record.
    bytes: Mutex<usize>,
    /// Its record is removed.
    is_forgotten: bool,
}

impl PersistentHandle {
    /// Counts the bytes of its record.
    fn count(&self, bytes: usize) {
        let before = std::mem::replace(&mut *held(&self.bytes), bytes) as u64;
        let mut held = held(&self.store.held);
        held.bytes = held.bytes.saturating_sub(before) + bytes as u64;
    }

    /// Records it as it is now; it is on disk when this ends. What is recorded by several is so in
    /// the order in which they were begun.
    pub fn put(&self, record: &Record) -> impl Future<Output = Result<(), NotRecorded>> + use<> {
        let value = record.encode();
        let (done, is_done) = oneshot::channel();
        let sent = if value.len() + 8 > SMB_HANDLE_RECORD_MAX {
            Err(NotRecorded)
        } else {
            self.count(value.len());
            let (number, value) = (self.number, Some(value));
            self.store.send(Change { number, value, done: Some(done) })
        };
        async move {
            sent?;
            if is_done.await.unwrap_or(false) { Ok(()) } else { Err(NotRecorded) }
        }
    }

    /// Counts the record that it has already.
    pub fn was_put(&self, record: &Record) {
        self.count(record.encode().len());
    }

    /// Whether its record stays when it is dropped now: the service ends.
    pub fn stays(&self) -> bool {
        self.store.is_ending()
    }

    /// Forgets it; that is on disk when this ends, or is tried again with a later change.
    pub fn forget(mut self) -> impl Future<Output = ()> + use<> {
        let (done, is_done) = oneshot::channel();
        if !self.stays() {
            let change = Change { number: self.number, value: None, done: Some(done) };
            self.is_forgotten = self.store.send(change).is_ok();
        }
        async move {
            let _ = is_done.await;
        }
    }

    fn uncount(&self) {
        self.count(0);
        let mut held = held(&self.store.held);
        held.numbers.remove(&self.number);
        let address = network(self.address);
        if let Some(clients) = held.by_client.get_mut(&address) {
            if let Some(count) = clients.get_mut(&self.client) {
                *count = count.saturating_sub(1);
            }
            clients.retain(|_, count| *count > 0);
            if clients.is_empty() {
                held.by_client.remove(&address);
            }
        }
    }
}

impl Drop for PersistentHandle {
    fn drop(&mut self) {
        if !self.is_forgotten && !self.stays() {
            let _ = self.store.send(Change { number: self.number, value: None, done: None });
        }
        self.uncount();
    }
}

#[cfg(test)]
mod tests;
