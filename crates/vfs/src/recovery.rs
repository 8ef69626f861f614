//! Clients that held opens or locks when the server last ended: only these may reclaim them in the
//! grace period (RFC 8881 §8.4.2.1, RFC 7530 §9.6.3.4).
//!
//! A record is on disk before its client gets its first state; only then is a client with state
//! never mistaken for an unknown one. A client is recorded by the identity that survives a restart
//! (an NFSv4 owner with its principal, an NLM caller's name), not by an internal number. The
//! content of these bytes is defined by the protocol.
//!
//! A client that did not come back in the grace period may not reclaim after the next restart
//! either: meanwhile others were given what it held (edge conditions, RFC 8881 §8.4.3). So the end
//! of grace removes the records of clients that have not come back, and only clients with a record
//! of the previous server instance may reclaim.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::{CLIENT_RECORD_MAX, CLIENT_RECORDS_FILE_MAX, CLIENT_RECORDS_MAX};
use thiserror::Error;

use crate::journal::{CHECK, check, replace};

/// The recorded identity of a client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId {
    /// The protocol, so that names of different protocols do not collide: 4 for NFSv4, 3 for NLM.
    pub protocol: u8,
    /// The client's own name for itself: `co_ownerid`, `nfs_client_id4.id`, `caller_name`.
    pub owner: Vec<u8>,
    /// Its authenticated identity (flavour and principal): another principal must not reclaim in
    /// its name.
    pub principal: Vec<u8>,
}

/// Why a record cannot be kept: the machine's fault, or (too long, too many) the peers'.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file cannot be written: no state may be given out.
    #[error("cannot write the clients' records {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be read, or holds something else.
    #[error("cannot read the clients' records {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The name is longer than [`CLIENT_RECORD_MAX`].
    #[error("the client's name is too long")]
    TooLong,
    /// There are [`CLIENT_RECORDS_MAX`] already.
    #[error("too many clients are on record")]
    TooMany,
}

/// The memory of clients, which outlives the server. Calls write to disk and wait for it: they
/// belong on a pool thread, never on a connection's.
pub trait ClientRecords: Send + Sync {
    /// Clients that may reclaim: on record when the server started, and not removed since.
    fn known(&self) -> Vec<ClientId>;

    /// Whether this client may reclaim.
    fn may_reclaim(&self, client: &ClientId) -> bool;

    /// Records a client, before it is given its first state. On disk when it returns. A client that
    /// is on record costs nothing.
    ///
    /// # Errors
    /// Then the client must not be given any state (NFS4ERR_DELAY, NLM4_DENIED_NOLOCKS).
    fn record(&self, client: &ClientId) -> Result<(), RecordError>;

    /// A client holds nothing any more, and has nothing to reclaim.
    ///
    /// # Errors
    /// As for [`Self::record`]; the client stays on record on disk, which favours it only as far as
    /// no other client was given what it held.
    fn forget(&self, client: &ClientId) -> Result<(), RecordError>;

    /// A client has reclaimed all it wants (RECLAIM_COMPLETE): it may not any more. True if no
    /// client is left that may, so that grace can end early.
    fn reclaim_complete(&self, client: &ClientId) -> bool;

    /// Grace is over: clients that have not come back are removed, on disk.
    ///
    /// # Errors
    /// As for [`Self::record`]; then grace must not end.
    fn end_of_grace(&self) -> Result<(), RecordError>;
}

/// Clients on record, and those of them that may reclaim.
#[derive(Debug, Default)]
struct RecoveryRecords {
    /// On disk → whether it has state in this life.
    clients: BTreeMap<ClientId, bool>,
    /// May reclaim: on disk at the start, and not done.
    reclaiming: BTreeMap<ClientId, ()>,
}

/// Records that end with the process: for tests, and for shares without a state directory. After a
/// restart no client may reclaim.
#[derive(Default)]
pub struct NoRecords;

