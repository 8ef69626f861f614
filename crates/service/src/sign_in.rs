//! Who comes in to one service: the one list of users, with this service's sign-ins counted and
//! reported in its log.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use vfs::identity::{Identity, Person, Refused};

/// The list of users, as one service asks for it.
pub struct SignInCounter {
    service: &'static str,
    users: Arc<dyn Identity>,
    /// Who was let in so far.
    logins: AtomicU64,
    /// Wrong passwords and keys so far, and those that were not looked at.
    failures: AtomicU64,
}

impl SignInCounter {
    /// The counter of a service.
    pub fn new(service: &'static str, users: Arc<dyn Identity>) -> Self {
        let (logins, failures) = Default::default();
        Self { service, users, logins, failures }
    }

    /// Successes and failures so far.
    pub fn counts(&self) -> [u64; 2] {
        [self.logins.load(Relaxed), self.failures.load(Relaxed)]
    }

    fn count(&self, from: IpAddr, name: &str, right: bool) {
        if right {
            self.logins.fetch_add(1, Relaxed);
            base::debug!(self.service, "sign-in: {name} from {from}");
            return;
        }
        self.failures.fetch_add(1, Relaxed);
        // People type passwords where the name belongs: only names that exist are written down.
        let name = self.users.person(name).map_or("(unknown name)", |_| name);
        base::warning!(self.service, "sign-in refused: {name} from {from}");
    }
}

impl Identity for SignInCounter {
    fn password(&self, from: IpAddr, name: &str, password: &str) -> Result<Arc<Person>, Refused> {
        let judged = self.users.password(from, name, password);
        match judged {
            // Nothing was looked at: a line for each would fill the log.
            Err(Refused::Wait(_)) => drop(self.failures.fetch_add(1, Relaxed)),
            _ => self.count(from, name, judged.is_ok()),
        }
        judged
    }

    fn must_wait(&self, from: IpAddr, name: &str) -> Option<Duration> {
        self.users.must_wait(from, name)
    }

    fn keys(&self, name: &str) -> Vec<String> {
        self.users.keys(name)
    }

    fn nt_hash(&self, name: &str) -> Option<[u8; 16]> {
        self.users.nt_hash(name)
    }

    fn judged(&self, from: IpAddr, name: &str, right: bool) {
        self.users.judged(from, name, right);
        self.count(from, name, right);
    }

    fn person(&self, name: &str) -> Option<Arc<Person>> {
        self.users.person(name)
    }

    fn stands(&self, person: &Arc<Person>) -> bool {
        self.users.stands(person)
    }

    fn authorities(&self) -> Vec<String> {
        self.users.authorities()
    }

    fn anonymous(&self) -> Arc<Person> {
        self.users.anonymous()
    }

    fn generation(&self) -> u64 {
        self.users.generation()
    }
}
