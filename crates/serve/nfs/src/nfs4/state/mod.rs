//! The state of NFSv4 clients: their identities, sessions and leases, and what they hold.
//!
//! Pure: the time is an argument, nothing is sent, no file is touched. [`vfs::locks::LockTable`]
//! decides conflicts between clients of all protocols; this has the stateids for it.
//!
//! SEQUENCE, READ and their like take the lock of one slot and of one client's stateids. The table
//! of clients by name has one lock, taken only where clients and sessions come and go.
//!
//! A client with an expired lease retains its state until another client needs it, or for a day at
//! most (courtesy state).

mod admin;
mod back;
pub mod channel;
mod clients;
pub mod deleg;
mod grace;
mod memory;
mod opens;
mod owners;
mod quota;
mod records;
mod sessions;
mod shards;
mod stateids;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::limits::{
    NFS4_CALLBACK_TIME_MAX, NFS4_CALLBACK_TIME_MIN, NFS4_COURTESY, NFS4_EXPIRED_MAX,
    NFS4_SESSIONS_PER_CLIENT_MAX,
};
use base::lock_order::{OrderedMutex, ranks};
use base::peer::network;
use base::random::Random;
use vfs::locks::{ClientKey, LockTable, Protocol};
use wire::nfs4::{ChannelAttrs4, CreateSessionResOk4, Nfsstat4, Stateid4};

pub use clients::{Client, ClientChange, OwnerSequence, RequestOrigin};
pub use grace::{Grace, Identity, Name, NoRecords, NotWritten, Records};
pub use opens::{LockRefused, Locking};
pub use owners::{Sequence, SequenceDecision};
pub use records::OnRecord;
pub use sessions::{Session, SlotDecision, negotiate};
pub use stateids::{ClientStates, Entry, Open, What};

use channel::Channel;
use clients::{Clients, LastCreate};
use deleg::{Phase, Recalls};
use shards::Shards;

/// Locks what holds no invariant that a panic could break.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How the state is kept.
pub struct Config {
    /// Distinguishes this start from others; never the same twice.
    pub boot: u32,
    /// A client must be heard of this often.
    pub lease_ns: u64,
    /// End of the grace period, if clients are known from before the start.
    pub grace_until_ns: u64,
    /// The clients that held state before the start.
    pub known: Vec<Identity>,
    /// Where that is written.
    pub records: Arc<dyn Records>,
    /// The table of all protocols.
    pub locks: Arc<LockTable>,
    /// Where session ids come from.
    pub random: Box<dyn Random>,
}

/// The state of all clients.
pub struct State {
    boot: u32,
    pub(super) lease_ns: u64,
    /// Opens, locks and leases of all protocols.
    pub locks: Arc<LockTable>,
    /// Delegations.
    pub recalls: Arc<Recalls>,
    records: Arc<dyn Records>,
    names: OrderedMutex<Clients>,
    live: Shards<u64, Client>,
    sessions: Shards<[u8; 16], Session>,
    /// Makes session ids: they must be unpredictable, as knowledge of one suffices to use the
    /// session.
    random: Mutex<Box<dyn Random>>,
    /// Clients that were ended because they were not heard of, the last one last.
    expired: Mutex<VecDeque<u64>>,
    /// Clients that are gone and still on record: what they held is not free.
    unforgotten: Mutex<Vec<Arc<Client>>>,
    grace: Mutex<Grace>,
    /// False for good once the grace period is over.
    grace_is_on: AtomicBool,
}

/// The caller that makes a client.
#[derive(Debug, Clone, Copy)]
pub struct By {
    /// The user that it authenticates as.
    pub principal: u32,
    /// Where it calls from.
    pub address: IpAddr,
}

impl By {
    /// A user, from wherever.
    const fn user(principal: u32) -> Self {
        Self { principal, address: IpAddr::V4(Ipv4Addr::UNSPECIFIED) }
    }
}

#[cfg(test)]
impl From<u32> for By {
    fn from(principal: u32) -> Self {
        Self::user(principal)
    }
}