impl ClientRecords for NoRecords {
    fn known(&self) -> Vec<ClientId> {
        Vec::new()
    }
    fn may_reclaim(&self, _: &ClientId) -> bool {
        false
    }
    fn record(&self, _: &ClientId) -> Result<(), RecordError> {
        Ok(())
    }
    fn forget(&self, _: &ClientId) -> Result<(), RecordError> {
        Ok(())
    }
    fn reclaim_complete(&self, _: &ClientId) -> bool {
        true
    }
    fn end_of_grace(&self) -> Result<(), RecordError> {
        Ok(())
    }
}

/// First bytes of the file, with the version.
const MAGIC: &[u8; 8] = b"PLMclnt1";

/// The type of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Recorded = 1,
    Gone = 2,
}

/// Records in a file (`docs/formats/clients.md`): appended and flushed one by one, rewritten and
/// renamed when it has grown, a torn end truncated.
pub struct FileRecords {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    book: RecoveryRecords,
    /// None if the file must be rewritten first: an attempt has failed, or the state of its end is
    /// unknown.
    file: Option<File>,
    len: u64,
}

impl FileRecords {
    /// Opens or creates the file. Clients on record may reclaim. If it cannot be written now, for
    /// example on a full disk, that is the second value: the existing records are valid all the
    /// same, and new ones are stored as soon as possible.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub fn open(path: &Path) -> Result<(Self, Option<RecordError>), RecordError> {
        let failed = |source| RecordError::Read { path: path.to_path_buf(), source };
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(file) => {
                let most = CLIENT_RECORDS_FILE_MAX + 1;
                file.take(most).read_to_end(&mut bytes).map_err(failed)?;
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(e)),
        }
        let clients = read(&bytes).map_err(failed)?;
        let reclaiming = clients.iter().map(|client| (client.clone(), ())).collect();
        let clients = clients.into_iter().map(|client| (client, false)).collect();
        let book = RecoveryRecords { clients, reclaiming };
        // Rewritten at each start: this removes a torn end and keeps the file short.
        let inner = Mutex::new(Inner { book, file: None, len: 0 });
        let records = Self { path: path.to_path_buf(), inner };
        let unwritten = records.rewrite(&mut records.lock()).err();
        Ok((records, unwritten))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing under this lock panics half way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, source: io::Error) -> RecordError {
        RecordError::Write { path: self.path.clone(), source }
    }

    fn append(&self, inner: &mut Inner, verb: Verb, client: &ClientId) -> Result<(), RecordError> {
        let bytes = encode(verb, client);
        if inner.len + bytes.len() as u64 > CLIENT_RECORDS_FILE_MAX {
            self.rewrite(inner)?;
        }
        let mut file = match inner.file.take() {
            Some(file) => file,
            None => self.rewritten(inner)?,
        };
        let done = file.write_all(&bytes).and_then(|()| file.sync_data());
        if let Err(source) = done {
            // A second flush would prove nothing: the file is rewritten without the record, now or
            // before the next change.
            self.rewrite(inner)?;
            return Err(self.failed(source));
        }
        (inner.file, inner.len) = (Some(file), inner.len + bytes.len() as u64);
        Ok(())
    }

    fn rewrite(&self, inner: &mut Inner) -> Result<(), RecordError> {
        // If this fails, the name may be another file's already.
        inner.file = None;
        inner.file = Some(self.rewritten(inner)?);
        Ok(())
    }

    fn rewritten(&self, inner: &mut Inner) -> Result<File, RecordError> {
        let whole = write_whole(&self.path, inner.book.clients.keys());
        let (file, len) = whole.map_err(|source| self.failed(source))?;
        inner.len = len;
        Ok(file)
    }
}

impl ClientRecords for FileRecords {
    fn known(&self) -> Vec<ClientId> {
        self.lock().book.reclaiming.keys().cloned().collect()
    }

    fn may_reclaim(&self, client: &ClientId) -> bool {
        self.lock().book.reclaiming.contains_key(client)
    }

