//! Opens that outlive their connection (durable handles, MS-SMB2 §3.3.5.9.6, §3.3.5.9.10): their
//! numbers, and those that wait for their client. Pure: the time is handed in.
//!
//! A number is random, so that it cannot be guessed. What an open takes of other limits it keeps
//! while it waits; how many wait is limited, of all, of one address and of one client.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::limits::SMB_PARKED_MAX;
use base::peer::network;
use base::random::{Random, SystemRandom};
use tokio::sync::Notify;
use vfs::locks::Owner;
use vfs::locks::parts::{Limit, PartOf};

use super::leases::ClientGuid;

/// Of what client an open is, and until when it waits.
#[derive(Debug, Clone)]
pub(crate) struct ParkedKey {
    /// The address of the lost connection.
    pub address: IpAddr,
    /// ClientGuid of it.
    pub client: ClientGuid,
    /// The lease or oplock; a persistent handle may have none.
    pub lease: Option<Owner>,
    /// When it ends, by a monotonic clock.
    pub until_ns: u64,
}

/// All of them.
pub(crate) struct ParkedOpens<T> {
    inner: Mutex<Inner<T>>,
    /// One of them has another state.
    changed: Notify,
}

struct Inner<T> {
    /// Numbers of those with a connection.
    connected: HashSet<u64>,
    /// Those that wait, in the order in which [`ParkedOpens::after`] goes through them.
    parked: BTreeMap<u64, (ParkedKey, T)>,
    /// The same by the time at which they end.
    by_time: BTreeSet<(u64, u64)>,
    by_lease: HashMap<Owner, Vec<u64>>,
    by_address: HashMap<IpAddr, HashMap<ClientGuid, u64>>,
    /// The service runs.
    is_open: bool,
}

/// The number of a durable open, which no other has as long as this lives.
pub(crate) struct DurableId<T> {
    of: Arc<ParkedOpens<T>>,
    /// It.
    pub number: u64,
}

impl<T> Default for ParkedOpens<T> {
    fn default() -> Self {
        let inner = Inner {
            connected: HashSet::new(),
            parked: BTreeMap::new(),
            by_time: BTreeSet::new(),
            by_lease: HashMap::new(),
            by_address: HashMap::new(),
            is_open: true,
        };
        Self { inner: Mutex::new(inner), changed: Notify::new() }
    }
}

impl<T> Inner<T> {
    /// What the clients of an address have, and one of them.
    fn part_of(&self, key: &ParkedKey) -> PartOf {
        let Some(clients) = self.by_address.get(&network(key.address)) else {
            return PartOf::default();
        };
        let client = clients.get(&key.client).copied().unwrap_or_default();
        PartOf { address: clients.values().sum(), client }
    }

    fn is_parked(&self, id: u64) -> bool {
        self.parked.contains_key(&id)
    }

    fn count(&mut self, key: &ParkedKey) {
        let clients = self.by_address.entry(network(key.address)).or_default();
        *clients.entry(key.client).or_default() += 1;
    }

    /// Takes out one that waits.
    fn remove(&mut self, id: u64) -> Option<T> {
        let (key, what) = self.parked.remove(&id)?;
        self.by_time.remove(&(key.until_ns, id));
        let address = network(key.address);
        if let Some(clients) = self.by_address.get_mut(&address) {
            if let Some(count) = clients.get_mut(&key.client) {
                *count = count.saturating_sub(1);
            }
            clients.retain(|_, count| *count > 0);
            if clients.is_empty() {
                self.by_address.remove(&address);
            }
        }
        if let Some(lease) = &key.lease
            && let Some(ids) = self.by_lease.get_mut(lease)
        {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_lease.remove(lease);
            }
        }
        Some(what)
    }
}

impl<T> ParkedOpens<T> {
    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a new durable open.
    pub fn new_id(self: &Arc<Self>) -> DurableId<T> {
        let mut inner = self.inner();
        loop {
            let number = SystemRandom.next_u64() >> 1;
            let is_used =
                |inner: &Inner<T>| inner.connected.contains(&number) || inner.is_parked(number);
            if number != 0 && !is_used(&inner) {
                inner.connected.insert(number);
                return DurableId { of: Arc::clone(self), number };
            }
        }
    }

    /// A number that was given by an earlier process.
    pub fn known_id(self: &Arc<Self>, number: u64) -> DurableId<T> {
        self.inner().connected.insert(number);
        DurableId { of: Arc::clone(self), number }
    }

    /// What `look` gives of one that waits.
    pub fn get<R>(&self, id: u64, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.inner().parked.get(&id).map(|(_, what)| look(what))
    }

    /// Whether one of this number waits.
    pub fn has(&self, id: u64) -> bool {
        self.inner().is_parked(id)
    }

