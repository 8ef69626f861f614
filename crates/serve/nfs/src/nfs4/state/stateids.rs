//! What one client holds, by stateid (RFC 8881 §8.2): opens, byte-range locks under them,
//! delegations.
//!
//! `other` is the start of the server, the client, and a number of the client's own; so a stateid
//! of another start or another client is known as such without a search.

use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use base::limits::{NFS4_CLOSED_MAX, NFS4_STATE_BYTES, NFS4_STATES_PER_CLIENT_MAX};
use vfs::fs::Retained;
use vfs::locks::{Caching, FileKey, Owner, SHARE_READ, SHARE_WRITE, Share};
use vfs::share::tag_of;
use wire::nfs4::{Nfsstat4, Stateid4};

use super::deleg::Deleg;
use super::memory::{MemoryPart, MemoryUse};

/// What a stateid stands for.
#[derive(Debug, Clone)]
pub enum What {
    /// An open.
    Open(Open),
    /// An owner's locks on a file, under the open with this number.
    Lock(u32),
    /// A delegation.
    Deleg(Arc<Deleg>),
    /// Revoked; stays until FREE_STATEID (§18.38).
    Revoked,
    /// A revoked delegation; stays as well.
    RevokedDeleg,
}

impl PartialEq for What {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Open(a), Self::Open(b)) => a == b,
            (Self::Lock(a), Self::Lock(b)) => a == b,
            (Self::Deleg(a), Self::Deleg(b)) => Arc::ptr_eq(a, b),
            (Self::Revoked, Self::Revoked) | (Self::RevokedDeleg, Self::RevokedDeleg) => true,
            _ => false,
        }
    }
}

impl Eq for What {}

/// An open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// What it is open for.
    pub share: Share,
    /// The shares that it was opened with, as bits `access + 4 * deny`: a downgrade must be to a
    /// union of some of them (§18.18.3).
    combos: u16,
    /// The tag of the share that it was last opened through.
    through: Option<u32>,
}

/// One stateid's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its version.
    pub seqid: u32,
    /// The file.
    pub key: FileKey,
    /// The open owner or lock owner.
    pub owner: Owner,
    /// What it is.
    pub what: What,
}

impl Entry {
    fn is_open_through(&self, tag: u32) -> bool {
        matches!(&self.what, What::Open(open) if open.through == Some(tag))
    }

    /// Bytes that it takes, about, in all tables.
    fn bytes(&self) -> usize {
        NFS4_STATE_BYTES + self.owner.id().len()
    }
}

/// What a client holds.
#[derive(Debug)]
pub struct ClientStates {
    memory: MemoryUse,
    prefix: (u32, u32),
    next: u32,
    ended: bool,
    states: HashMap<u32, Entry>,
    opens: HashMap<(FileKey, Owner), u32>,
    /// Lock stateids by the open that they are under, and by owner; how many there are.
    locks: HashMap<u32, HashMap<Owner, u32>>,
    lock_count: usize,
    /// How many of them an owner has on a file.
    locking: HashMap<(FileKey, Owner), usize>,
    delegs: HashMap<FileKey, u32>,
    /// What keeps the files of opens, by their numbers, usable after they were removed.
    retained: HashMap<u32, Retained>,
    /// Owners of the opens closed last, so that a CLOSE can be repeated.
    closed: VecDeque<(u32, Owner)>,
}

fn bit(share: Share) -> u16 {
    1 << (share.access & 3 | (share.deny & 3) << 2)
}

impl Open {
    /// Whether `to` is a union of some of the shares it was opened with.
    fn reaches(&self, to: Share) -> bool {
        let met =
            combos(self.combos).filter(|c| to.covers(*c)).fold(Share::default(), Share::union);
        met == to
    }
}

fn combos(bits: u16) -> impl Iterator<Item = Share> {
    let set = (0..16u8).filter(move |n| bits & (1 << n) != 0);
    set.map(|n| Share { access: n & 3, deny: n >> 2 })
}

/// The start, the client and the number in a stateid.
pub fn parts(stateid: &Stateid4) -> (u32, u32, u32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = stateid.other;
    let word = u32::from_be_bytes;
    (word([a, b, c, d]), word([e, f, g, h]), word([i, j, k, l]))
}