/// The arguments of CREATE_SESSION.
#[derive(Debug, Clone, Copy)]
pub struct NewSession {
    /// The client.
    pub clientid: u64,
    /// Its number for the request.
    pub sequence: u32,
    /// The flags of the reply.
    pub flags: u32,
    /// The fore channel.
    pub fore: ChannelAttrs4,
    /// The back channel.
    pub back: ChannelAttrs4,
    /// Program of the callbacks.
    pub cb_program: u32,
}

/// How many there are, for statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// Clients heard of within their lease.
    pub active: usize,
    /// Clients with an expired lease and courtesy state.
    pub courtesy: usize,
    /// Sessions.
    pub sessions: usize,
}

/// A client, for the administrator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientInfo {
    /// `clientid4`.
    pub id: u64,
    /// What it calls itself.
    pub name: Vec<u8>,
    /// Whether it speaks 4.1 or later.
    pub has_sessions: bool,
    /// The minor version that it spoke last when it came.
    pub minor: u32,
    /// Where it spoke from, the latest first.
    pub addresses: Vec<IpAddr>,
    /// The user that it authenticates as.
    pub principal: u32,
    /// Not heard of for so long.
    pub silent_ns: u64,
    /// Whether its lease has run out.
    pub is_lapsed: bool,
    /// Sessions.
    pub sessions: usize,
    /// Opens.
    pub opens: usize,
    /// Lock stateids.
    pub locks: usize,
    /// Delegations.
    pub delegations: u64,
}

impl State {
    /// No clients yet.
    pub fn new(config: Config) -> Self {
        let Config { boot, lease_ns, grace_until_ns, known, records, locks, random } = config;
        locks.set_recall_limit(Duration::from_nanos(lease_ns));
        if !known.is_empty() {
            locks.begin_grace(Protocol::Nfs4);
        }
        Self {
            boot,
            lease_ns,
            locks,
            recalls: Arc::default(),
            records,
            names: OrderedMutex::new(ranks::NFS4_CLIENTS, Clients::new(boot)),
            live: Shards::default(),
            sessions: Shards::default(),
            random: Mutex::new(random),
            expired: Mutex::default(),
            unforgotten: Mutex::default(),
            grace_is_on: AtomicBool::new(!known.is_empty()),
            grace: Mutex::new(Grace::new(grace_until_ns, known)),
        }
    }

    /// The caller, in the terms of the table of clients.
    fn asked(&self, by: By, now_ns: u64) -> RequestOrigin {
        let By { principal, address } = by;
        RequestOrigin { principal, origin: network(address), now_ns, lease_ns: self.lease_ns }
    }

    // --- clients ------------------------------------------------------------------------------

    /// SETCLIENTID (RFC 7530 §16.33).
    ///
    /// # Errors
    /// NFS4ERR_CLID_INUSE, NFS4ERR_DELAY.
    pub fn setclientid(
        &self,
        id: &[u8],
        verifier: [u8; 8],
        by: impl Into<By>,
        now_ns: u64,
    ) -> Result<(u64, [u8; 8]), Nfsstat4> {
        self.names.lock().setclientid(id, verifier, self.asked(by.into(), now_ns))
    }

    /// SETCLIENTID_CONFIRM (RFC 7530 §16.34).
    ///
    /// # Errors
    /// NFS4ERR_STALE_CLIENTID, NFS4ERR_CLID_INUSE.
    pub fn setclientid_confirm(
        &self,
        id: u64,
        confirm: [u8; 8],
        principal: u32,
        now_ns: u64,
    ) -> Result<(), Nfsstat4> {
        let settled =
            self.names.lock().confirm(id, confirm, self.asked(By::user(principal), now_ns))?;
        self.settled(&settled, now_ns);
        Ok(())
    }

    /// EXCHANGE_ID (RFC 8881 §18.35).
    ///
    /// # Errors
    /// NFS4ERR_NOENT, NFS4ERR_NOT_SAME, NFS4ERR_PERM, NFS4ERR_CLID_INUSE, NFS4ERR_DELAY.
    pub fn exchange_id(
        &self,
        owner: &[u8],
        verifier: [u8; 8],
        update: bool,
        by: impl Into<By>,
        now_ns: u64,
    ) -> Result<(Arc<Client>, bool), Nfsstat4> {
        let asked = self.asked(by.into(), now_ns);
        let settled = self.names.lock().exchange_id(owner, verifier, update, asked)?;
        self.replaced(&settled);
        Ok((settled.client, settled.was_confirmed))
    }

