//! Threads that check passwords: that is slow on purpose, and any peer can cause it, so there are
//! few threads, and a limited number of sign-ins waits for them. The sign-ins of one address wait
//! for each other first, so that they do not delay those of others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use base::limits::{SIGN_IN_QUEUE_CLIENT_MAX, SIGN_IN_QUEUE_MAX, SIGN_IN_THREADS};
use base::peer::network;
use base::refusals::Limit;
use base::tally::{AddressPermit, AddressPermits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, oneshot};
use vfs::identity::{Identity, Person, Refused};

/// The refusal of a sign-in for which there is no permit.
const CROWDED: Refused = Refused::Wait(Duration::from_secs(1));

/// The threads, one set for all services.
pub struct SignIns {
    waiting: Arc<AddressPermits>,
    /// One sign-in of each address is checked.
    clients: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
    running: Semaphore,
}

/// The permission to check a password, until it is dropped.
struct CheckPermit<'a> {
    _running: SemaphorePermit<'a>,
    _of_client: OwnedSemaphorePermit,
    _waiting: AddressPermit,
}

impl Default for SignIns {
    fn default() -> Self {
        let (waiting, clients) = Default::default();
        Self { waiting, clients, running: Semaphore::new(SIGN_IN_THREADS) }
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
        let _permit = self.permit(network(from)).await.ok_or(CROWDED)?;
        let (done, judged) = oneshot::channel();
        let (identity, name, password) =
            (Arc::clone(identity), name.to_owned(), password.to_owned());
        let judge = move || drop(done.send(identity.password(from, &name, &password)));
        let thread = std::thread::Builder::new().name("sign-in".to_owned()).spawn(judge);
        thread.map_err(|_| CROWDED)?;
        judged.await.unwrap_or(Err(Refused::Wrong))
    }

    /// Waits until a password from this address can be checked; `None` if too many wait.
    async fn permit(&self, client: IpAddr) -> Option<CheckPermit<'_>> {
        let limits = (SIGN_IN_QUEUE_MAX, SIGN_IN_QUEUE_CLIENT_MAX);
        let Some(waiting) = self.waiting.take(client, limits) else {
            Limit::SignIns.count();
            return None;
        };
        // First for the address: what waits there does not delay other clients.
        let of_client = self.of_client(client).acquire_owned().await.ok()?;
        let running = self.running.acquire().await.ok()?;
        Some(CheckPermit { _running: running, _of_client: of_client, _waiting: waiting })
    }

    fn of_client(&self, client: IpAddr) -> Arc<Semaphore> {
        // Nothing under this lock panics.
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|_, one| one.strong_count() > 0);
        if let Some(one) = clients.get(&client).and_then(Weak::upgrade) {
            return one;
        }
        let one = Arc::new(Semaphore::new(1));
        clients.insert(client, Arc::downgrade(&one));
        one
    }
}

#[cfg(test)]
mod tests;
