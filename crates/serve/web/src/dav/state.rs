//! The table of write locks (RFC 4918 §6 and §7), by path and by identity. Pure: the clock is
//! handed in, as seconds since the epoch, because locks outlive the server.
//!
//! A path is bytes from the list of shares on (`/SHARE/dir/file`), without a slash at its end.
//! Symbolic links, names of one file and shares that overlap give a resource several paths: a lock
//! covers it by each of them, because it is also found by the file that it is on and by the
//! directories above that.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use base::limits::{
    DAV_LOCK_ABOVE_MAX, DAV_LOCKS_MAX, DAV_LOCKS_PER_ADDRESS_MAX, DAV_LOCKS_PER_USER_MAX,
    DAV_LOCKS_SHARED_MAX,
};
use base::peer::network;
use vfs::locks::FileKey;

/// A lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Its token, a URI.
    pub token: String,
    /// What was locked: the lock's root.
    pub root: Vec<u8>,
    /// The file at the lock's root.
    pub file: FileKey,
    /// Inode numbers of the directories above it when it was locked, nearest first, on the same
    /// file system: at most [`DAV_LOCK_ABOVE_MAX`].
    pub above: Vec<u64>,
    /// The user that has created it: the token is not valid for others (§6.4).
    pub user: String,
    /// The address of the client; empty if that is not known.
    pub client: String,
    /// Since when, in seconds since the epoch; 0 if that is not known.
    pub since_s: u64,
    /// Whether others may have one too, if they are like it.
    pub exclusive: bool,
    /// Whether it covers all that is below its root.
    pub deep: bool,
    /// What the client states about its owner, as XML that is valid in any context.
    pub owner: String,
    /// For how long it was taken, in seconds.
    pub timeout_s: u64,
    /// When it ends unless it is refreshed, in seconds since the epoch.
    pub expires_s: u64,
}

/// Why a lock is not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// This one is in the way.
    Locked(Arc<Lock>),
    /// A limit is reached.
    Full,
}

/// All locks.
#[derive(Debug, Default)]
pub struct Table {
    by_token: HashMap<String, Arc<Lock>>,
    /// Root → tokens.
    by_root: BTreeMap<Vec<u8>, Vec<String>>,
    /// File system and inode number of the file → tokens.
    by_file: HashMap<(u64, u64), Vec<String>>,
    by_user: HashMap<String, usize>,
    by_client: HashMap<IpAddr, usize>,
    /// No lock ends before this; to be looked at then.
    next_s: u64,
}

/// A resource by identity, whatever path led to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lineage {
    /// What is there; `None` if nothing is.
    pub file: Option<FileKey>,
    /// The directories above, nearest first ([`vfs::fs::FileSystem::ancestors`]).
    pub above: Vec<FileKey>,
}

impl Lineage {
    /// What is only known by its path.
    pub const UNKNOWN: &Self = &Self { file: None, above: Vec::new() };

    /// Something in this directory.
    #[must_use]
    pub fn member(&self, file: Option<FileKey>) -> Self {
        Self { file, above: self.file.into_iter().chain(self.above.iter().copied()).collect() }
    }

    /// What a lock keeps of the directories above.
    pub fn numbers(&self) -> Vec<u64> {
        self.above.iter().take(DAV_LOCK_ABOVE_MAX).map(|dir| dir.fileid).collect()
    }
}

/// What a change of something needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touched<'a> {
    /// What is changed.
    pub path: &'a [u8],
    /// The same by identity.
    pub of: &'a Lineage,
    /// Whether its name comes or goes, so that the collection around it changes too (§7.4).
    pub name: bool,
    /// Whether all that is below it is concerned.
    pub tree: bool,
}

/// The collection around a path; none around the list of shares.
pub fn parent(path: &[u8]) -> Option<&[u8]> {
    let at = path.iter().rposition(|b| *b == b'/')?;
    path.get(..at).filter(|above| !above.is_empty())
}

/// The path itself and all above it, the nearest first.
fn upward(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(path), |path| parent(path))
}

