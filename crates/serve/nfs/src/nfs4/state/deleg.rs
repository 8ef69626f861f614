//! Delegations (RFC 8881 §10.4, RFC 7530 §10.4): granted when the client can be called and no other
//! client changes the file (for writing: no other client uses it), recalled by [`vfs::locks`] when
//! another client wants to, revoked if they are not returned within a lease.
//!
//! A recall may come from any thread that changes a file, with another client's stateids locked; so
//! it touches only the delegation itself, the list of recalls and the client's way back.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use base::limits::{
    NFS4_ATTRIBUTES_FRESH, NFS4_ATTRIBUTES_WAIT, NFS4_DELEGATION_PAUSE, NFS4_DELEGATION_SLOTS,
    NFS4_DELEGATIONS_MAX, NFS4_DELEGATIONS_PER_ADDRESS_MAX, NFS4_DELEGATIONS_PER_CLIENT_MAX,
};
use probe::op::FileId;
use vfs::attr::Attr;
use vfs::fs::{Retained, Watch};
use vfs::handle::Handle;
use vfs::locks::{Break, Caching, FileKey, Looked, Owner, Recall, Unflushed};
use wire::nfs4::{Nfsstat4, Stateid4, why_no_delegation4};

use super::clients::Client;
use super::{State, lock};

/// The owner of a client's leases in the table of all protocols: it has one on a file at most.
const OWNER: &[u8] = b"delegation";

/// How far the recall of a delegation has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It is not recalled.
    Granted,
    /// The client must be called.
    Unsent,
    /// The call waits for its slot, or for its reply.
    Sent,
    /// The client knows.
    Notified,
    /// It was returned or revoked.
    Ended,
}

/// What the client of a delegation for writing reports of its file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum AttributesOfHolder {
    /// CB_GETATTR was not sent.
    #[default]
    Unqueried,
    /// CB_GETATTR was sent at this time, and has no reply yet.
    Pending(u64),
    /// The client has reported this, at this time.
    Reported {
        size: u64,
        change: u64,
        at_ns: u64,
        /// A request was served with it.
        is_used: bool,
    },
    /// The client has refused, or could not be called.
    Refused,
}

/// A delegation.
#[derive(Debug)]
pub struct Deleg {
    /// The client that holds it.
    pub client: Weak<Client>,
    /// On which file.
    pub key: FileKey,
    /// The file in statistics: another one if the inode is used again.
    pub file: FileId,
    /// The handle under which it was granted.
    pub handle: Handle,
    /// Its stateid.
    pub stateid: Stateid4,
    /// What for.
    pub kind: Caching,
    /// The change attribute that its client was granted it with.
    granted_change: u64,
    recall: Mutex<(Phase, u64)>,
    attributes: Mutex<AttributesOfHolder>,
    /// Sees to it that changes by others than this server are heard of, and that the file stays
    /// usable when it is removed.
    kept: Mutex<Option<(Watch, Option<Retained>)>>,
}

impl Deleg {
    /// Keeps `watch` and `retained` as long as the delegation is held.
    pub fn keep(&self, watch: Watch, retained: Option<Retained>) {
        // It may have been revoked in this very moment.
        if self.phase() != Phase::Ended {
            *lock(&self.kept) = Some((watch, retained));
        }
    }

    /// What its client reports of the file, and whether CB_GETATTR must be sent. With `uses` the
    /// report counts as used.
    pub fn look(&self, now_ns: u64, uses: bool) -> (Looked, bool) {
        let mut attributes = lock(&self.attributes);
        let since = |at_ns: u64| now_ns.saturating_sub(at_ns);
        let fresh_ns = NFS4_ATTRIBUTES_FRESH.as_nanos() as u64;
        match &mut *attributes {
            AttributesOfHolder::Refused => return (Looked::Unknown, false),
            AttributesOfHolder::Pending(at_ns) => {
                let is_late = since(*at_ns) > NFS4_ATTRIBUTES_WAIT.as_nanos() as u64;
                return (if is_late { Looked::Unknown } else { Looked::Pending }, false);
            }
            // A request that had to wait for the report is repeated some time after it, and needs
            // it then.
            AttributesOfHolder::Reported { size, change, at_ns, is_used }
                if !*is_used || since(*at_ns) <= fresh_ns =>
            {
                let is_new = !*is_used;
                *is_used |= uses;
                let (size, change, granted_change) = (*size, *change, self.granted_change);
                return (
                    Looked::Reported(Unflushed { size, change, granted_change, is_new }),
                    false,
                );
            }
            AttributesOfHolder::Unqueried | AttributesOfHolder::Reported { .. } => {}
        }
        *attributes = AttributesOfHolder::Pending(now_ns);
        (Looked::Pending, true)
    }

