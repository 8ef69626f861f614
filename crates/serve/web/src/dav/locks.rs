//! The locks as the server keeps them: the table, its file, and the entries that they have in the
//! one table of opens of all protocols, so that a file that is locked here is not opened for
//! writing over NFS or SMB, and the other way round.
//!
//! A lock is on disk before it is granted, and removed from there before its end is reported.
//! Changes wait for the disk: they belong on a pool thread. Looking does not.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::clock::{Clock, NS_PER_S};
use base::limits::{DAV_LOCK_TIME, DAV_LOCK_TIME_MAX};
use base::random::{Random, SystemRandom};
use thiserror::Error;
use vfs::journal::{Journal, JournalError};
use vfs::locks::{
    self as opens, ClientKey, FileKey, GraceRequest, LockTable, Owner, Protocol, Share,
};
use vfs::locks::{SHARE_DELETE, SHARE_READ, SHARE_WRITE};

use super::record;
use super::state::{Lineage, Lock, Refused, Table, Touched};

/// The lock that a client requests.
#[derive(Debug, Clone)]
pub struct LockRequest {
    /// Where.
    pub root: Vec<u8>,
    /// The file at the lock's root.
    pub file: FileKey,
    /// The directories above it, nearest first.
    pub above: Vec<u64>,
    /// The user.
    pub user: String,
    /// The address of the client.
    pub client: String,
    /// Exclusive or shared.
    pub exclusive: bool,
    /// With all that is below.
    pub deep: bool,
    /// What the client states about the owner, as XML.
    pub owner: String,
    /// The requested timeout in seconds, if any.
    pub seconds: Option<u64>,
}

/// How a lock is entered among the opens.
type OpenMethod = fn(&LockTable, FileKey, &Owner, Share) -> Result<Share, opens::Refused>;

/// Why a lock is not given or changed.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another lock is in the way.
    #[error("conflicts with another lock")]
    Locked(Arc<Lock>),
    /// A client has the file open for writing, over any protocol.
    #[error("the file is open for writing")]
    Open,
    /// Clients of some protocol may still reclaim what they had, or must give something back first:
    /// it is worth trying again.
    #[error("not now")]
    Unavailable,
    /// A limit is reached.
    #[error("too many locks")]
    Full,
    /// There is no such lock, or it is another user's.
    #[error("this lock does not exist")]
    Unknown,
    /// It cannot be kept: the machine's fault.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// All locks, their file, and their entries among the opens.
pub struct Locks {
    table: Mutex<LockFile>,
    /// Held during a change of the table, until that is on disk.
    writing: Mutex<()>,
    journal: Option<Journal>,
    opens: Arc<LockTable>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct LockFile {
    table: Table,
    /// Tokens of locks that have ended, and are on disk still.
    stale: Vec<String>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks panics half way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The client of a user's locks in the table of opens. Connections are counted from 1; no count
/// comes as far as this.
fn client(user: &str) -> ClientKey {
    let hash = user.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    ClientKey { protocol: Protocol::Http, id: hash | 1 << 63 }
}

impl Lock {
    /// By what the table of opens knows its holder.
    pub fn holder(&self) -> Option<Owner> {
        // Enough to distinguish locks, however long the name of the user is.
        let token: Vec<u8> = self.token.bytes().rev().take(36).collect();
        let id: Vec<u8> = token.into_iter().rev().chain(*b" ").chain(self.user.bytes()).collect();
        let most = id.len().min(base::limits::LOCK_OWNER_MAX);
        let owner = Owner::new(client(&self.user), id.get(..most).unwrap_or_default());
        match self.client.parse() {
            Ok(address) => owner.map(|owner| owner.at(address)),
            Err(_) => owner,
        }
    }

    /// What it is among the opens: its holder writes; others do not if it is exclusive, and leave
    /// the name as it is.
    const fn share(&self) -> Share {
        let write = if self.exclusive { SHARE_WRITE } else { 0 };
        Share { access: SHARE_READ | SHARE_WRITE, deny: write | SHARE_DELETE }
    }
}

/// A token that cannot be guessed (RFC 4918 §6.5, appendix C; UUID version 4).
fn token(random: &mut dyn Random) -> String {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    let number = u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | 4 << 76 | 2 << 62;
    let hex = format!("{number:032x}");
    let part = |from, to| hex.get(from..to).unwrap_or_default();
    let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
    format!("opaquelocktoken:{}", parts.join("-"))
}

/// For how many seconds a lock is given.
fn granted(seconds: Option<u64>) -> u64 {
    let most = DAV_LOCK_TIME_MAX.as_secs();
    seconds.unwrap_or(DAV_LOCK_TIME.as_secs()).clamp(1, most)
}

impl Locks {
    /// Locks that end with the process: without a state directory.
    pub fn transient(opens: Arc<LockTable>, clock: Arc<dyn Clock>) -> Self {
        let (table, writing) = (Mutex::default(), Mutex::default());
        Self { table, writing, journal: None, opens, clock }
    }

    /// Opens or makes the file of locks; those in it that have not ended are held again. If it
    /// cannot be written now, that is the second value: no new lock is given until it can be.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub fn open(
        path: &Path,
        opens: Arc<LockTable>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Option<JournalError>), JournalError> {
        let (journal, unwritten) = Journal::open(path, record::MAGIC, record::LIMITS)?;
        let records = journal.records();
        let locks = Self { journal: Some(journal), ..Self::transient(opens, clock) };
        let now_s = locks.now_s();
        let mut lock_file = held(&locks.table);
        for (token, value) in records {
            match record::decode(&token, &value).filter(|lock| lock.expires_s > now_s) {
                // Locks that were granted together do not conflict now; if a limit became smaller,
                // the lock is lost, which its holder learns when it uses the token.
                Some(lock) => {
                    if let Ok(lock) = lock_file.table.add(lock) {
                        let _ = locks.enter(&lock, LockTable::reopen);
                    }
                }
                None => lock_file.stale.extend(String::from_utf8(token)),
            }
        }
        drop(lock_file);
        let unswept = locks.sweep().err();
        Ok((locks, unwritten.or(unswept)))
    }

    fn now_s(&self) -> u64 {
        self.clock.wall_ns() / NS_PER_S
    }

    /// The table as it is now: what has ended is gone.
    fn lock_file(&self) -> MutexGuard<'_, LockFile> {
        let mut lock_file = held(&self.table);
        for gone in lock_file.table.expire(self.now_s()) {
            self.leave(&gone);
            lock_file.stale.push(gone.token.clone());
        }
        lock_file
    }