    /// Takes over what the table of clients has decided.
    fn settled(&self, settled: &ClientChange, now_ns: u64) {
        self.replaced(settled);
        let client = &settled.client;
        client.renew(now_ns);
        if !settled.was_confirmed {
            self.live.insert(client.id, Arc::clone(client));
        }
    }

    /// Ends the client that another one takes the place of. The same one after a restart of its
    /// own stays on record: it knows that it has nothing to reclaim.
    fn replaced(&self, settled: &ClientChange) {
        match &settled.ended {
            Some(ended) if ended.principal == settled.client.principal => {
                self.silence(ended);
                let was_recorded = ended.recorded.lock().on_disk;
                settled.client.recorded.lock().on_disk = was_recorded;
                self.free(ended);
            }
            Some(ended) => self.end(Arc::clone(ended)),
            None => {}
        }
    }

    /// RENEW, and every 4.0 operation with a client id: a client that is confirmed. One of 4.1 is
    /// identified by its sessions alone: client ids can be guessed, session ids cannot.
    ///
    /// # Errors
    /// NFS4ERR_EXPIRED of one that was removed after its lease expired, NFS4ERR_STALE_CLIENTID.
    pub fn renew(&self, id: u64, now_ns: u64) -> Result<Arc<Client>, Nfsstat4> {
        let Some(client) = self.live.get(&id) else {
            let expired = lock(&self.expired).contains(&id);
            return Err(if expired { Nfsstat4::EXPIRED } else { Nfsstat4::STALE_CLIENTID });
        };
        if client.name.0 {
            return Err(Nfsstat4::STALE_CLIENTID);
        }
        client.renew(now_ns);
        Ok(client)
    }

    /// The 4.0 client that a stateid was given to; its lease is renewed.
    ///
    /// # Errors
    /// NFS4ERR_STALE_STATEID of another start, NFS4ERR_EXPIRED if the client is gone,
    /// NFS4ERR_BAD_STATEID of a client of 4.1.
    pub fn client_of(&self, id: &Stateid4, now_ns: u64) -> Result<Arc<Client>, Nfsstat4> {
        let (boot, client, _) = stateids::parts(id);
        if boot != self.boot {
            return Err(Nfsstat4::STALE_STATEID);
        }
        let client = self.live.get(&(u64::from(boot) << 32 | u64::from(client)));
        let client = client.ok_or(Nfsstat4::EXPIRED)?;
        if client.name.0 {
            return Err(Nfsstat4::BAD_STATEID);
        }
        client.renew(now_ns);
        Ok(client)
    }

    /// By what the table of locks knows a client of 4.0.
    pub fn key_of_client(&self, id: u64) -> Option<ClientKey> {
        self.live.get(&id).filter(|client| !client.name.0).map(|client| client.key())
    }

    /// The same of the client of a stateid, if that stands for something.
    pub fn key_of_stateid(&self, id: &Stateid4) -> Option<ClientKey> {
        let (boot, client, _) = stateids::parts(id);
        let client = self.live.get(&(u64::from(boot) << 32 | u64::from(client)))?;
        let is_valid = !client.name.0 && client.held.lock().find(id, false).is_ok();
        is_valid.then(|| client.key())
    }

    /// DESTROY_CLIENTID (RFC 8881 §18.50).
    ///
    /// # Errors
    /// NFS4ERR_STALE_CLIENTID, also of a client of 4.0; NFS4ERR_CLIENTID_BUSY while it has sessions
    /// or state.
    pub fn destroy_clientid(&self, id: u64) -> Result<(), Nfsstat4> {
        let mut names = self.names.lock();
        let client = names.get(id).filter(|client| client.name.0);
        let client = client.ok_or(Nfsstat4::STALE_CLIENTID)?;
        if !client.held.lock().is_empty() || !lock(&client.sessions).is_empty() {
            return Err(Nfsstat4::CLIENTID_BUSY);
        }
        names.remove(id);
        drop(names);
        self.end(client);
        Ok(())
    }

