//! Clients: SETCLIENTID and its confirmation (RFC 7530 §16.33, §16.34), EXCHANGE_ID in all its
//! cases (RFC 8881 §18.35.4), CREATE_SESSION with its replay (§18.36), leases.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use base::limits::{
    NFS4_CLIENT_ADDRESSES_MAX, NFS4_CLIENTS_MAX, NFS4_CLIENTS_PER_ADDRESS_MAX,
    NFS4_OWNER_REPLY_MAX, NFS4_OWNERS_PER_CLIENT_MAX, NFS4_STATE_BYTES, NFS4_STATE_BYTES_MAX,
    NFS4_STATE_BYTES_PER_ADDRESS_MAX,
};
use base::lock_order::{OrderedMutex, ranks};
use vfs::locks::{ClientKey, Owner, Protocol};
use wire::nfs4::{CreateSessionResOk4, Nfsstat4};

use super::channel::CallbackRoute;
use super::grace::{Identity, Name};
use super::lock;
use super::memory::{Memory, MemoryPart};
use super::owners::Sequence;
use super::quota::{Quota, QuotaConflict};
use super::stateids::ClientStates;

/// One client.
pub struct Client {
    /// `clientid4`.
    pub id: u64,
    /// What it calls itself.
    pub name: Name,
    /// Another one after its restart.
    pub verifier: [u8; 8],
    /// The user that it authenticates as.
    pub principal: u32,
    /// Where it was made from, for its part of the limits: [`base::peer::network`].
    pub origin: IpAddr,
    /// What it holds.
    pub held: OrderedMutex<ClientStates>,
    /// Its sessions. Nothing else is locked under it: a recall looks at it with whatever locks its
    /// cause holds, of all protocols.
    pub sessions: Mutex<Vec<[u8; 16]>>,
    /// Whether it is on record, so that what it holds outlives the server.
    pub(super) recorded: OrderedMutex<RecordState>,
    /// RECLAIM_COMPLETE was done.
    pub reclaimed: AtomicBool,
    /// Where it speaks from, for the administrator.
    pub(super) seen: Mutex<ClientOrigin>,
    /// Its last CREATE_SESSION.
    pub(super) created: Mutex<LastCreate>,
    /// How it can be called.
    pub way_back: CallbackRoute,
    /// What it takes of the memory for state.
    pub(super) memory: Arc<MemoryPart>,
    renewed_ns: AtomicU64,
    owners: Mutex<Owners>,
}

/// The record of a client.
#[derive(Debug, Default)]
pub(super) struct RecordState {
    /// It is on disk.
    pub on_disk: bool,
    /// The client has held nothing since it was written.
    pub is_unused: bool,
    /// Operations that may give state to the client, and have not ended.
    pub in_progress: usize,
}

/// The last CREATE_SESSION of a client.
#[derive(Debug, Default)]
pub struct LastCreate {
    /// Its number.
    pub(super) sequence: u32,
    /// Its result, and the principal and address of its caller.
    pub(super) done: Option<(CreateSessionResOk4, (u32, IpAddr))>,
}

/// The sequence of a 4.0 owner.
pub type OwnerSequence = Arc<OrderedMutex<Sequence>>;

/// The owners of a client of 4.0: those that lock, and those that open.
#[derive(Default)]
struct Owners {
    known: HashMap<(bool, Vec<u8>), KnownOwner>,
    /// Before this time none is idle.
    idle_ns: u64,
}

struct KnownOwner {
    sequence: OwnerSequence,
    /// When its last request arrived.
    used_ns: u64,
}

impl Owners {
    /// Releases owners that open, have no open, and sent no request since this time (RFC 7530
    /// §9.1.10): no request does. Gives their names.
    fn release_idle(
        &mut self,
        has_open: impl Fn(&[u8]) -> bool,
        (now_ns, since_ns): (u64, u64),
    ) -> Vec<Vec<u8>> {
        let (mut released, mut oldest_ns) = (Vec::new(), now_ns);
        self.known.retain(|(locks, name), owner| {
            if *locks || has_open(name) {
                return true;
            }
            let is_idle = owner.used_ns < since_ns && Arc::strong_count(&owner.sequence) == 1;
            if is_idle {
                released.push(name.clone());
            } else {
                oldest_ns = oldest_ns.min(owner.used_ns);
            }
            !is_idle
        });
        // Those that have an open now are used once more, to close it.
        self.idle_ns = oldest_ns + now_ns.saturating_sub(since_ns);
        released
    }
}

impl Client {
    /// It has been heard of.
    pub fn renew(&self, now_ns: u64) {
        self.renewed_ns.fetch_max(now_ns, Ordering::Relaxed);
    }