    /// The client has reported the size and the change attribute of the file, or has not.
    pub fn answered(&self, answer: Option<(u64, u64)>, now_ns: u64) {
        *lock(&self.attributes) = match answer {
            Some((size, change)) => {
                AttributesOfHolder::Reported { size, change, at_ns: now_ns, is_used: false }
            }
            None => AttributesOfHolder::Refused,
        };
    }

    /// How far its recall has got.
    pub fn phase(&self) -> Phase {
        lock(&self.recall).0
    }

    /// The recall has got further, or must begin again. A delegation that has ended stays so.
    pub fn set_phase(&self, phase: Phase) {
        let mut recall = lock(&self.recall);
        if recall.0 != Phase::Ended {
            recall.0 = phase;
        }
    }

    /// When it was recalled.
    fn recalled_ns(&self) -> u64 {
        lock(&self.recall).1
    }
}

/// Calls clients to recall what they hold. Must not wait, nor lock a client's stateids.
pub trait Caller: Send + Sync {
    /// The delegation conflicts with another client, or still does.
    fn recall(&self, deleg: &Arc<Deleg>);

    /// What the client of a delegation for writing reports of its file (CB_GETATTR).
    fn look(&self, deleg: &Arc<Deleg>, uses: bool) -> Looked;

    /// Finds out whether a client of 4.0 can be called.
    fn probe(&self, client: &Arc<Client>);
}

/// What is common to all delegations.
pub struct Recalls {
    caller: OnceLock<Box<dyn Caller>>,
    under_way: Mutex<Vec<Arc<Deleg>>>,
    /// When a file (by a hash) was last wanted by others; 0 is never.
    conflicts: Box<[AtomicU64]>,
    held: AtomicU64,
    revoked: AtomicU64,
    /// The first minor version of which clients are granted delegations for writing.
    for_writing: AtomicU32,
}

impl Default for Recalls {
    fn default() -> Self {
        Self {
            caller: OnceLock::new(),
            under_way: Mutex::default(),
            conflicts: (0..NFS4_DELEGATION_SLOTS).map(|_| AtomicU64::new(0)).collect(),
            held: AtomicU64::new(0),
            revoked: AtomicU64::new(0),
            for_writing: AtomicU32::new(u32::MAX),
        }
    }
}

impl Recalls {
    /// From now on clients of this minor version and later ones are granted delegations for
    /// writing, too.
    pub fn set_for_writing(&self, minor: u32) {
        self.for_writing.store(minor, Ordering::Relaxed);
    }

    /// Whether clients of this minor version are granted delegations for writing.
    pub fn for_writing(&self, minor: u32) -> bool {
        minor >= self.for_writing.load(Ordering::Relaxed)
    }

    /// From now on clients can be called, and delegations granted. Once.
    pub fn set_caller(&self, caller: Box<dyn Caller>) {
        // A second one is not needed: the first serves all.
        let _ = self.caller.set(caller);
    }

    /// Calls the client of a delegation.
    pub fn call(&self, deleg: &Arc<Deleg>) {
        if let Some(caller) = self.caller.get() {
            caller.recall(deleg);
        }
    }

    /// What the client of a delegation for writing reports of its file.
    fn look(&self, deleg: &Arc<Deleg>, uses: bool) -> Looked {
        self.caller.get().map_or(Looked::Unknown, |caller| caller.look(deleg, uses))
    }

