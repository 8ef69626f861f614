//! Opens that outlive their connection (durable handles, MS-SMB2 §3.3.5.9.6, §3.3.5.9.10): their
//! numbers, and those that wait for their client. Pure: the time is handed in.
//!
//! A number is random, so that it cannot be guessed. What an open takes of other limits it keeps
//! while it waits; how many wait is limited, of all, of one address and of one client.

use std::collections::HashMap;
use std::net::IpAddr;
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
    /// The lease or oplock.
    pub lease: Owner,
    /// When it ends, by a monotonic clock.
    pub until_ns: u64,
}

enum State<T> {
    /// It has a connection.
    Connected,
    /// It waits.
    Parked(ParkedKey, T),
}

/// All of them.
pub(crate) struct ParkedOpens<T> {
    inner: Mutex<Inner<T>>,
    /// One of them has another state.
    changed: Notify,
}

struct Inner<T> {
    by_id: HashMap<u64, State<T>>,
    by_lease: HashMap<Owner, Vec<u64>>,
    by_address: HashMap<IpAddr, HashMap<ClientGuid, u64>>,
    count: u64,
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
            by_id: HashMap::new(),
            by_lease: HashMap::new(),
            by_address: HashMap::new(),
            count: 0,
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

    fn count(&mut self, key: &ParkedKey) {
        self.count += 1;
        let clients = self.by_address.entry(network(key.address)).or_default();
        *clients.entry(key.client).or_default() += 1;
    }

    /// Takes out one that waits.
    fn remove(&mut self, id: u64) -> Option<T> {
        let State::Parked(key, what) = self.by_id.remove(&id)? else { return None };
        self.count = self.count.saturating_sub(1);
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
        if let Some(ids) = self.by_lease.get_mut(&key.lease) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_lease.remove(&key.lease);
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
            if number != 0 && !inner.by_id.contains_key(&number) {
                inner.by_id.insert(number, State::Connected);
                return DurableId { of: Arc::clone(self), number };
            }
        }
    }

    /// It waits from now on for its client; given back if too many do, or the service ends.
    pub fn park(&self, id: u64, key: ParkedKey, what: T) -> Result<(), T> {
        let mut inner = self.inner();
        let limit = Limit { most: SMB_PARKED_MAX, used: inner.count };
        if !inner.is_open || !limit.permits(inner.part_of(&key), 1) {
            return Err(what);
        }
        inner.count(&key);
        inner.by_lease.entry(key.lease.clone()).or_default().push(id);
        inner.by_id.insert(id, State::Parked(key, what));
        drop(inner);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Takes out one that waits, if `is_its` says that it is this client's: it has a connection
    /// again.
    ///
    /// # Errors
    /// What `is_its` says; `otherwise` if there is none.
    pub fn take<E>(
        &self,
        id: u64,
        is_its: impl FnOnce(&ParkedKey, &T) -> Result<(), E>,
        otherwise: E,
    ) -> Result<T, E> {
        let mut inner = self.inner();
        match inner.by_id.get(&id) {
            Some(State::Parked(key, what)) => is_its(key, what)?,
            _ => return Err(otherwise),
        }
        let what = inner.remove(id).ok_or(otherwise)?;
        inner.by_id.insert(id, State::Connected);
        Ok(what)
    }

    /// Takes out one that waits, of any client.
    pub fn take_any(&self, id: u64) -> Option<T> {
        let mut inner = self.inner();
        let is_parked = matches!(inner.by_id.get(&id), Some(State::Parked(..)));
        if is_parked { inner.remove(id) } else { None }
    }

    /// Takes out what waits with this lease.
    pub fn take_lease(&self, lease: &Owner) -> Vec<T> {
        let mut inner = self.inner();
        let ids = inner.by_lease.get(lease).cloned().unwrap_or_default();
        ids.into_iter().filter_map(|id| inner.remove(id)).collect()
    }

    /// Takes out what has waited too long, and what `goes` says of the rest.
    pub fn take_ended(&self, now_ns: u64, goes: impl Fn(&T) -> bool) -> Vec<T> {
        let mut inner = self.inner();
        if inner.count == 0 {
            return Vec::new();
        }
        let ends = |(id, state): (&u64, &State<T>)| match state {
            State::Parked(key, what) if now_ns >= key.until_ns || goes(what) => Some(*id),
            _ => None,
        };
        let ids: Vec<u64> = inner.by_id.iter().filter_map(ends).collect();
        ids.into_iter().filter_map(|id| inner.remove(id)).collect()
    }

    /// The service runs from now on, or does not: then nothing waits any more.
    pub fn set_open(&self, is_open: bool) -> Vec<T> {
        self.inner().is_open = is_open;
        if is_open { Vec::new() } else { self.take_ended(u64::MAX, |_| true) }
    }

    /// Waits while one of this number has a connection.
    pub async fn parked(&self, id: u64) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if !matches!(self.inner().by_id.get(&id), Some(State::Connected)) {
                return;
            }
            changed.await;
        }
    }

    /// Looks at what waits, with the time that is left.
    pub fn rows<R>(&self, now_ns: u64, mut row: impl FnMut(&ParkedKey, &T, u64) -> R) -> Vec<R> {
        let inner = self.inner();
        let parked = inner.by_id.values().filter_map(|state| match state {
            State::Connected => None,
            State::Parked(key, what) => Some(row(key, what, key.until_ns.saturating_sub(now_ns))),
        });
        parked.collect()
    }
}

impl<T> Drop for DurableId<T> {
    fn drop(&mut self) {
        let mut inner = self.of.inner();
        if matches!(inner.by_id.get(&self.number), Some(State::Connected)) {
            inner.by_id.remove(&self.number);
        }
        drop(inner);
        self.of.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
