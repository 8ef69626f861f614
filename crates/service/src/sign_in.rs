//! Sign-ins of one service: the common list of users, with the sign-ins of this service counted and
//! reported in its log.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use vfs::identity::{Identity, Person, Refused};

/// The list of users, as used by one service.
pub struct SignInCounter {
    service: &'static str,
    users: Arc<dyn Identity>,
    /// Successful sign-ins so far; wrong passwords and keys so far, and those that were not
    /// verified.
    counts: [AtomicU64; 2],
}

impl SignInCounter {
    /// The counter of a service.
    pub fn new(service: &'static str, users: Arc<dyn Identity>) -> Self {
        Self { service, users, counts: Default::default() }
    }

    /// Successes and failures so far.
    pub fn counts(&self) -> [u64; 2] {
        self.counts.each_ref().map(|count| count.load(Relaxed))
    }

    fn count(&self, from: IpAddr, name: &str, right: bool) {
        self.counts[usize::from(!right)].fetch_add(1, Relaxed);
        if right {
            base::debug!(self.service, "sign-in: {name} from {from}");
            return;
        }
        // Users sometimes type passwords into the name field: only names that exist are logged.
        let name = self.users.person(name).map_or("(unknown name)", |_| name);
        base::warning!(self.service, "sign-in refused: {name} from {from}");
    }
}

impl Identity for SignInCounter {
    fn behind(&self) -> Option<&dyn Identity> {
        Some(&*self.users)
    }

    fn password(&self, from: IpAddr, name: &str, password: &str) -> Result<Arc<Person>, Refused> {
        let judged = self.users.password(from, name, password);
        match judged {
            // Nothing was looked at: a line for each would fill the log.
            Err(Refused::Wait(_)) => drop(self.counts[1].fetch_add(1, Relaxed)),
            _ => self.count(from, name, judged.is_ok()),
        }
        judged
    }

    fn judged(&self, from: IpAddr, name: &str, right: bool) {
        self.users.judged(from, name, right);
        self.count(from, name, right);
    }

    fn person(&self, name: &str) -> Option<Arc<Person>> {
        self.users.person(name)
    }

    fn anonymous(&self) -> Arc<Person> {
        self.users.anonymous()
    }
}