    /// When it was last heard of.
    pub fn renewed_ns(&self) -> u64 {
        self.renewed_ns.load(Ordering::Relaxed)
    }

    /// Its record.
    pub fn identity(&self) -> Identity {
        Identity { name: self.name.clone(), principal: self.principal }
    }

    /// As the lock table knows it.
    pub fn key(&self) -> ClientKey {
        ClientKey { protocol: Protocol::Nfs4, id: self.id }
    }

    /// One of its owners, for the lock table; a wire owner is never too long.
    ///
    /// # Errors
    /// NFS4ERR_INVAL.
    pub fn owner(&self, id: &[u8]) -> Result<Owner, Nfsstat4> {
        Owner::new(self.key(), id).map(|owner| owner.at(self.origin)).ok_or(Nfsstat4::INVAL)
    }

    /// The sequence of an owner (4.0): of those that open, or those that lock. Where there is no
    /// room for another, those are released that have been idle for a lease.
    ///
    /// # Errors
    /// NFS4ERR_RESOURCE.
    pub fn sequence_of(
        &self,
        locks: bool,
        owner: &[u8],
        (now_ns, lease_ns): (u64, u64),
    ) -> Result<OwnerSequence, Nfsstat4> {
        let mut owners = lock(&self.owners);
        let at = (locks, owner.to_vec());
        let is_full = |owners: &Owners| {
            owners.known.len() >= NFS4_OWNERS_PER_CLIENT_MAX || !self.memory.has_room()
        };
        if !owners.known.contains_key(&at) && is_full(&owners) && now_ns >= owners.idle_ns {
            // Nothing else is locked under the owners.
            drop(owners);
            let open = self.held.lock().open_owners();
            owners = lock(&self.owners);
            self.release_idle_owners(&mut owners, &open, (now_ns, lease_ns));
        }
        if !owners.known.contains_key(&at) {
            if is_full(&owners) {
                return Err(Nfsstat4::RESOURCE);
            }
            self.memory.charge(owner_bytes(owner));
        }
        let rank = if locks { ranks::NFS4_LOCK_OWNER } else { ranks::NFS4_OPEN_OWNER };
        let fresh = || KnownOwner {
            sequence: Arc::new(OrderedMutex::new(rank, Sequence::default())),
            used_ns: now_ns,
        };
        let known = owners.known.entry(at).or_insert_with(fresh);
        known.used_ns = now_ns;
        Ok(Arc::clone(&known.sequence))
    }

    fn release_idle_owners(
        &self,
        owners: &mut Owners,
        open: &HashSet<Owner>,
        (now_ns, lease_ns): (u64, u64),
    ) {
        let has_open = |name: &[u8]| self.owner(name).is_ok_and(|owner| open.contains(&owner));
        let since_ns = now_ns.saturating_sub(lease_ns);
        let released = owners.release_idle(has_open, (now_ns, since_ns));
        self.memory.give(released.iter().map(|name| owner_bytes(name)).sum());
    }

    #[cfg(test)]
    pub(super) fn knows_owner(&self, owner: &[u8]) -> bool {
        lock(&self.owners).known.contains_key(&(false, owner.to_vec()))
    }

    /// Forgets a lock owner's sequence (RELEASE_LOCKOWNER).
    pub fn forget_lock_owner(&self, owner: &[u8]) {
        if lock(&self.owners).known.remove(&(true, owner.to_vec())).is_some() {
            self.memory.give(owner_bytes(owner));
        }
    }

