//! Sessions and uploads in parts that are in progress: pure, with the clock handed in.
//!
//! Neither survives a restart: users sign in again, and what was uploaded in part is removed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::limits::{
    HTTP_BASIC_FRESH, HTTP_SESSION_MAX, HTTP_SESSIONS_MAX, HTTP_UPLOAD_IDLE, HTTP_UPLOADS_MAX,
    HTTP_UPLOADS_PER_ADDRESS, HTTP_UPLOADS_PER_USER,
};
use base::peer::network;
use base::random::{Random, SystemRandom};
use base::refusals::Limit;
use base::tally::evict_of_most;
use base::text::hex;
use vfs::identity::Person;

use super::select::Conditions;
use files::transfer::Outcome;
use files::upload::Temporary;
use files::{Spot, Transfer};

/// The key of a secret: a keyed digest, so that a leak of memory reveals no credentials.
type Digest = [u8; 32];

/// A user that has signed in.
#[derive(Debug, Clone)]
pub struct SignedInUser {
    /// The user.
    pub person: Arc<Person>,
    /// The generation of the list of users when the user was last checked.
    pub generation: u64,
    began_ns: u64,
    used_ns: u64,
    /// Whether the secret is a password that comes with each request.
    basic: bool,
}

/// Users that have signed in, by session or by a password that was verified.
pub struct Sessions {
    key: [u8; 32],
    known: Mutex<HashMap<Digest, SignedInUser>>,
}

impl Default for Sessions {
    fn default() -> Self {
        let mut key = [0; 32];
        SystemRandom.fill(&mut key);
        Self { key, known: Mutex::default() }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `bytes` random bytes in hexadecimal.
pub fn token(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    SystemRandom.fill(&mut random);
    hex(&random)
}

impl SignedInUser {
    fn is_over(&self, now_ns: u64, idle: Duration) -> bool {
        let over =
            |since: u64, limit: Duration| now_ns.saturating_sub(since) > limit.as_nanos() as u64;
        if self.basic {
            over(self.began_ns, HTTP_BASIC_FRESH)
        } else {
            over(self.used_ns, idle) || over(self.began_ns, HTTP_SESSION_MAX)
        }
    }
}

impl Sessions {
    fn digest(&self, secret: &[u8]) -> Digest {
        *blake3::keyed_hash(&self.key, secret).as_bytes()
    }

    /// The user of this secret, unless it is expired. Counts as use.
    pub fn find(&self, secret: &[u8], idle: Duration, now_ns: u64) -> Option<SignedInUser> {
        let digest = self.digest(secret);
        let mut known = lock(&self.known);
        let one = known.get_mut(&digest)?;
        if one.is_over(now_ns, idle) {
            known.remove(&digest);
            return None;
        }
        one.used_ns = now_ns;
        Some(one.clone())
    }

    /// Remembers the user that a secret belongs to; `basic` if it is the password. If there are too
    /// many, that of the user with most of them is forgotten that was used longest ago.
    pub fn keep(
        &self,
        secret: &[u8],
        basic: bool,
        (person, generation): (Arc<Person>, u64),
        now_ns: u64,
    ) {
        let digest = self.digest(secret);
        let mut known = lock(&self.known);
        if known.len() >= HTTP_SESSIONS_MAX && !known.contains_key(&digest) {
            Limit::HttpSessions.count();
            evict_of_most(&mut known, |one| (one.person.name.clone(), ()), |one| one.used_ns);
        }
        let new = SignedInUser { person, generation, began_ns: now_ns, used_ns: now_ns, basic };
        known.insert(digest, new);
    }

    /// Updates a session after the list of users has changed: `person` is the current user, if
    /// still valid.
    pub fn renew(&self, secret: &[u8], person: Option<Arc<Person>>, generation: u64) {
        let digest = self.digest(secret);
        let mut known = lock(&self.known);
        match (person, known.get_mut(&digest)) {
            (Some(person), Some(one)) => (one.person, one.generation) = (person, generation),
            _ => drop(known.remove(&digest)),
        }
    }

    /// Signs out.
    pub fn forget(&self, secret: &[u8]) {
        lock(&self.known).remove(&self.digest(secret));
    }

    /// How many are known.
    pub fn count(&self) -> usize {
        lock(&self.known).len()
    }
}

/// An upload in parts.
#[derive(Clone)]
pub struct Pending {
    /// The user.
    pub user: String,
    /// The address of the client, or its network.
    pub from: IpAddr,
    /// The place of the complete file.
    pub spot: Spot,
    /// Its path as the client sees it: from the list of shares on.
    pub path: Vec<u8>,
    /// What the client expects to be there.
    pub conditions: Option<Conditions>,
    /// Its temporary name until then, in the same directory.
    pub part: Arc<Temporary>,
    /// Its final length.
    pub length: u64,
    /// How much of it is here.
    pub offset: u64,
    /// The time of last change that it will have, in seconds since the epoch.
    pub modified: Option<i64>,
    /// The transfer log entry.
    pub transfer: Arc<Mutex<Transfer>>,
    used_ns: u64,
    /// Whether a part of it is being received.
    busy: bool,
}

impl Pending {
    /// The same upload to another place.
    pub fn at(&self, spot: Spot) -> Self {
        Self { spot, ..self.clone() }
    }

    /// Ends it with this outcome and this many bytes written.
    pub fn ends(&self, outcome: Outcome, why: &'static str, written: u64) {
        let transfer = lock(&self.transfer);
        transfer.moved(0, usize::try_from(written).unwrap_or(usize::MAX));
        transfer.ends(outcome, why);
    }
}

/// Why an upload cannot be continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadError {
    /// There is none of this name, or it belongs to another user.
    Unknown,
    /// A part of it is being received already.
    Busy,
    /// There are too many.
    Full,
}

/// Whether a user may begin one more upload from this address, where there are these of users and
/// addresses. Clients that do not sign in have one name: each of their addresses has the part of a
/// user.
fn permits<'a>(all: impl Iterator<Item = (&'a str, IpAddr)>, by: &Person, from: IpAddr) -> bool {
    let (mut count, mut of_address, mut own) = (0, 0, 0);
    for (user, at) in all {
        let is_same_address = at == from;
        count += 1;
        of_address += usize::from(is_same_address);
        own += usize::from(user == by.name && (is_same_address || !by.anonymous));
    }
    count < HTTP_UPLOADS_MAX && of_address < HTTP_UPLOADS_PER_ADDRESS && own < HTTP_UPLOADS_PER_USER
}