    /// Enters a lock among the opens, by [`LockTable::open`]; one that is on disk by
    /// [`LockTable::reopen`].
    fn enter(&self, lock: &Lock, open: OpenMethod) -> Result<(), LockError> {
        let owner = lock.holder().ok_or(LockError::Full)?;
        match open(&self.opens, lock.file, &owner, lock.share()) {
            Ok(_) => Ok(()),
            Err(opens::Refused::Recalling | opens::Refused::Grace) => Err(LockError::Unavailable),
            Err(opens::Refused::Full) => Err(LockError::Full),
            Err(_) => Err(LockError::Open),
        }
    }

    fn leave(&self, lock: &Lock) {
        if let Some(owner) = lock.holder() {
            self.opens.close(lock.file, &owner);
        }
    }

    fn keep(&self, lock: &Lock) -> Result<(), JournalError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        journal.put(lock.token.as_bytes(), &record::encode(lock))
    }

    /// Takes locks off the disk, and those that have ended with them.
    fn erase(&self, tokens: &[&str]) -> Result<(), JournalError> {
        let stale = std::mem::take(&mut held(&self.table).stale);
        let Some(journal) = &self.journal else { return Ok(()) };
        let ended = stale.iter().map(String::as_bytes);
        let all: Vec<&[u8]> = tokens.iter().map(|token| token.as_bytes()).chain(ended).collect();
        let done = journal.remove(&all);
        if done.is_err() {
            held(&self.table).stale.extend(stale);
        }
        done
    }

    /// Gives a lock. On disk when it returns.
    ///
    /// # Errors
    /// [`LockError`]; then nothing is held.
    pub fn take(&self, wanted: LockRequest) -> Result<Arc<Lock>, LockError> {
        if self.opens.waits_for_grace(Protocol::Http, GraceRequest::Name) {
            return Err(LockError::Unavailable);
        }
        let (timeout_s, now_s) = (granted(wanted.seconds), self.now_s());
        let lock = Lock {
            token: token(&mut SystemRandom),
            root: wanted.root,
            file: wanted.file,
            above: wanted.above,
            user: wanted.user,
            client: wanted.client,
            since_s: now_s,
            exclusive: wanted.exclusive,
            deep: wanted.deep,
            owner: wanted.owner,
            timeout_s,
            expires_s: now_s + timeout_s,
        };
        let _writing = held(&self.writing);
        let lock = match self.lock_file().table.add(lock) {
            Ok(lock) => lock,
            Err(Refused::Locked(other)) => return Err(LockError::Locked(other)),
            Err(Refused::Full) => return Err(LockError::Full),
        };
        let kept = match self.enter(&lock, LockTable::open) {
            Ok(()) => self.keep(&lock).map_err(|error| {
                self.leave(&lock);
                error.into()
            }),
            refused => refused,
        };
        if let Err(error) = kept {
            held(&self.table).table.remove(&lock.token);
            return Err(error);
        }
        Ok(lock)
    }

    /// Lets a lock live on. On disk when it returns.
    ///
    /// # Errors
    /// [`LockError::Unknown`]; it cannot be written, and ends when it would have.
    pub fn refresh(
        &self,
        token: &str,
        user: &str,
        seconds: Option<u64>,
    ) -> Result<Arc<Lock>, LockError> {
        let _writing = held(&self.writing);
        let lock = self.get(token).filter(|lock| lock.user == user).ok_or(LockError::Unknown)?;
        let timeout_s = granted(seconds.or(Some(lock.timeout_s)));
        let longer = Lock { timeout_s, expires_s: self.now_s() + timeout_s, ..(*lock).clone() };
        self.keep(&longer)?;
        let replaced = self.lock_file().table.replace(longer);
        replaced.and_then(|_| self.get(token)).ok_or(LockError::Unknown)
    }

    /// Ends a lock. Off the disk when it returns.
    ///
    /// # Errors
    /// [`LockError::Unknown`]; it cannot be written, and stays.
    pub fn release(&self, token: &str) -> Result<(), LockError> {
        let _writing = held(&self.writing);
        let lock = self.get(token).ok_or(LockError::Unknown)?;
        self.erase(&[token])?;
        if self.lock_file().table.remove(token).is_some() {
            self.leave(&lock);
        }
        Ok(())
    }

    /// Ends the locks at a path and on what was there, unless `keep_root`, and all below: what they
    /// were on has gone. `of` has no file if that has other names.
    ///
    /// # Errors
    /// It cannot be written; they have ended all the same, until a restart.
    pub fn forget(&self, path: &[u8], of: &Lineage, keep_root: bool) -> Result<(), JournalError> {
        if self.is_empty() {
            return Ok(());
        }
        let _writing = held(&self.writing);
        let gone = {
            let mut lock_file = self.lock_file();
            let is_there = |lock: &&Arc<Lock>| {
                let same = |file: FileKey| file.is_same_file(&lock.file);
                !keep_root && (lock.root == path || of.file.is_some_and(same))
            };
            let own = lock_file.table.covering(path, of).into_iter().filter(is_there);
            let gone: Vec<_> = own.chain(lock_file.table.below(path, of)).cloned().collect();
            for lock in &gone {
                lock_file.table.remove(&lock.token);
            }
            gone
        };
        gone.iter().for_each(|lock| self.leave(lock));
        let tokens: Vec<&str> = gone.iter().map(|lock| lock.token.as_str()).collect();
        self.erase(&tokens)
    }

    /// Another file is at a path now: the locks there, and those on the `old` one if that is gone,
    /// are on it from now on.
    ///
    /// # Errors
    /// It cannot be written; after a restart they would be on the file that is gone.
    pub fn replaced(
        &self,
        path: &[u8],
        old: Option<FileKey>,
        file: FileKey,
    ) -> Result<(), JournalError> {
        if self.is_empty() {
            return Ok(());
        }
        let _writing = held(&self.writing);
        let elsewhere: Vec<_> = {
            let lock_file = self.lock_file();
            let of = Lineage { file: old, above: Vec::new() };
            let here = lock_file.table.covering(path, &of).into_iter();
            let meant = |lock: &&Arc<Lock>| {
                lock.root == path || old.is_some_and(|old| old.is_same_file(&lock.file))
            };
            here.filter(meant).filter(|lock| lock.file != file).cloned().collect()
        };
        for before in elsewhere {
            let lock = Lock { file, ..(*before).clone() };
            // Existing opens of the new file did not conflict with the holder of the lock, which
            // has created it: the lock binds later ones.
            let _ = self.enter(&lock, LockTable::reopen);
            self.leave(&before);
            if self.lock_file().table.replace(lock.clone()).is_none() {
                self.leave(&lock);
                continue;
            }
            self.keep(&lock)?;
        }
        Ok(())
    }

    /// Takes what has ended off the disk. To be called every now and then.
    ///
    /// # Errors
    /// It cannot be written; what has ended has done so all the same.
    pub fn sweep(&self) -> Result<(), JournalError> {
        let nothing = self.lock_file().stale.is_empty();
        if nothing {
            return Ok(());
        }
        let _writing = held(&self.writing);
        self.erase(&[])
    }

    /// Whether there are no locks.
    pub fn is_empty(&self) -> bool {
        held(&self.table).table.is_empty()
    }

    /// A lock by its token.
    pub fn get(&self, token: &str) -> Option<Arc<Lock>> {
        self.lock_file().table.get(token).cloned()
    }

    /// All locks, by their paths.
    pub fn all(&self) -> Vec<Arc<Lock>> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut all: Vec<_> = self.lock_file().table.iter().cloned().collect();
        all.sort_by(|a, b| (&a.root, &a.token).cmp(&(&b.root, &b.token)));
        all
    }

    /// The locks that cover a resource.
    pub fn covering(&self, path: &[u8], of: &Lineage) -> Vec<Arc<Lock>> {
        if self.is_empty() {
            return Vec::new();
        }
        self.lock_file().table.covering(path, of).into_iter().cloned().collect()
    }

    /// As [`Table::missing`].
    pub fn missing(&self, touched: Touched<'_>, held: impl Fn(&Lock) -> bool) -> Vec<Arc<Lock>> {
        if self.is_empty() {
            return Vec::new();
        }
        self.lock_file().table.missing(touched, held)
    }

    /// For how many seconds a lock still lives.
    pub fn left_s(&self, lock: &Lock) -> u64 {
        lock.expires_s.saturating_sub(self.now_s())
    }
}

#[cfg(test)]
mod tests;