impl ClientStates {
    /// Nothing held, by this client since this start.
    pub fn new(boot: u32, client: u32, memory: Arc<MemoryPart>) -> Self {
        Self {
            memory: MemoryUse::new(memory),
            prefix: (boot, client),
            next: 0,
            ended: false,
            states: HashMap::new(),
            opens: HashMap::new(),
            locks: HashMap::new(),
            lock_count: 0,
            locking: HashMap::new(),
            delegs: HashMap::new(),
            retained: HashMap::new(),
            closed: VecDeque::new(),
        }
    }

    /// How many opens and how many lock stateids.
    pub fn counts(&self) -> (usize, usize) {
        (self.opens.len(), self.lock_count)
    }

    /// Takes everything; nothing is added any more.
    pub fn end(&mut self) {
        self.ended = true;
        self.memory.give(usize::MAX);
        self.states.clear();
        self.opens.clear();
        self.locks.clear();
        self.lock_count = 0;
        self.locking.clear();
        self.delegs.clear();
        self.retained.clear();
    }

    /// Whether another state may be added.
    ///
    /// # Errors
    /// NFS4ERR_EXPIRED after [`Self::end`]; NFS4ERR_RESOURCE.
    pub fn room(&self) -> Result<(), Nfsstat4> {
        let few = self.states.len() < NFS4_STATES_PER_CLIENT_MAX;
        match (self.ended, few && self.memory.has_room()) {
            (true, _) => Err(Nfsstat4::EXPIRED),
            (_, false) => Err(Nfsstat4::RESOURCE),
            _ => Ok(()),
        }
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    fn stateid(&self, number: u32, seqid: u32) -> Stateid4 {
        let mut other = [0; 12];
        let words = [self.prefix.0, self.prefix.1, number].map(u32::to_be_bytes);
        other.copy_from_slice(words.as_flattened());
        Stateid4 { seqid, other }
    }

    fn put(&mut self, number: u32, entry: Entry) {
        self.memory.charge(entry.bytes());
        self.states.insert(number, entry);
    }

    fn take_out(&mut self, number: u32) -> Option<Entry> {
        let entry = self.states.remove(&number)?;
        self.memory.give(entry.bytes());
        Some(entry)
    }

    fn add(&mut self, key: FileKey, owner: Owner, what: What) -> Result<u32, Nfsstat4> {
        self.room()?;
        loop {
            self.next = self.next.wrapping_add(1);
            if !self.states.contains_key(&self.next) {
                break;
            }
        }
        self.put(self.next, Entry { seqid: 0, key, owner, what });
        Ok(self.next)
    }

    /// The next version of a state.
    fn bump(&mut self, number: u32) -> Stateid4 {
        let seqid = match self.states.get_mut(&number) {
            Some(entry) => {
                // 0 stands for "the latest" (§8.2.2).
                entry.seqid = entry.seqid.checked_add(1).unwrap_or(1);
                entry.seqid
            }
            None => 0,
        };
        self.stateid(number, seqid)
    }

    /// The state of a stateid, and its number. `zero_is_latest` from 4.1 on.
    ///
    /// # Errors
    /// NFS4ERR_STALE_STATEID (4.0) or NFS4ERR_BAD_STATEID of another start, NFS4ERR_BAD_STATEID,
    /// NFS4ERR_OLD_STATEID, NFS4ERR_ADMIN_REVOKED, NFS4ERR_DELEG_REVOKED.
    pub fn find(&self, id: &Stateid4, zero_is_latest: bool) -> Result<(u32, &Entry), Nfsstat4> {
        let (boot, client, number) = parts(id);
        if boot != self.prefix.0 && !zero_is_latest {
            return Err(Nfsstat4::STALE_STATEID);
        }
        if (boot, client) != self.prefix {
            return Err(Nfsstat4::BAD_STATEID);
        }
        let entry = self.states.get(&number).ok_or(Nfsstat4::BAD_STATEID)?;
        match entry.what {
            What::Revoked => return Err(Nfsstat4::ADMIN_REVOKED),
            What::RevokedDeleg => return Err(Nfsstat4::DELEG_REVOKED),
            What::Open(_) | What::Lock(_) | What::Deleg(_) => {}
        }
        // Versions go round; half of them are ahead.
        match id.seqid.wrapping_sub(entry.seqid).cast_signed() {
            _ if id.seqid == 0 && zero_is_latest => Ok((number, entry)),
            0 => Ok((number, entry)),
            1.. => Err(Nfsstat4::BAD_STATEID),
            _ => Err(Nfsstat4::OLD_STATEID),
        }
    }

    /// The owner of a stateid, or the one until its last CLOSE, of any version.
    ///
    /// # Errors
    /// NFS4ERR_STALE_STATEID, NFS4ERR_BAD_STATEID.
    pub fn owner_of(&self, id: &Stateid4) -> Result<Owner, Nfsstat4> {
        let (boot, client, number) = parts(id);
        if (boot, client) != self.prefix {
            return Err(Nfsstat4::BAD_STATEID);
        }
        let held = self.states.get(&number).map(|entry| &entry.owner);
        let closed = || self.closed.iter().find(|(n, _)| *n == number).map(|(_, owner)| owner);
        held.or_else(closed).cloned().ok_or(Nfsstat4::BAD_STATEID)
    }

    /// As [`Self::find`], for what must be an open.
    ///
    /// # Errors
    /// As there, and NFS4ERR_BAD_STATEID for a lock's.
    pub fn find_open(&self, id: &Stateid4, zero: bool) -> Result<(u32, &Entry, &Open), Nfsstat4> {
        match self.find(id, zero)? {
            (number, entry @ Entry { what: What::Open(open), .. }) => Ok((number, entry, open)),
            _ => Err(Nfsstat4::BAD_STATEID),
        }
    }

    /// As [`Self::find`], for what must be a lock.
    ///
    /// # Errors
    /// As there, and NFS4ERR_BAD_STATEID for an open's.
    pub fn find_lock(&self, id: &Stateid4, zero: bool) -> Result<(u32, &Entry), Nfsstat4> {
        match self.find(id, zero)? {
            (number, entry @ Entry { what: What::Lock(_), .. }) => Ok((number, entry)),
            _ => Err(Nfsstat4::BAD_STATEID),
        }
    }

    /// What the open that a stateid belongs to is for: of itself, or of the open under the lock.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn share_of(&self, id: &Stateid4, zero: bool) -> Result<(FileKey, Share), Nfsstat4> {
        let (_, entry) = self.find(id, zero)?;
        let open = match &entry.what {
            What::Open(open) => Some(open),
            What::Lock(under) => match self.states.get(under).map(|e| &e.what) {
                Some(What::Open(open)) => Some(open),
                _ => None,
            },
            What::Deleg(deleg) => {
                let access = match deleg.kind.has(Caching::WRITE) {
                    false => SHARE_READ,
                    true => SHARE_READ | SHARE_WRITE,
                };
                return Ok((entry.key, Share { access, deny: 0 }));
            }
            What::Revoked | What::RevokedDeleg => None,
        };
        Ok((entry.key, open.ok_or(Nfsstat4::BAD_STATEID)?.share))
    }