/// The user and the address of an upload, the place and path of its file with what is expected
/// there, and its temporary name.
pub type BegunUpload<'a> = ((&'a Person, IpAddr), (Spot, Vec<u8>, Option<Conditions>), Temporary);

/// Uploads in parts that are in progress.
#[derive(Default)]
pub struct Uploads {
    all: Mutex<HashMap<String, Pending>>,
}

impl Uploads {
    /// Begins one; returns its id.
    ///
    /// # Errors
    /// [`UploadError::Full`].
    pub fn begin(
        &self,
        ((by, from), (spot, path, conditions), part): BegunUpload<'_>,
        (length, modified): (u64, Option<i64>),
        (transfer, now_ns): (Transfer, u64),
    ) -> Result<String, UploadError> {
        let mut all = lock(&self.all);
        let from = network(from);
        if !permits(all.values().map(|one| (&*one.user, one.from)), by, from) {
            transfer.ends(Outcome::Refused, "too many uploads in progress");
            return Err(UploadError::Full);
        }
        let id = token(16);
        let new = Pending {
            user: by.name.clone(),
            from,
            spot,
            path,
            conditions,
            part: Arc::new(part),
            length,
            offset: 0,
            modified,
            transfer: Arc::new(Mutex::new(transfer)),
            used_ns: now_ns,
            busy: false,
        };
        all.insert(id.clone(), new);
        Ok(id)
    }

    /// An upload of this user.
    pub fn get(&self, id: &str, user: &str) -> Option<Pending> {
        lock(&self.all).get(id).filter(|one| one.user == user).cloned()
    }

    /// Takes an upload to continue it; to be given back.
    ///
    /// # Errors
    /// By [`UploadError`].
    pub fn take(&self, id: &str, user: &str, now_ns: u64) -> Result<Pending, UploadError> {
        let mut all = lock(&self.all);
        let one = all.get_mut(id).filter(|one| one.user == user).ok_or(UploadError::Unknown)?;
        if one.busy {
            return Err(UploadError::Busy);
        }
        (one.busy, one.used_ns) = (true, now_ns);
        Ok(one.clone())
    }

    /// Gives an upload back, so much of it being here.
    pub fn give(&self, id: &str, offset: u64, now_ns: u64) {
        if let Some(one) = lock(&self.all).get_mut(id) {
            (one.busy, one.offset, one.used_ns) = (false, offset, now_ns);
        }
    }

    /// Ends one.
    pub fn end(&self, id: &str) {
        lock(&self.all).remove(id);
    }

    /// Takes out those that have rested too long: their files are to be removed.
    pub fn expire(&self, now_ns: u64) -> Vec<Pending> {
        let limit = HTTP_UPLOAD_IDLE.as_nanos() as u64;
        let over = |one: &Pending| !one.busy && now_ns.saturating_sub(one.used_ns) > limit;
        lock(&self.all).extract_if(|_, one| over(one)).map(|(_, one)| one).collect()
    }

    /// The number of uploads in progress.
    pub fn count(&self) -> usize {
        lock(&self.all).len()
    }
}

#[cfg(test)]
mod tests;