    /// Finds out whether a client of 4.0 can be called.
    pub fn probe(&self, client: &Arc<Client>) {
        if let Some(caller) = self.caller.get() {
            caller.probe(client);
        }
    }

    fn conflict(&self, file: FileId) -> &AtomicU64 {
        // Ids come from a keyed hash.
        &self.conflicts[(file >> 8) as usize % self.conflicts.len()]
    }

    /// Whether there is any.
    pub fn has_delegations(&self) -> bool {
        self.held.load(Ordering::Relaxed) > 0
    }

    /// Delegations held, and those revoked since the start.
    pub fn counts(&self) -> (u64, u64) {
        (self.held.load(Ordering::Relaxed), self.revoked.load(Ordering::Relaxed))
    }
}

/// The notification from the table of all protocols about a conflict with a delegation.
struct Notice {
    deleg: Arc<Deleg>,
    recalls: Arc<Recalls>,
}

impl Recall for Notice {
    fn recall(&self, _: FileKey, _: &Owner, _: Break) {
        self.recalls.call(&self.deleg);
    }

    fn look(&self, uses: bool) -> Looked {
        self.recalls.look(&self.deleg, uses)
    }
}

/// What a delegation is wanted on.
#[derive(Debug, Clone, Copy)]
pub struct DelegationRequest<'a> {
    /// The file in statistics.
    pub file: FileId,
    /// The number by which its changes are announced.
    pub slot: u64,
    /// Its handle.
    pub handle: &'a Handle,
    /// Its attributes, read after the client has opened it.
    pub attr: &'a Attr,
}

impl State {
    /// Whether there is nothing against a new delegation but, perhaps, the file's other users.
    ///
    /// # Errors
    /// Why not (`why_no_delegation4`).
    pub fn may_delegate(&self, client: &Client, file: FileId, now_ns: u64) -> Result<(), u32> {
        let recalls = &self.recalls;
        let before = recalls.conflict(file).load(Ordering::Relaxed);
        let pause = NFS4_DELEGATION_PAUSE.as_nanos() as u64;
        if before > 0 && now_ns.saturating_sub(before) < pause {
            return Err(why_no_delegation4::CONTENTION);
        }
        let full = recalls.held.load(Ordering::Relaxed) >= NFS4_DELEGATIONS_MAX
            || client.way_back.delegations() >= NFS4_DELEGATIONS_PER_CLIENT_MAX
            || self.locks.leases_at(client.origin) >= NFS4_DELEGATIONS_PER_ADDRESS_MAX;
        if recalls.caller.get().is_none() || full || !self.can_call(client) {
            return Err(why_no_delegation4::RESOURCE);
        }
        Ok(())
    }

    /// Grants a delegation.
    ///
    /// # Errors
    /// Why not (`why_no_delegation4`).
    pub fn delegate(
        &self,
        client: &Arc<Client>,
        wanted: DelegationRequest<'_>,
        kind: Caching,
    ) -> Result<Stateid4, u32> {
        if self.recalls.caller.get().is_none() {
            return Err(why_no_delegation4::RESOURCE);
        }
        let owner = client.owner(OWNER).map_err(|_| why_no_delegation4::RESOURCE)?;
        let key = FileKey::from(wanted.attr);
        let mut held = client.held.lock();
        let deleg = held.delegate(key, &owner, |stateid| {
            Arc::new(Deleg {
                client: Arc::downgrade(client),
                key,
                file: wanted.file,
                handle: *wanted.handle,
                stateid,
                kind,
                granted_change: wanted.attr.change,
                recall: Mutex::new((Phase::Granted, 0)),
                attributes: Mutex::default(),
                kept: Mutex::default(),
            })
        });
        let deleg = deleg.map_err(|_| why_no_delegation4::RESOURCE)?;
        let notice = Notice { deleg: Arc::clone(&deleg), recalls: Arc::clone(&self.recalls) };
        let DelegationRequest { slot, attr, .. } = wanted;
        if self.locks.grant(slot, attr, &owner, kind, Arc::new(notice)).is_err() {
            held.undelegate(&deleg.stateid);
            return Err(why_no_delegation4::CONTENTION);
        }
        self.count_delegation(client, true);
        Ok(deleg.stateid)
    }