/// Each of them once.
fn distinct<'a>(locks: impl Iterator<Item = &'a Arc<Lock>>) -> Vec<&'a Arc<Lock>> {
    let mut seen = HashSet::new();
    locks.filter(|lock| seen.insert(lock.token.as_str())).collect()
}

/// The address, or /64, of a lock's client; `None` of a lock that an earlier version stored.
fn network_of(client: &str) -> Option<IpAddr> {
    client.parse().ok().map(network)
}

fn count_down<K: Hash + Eq + Borrow<Q>, Q: Hash + Eq + ?Sized>(
    counts: &mut HashMap<K, usize>,
    of: &Q,
) {
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

impl Lock {
    /// What it is on.
    fn lineage(&self) -> Lineage {
        let dir = |fileid: &u64| FileKey { fileid: *fileid, generation: 0, ..self.file };
        Lineage { file: Some(self.file), above: self.above.iter().map(dir).collect() }
    }

    fn number(&self) -> (u64, u64) {
        (self.file.fsid, self.file.fileid)
    }

    /// Whether what it is on was within a directory when it was locked.
    fn is_below(&self, dir: FileKey) -> bool {
        self.file.fsid == dir.fsid && self.above.contains(&dir.fileid)
    }
}

impl Table {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_token.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_token.is_empty()
    }

    /// A lock by its token.
    pub fn get(&self, token: &str) -> Option<&Arc<Lock>> {
        self.by_token.get(token)
    }

    /// All locks.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Lock>> {
        self.by_token.values()
    }

    fn at<'a>(&'a self, root: &[u8]) -> impl Iterator<Item = &'a Arc<Lock>> {
        let tokens = self.by_root.get(root).into_iter().flatten();
        tokens.filter_map(|token| self.by_token.get(token))
    }

    /// The locks on a file.
    pub fn on(&self, file: FileKey) -> impl Iterator<Item = &Arc<Lock>> {
        let tokens = self.by_file.get(&(file.fsid, file.fileid)).into_iter().flatten();
        let locks = tokens.filter_map(|token| self.by_token.get(token));
        locks.filter(move |lock| lock.file.is_same_file(&file))
    }

    /// The locks that cover a resource: its own, and deep ones above it.
    pub fn covering(&self, path: &[u8], of: &Lineage) -> Vec<&Arc<Lock>> {
        let all = upward(path).flat_map(|above| self.at(above).map(move |lock| (above, lock)));
        let by_path = all.filter(|(above, lock)| lock.deep || *above == path).map(|(_, lock)| lock);
        let own = of.file.into_iter().flat_map(|file| self.on(file));
        let above = of.above.iter().flat_map(|dir| self.on(*dir)).filter(|lock| lock.deep);
        distinct(by_path.chain(own).chain(above))
    }

    /// The locks with roots below a resource.
    pub fn below(&self, path: &[u8], of: &Lineage) -> Vec<&Arc<Lock>> {
        let mut from = path.to_vec();
        from.push(b'/');
        let prefix = from.clone();
        let roots =
            self.by_root.range(from..).take_while(move |(root, _)| root.starts_with(&prefix));
        let tokens = roots.flat_map(|(_, tokens)| tokens);
        let by_path = tokens.filter_map(|token| self.by_token.get(token));
        let by_file =
            of.file.into_iter().flat_map(|dir| self.iter().filter(move |lock| lock.is_below(dir)));
        distinct(by_path.chain(by_file))
    }

    /// What is in the way of a new lock (§6.1).
    fn conflict(&self, new: &Lock) -> Option<Arc<Lock>> {
        let of = new.lineage();
        let below = if new.deep { self.below(&new.root, &of) } else { Vec::new() };
        let mut others = self.covering(&new.root, &of).into_iter().chain(below);
        others.find(|other| new.exclusive || other.exclusive).map(Arc::clone)
    }

    /// Adds a lock.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn add(&mut self, lock: Lock) -> Result<Arc<Lock>, Refused> {
        if let Some(other) = self.conflict(&lock) {
            return Err(Refused::Locked(other));
        }
        let of_user = self.by_user.get(&lock.user).copied().unwrap_or(0);
        // Of a lock that an earlier version stored it is unknown.
        let known = network_of(&lock.client);
        let of_client = known.and_then(|client| self.by_client.get(&client)).copied().unwrap_or(0);
        let here = self.by_root.get(&lock.root).map_or(0, Vec::len).max(self.on(lock.file).count());
        let full = self.by_token.len() >= DAV_LOCKS_MAX
            || of_user >= DAV_LOCKS_PER_USER_MAX
            || of_client >= DAV_LOCKS_PER_ADDRESS_MAX
            || here >= DAV_LOCKS_SHARED_MAX
            || self.by_token.contains_key(&lock.token);
        if full { Err(Refused::Full) } else { Ok(self.put(lock)) }
    }

    /// Adds a lock that was given before: nothing is checked.
    fn put(&mut self, lock: Lock) -> Arc<Lock> {
        let lock = Arc::new(lock);
        self.next_s =
            if self.is_empty() { lock.expires_s } else { self.next_s.min(lock.expires_s) };
        self.by_root.entry(lock.root.clone()).or_default().push(lock.token.clone());
        self.by_file.entry(lock.number()).or_default().push(lock.token.clone());
        *self.by_user.entry(lock.user.clone()).or_default() += 1;
        if let Some(client) = network_of(&lock.client) {
            *self.by_client.entry(client).or_default() += 1;
        }
        self.by_token.insert(lock.token.clone(), Arc::clone(&lock));
        lock
    }

    /// Takes a lock away.
    pub fn remove(&mut self, token: &str) -> Option<Arc<Lock>> {
        let lock = self.by_token.remove(token)?;
        if let Some(tokens) = self.by_root.get_mut(&lock.root) {
            tokens.retain(|other| other != token);
            if tokens.is_empty() {
                self.by_root.remove(&lock.root);
            }
        }
        if let Some(tokens) = self.by_file.get_mut(&lock.number()) {
            tokens.retain(|other| other != token);
            if tokens.is_empty() {
                self.by_file.remove(&lock.number());
            }
        }
        count_down(&mut self.by_user, &lock.user);
        if let Some(client) = network_of(&lock.client) {
            count_down(&mut self.by_client, &client);
        }
        Some(lock)
    }

    /// Puts a changed lock in the place of the one with its token.
    pub fn replace(&mut self, lock: Lock) -> Option<Arc<Lock>> {
        self.remove(&lock.token)?;
        Some(self.put(lock))
    }

    /// Removes the locks that expire at `now_s` or earlier.
    pub fn expire(&mut self, now_s: u64) -> Vec<Arc<Lock>> {
        if self.is_empty() || now_s < self.next_s {
            return Vec::new();
        }
        let over = self.iter().filter(|lock| lock.expires_s <= now_s);
        let tokens: Vec<_> = over.map(|lock| lock.token.clone()).collect();
        let gone = tokens.iter().filter_map(|token| self.remove(token)).collect();
        self.next_s = self.iter().map(|lock| lock.expires_s).min().unwrap_or(0);
        gone
    }

    /// The locks of which a change needs the tokens and that are not `held`: of those that cover
    /// the same resource one must be (§7). Empty: the change is permitted.
    pub fn missing(&self, touched: Touched<'_>, held: impl Fn(&Lock) -> bool) -> Vec<Arc<Lock>> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut missing = Vec::new();
        let mut group = |locks: Vec<&Arc<Lock>>| {
            if !locks.iter().any(|lock| held(lock)) {
                missing.extend(locks.into_iter().map(Arc::clone));
            }
        };
        group(self.covering(touched.path, touched.of));
        if touched.name {
            let by_path = parent(touched.path).into_iter().flat_map(|above| self.at(above));
            let by_file = touched.of.above.first().into_iter().flat_map(|dir| self.on(*dir));
            group(distinct(by_path.chain(by_file).filter(|lock| !lock.deep)));
        }
        if touched.tree {
            let mut by_root: BTreeMap<&[u8], Vec<&Arc<Lock>>> = BTreeMap::new();
            for lock in self.below(touched.path, touched.of) {
                by_root.entry(&lock.root).or_default().push(lock);
            }
            by_root.into_values().for_each(group);
        }
        missing
    }
}

#[cfg(test)]
mod tests;