    /// What an owner has a file open for.
    pub fn share_by(&self, key: FileKey, owner: &Owner) -> Option<Share> {
        let number = self.opens.get(&(key, owner.clone()))?;
        match &self.states.get(number)?.what {
            What::Open(open) => Some(open.share),
            _ => None,
        }
    }

    /// An owner has opened a file (once more): `share` is that of this OPEN.
    ///
    /// # Errors
    /// NFS4ERR_RESOURCE.
    pub fn opened(
        &mut self,
        key: FileKey,
        owner: &Owner,
        share: Share,
    ) -> Result<Stateid4, Nfsstat4> {
        let at = (key, owner.clone());
        let number = match self.opens.get(&at) {
            Some(number) => *number,
            None => {
                let open = Open { share: Share::default(), combos: 0, through: None };
                let number = self.add(key, owner.clone(), What::Open(open))?;
                self.opens.insert(at, number);
                number
            }
        };
        if let Some(Entry { what: What::Open(open), .. }) = self.states.get_mut(&number) {
            open.share = open.share.union(share);
            open.combos |= bit(share);
        }
        Ok(self.bump(number))
    }

    /// An open was made through the share with this tag; its file is `retained` until it ends.
    pub fn opened_through(&mut self, id: &Stateid4, tag: Option<u32>, retained: Option<Retained>) {
        let number = parts(id).2;
        if let Some(Entry { what: What::Open(open), .. }) = self.states.get_mut(&number) {
            open.through = tag;
            // Once is enough, and one that was retained before stays so.
            if let Some(retained) = retained {
                self.retained.insert(number, retained);
            }
        }
    }