    /// Ends a client that holds things. False if there is none.
    pub fn expire(&self, id: u64) -> bool {
        let mut names = self.names.lock();
        let Some(client) = names.get(id) else { return false };
        names.remove(id);
        drop(names);
        self.end(client);
        let mut expired = lock(&self.expired);
        if expired.len() >= NFS4_EXPIRED_MAX {
            expired.pop_front();
        }
        expired.push_back(id);
        true
    }

    /// Nothing is done any more in the name of a client that is no longer in the table by name.
    fn silence(&self, client: &Client) {
        self.live.remove(&client.id);
        let sessions = std::mem::take(&mut *lock(&client.sessions));
        for session in sessions {
            self.sessions.remove(&session);
        }
        // After this nothing is added: additions check it under the same lock.
        client.held.lock().end();
        self.delegations_ended(client);
    }

    /// What a client held that does nothing any more is free.
    fn free(&self, client: &Client) {
        self.locks.release_client(client.key());
    }

    /// How long a call to a client may be in flight before the client counts as unreachable: a part
    /// of the lease, so that there is time for another path.
    pub fn patience_ns(&self) -> u64 {
        let (least, most) = (NFS4_CALLBACK_TIME_MIN, NFS4_CALLBACK_TIME_MAX);
        (self.lease_ns / 3).clamp(least.as_nanos() as u64, most.as_nanos() as u64)
    }

    /// Whether a client's lease has run out.
    pub fn is_lapsed(&self, client: &Client, now_ns: u64) -> bool {
        now_ns.saturating_sub(client.renewed_ns()) > self.lease_ns
    }

    /// Ends clients that have been away for too long. To be called every few seconds.
    pub fn sweep(&self, now_ns: u64) {
        let courtesy = NFS4_COURTESY.as_nanos() as u64;
        for client in self.live.all() {
            if now_ns.saturating_sub(client.renewed_ns()) > courtesy.max(self.lease_ns) {
                self.expire(client.id);
            } else if !client.name.0 {
                self.look_at_path(&client, now_ns);
            }
        }
        self.look_at_channels(now_ns, self.patience_ns());
        self.strike_unforgotten();
        self.end_grace_if_due(now_ns);
        self.names.lock().drop_unconfirmed(now_ns.saturating_sub(self.lease_ns));
    }

    // --- sessions -----------------------------------------------------------------------------

    /// CREATE_SESSION (RFC 8881 §18.36). A repeated one gets the first's result, which has the
    /// session's id: only from where the first one came, as client ids can be guessed.
    ///
    /// # Errors
    /// NFS4ERR_STALE_CLIENTID, also of a client of 4.0; NFS4ERR_SEQ_MISORDERED,
    /// NFS4ERR_CLID_INUSE, NFS4ERR_TOOSMALL, NFS4ERR_NOSPC if it has too many or memory is short.
    pub fn create_session(
        &self,
        new: &NewSession,
        by: impl Into<By>,
        now_ns: u64,
    ) -> Result<CreateSessionResOk4, Nfsstat4> {
        let asked = self.asked(by.into(), now_ns);
        let mut names = self.names.lock();
        let client = names.get(new.clientid).filter(|client| client.name.0);
        let client = client.ok_or(Nfsstat4::STALE_CLIENTID)?;
        let mut created = lock(&client.created);
        match (new.sequence.wrapping_sub(created.sequence), created.done) {
            (0, Some((_, (principal, _)))) if principal != asked.principal => {
                return Err(Nfsstat4::CLID_INUSE);
            }
            (0, Some((done, (_, origin)))) if origin == asked.origin => return Ok(done),
            (1, _) => {}
            _ => return Err(Nfsstat4::SEQ_MISORDERED),
        }
        let (fore, back) = (negotiate(&new.fore)?, negotiate(&new.back)?);
        let many = lock(&client.sessions).len() >= NFS4_SESSIONS_PER_CLIENT_MAX;
        if many || !client.memory.has_room() {
            return Err(Nfsstat4::NOSPC);
        }
        let settled = names.confirm_by_session(new.clientid, asked)?;
        let id = self.new_session_id();
        let session = Session::new(id, Arc::clone(&client), fore, back, new.cb_program);
        lock(&client.sessions).push(id);
        self.sessions.insert(id, Arc::new(session));
        let done = CreateSessionResOk4 {
            sessionid: id,
            sequence: new.sequence,
            flags: new.flags,
            fore_chan_attrs: fore,
            back_chan_attrs: back,
        };
        let by = (asked.principal, asked.origin);
        *created = LastCreate { sequence: new.sequence, done: Some((done, by)) };
        drop(created);
        drop(names);
        self.settled(&settled, now_ns);
        Ok(done)
    }

