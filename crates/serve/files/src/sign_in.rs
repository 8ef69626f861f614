//! Threads that check passwords: that is slow on purpose, and any peer can cause it, so there are
//! few threads, and a limited number of sign-ins waits for them. The sign-ins of one address wait
//! for each other first, so that they do not delay those of others.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base::limits::{SIGN_IN_QUEUE_CLIENT_MAX, SIGN_IN_QUEUE_MAX, SIGN_IN_THREADS};
use base::peer::network;
use base::refusals::Limit;
use base::tally::{AddressPermit, AddressPermits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use vfs::identity::{Identity, Person, Refused};

use engine::transport::address_places::AddressPlaces;

/// The refusal of a sign-in for which there is no permit.
const CROWDED: Refused = Refused::Wait(Duration::from_secs(1));

/// The threads, one set for all services.
pub struct SignIns {
    waiting: Arc<AddressPermits>,
    /// One sign-in of each address is checked.
    clients: AddressPlaces,
    running: Arc<Semaphore>,
}

/// The permission to check a password, until it is dropped.
struct CheckPermit {
    _running: OwnedSemaphorePermit,
    _of_client: OwnedSemaphorePermit,
    _waiting: AddressPermit,
}

impl Default for SignIns {
    fn default() -> Self {
        let running = Arc::new(Semaphore::new(SIGN_IN_THREADS));
        Self { waiting: Arc::default(), clients: AddressPlaces::new(1), running }
    }
}

impl SignIns {
    /// Checks a name and a password from an address.
    ///
    /// # Errors
    /// By [`Refused`]; [`Refused::Wait`] also if too many wait.
    pub async fn password(
        &self,
        identity: &Arc<dyn Identity>,
        from: IpAddr,
        name: &str,
        password: &str,
    ) -> Result<Arc<Person>, Refused> {
        if let Some(wait) = identity.must_wait(from, name) {
            return Err(Refused::Wait(wait));
        }
        let permit = self.permit(network(from)).await.ok_or(CROWDED)?;
        let (done, judged) = oneshot::channel();
        let (identity, name, password) =
            (Arc::clone(identity), name.to_owned(), password.to_owned());
        let judge = move || {
            let judged = identity.password(from, &name, &password);
            // Held until the check is over, also when the client has gone.
            drop(permit);
            drop(done.send(judged));
        };
        let thread = std::thread::Builder::new().name("sign-in".to_owned()).spawn(judge);
        thread.map_err(|_| CROWDED)?;
        judged.await.unwrap_or(Err(Refused::Wrong))
    }

    /// Waits until a password from this address can be checked; `None` if too many wait.
    async fn permit(&self, client: IpAddr) -> Option<CheckPermit> {
        let limits = (SIGN_IN_QUEUE_MAX, SIGN_IN_QUEUE_CLIENT_MAX);
        let Some(waiting) = self.waiting.take(client, limits) else {
            Limit::SignIns.count();
            return None;
        };
        // First for the address: what waits there does not delay other clients.
        let of_client = self.clients.of(client).acquire_owned().await.ok()?;
        let running = Arc::clone(&self.running).acquire_owned().await.ok()?;
        Some(CheckPermit { _running: running, _of_client: of_client, _waiting: waiting })
    }
}

#[cfg(test)]
mod tests;