    /// Removes a lock owner's sequence if it never got a lock: no client releases such an owner,
    /// and its name is given, with the same numbers again, to the next process.
    pub fn renew_lock_owner(&self, owner: &[u8]) {
        let at = (true, owner.to_vec());
        let known = lock(&self.owners).known.get(&at).map(|known| Arc::clone(&known.sequence));
        if known.is_some_and(|sequence| !sequence.lock().confirmed) {
            self.forget_lock_owner(owner);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let owners = std::mem::take(&mut *lock(&self.owners));
        self.memory.give(owners.known.keys().map(|(_, owner)| owner_bytes(owner)).sum());
    }
}

/// Bytes that the sequence of an owner takes, at most.
fn owner_bytes(owner: &[u8]) -> usize {
    NFS4_STATE_BYTES + NFS4_OWNER_REPLY_MAX + owner.len()
}

/// A client of 4.0 that has not confirmed yet, or one with a new callback.
struct Pending {
    client: Arc<Client>,
    confirm: [u8; 8],
    principal: u32,
}

#[derive(Default)]
struct Record {
    confirmed: Option<(Arc<Client>, [u8; 8])>,
    pending: Option<Pending>,
}

/// Whether a number stands for a client that has not confirmed.
fn is_unconfirmed(
    records: &HashMap<Name, Record>,
    names: &HashMap<u64, (Name, IpAddr)>,
    id: u64,
) -> bool {
    let record = names.get(&id).and_then(|(name, _)| records.get(name));
    let confirmed = record.and_then(|record| record.confirmed.as_ref());
    record.is_some() && confirmed.is_none_or(|(client, _)| client.id != id)
}

/// All clients by name.
pub struct Clients {
    records: HashMap<Name, Record>,
    /// What each calls itself, and where it was made from.
    names: HashMap<u64, (Name, IpAddr)>,
    quota: Quota,
    pub(super) memory: Arc<Memory>,
    /// What of that the clients of each address have.
    parts: HashMap<IpAddr, Weak<MemoryPart>>,
    boot: u32,
    next: u32,
    confirms: u64,
}

/// The caller of a request, and its time.
#[derive(Debug, Clone, Copy)]
pub struct RequestOrigin {
    /// The user that it authenticates as.
    pub principal: u32,
    /// Where a client that is made now is made from: [`base::peer::network`].
    pub origin: IpAddr,
    /// The time.
    pub now_ns: u64,
    /// A client without a request for longer than this has an expired lease.
    pub lease_ns: u64,
}

/// What a change of the table came to: the client that it is about, and one that it ended.
pub struct ClientChange {
    /// The client.
    pub client: Arc<Client>,
    /// A client to be removed; its state must be released.
    pub ended: Option<Arc<Client>>,
    /// Whether it was confirmed before.
    pub was_confirmed: bool,
}

impl Clients {
    /// An empty table; `boot` distinguishes this start from others.
    pub fn new(boot: u32) -> Self {
        let quota = Quota::new(NFS4_CLIENTS_MAX, NFS4_CLIENTS_PER_ADDRESS_MAX);
        let memory = Memory::new(NFS4_STATE_BYTES_MAX, NFS4_STATE_BYTES_PER_ADDRESS_MAX);
        let (records, names, parts) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { records, names, quota, memory, parts, boot, next: 0, confirms: 0 }
    }

    /// Makes room for a record; one that was never confirmed may have to go.
    fn make_room(&mut self, origin: IpAddr) -> Result<(), Nfsstat4> {
        let (records, names) = (&self.records, &self.names);
        match self.quota.room(origin, |id| is_unconfirmed(records, names, id)) {
            QuotaConflict::Free => Ok(()),
            QuotaConflict::None => Err(Nfsstat4::DELAY),
            QuotaConflict::Instead(id) => {
                self.remove(id);
                Ok(())
            }
        }
    }

    /// Removes a client id; returns the name of its client.
    fn forget(&mut self, id: u64) -> Option<Name> {
        let (name, origin) = self.names.remove(&id)?;
        self.quota.remove(origin);
        Some(name)
    }

    /// The memory for state of clients that are made from here.
    fn memory_of(&mut self, origin: IpAddr) -> Arc<MemoryPart> {
        if let Some(part) = self.parts.get(&origin).and_then(Weak::upgrade) {
            return part;
        }
        self.parts.retain(|_, part| part.strong_count() > 0);
        let part = MemoryPart::new(&self.memory);
        self.parts.insert(origin, Arc::downgrade(&part));
        part
    }

    fn make(
        &mut self,
        name: &Name,
        verifier: [u8; 8],
        asked: RequestOrigin,
    ) -> Result<Arc<Client>, Nfsstat4> {
        self.make_room(asked.origin)?;
        self.next += 1;
        let id = u64::from(self.boot) << 32 | u64::from(self.next);
        self.names.insert(id, (name.clone(), asked.origin));
        let (records, names) = (&self.records, &self.names);
        self.quota.add(id, asked.origin, |id| is_unconfirmed(records, names, id));
        let memory = self.memory_of(asked.origin);
        let held = ClientStates::new(self.boot, self.next, Arc::clone(&memory));
        Ok(Arc::new(Client {
            id,
            name: name.clone(),
            verifier,
            principal: asked.principal,
            origin: asked.origin,
            held: OrderedMutex::new(ranks::NFS4_HELD, held),
            sessions: Mutex::default(),
            recorded: OrderedMutex::new(ranks::NFS4_RECORDED, RecordState::default()),
            reclaimed: AtomicBool::new(false),
            seen: Mutex::default(),
            created: Mutex::default(),
            way_back: CallbackRoute::default(),
            memory,
            renewed_ns: AtomicU64::new(asked.now_ns),
            owners: Mutex::default(),
        }))
    }

