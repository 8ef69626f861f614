//! A queue at what few requests may do at once. One client, an address or a /64, has a part of the
//! queue, and a part of what runs, so that a request of another client waits for those of many
//! clients but not for all of one.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use base::peer::network;
use base::tally::{AddressPermit, AddressPermits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Peer;

/// The client of requests over the local socket.
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

tokio::task_local! {
    static CLIENT: IpAddr;
}

/// Middleware: notes the client for the permits that the request takes.
pub async fn with_client(request: Request, next: Next) -> Response {
    let client = match request.extensions().get::<Peer>() {
        Some(Peer::Remote(address)) => network(*address),
        _ => LOCAL,
    };
    CLIENT.scope(client, next.run(request)).await
}

/// The client of the current request.
pub fn client() -> IpAddr {
    CLIENT.try_with(|client| *client).unwrap_or(LOCAL)
}

/// A limit in all, and one for each client.
pub type Limits = (usize, usize);

/// The queue.
pub struct ClientQueue {
    all: Arc<Semaphore>,
    per_client: usize,
    clients: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
    waiting: Arc<AddressPermits>,
    waiting_max: Limits,
}

/// The permission to run, until it is dropped.
pub struct QueuePermit {
    _all: OwnedSemaphorePermit,
    _of_client: OwnedSemaphorePermit,
    _waiting: AddressPermit,
}

impl ClientQueue {
    /// How many requests may run, and how many may run or wait.
    pub fn new((all, per_client): Limits, waiting_max: Limits) -> Self {
        let all = Arc::new(Semaphore::new(all));
        let (clients, waiting) = Default::default();
        Self { all, per_client, clients, waiting, waiting_max }
    }

    /// Waits until the request may run; `None` if too many wait.
    pub async fn wait(&self, client: IpAddr) -> Option<QueuePermit> {
        let waiting = self.waiting.take(client, self.waiting_max)?;
        // First for the client's own part: what waits there is not in the way of other clients.
        let of_client = self.of_client(client).acquire_owned().await.ok()?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(QueuePermit { _all: all, _of_client: of_client, _waiting: waiting })
    }

    fn of_client(&self, client: IpAddr) -> Arc<Semaphore> {
        // Nothing under this lock panics.
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|_, one| one.strong_count() > 0);
        if let Some(one) = clients.get(&client).and_then(Weak::upgrade) {
            return one;
        }
        let one = Arc::new(Semaphore::new(self.per_client));
        clients.insert(client, Arc::downgrade(&one));
        one
    }
}

#[cfg(test)]
mod tests;