    /// It waits from now on for its client; given back if too many do, or the service ends.
    pub fn park(&self, id: u64, key: ParkedKey, what: T) -> Result<(), T> {
        let mut inner = self.inner();
        let limit = Limit { most: SMB_PARKED_MAX, used: inner.parked.len() as u64 };
        if !inner.is_open || !limit.permits(inner.part_of(&key), 1) {
            return Err(what);
        }
        inner.count(&key);
        if let Some(lease) = key.lease.clone() {
            inner.by_lease.entry(lease).or_default().push(id);
        }
        inner.by_time.insert((key.until_ns, id));
        inner.connected.remove(&id);
        inner.parked.insert(id, (key, what));
        drop(inner);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Takes out one that waits, if `is_its` accepts it as this client's: it has a connection
    /// again.
    ///
    /// # Errors
    /// The error of `is_its`; `otherwise` if there is none.
    pub fn take<E>(
        &self,
        id: u64,
        is_its: impl FnOnce(&ParkedKey, &T) -> Result<(), E>,
        otherwise: E,
    ) -> Result<T, E> {
        let mut inner = self.inner();
        match inner.parked.get(&id) {
            Some((key, what)) => is_its(key, what)?,
            None => return Err(otherwise),
        }
        let what = inner.remove(id).ok_or(otherwise)?;
        inner.connected.insert(id);
        Ok(what)
    }

    /// Takes out one that waits, of any client.
    pub fn take_any(&self, id: u64) -> Option<T> {
        self.inner().remove(id)
    }

    /// Takes out what waits with this lease, and `goes` with it.
    pub fn take_lease(&self, lease: &Owner, goes: impl Fn(&T) -> bool) -> Vec<T> {
        let mut inner = self.inner();
        let ids = inner.by_lease.get(lease).cloned().unwrap_or_default();
        let is_meant = |id: &u64| inner.parked.get(id).is_some_and(|(_, what)| goes(what));
        let ids: Vec<u64> = ids.into_iter().filter(is_meant).collect();
        ids.into_iter().filter_map(|id| inner.remove(id)).collect()
    }

    /// Takes out what has waited too long. What waits longer is not looked at.
    pub fn take_late(&self, now_ns: u64) -> Vec<T> {
        let mut inner = self.inner();
        let mut late = Vec::new();
        while let Some((until_ns, id)) =
            inner.by_time.first().copied().filter(|one| one.0 <= now_ns)
        {
            inner.by_time.remove(&(until_ns, id));
            late.extend(inner.remove(id));
        }
        late
    }

    /// Takes out those for which `goes` returns true. It is called under the lock: it must be
    /// brief.
    pub fn take_if(&self, goes: impl Fn(&T) -> bool) -> Vec<T> {
        let mut inner = self.inner();
        let gone = inner.parked.iter().filter(|(_, (_, what))| goes(what)).map(|(id, _)| *id);
        let ids: Vec<u64> = gone.collect();
        ids.into_iter().filter_map(|id| inner.remove(id)).collect()
    }

    /// What `part` gives of at most `max` that wait, from the number behind `after` on. So all are
    /// gone through in pieces, between which others get the lock.
    pub fn after<R>(
        &self,
        after: Option<u64>,
        max: usize,
        mut part: impl FnMut(&T) -> R,
    ) -> Vec<(u64, R)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let inner = self.inner();
        let next = inner.parked.range((from, Bound::Unbounded)).take(max);
        next.map(|(id, (_, what))| (*id, part(what))).collect()
    }

    /// The service runs from now on, or does not: then nothing waits any more.
    pub fn set_open(&self, is_open: bool) -> Vec<T> {
        self.inner().is_open = is_open;
        if is_open { Vec::new() } else { self.take_if(|_| true) }
    }

    /// Waits while one of this number has a connection.
    pub async fn parked(&self, id: u64) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if !self.inner().connected.contains(&id) {
                return;
            }
            changed.await;
        }
    }

    /// Looks at the first `max` of what waits, with the time that is left.
    pub fn rows<R>(
        &self,
        now_ns: u64,
        max: usize,
        mut row: impl FnMut(&ParkedKey, &T, u64) -> R,
    ) -> Vec<R> {
        let inner = self.inner();
        let first = inner.parked.values().take(max);
        first.map(|(key, what)| row(key, what, key.until_ns.saturating_sub(now_ns))).collect()
    }

    /// How many wait, by address.
    pub fn by_address(&self) -> Vec<(IpAddr, u64)> {
        let inner = self.inner();
        let sums = inner.by_address.iter().map(|(at, clients)| (*at, clients.values().sum()));
        sums.collect()
    }
}

impl<T> Drop for DurableId<T> {
    fn drop(&mut self) {
        self.of.inner().connected.remove(&self.number);
        self.of.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