    /// The opens that were made through a share: their numbers, files and owners.
    pub fn opens_through(&self, tag: u32) -> Vec<(u32, FileKey, Owner)> {
        let states = self.states.iter().filter(|(_, entry)| entry.is_open_through(tag));
        states.map(|(number, entry)| (*number, entry.key, entry.owner.clone())).collect()
    }

    /// Whether this is an open that was last made through a share.
    pub fn is_open_through(&self, number: u32, tag: u32) -> bool {
        self.states.get(&number).is_some_and(|entry| entry.is_open_through(tag))
    }

    /// Owners that have a file open.
    pub fn open_owners(&self) -> HashSet<Owner> {
        self.opens.keys().map(|(_, owner)| owner.clone()).collect()
    }

    /// The delegations that were granted on handles of a share.
    pub fn delegs_through(&self, tag: u32) -> Vec<Arc<Deleg>> {
        let states = self.states.values().filter_map(|entry| match &entry.what {
            What::Deleg(deleg) if tag_of(&deleg.handle) == Some(tag) => Some(Arc::clone(deleg)),
            _ => None,
        });
        states.collect()
    }

    /// OPEN_CONFIRM: the same state, its next version.
    pub fn confirmed(&mut self, number: u32) -> Stateid4 {
        self.bump(number)
    }

    /// Whether an open may be left with `to`.
    ///
    /// # Errors
    /// NFS4ERR_INVAL if that is no union of what it was opened with.
    pub fn may_downgrade(&self, number: u32, to: Share) -> Result<(), Nfsstat4> {
        match self.states.get(&number).map(|entry| &entry.what) {
            Some(What::Open(open)) if open.reaches(to) => Ok(()),
            _ => Err(Nfsstat4::INVAL),
        }
    }

    /// Leaves an open with `to`.
    pub fn downgraded(&mut self, number: u32, to: Share) -> Stateid4 {
        if let Some(Entry { what: What::Open(open), .. }) = self.states.get_mut(&number) {
            open.share = to;
            open.combos = combos(open.combos).filter(|c| to.covers(*c)).map(bit).sum();
        }
        self.bump(number)
    }

    /// Ends an open and the lock stateids under it; returns the owners that lose all locks on the
    /// file with it.
    pub fn closed(&mut self, number: u32) -> Vec<Owner> {
        let Some(entry) = self.take_out(number) else { return Vec::new() };
        self.retained.remove(&number);
        if self.closed.len() >= NFS4_CLOSED_MAX {
            self.closed.pop_front();
        }
        self.closed.push_back((number, entry.owner.clone()));
        self.opens.remove(&(entry.key, entry.owner));
        let mut owners = Vec::new();
        for (owner, lock) in self.locks.remove(&number).unwrap_or_default() {
            // An owner that locks under another open of the file too keeps its locks.
            if self.lock_state_ended(lock) {
                owners.push(owner);
            }
        }
        owners
    }

    /// A lock stateid that is under no open any more ends; whether it was the last of its owner on
    /// the file. A client may have as many as [`NFS4_STATES_PER_CLIENT_MAX`]: nothing is searched.
    fn lock_state_ended(&mut self, number: u32) -> bool {
        let Some(Entry { key, owner, .. }) = self.take_out(number) else { return false };
        self.lock_count = self.lock_count.saturating_sub(1);
        match self.locking.entry((key, owner)) {
            Occupied(mut more) if *more.get() > 1 => {
                *more.get_mut() -= 1;
                false
            }
            Occupied(last) => {
                last.remove();
                true
            }
            Vacant(_) => true,
        }
    }