    /// Whether another principal may not take this client's name.
    fn in_use(client: &Client, asked: RequestOrigin) -> bool {
        let lives = asked.now_ns.saturating_sub(client.renewed_ns()) <= asked.lease_ns;
        let holds = !client.held.lock().is_empty() || !lock(&client.sessions).is_empty();
        client.principal != asked.principal && lives && holds
    }

    fn set_pending(&mut self, name: &Name, client: Arc<Client>, principal: u32) -> [u8; 8] {
        self.confirms += 1;
        let confirm = (u64::from(self.boot) << 32 ^ self.confirms).to_be_bytes();
        let record = self.records.entry(name.clone()).or_default();
        let confirmed = record.confirmed.as_ref().map(|(c, _)| c.id);
        if let Some(old) = record.pending.replace(Pending { client, confirm, principal })
            && Some(old.client.id) != confirmed
        {
            let kept = record.pending.as_ref().is_some_and(|p| p.client.id == old.client.id);
            if !kept {
                self.forget(old.client.id);
            }
        }
        confirm
    }

    /// SETCLIENTID: the client id, and what confirms it.
    ///
    /// # Errors
    /// NFS4ERR_CLID_INUSE, NFS4ERR_DELAY if there are too many.
    pub fn setclientid(
        &mut self,
        id: &[u8],
        verifier: [u8; 8],
        asked: RequestOrigin,
    ) -> Result<(u64, [u8; 8]), Nfsstat4> {
        let name = (false, id.to_vec());
        let confirmed = self.records.get(&name).and_then(|r| r.confirmed.as_ref());
        let client = match confirmed.map(|(client, _)| Arc::clone(client)) {
            Some(client) if Self::in_use(&client, asked) => return Err(Nfsstat4::CLID_INUSE),
            // The same client with, perhaps, another callback.
            Some(client) if client.verifier == verifier && client.principal == asked.principal => {
                client
            }
            _ => self.make(&name, verifier, asked)?,
        };
        let id = client.id;
        Ok((id, self.set_pending(&name, client, asked.principal)))
    }

    /// SETCLIENTID_CONFIRM.
    ///
    /// # Errors
    /// NFS4ERR_STALE_CLIENTID, NFS4ERR_CLID_INUSE.
    pub fn confirm(
        &mut self,
        id: u64,
        confirm: [u8; 8],
        asked: RequestOrigin,
    ) -> Result<ClientChange, Nfsstat4> {
        // What confirms a client of 4.1 is a session.
        let name = self.names.get(&id).map(|(name, _)| name).filter(|(sessions, _)| !sessions);
        let name = name.ok_or(Nfsstat4::STALE_CLIENTID)?;
        let record = self.records.get_mut(name).ok_or(Nfsstat4::STALE_CLIENTID)?;
        match &record.pending {
            Some(p) if p.client.id == id && p.confirm == confirm => {
                if p.principal != asked.principal {
                    return Err(Nfsstat4::CLID_INUSE);
                }
            }
            _ => {
                return match &record.confirmed {
                    Some((client, by)) if client.id == id && *by == confirm => Ok(ClientChange {
                        client: Arc::clone(client),
                        ended: None,
                        was_confirmed: true,
                    }),
                    _ => Err(Nfsstat4::STALE_CLIENTID),
                };
            }
        }
        self.settle(id).ok_or(Nfsstat4::STALE_CLIENTID)
    }

    /// What is pending becomes confirmed, and ends what was.
    fn settle(&mut self, id: u64) -> Option<ClientChange> {
        let record = self.records.get_mut(&self.names.get(&id)?.0)?;
        let Pending { client, confirm, .. } = record.pending.take()?;
        let before = record.confirmed.replace((Arc::clone(&client), confirm)).map(|(c, _)| c);
        let was_confirmed = before.as_ref().is_some_and(|before| before.id == id);
        let ended = before.filter(|before| before.id != id);
        if let Some(ended) = &ended {
            self.forget(ended.id);
        }
        Some(ClientChange { client, ended, was_confirmed })
    }