    fn count_delegation(&self, client: &Client, more: bool) {
        for count in [&self.recalls.held, &client.way_back.delegations] {
            if more {
                count.fetch_add(1, Ordering::Relaxed);
            } else {
                count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// A delegation conflicts with another client; its client has a lease's time from now on.
    pub fn recalled(&self, deleg: &Arc<Deleg>, now_ns: u64) {
        self.recalls.conflict(deleg.file).store(now_ns.max(1), Ordering::Relaxed);
        let mut recall = lock(&deleg.recall);
        if recall.0 == Phase::Granted {
            *recall = (Phase::Unsent, now_ns);
            drop(recall);
            lock(&self.recalls.under_way).push(Arc::clone(deleg));
        }
    }

    /// The delegation of a stateid.
    ///
    /// # Errors
    /// Those of the stateid; NFS4ERR_BAD_STATEID if it is no delegation's.
    pub fn delegation(&self, client: &Client, id: &Stateid4) -> Result<Arc<Deleg>, Nfsstat4> {
        client.held.lock().find_deleg(id, client.name.0)
    }

    /// DELEGRETURN (RFC 8881 §18.6).
    ///
    /// # Errors
    /// Those of the stateid.
    pub fn delegation_return(&self, client: &Client, id: &Stateid4) -> Result<(), Nfsstat4> {
        let mut held = client.held.lock();
        let deleg = held.find_deleg(id, client.name.0)?;
        held.undelegate(&deleg.stateid);
        self.end_delegation(client, &deleg);
        Ok(())
    }

    /// Takes a delegation out of the table of all protocols.
    pub(super) fn end_delegation(&self, client: &Client, deleg: &Deleg) {
        deleg.set_phase(Phase::Ended);
        drop(lock(&deleg.kept).take());
        if let Ok(owner) = client.owner(OWNER) {
            self.locks.end_lease(deleg.key, &owner);
        }
        self.count_delegation(client, false);
    }

    /// All of a client's delegations have ended with it.
    pub(super) fn delegations_ended(&self, client: &Client) {
        let count = client.way_back.delegations.swap(0, Ordering::Relaxed);
        self.recalls.held.fetch_sub(count, Ordering::Relaxed);
    }

    /// Checks the recalls in progress: revokes delegations that were not returned in time, at once
    /// from a client with an expired lease. Returns those that must be recalled (again).
    pub fn look_at_recalls(&self, now_ns: u64) -> Vec<Arc<Deleg>> {
        let under_way = std::mem::take(&mut *lock(&self.recalls.under_way));
        let (mut keep, mut call) = (Vec::new(), Vec::new());
        for deleg in under_way {
            let Some(client) = deleg.client.upgrade() else { continue };
            let over = now_ns.saturating_sub(deleg.recalled_ns()) > self.lease_ns;
            match deleg.phase() {
                Phase::Ended => continue,
                _ if over || self.is_lapsed(&client, now_ns) => {
                    self.revoke(&client, &deleg);
                    continue;
                }
                Phase::Unsent => call.push(Arc::clone(&deleg)),
                Phase::Granted | Phase::Sent | Phase::Notified => {}
            }
            keep.push(deleg);
        }
        lock(&self.recalls.under_way).append(&mut keep);
        call
    }

    /// Takes a delegation away.
    fn revoke(&self, client: &Client, deleg: &Deleg) {
        let mut held = client.held.lock();
        // It may have been given back just now, or its client may have ended.
        if held.find_deleg(&deleg.stateid, true).is_err() {
            return;
        }
        held.undelegate(&deleg.stateid);
        if client.name.0 {
            held.remember_revoked(deleg);
            client.way_back.count_revoked(true);
        }
        self.end_delegation(client, deleg);
        self.recalls.revoked.fetch_add(1, Ordering::Relaxed);
    }
}
