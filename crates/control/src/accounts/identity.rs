//! The list of users as the services that transfer files see it: their sign-ins, their identities,
//! and whether a sign-in is still valid. The limit for wrong passwords is common to these services
//! and the administration.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use base::clock::Clock;
use base::limits::ACCOUNT_FILES_INTERVAL;
use base::peer::network;
use vfs::cred::Cred;
use vfs::identity::{Identity, Owners, Person, Refused};
use vfs::share::rules::NOBODY;

use super::machine::Machine;
use super::{Accounts, Caller, Verdict, acting};

/// The name of users without a sign-in (RFC 1635).
const ANONYMOUS: &str = "anonymous";

/// The users.
pub struct Users {
    accounts: Arc<Accounts>,
    clock: Arc<dyn Clock>,
    machine: Machine,
    /// The identity of this program.
    server: Cred,
    /// Persons as they were returned: one is valid as long as it is the current one of its name.
    known: Mutex<HashMap<String, CachedPerson>>,
    /// Passwords from one address are checked one after the other: those sent at once would all
    /// get the try that one of them has. Those of other addresses do not wait for that; there are
    /// as many locks at most as threads that check.
    lanes: Mutex<HashMap<IpAddr, Weak<Mutex<()>>>>,
    authorities: RwLock<Vec<String>>,
}

struct CachedPerson {
    version: u64,
    person: Arc<Person>,
    /// The state of the list of users in which this was found, and when.
    generation: u64,
    checked_ns: u64,
}

impl CachedPerson {
    /// Whether nothing has changed since, but perhaps the files of this machine's accounts, which
    /// are looked at again after [`ACCOUNT_FILES_INTERVAL`].
    fn is_current(&self, generation: u64, now_ns: u64) -> bool {
        let age = Duration::from_nanos(now_ns.saturating_sub(self.checked_ns));
        self.generation == generation && age < ACCOUNT_FILES_INTERVAL
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Users {
    /// Those of `accounts`, with the accounts of `machine`; `server` is the identity of this
    /// program.
    pub fn new(
        accounts: Arc<Accounts>,
        clock: Arc<dyn Clock>,
        machine: Machine,
        server: Cred,
    ) -> Self {
        let (known, authorities, lanes) = Default::default();
        Self { accounts, clock, machine, server, known, lanes, authorities }
    }

    /// Trusts user certificates that are signed with these keys, from now on.
    pub fn set_authorities(&self, keys: Vec<String>) {
        *self.authorities.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// The lock of an address.
    fn lane(&self, from: IpAddr) -> Arc<Mutex<()>> {
        let (from, mut lanes) = (network(from), lock(&self.lanes));
        if let Some(lane) = lanes.get(&from).and_then(Weak::upgrade) {
            return lane;
        }
        lanes.retain(|_, lane| lane.strong_count() > 0);
        let lane = Arc::<Mutex<()>>::default();
        lanes.insert(from, Arc::downgrade(&lane));
        lane
    }
}

impl Owners for Users {
    /// A configured user's name, or that of an account.
    fn user(&self, uid: u32) -> Option<String> {
        self.accounts.configured_with(uid).or_else(|| self.machine.user(uid))
    }

    fn group(&self, gid: u32) -> Option<String> {
        self.machine.group(gid)
    }
}

impl Identity for Users {
    fn password(&self, from: IpAddr, name: &str, password: &str) -> Result<Arc<Person>, Refused> {
        let lane = self.lane(from);
        let _turn = lock(&lane);
        if let Some(wait) = self.must_wait(from, name) {
            return Err(Refused::Wait(wait));
        }
        let version = self.accounts.version(name);
        let right = self.accounts.judge(name, password) != Verdict::Wrong;
        self.judged(from, name, right);
        if !right {
            return Err(Refused::Wrong);
        }
        // Not with credentials that have changed since, and a user that is as it is now.
        let person = self.person(name).filter(|_| self.accounts.version(name) == version);
        person.ok_or(Refused::Wrong)
    }

    fn must_wait(&self, from: IpAddr, name: &str) -> Option<Duration> {
        self.accounts.throttle().must_wait(from, name, self.clock.monotonic_ns())
    }

    fn keys(&self, name: &str) -> Vec<String> {
        self.accounts.caller(name).map(|caller| caller.user.ssh_keys).unwrap_or_default()
    }

    fn authorities(&self) -> Vec<String> {
        self.authorities.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn in_any_case(&self, name: &str) -> Option<String> {
        self.accounts.in_any_case(name)
    }

    fn nt_hash(&self, name: &str) -> Option<[u8; 16]> {
        let caller = self.accounts.caller(name).filter(|_| self.accounts.keeps_nt())?;
        caller.user.nt_hash.map(|hash| hash.0)
    }

    fn judged(&self, from: IpAddr, name: &str, right: bool) {
        let (mut throttle, now) = (self.accounts.throttle(), self.clock.monotonic_ns());
        match right {
            true => throttle.succeeded(from, name, now),
            false => throttle.failed(from, name, now),
        }
    }

    fn person(&self, name: &str) -> Option<Arc<Person>> {
        let (generation, checked_ns) = (self.accounts.generation(), self.clock.monotonic_ns());
        let Some(Caller { user, rights, version }) = self.accounts.caller(name) else {
            lock(&self.known).remove(name);
            return None;
        };
        let cred = acting::cred(name, &user, &rights, &self.machine, &self.server);
        let home = user.owner.home.map(String::into_bytes);
        let person = Person { name: name.to_owned(), cred, home, anonymous: false };
        let mut known = lock(&self.known);
        if let Some(one) = known.get_mut(name).filter(|one| one.version == version)
            && *one.person == person
        {
            (one.generation, one.checked_ns) = (generation, checked_ns);
            return Some(one.person.clone());
        }
        let person = Arc::new(person);
        known.insert(
            name.to_owned(),
            CachedPerson { version, person: person.clone(), generation, checked_ns },
        );
        Some(person)
    }

    fn stands(&self, person: &Arc<Person>) -> bool {
        if person.anonymous {
            return true;
        }
        // Called for each piece of a transfer: a recent result is used again.
        let (generation, now_ns) = (self.accounts.generation(), self.clock.monotonic_ns());
        if let Some(one) = lock(&self.known).get(&person.name)
            && one.is_current(generation, now_ns)
        {
            return Arc::ptr_eq(&one.person, person);
        }
        // A user that was created again since then has another password, or other rights.
        self.person(&person.name).is_some_and(|now| Arc::ptr_eq(&now, person))
    }

    fn anonymous(&self) -> Arc<Person> {
        let cred = Cred { uid: NOBODY, gid: NOBODY, groups: Vec::new() };
        Arc::new(Person { name: ANONYMOUS.to_owned(), cred, home: None, anonymous: true })
    }

    fn generation(&self) -> u64 {
        self.accounts.generation()
    }
}

#[cfg(test)]
mod tests;