    /// EXCHANGE_ID (§18.35.4); the numbers are the cases there.
    ///
    /// # Errors
    /// NFS4ERR_NOENT, NFS4ERR_NOT_SAME, NFS4ERR_PERM of an update; NFS4ERR_CLID_INUSE;
    /// NFS4ERR_DELAY if there are too many.
    pub fn exchange_id(
        &mut self,
        owner: &[u8],
        verifier: [u8; 8],
        update: bool,
        asked: RequestOrigin,
    ) -> Result<ClientChange, Nfsstat4> {
        let name = (true, owner.to_vec());
        let confirmed = self.records.get(&name).and_then(|r| r.confirmed.as_ref());
        let confirmed = confirmed.map(|(client, _)| Arc::clone(client));
        let known = |client| Ok(ClientChange { client, ended: None, was_confirmed: true });
        let mut ended = None;
        match (confirmed, update) {
            (None, true) => return Err(Nfsstat4::NOENT), // 7
            (Some(c), true) if c.verifier != verifier => return Err(Nfsstat4::NOT_SAME), // 8
            (Some(c), true) if c.principal != asked.principal => return Err(Nfsstat4::PERM), // 9
            (Some(c), true) => return known(c),          // 6
            (Some(c), false) if c.principal != asked.principal => {
                // 3: another's, unless that one is gone or holds nothing.
                if Self::in_use(&c, asked) {
                    return Err(Nfsstat4::CLID_INUSE);
                }
                self.remove(c.id);
                ended = Some(c);
            }
            (Some(c), false) if c.verifier == verifier => return known(c), // 2
            // 1: new; 4: it did not confirm; 5: it has restarted, which CREATE_SESSION will show.
            (None | Some(_), false) => {}
        }
        let client = self.make(&name, verifier, asked)?;
        self.set_pending(&name, Arc::clone(&client), asked.principal);
        Ok(ClientChange { client, ended, was_confirmed: false })
    }

    /// CREATE_SESSION's client, confirmed by it.
    ///
    /// # Errors
    /// NFS4ERR_STALE_CLIENTID, NFS4ERR_CLID_INUSE for another principal.
    pub fn confirm_by_session(
        &mut self,
        id: u64,
        asked: RequestOrigin,
    ) -> Result<ClientChange, Nfsstat4> {
        let client = self.get(id).ok_or(Nfsstat4::STALE_CLIENTID)?;
        if client.principal != asked.principal {
            return Err(Nfsstat4::CLID_INUSE);
        }
        match self.is_confirmed(id) {
            true => Ok(ClientChange { client, ended: None, was_confirmed: true }),
            false => self.settle(id).ok_or(Nfsstat4::STALE_CLIENTID),
        }
    }

    /// A client, confirmed or not.
    pub fn get(&self, id: u64) -> Option<Arc<Client>> {
        let record = self.records.get(&self.names.get(&id)?.0)?;
        let confirmed = record.confirmed.as_ref().map(|(c, _)| c);
        let pending = record.pending.as_ref().map(|p| &p.client);
        confirmed.into_iter().chain(pending).find(|c| c.id == id).cloned()
    }

    /// Whether a client has confirmed.
    pub fn is_confirmed(&self, id: u64) -> bool {
        let record = self.names.get(&id).and_then(|(name, _)| self.records.get(name));
        record.and_then(|r| r.confirmed.as_ref()).is_some_and(|(c, _)| c.id == id)
    }

    /// Takes a client out.
    pub fn remove(&mut self, id: u64) {
        let Some(name) = self.forget(id) else { return };
        let Some(record) = self.records.get_mut(&name) else { return };
        record.confirmed.take_if(|(c, _)| c.id == id);
        record.pending.take_if(|p| p.client.id == id);
        if record.confirmed.is_none() && record.pending.is_none() {
            self.records.remove(&name);
        }
    }

    /// How many there are, confirmed or not.
    #[cfg(test)]
    pub fn known(&self) -> usize {
        self.names.len().max(self.records.len())
    }

    /// Those that have not confirmed and were not heard of since.
    pub fn drop_unconfirmed(&mut self, before_ns: u64) {
        let pending = self.records.values().filter_map(|r| r.pending.as_ref());
        let old = pending.filter(|p| p.client.renewed_ns() < before_ns).map(|p| p.client.id);
        for id in old.collect::<Vec<_>>() {
            if !self.is_confirmed(id) {
                self.remove(id);
            }
        }
    }
}

/// Where a client speaks from, and which version.
#[derive(Debug, Default)]
pub struct ClientOrigin {
    pub(super) minor: u32,
    /// The latest first.
    pub(super) addresses: Vec<IpAddr>,
}

impl ClientOrigin {
    /// From where it spoke last.
    pub fn latest(&self) -> Option<IpAddr> {
        self.addresses.first().copied()
    }

    /// It spoke from here.
    pub(super) fn add(&mut self, minor: u32, address: IpAddr) {
        self.minor = minor;
        self.addresses.retain(|known| *known != address);
        self.addresses.insert(0, address);
        self.addresses.truncate(NFS4_CLIENT_ADDRESSES_MAX);
    }
}
