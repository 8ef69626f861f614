//! Threads that judge passwords: slow on purpose, and caused by strangers, so there are few of them
//! and only so many who wait.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base::limits::{SIGN_IN_QUEUE_MAX, SIGN_IN_THREADS};
use tokio::sync::{Semaphore, oneshot};
use vfs::identity::{Identity, Person, Refused};

/// What is said to those for whom there is no place.
const CROWDED: Refused = Refused::Wait(Duration::from_secs(1));

/// The threads, one set for all services.
pub struct SignIns {
    waiting: Semaphore,
    running: Semaphore,
}

impl Default for SignIns {
    fn default() -> Self {
        let waiting = Semaphore::new(SIGN_IN_QUEUE_MAX);
        Self { waiting, running: Semaphore::new(SIGN_IN_THREADS) }
    }
}

impl SignIns {
    /// Judges a name and a password from an address.
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
        let _waiting = self.waiting.try_acquire().map_err(|_| CROWDED)?;
        let _running = self.running.acquire().await.map_err(|_| CROWDED)?;
        let (done, judged) = oneshot::channel();
        let (identity, name, password) =
            (Arc::clone(identity), name.to_owned(), password.to_owned());
        let judge = move || drop(done.send(identity.password(from, &name, &password)));
        let thread = std::thread::Builder::new().name("sign-in".to_owned()).spawn(judge);
        thread.map_err(|_| CROWDED)?;
        judged.await.unwrap_or(Err(Refused::Wrong))
    }
}
