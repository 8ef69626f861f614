//! Places for connections from the network: a limit on all, and one for each client address.
//!
//! A connection on which nobody has signed in yet gives its place to a newcomer when there is none
//! left: the oldest of the client that has most of them. So connections that somebody opens and
//! leaves idle lock nobody out, not even those who come from the same address; and whoever opens
//! them again as fast as they end, from many addresses, takes places from connections of their own
//! and not from a client with a single one. The local socket has places of its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::peer::network;
use tokio::sync::Notify;

/// The places of all connections.
#[derive(Debug)]
pub struct ConnectionLimits {
    all: usize,
    client_max: usize,
    held: Mutex<Held>,
    ended: AtomicU64,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    /// In the order of their arrival.
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    client: IpAddr,
    is_signed_in: bool,
    given_away: Arc<Notify>,
}

impl ConnectionLimits {
    /// So many places in all, and so many for one client.
    pub fn new(all: usize, client_max: usize) -> Self {
        Self { all, client_max, held: Mutex::default(), ended: AtomicU64::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a client, if there is one or a connection that must give its own away.
    pub fn take(self: &Arc<Self>, from: IpAddr) -> Option<ConnectionPermit> {
        let client = network(from);
        let mut held = self.lock();
        let is_clients_part_taken = held.of(client) >= self.client_max;
        if is_clients_part_taken || held.connections.len() >= self.all {
            self.ended.fetch_add(1, Ordering::Relaxed);
            let oldest = held.oldest_idle(is_clients_part_taken.then_some(client))?;
            if let Some(connection) = held.connections.remove(&oldest) {
                connection.given_away.notify_one();
            }
        }
        let id = held.next;
        held.next += 1;
        let given_away = Arc::new(Notify::new());
        let connection = Connection { client, is_signed_in: false, given_away: given_away.clone() };
        held.connections.insert(id, connection);
        drop(held);
        Some(ConnectionPermit { seat: Seat { places: Arc::clone(self), id }, given_away })
    }

    /// Connections now.
    pub fn taken(&self) -> usize {
        self.lock().connections.len()
    }

    /// Connections that were refused so far, or closed to make room for newer ones.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }
}

impl Held {
    fn of(&self, client: IpAddr) -> usize {
        self.connections.values().filter(|c| c.client == client).count()
    }

    /// The oldest connection without anybody signed in: of this client, or of the one that has most
    /// of them; of several that have as many, the one that came first.
    fn oldest_idle(&self, client: Option<IpAddr>) -> Option<u64> {
        // By client: how many, and the oldest of them.
        let mut idle: HashMap<IpAddr, (usize, u64)> = HashMap::new();
        for (id, connection) in self.connections.iter().filter(|(_, c)| !c.is_signed_in) {
            idle.entry(connection.client).or_insert((0, *id)).0 += 1;
        }
        if let Some(client) = client {
            return idle.get(&client).map(|(_, oldest)| *oldest);
        }
        let most = idle.values().max_by_key(|(count, oldest)| (*count, Reverse(*oldest)));
        most.map(|(_, oldest)| *oldest)
    }
}

/// A place, until it is dropped or given away.
#[derive(Debug)]
pub struct ConnectionPermit {
    seat: Seat,
    given_away: Arc<Notify>,
}

impl ConnectionPermit {
    /// Returns when a newer connection has got this place.
    pub async fn given_away(&self) {
        self.given_away.notified().await;
    }

    /// What requests on this connection carry.
    pub fn seat(&self) -> Seat {
        self.seat.clone()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.seat.places.lock().connections.remove(&self.seat.id);
    }
}

/// Names the connection of a request, as a request extension.
#[derive(Debug, Clone)]
pub struct Seat {
    places: Arc<ConnectionLimits>,
    id: u64,
}

impl Seat {
    /// Remembers that somebody is signed in on this connection: it keeps its place from now on.
    pub fn keep(&self) {
        if let Some(connection) = self.places.lock().connections.get_mut(&self.id) {
            connection.is_signed_in = true;
        }
    }
}

#[cfg(test)]
mod tests;
