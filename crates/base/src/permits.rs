//! Permits for connections: a limit on all, a part for each client, and a part that each service is
//! sure of. A connection that is not in use yet, because no user has signed in on it and no call
//! was made, loses its permit to a new one when none is left.
//!
//! The permit is that of the client with the most such connections, and of these the oldest. So
//! connections that are opened and left idle shut no client out, not even those of the same
//! address, and a flood from many addresses takes permits from its own connections before it takes
//! one from a client with a single one.
//!
//! [`PermitTable`] is the table, without a lock, [`PermitAccount`] the one of a single service with
//! a lock; [`RevokeSignal`] is how a connection learns that
//! its permit is gone.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::limits::CONNECTIONS_CLOSING_PART;

pub use self::account::{AccountPermit, PermitAccount, PermitKey};

mod account;

/// How many permits there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermitLimits {
    /// In all.
    pub all: usize,
    /// Of these, how many each service is sure of.
    pub sure: usize,
    /// How many one client may have, over all services.
    pub client_max: usize,
    /// Connections that may have lost their permit and not have ended yet.
    pub closing: usize,
}

impl PermitLimits {
    /// Limits of one service. Its connections have a permit of the account of all services as well,
    /// which limits those that are closing.
    pub fn new(all: usize, client_max: usize) -> Self {
        Self { all, sure: 0, client_max, closing: usize::MAX }
    }

    /// The same where there is no other account: those that are closing are limited.
    pub fn limiting(self) -> Self {
        Self { closing: (self.all / CONNECTIONS_CLOSING_PART).max(1), ..self }
    }
}

/// The permits in use.
#[derive(Debug)]
pub struct PermitTable {
    services: Vec<Service>,
    clients: HashMap<IpAddr, usize>,
    connections: HashMap<u64, Connection>,
    /// Connections that have lost their permit and have not ended yet.
    closing: usize,
    next: u64,
}

#[derive(Debug)]
struct Connection {
    service: usize,
    client: IpAddr,
    /// How it learns that its permit is gone; `None` once it is in use.
    idle: Option<Arc<RevokeSignal>>,
}

#[derive(Debug, Default)]
struct Service {
    taken: usize,
    /// Connections not in use, by client, in the order of their arrival.
    idle: HashMap<IpAddr, BTreeSet<u64>>,
    /// Their number, the oldest of them, and the client.
    order: BTreeSet<(usize, Reverse<u64>, IpAddr)>,
}

/// A new permit, and how many connections lost theirs for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Its number.
    pub id: u64,
    /// Connections that are to end.
    pub ended: usize,
}

impl PermitTable {
    /// No permit in use, for this number of services.
    pub fn new(services: usize) -> Self {
        Self {
            services: std::iter::repeat_with(Service::default).take(services).collect(),
            clients: HashMap::new(),
            connections: HashMap::new(),
            closing: 0,
            next: 0,
        }
    }

    /// A permit of `service` (counted from 0) for a client, if there is one, or a connection that
    /// is not in use and loses its own: that learns it from its signal.
    pub fn take(
        &mut self,
        service: usize,
        client: IpAddr,
        limits: PermitLimits,
        signal: Arc<RevokeSignal>,
    ) -> Option<Grant> {
        let mut ended = 0;
        while let Some(victim) = self.victim(service, client, limits)? {
            if self.is_closing_full(limits) {
                return None;
            }
            ended += 1;
            self.closing += 1;
            if let Some(signal) = self.remove(victim).and_then(|connection| connection.idle) {
                signal.revoke();
            }
        }
        let id = self.next;
        self.next += 1;
        self.connections.insert(id, Connection { service, client, idle: Some(signal) });
        *self.clients.entry(client).or_default() += 1;
        let of_service = self.services.get_mut(service)?;
        of_service.taken += 1;
        of_service.add(client, id);
        Some(Grant { id, ended })
    }