    /// An owner has locked bytes under an open.
    ///
    /// # Errors
    /// NFS4ERR_RESOURCE.
    pub fn locked(&mut self, open: u32, key: FileKey, by: &Owner) -> Result<Stateid4, Nfsstat4> {
        let number = match self.locks.get(&open).and_then(|locks| locks.get(by)) {
            Some(number) => *number,
            None => {
                let number = self.add(key, by.clone(), What::Lock(open))?;
                self.locks.entry(open).or_default().insert(by.clone(), number);
                self.lock_count += 1;
                *self.locking.entry((key, by.clone())).or_default() += 1;
                number
            }
        };
        Ok(self.bump(number))
    }

    /// A lock state has changed: its next version.
    pub fn relocked(&mut self, number: u32) -> Stateid4 {
        self.bump(number)
    }

    /// Ends a lock state that holds nothing, or forgets a revoked one (FREE_STATEID).
    pub fn freed(&mut self, number: u32) {
        match self.states.get(&number) {
            Some(Entry { what: What::Lock(open), owner, .. }) => {
                if let Occupied(mut locks) = self.locks.entry(*open) {
                    locks.get_mut().remove(owner);
                    if locks.get().is_empty() {
                        locks.remove();
                    }
                }
                self.lock_state_ended(number);
            }
            _ => drop(self.take_out(number)),
        }
    }

    /// Takes all lock states of an owner (RELEASE_LOCKOWNER).
    pub fn release_owner(&mut self, owner: &Owner) {
        let gone: Vec<_> = self.locks.values_mut().filter_map(|of| of.remove(owner)).collect();
        self.locks.retain(|_, of| !of.is_empty());
        for number in gone {
            self.lock_state_ended(number);
        }
    }

    /// Files on which an owner has a lock stateid.
    pub fn files_of(&self, owner: &Owner) -> Vec<FileKey> {
        let states = self.locks.values().filter_map(|of| of.get(owner));
        states.filter_map(|number| self.states.get(number).map(|e| e.key)).collect()
    }

    /// Adds a delegation; `make` gets its stateid.
    ///
    /// # Errors
    /// NFS4ERR_RESOURCE, also if there is one on the file already.
    pub fn delegate(
        &mut self,
        key: FileKey,
        owner: &Owner,
        make: impl FnOnce(Stateid4) -> Arc<Deleg>,
    ) -> Result<Arc<Deleg>, Nfsstat4> {
        if self.delegs.contains_key(&key) {
            return Err(Nfsstat4::RESOURCE);
        }
        let number = self.add(key, owner.clone(), What::RevokedDeleg)?;
        let deleg = make(self.bump(number));
        if let Some(entry) = self.states.get_mut(&number) {
            entry.what = What::Deleg(Arc::clone(&deleg));
        }
        self.delegs.insert(key, number);
        Ok(deleg)
    }

    /// As [`Self::find`], for what must be a delegation.
    ///
    /// # Errors
    /// As there, and NFS4ERR_BAD_STATEID for another's.
    pub fn find_deleg(&self, id: &Stateid4, zero: bool) -> Result<Arc<Deleg>, Nfsstat4> {
        match self.find(id, zero)? {
            (_, Entry { what: What::Deleg(deleg), .. }) => Ok(Arc::clone(deleg)),
            _ => Err(Nfsstat4::BAD_STATEID),
        }
    }

    /// Takes a delegation out; false if it has ended or was revoked before.
    pub fn undelegate(&mut self, id: &Stateid4) -> bool {
        let number = parts(id).2;
        let held = self.states.get(&number).filter(|entry| matches!(entry.what, What::Deleg(_)));
        let Some(key) = held.map(|entry| entry.key) else { return false };
        self.take_out(number);
        self.delegs.remove(&key);
        true
    }

    /// Retains the stateid of a revoked delegation, so that the client learns of the revocation.
    pub fn remember_revoked(&mut self, deleg: &Deleg) {
        // Anyone's will do as owner: nothing is held.
        let Stateid4 { seqid, .. } = deleg.stateid;
        let number = parts(&deleg.stateid).2;
        if let Some(client) = deleg.client.upgrade()
            && let Ok(owner) = client.owner(b"")
        {
            let entry = Entry { seqid, key: deleg.key, owner, what: What::RevokedDeleg };
            self.put(number, entry);
        }
    }
}