    fn new_session_id(&self) -> [u8; 16] {
        let mut random = lock(&self.random);
        let mut id = [0; 16];
        loop {
            random.fill(&mut id);
            if self.sessions.get(&id).is_none() {
                return id;
            }
        }
    }

    /// The number that a client's next CREATE_SESSION must have.
    pub fn next_create(client: &Client) -> u32 {
        lock(&client.created).sequence.wrapping_add(1)
    }

    /// A session.
    ///
    /// # Errors
    /// NFS4ERR_BADSESSION.
    pub fn session(&self, id: &[u8; 16]) -> Result<Arc<Session>, Nfsstat4> {
        self.sessions.get(id).ok_or(Nfsstat4::BADSESSION)
    }

    /// DESTROY_SESSION (RFC 8881 §18.37). What the client holds stays.
    ///
    /// # Errors
    /// NFS4ERR_BADSESSION; NFS4ERR_DELAY while more than its own compound is in progress.
    pub fn destroy_session(&self, id: &[u8; 16], own: bool) -> Result<(), Nfsstat4> {
        let session = self.session(id)?;
        if session.busy() > usize::from(own) {
            return Err(Nfsstat4::DELAY);
        }
        self.sessions.remove(id);
        lock(&session.client.sessions).retain(|other| other != id);
        // Recalls that wait for a slot of it are sent over another session.
        for deleg in self.with_channel(&session, Channel::close) {
            deleg.set_phase(Phase::Unsent);
            self.recalls.call(&deleg);
        }
        Ok(())
    }

    // --- grace --------------------------------------------------------------------------------

    /// Whether new state must wait for clients that reclaim (NFS4ERR_GRACE), over any protocol.
    pub fn in_grace(&self) -> bool {
        self.in_own_grace() || self.locks.in_grace_of_others(Protocol::Nfs4)
    }

    /// Whether clients of NFSv4 may reclaim.
    fn in_own_grace(&self) -> bool {
        self.grace_is_on.load(Ordering::Relaxed)
    }

    /// Whether a client may reclaim now.
    ///
    /// # Errors
    /// NFS4ERR_NO_GRACE, also for an unknown client and after RECLAIM_COMPLETE.
    pub fn may_reclaim(&self, client: &Client) -> Result<(), Nfsstat4> {
        let done = client.reclaimed.load(Ordering::Relaxed);
        let may = self.in_own_grace() && lock(&self.grace).may_reclaim(&client.identity());
        if may && !done { Ok(()) } else { Err(Nfsstat4::NO_GRACE) }
    }

    /// Whether new state of a client must wait: for the end of the grace period, or for its own
    /// RECLAIM_COMPLETE (RFC 8881 §18.51.3).
    ///
    /// # Errors
    /// NFS4ERR_GRACE.
    pub fn may_take(&self, client: &Client) -> Result<(), Nfsstat4> {
        let is_reclaimed = !client.name.0 || client.reclaimed.load(Ordering::Relaxed);
        if is_reclaimed && !self.in_grace() { Ok(()) } else { Err(Nfsstat4::GRACE) }
    }

    /// RECLAIM_COMPLETE (RFC 8881 §18.51).
    ///
    /// # Errors
    /// NFS4ERR_COMPLETE_ALREADY.
    pub fn reclaim_complete(&self, client: &Client) -> Result<(), Nfsstat4> {
        if client.reclaimed.swap(true, Ordering::Relaxed) {
            return Err(Nfsstat4::COMPLETE_ALREADY);
        }
        lock(&self.grace).complete(&client.identity());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