    /// Which connection must end first: `Some(None)` if there is a permit, `None` if there is
    /// neither a permit nor such a connection.
    fn victim(&self, service: usize, client: IpAddr, limits: PermitLimits) -> Option<Option<u64>> {
        if self.of(client) >= limits.client_max {
            let oldest = |service: &Service| service.idle.get(&client)?.first().copied();
            return self.services.iter().filter_map(oldest).min().map(Some);
        }
        let is_sure = self.services.get(service)?.taken < limits.sure;
        if is_sure || !self.is_common_full(limits) {
            return Some(None);
        }
        let frees =
            |(number, of_it): &(usize, &Service)| *number == service || of_it.taken > limits.sure;
        let services = self.services.iter().enumerate().filter(frees);
        let most = services.filter_map(|(_, of_it)| of_it.order.last()).max();
        most.map(|(_, Reverse(oldest), _)| Some(*oldest))
    }

    /// Notes that the connection is in use: its permit is not revoked from now on. False if it has
    /// lost it already.
    pub fn keep(&mut self, id: u64) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        let (service, client) = (connection.service, connection.client);
        if connection.idle.take().is_some()
            && let Some(of_it) = self.services.get_mut(service)
        {
            of_it.remove(client, id);
        }
        true
    }

    /// The connection has ended.
    pub fn give(&mut self, id: u64) {
        if self.remove(id).is_none() {
            self.closing = self.closing.saturating_sub(1);
        }
    }

    fn remove(&mut self, id: u64) -> Option<Connection> {
        let connection = self.connections.remove(&id)?;
        let client = connection.client;
        if let Some(count) = self.clients.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.clients.remove(&client);
            }
        }
        if let Some(of_it) = self.services.get_mut(connection.service) {
            of_it.taken -= 1;
            if connection.idle.is_some() {
                of_it.remove(client, id);
            }
        }
        Some(connection)
    }

    /// Permits that a client has, over all services.
    pub fn of(&self, client: IpAddr) -> usize {
        self.clients.get(&client).copied().unwrap_or(0)
    }

    /// Permits in use.
    pub fn taken(&self) -> usize {
        self.connections.len()
    }

    /// Permits that a service (counted from 0) has.
    pub fn of_service(&self, service: usize) -> usize {
        self.services.get(service).map_or(0, |of_it| of_it.taken)
    }

    /// Clients that have any.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Whether no connection can be evicted for a new one, because too many are closing.
    pub fn is_closing_full(&self, limits: PermitLimits) -> bool {
        self.closing >= limits.closing
    }

    /// Whether all permits are in use that no service is sure of.
    pub fn is_common_full(&self, limits: PermitLimits) -> bool {
        let common = limits.all.saturating_sub(limits.sure * self.services.len());
        let beyond = |of_it: &Service| of_it.taken.saturating_sub(limits.sure);
        self.services.iter().map(beyond).sum::<usize>() >= common
    }
}

impl Service {
    fn add(&mut self, client: IpAddr, id: u64) {
        self.change(client, |ids| ids.insert(id));
    }

    fn remove(&mut self, client: IpAddr, id: u64) {
        self.change(client, |ids| ids.remove(&id));
    }

    fn change(&mut self, client: IpAddr, change: impl FnOnce(&mut BTreeSet<u64>) -> bool) {
        let row = |ids: &BTreeSet<u64>| ids.first().map(|id| (ids.len(), Reverse(*id), client));
        let ids = self.idle.entry(client).or_default();
        let before = row(ids);
        change(ids);
        let after = row(ids);
        if after.is_none() {
            self.idle.remove(&client);
        }
        if before != after {
            before.map(|row| self.order.remove(&row));
            after.map(|row| self.order.insert(row));
        }
    }
}

/// Notifies one connection that its permit is gone.
#[derive(Debug, Default)]
pub struct RevokeSignal(Mutex<Signalled>);

#[derive(Debug, Default)]
struct Signalled {
    is_revoked: bool,
    waker: Option<Waker>,
}

impl RevokeSignal {
    fn lock(&self) -> MutexGuard<'_, Signalled> {
        // Nothing under this lock panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The permit is gone.
    pub fn revoke(&self) {
        let mut signalled = self.lock();
        signalled.is_revoked = true;
        let waker = signalled.waker.take();
        drop(signalled);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ready when the permit is gone. One task may wait.
    pub fn poll_revoked(&self, context: &Context<'_>) -> Poll<()> {
        let mut signalled = self.lock();
        if signalled.is_revoked {
            return Poll::Ready(());
        }
        if !signalled.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            signalled.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// Returns when the permit is gone.
    pub async fn revoked(&self) {
        poll_fn(|context| self.poll_revoked(context)).await;
    }
}

#[cfg(test)]
mod tests;