    fn record(&self, client: &ClientId) -> Result<(), RecordError> {
        let mut inner = self.lock();
        if let Some(here) = inner.book.clients.get_mut(client) {
            *here = true;
            return Ok(());
        }
        if client.owner.len() + client.principal.len() > CLIENT_RECORD_MAX {
            return Err(RecordError::TooLong);
        }
        if inner.book.clients.len() >= CLIENT_RECORDS_MAX {
            return Err(RecordError::TooMany);
        }
        self.append(&mut inner, Verb::Recorded, client)?;
        inner.book.clients.insert(client.clone(), true);
        Ok(())
    }

    fn forget(&self, client: &ClientId) -> Result<(), RecordError> {
        let mut inner = self.lock();
        inner.book.reclaiming.remove(client);
        if !inner.book.clients.contains_key(client) {
            return Ok(());
        }
        self.append(&mut inner, Verb::Gone, client)?;
        inner.book.clients.remove(client);
        Ok(())
    }

    fn reclaim_complete(&self, client: &ClientId) -> bool {
        let mut inner = self.lock();
        inner.book.reclaiming.remove(client);
        inner.book.reclaiming.is_empty()
    }

    fn end_of_grace(&self) -> Result<(), RecordError> {
        let mut inner = self.lock();
        let before = inner.book.clients.clone();
        inner.book.clients.retain(|_, here| *here);
        if let Err(error) = self.rewrite(&mut inner) {
            inner.book.clients = before;
            return Err(error);
        }
        inner.book.reclaiming.clear();
        Ok(())
    }
}

/// A record: length of what follows before the check, verb, protocol, length of the owner, owner,
/// principal, check.
fn encode(verb: Verb, client: &ClientId) -> Vec<u8> {
    let len = 4 + client.owner.len() + client.principal.len();
    let mut out = Vec::with_capacity(2 + len + CHECK);
    // Both lengths are below CLIENT_RECORD_MAX, which fits.
    out.extend((len as u16).to_le_bytes());
    out.extend([verb as u8, client.protocol]);
    out.extend((client.owner.len() as u16).to_le_bytes());
    out.extend(&client.owner);
    out.extend(&client.principal);
    let check = check(&out);
    out.extend(check);
    out
}

fn decode(bytes: &[u8]) -> Option<(Verb, ClientId, usize)> {
    let len = usize::from(u16::from_le_bytes(*bytes.first_chunk()?));
    let body = bytes.get(..2 + len)?;
    let end = 2 + len + CHECK;
    if bytes.get(2 + len..end)? != check(body) {
        return None;
    }
    let verb = match *body.get(2)? {
        1 => Verb::Recorded,
        2 => Verb::Gone,
        _ => return None,
    };
    let owner = usize::from(u16::from_le_bytes(*body.get(4..)?.first_chunk()?));
    let (owner, principal) = body.get(6..)?.split_at_checked(owner)?;
    let (owner, principal) = (owner.to_vec(), principal.to_vec());
    Some((verb, ClientId { protocol: *body.get(3)?, owner, principal }, end))
}

/// The clients on record in the bytes of a file: what `plimsoll inspect` shows. A record at the
/// end that is not whole was never acknowledged, and ends the reading.
///
/// # Errors
/// `InvalidData` if the bytes are something else.
pub fn read(bytes: &[u8]) -> io::Result<Vec<ClientId>> {
    if MAGIC.starts_with(bytes) {
        return Ok(Vec::new());
    }
    let mut rest = bytes.strip_prefix(MAGIC).ok_or(io::ErrorKind::InvalidData)?;
    let mut clients = BTreeMap::new();
    while let Some((verb, client, len)) = decode(rest) {
        match verb {
            Verb::Recorded => clients.insert(client, ()),
            Verb::Gone => clients.remove(&client),
        };
        rest = rest.get(len..).unwrap_or_default();
    }
    Ok(clients.into_keys().collect())
}

fn write_whole<'a>(
    path: &Path,
    clients: impl Iterator<Item = &'a ClientId>,
) -> io::Result<(File, u64)> {
    let mut bytes = MAGIC.to_vec();
    clients.for_each(|client| bytes.extend(encode(Verb::Recorded, client)));
    replace(path, &bytes)
}

#[cfg(test)]
mod tests;
