//! Who is signed in: sessions, one-time sign-in URLs, and the patience with wrong passwords.
//!
//! A pure state machine: monotonic nanoseconds are handed in, tokens come from the caller's
//! generator, every table is bounded.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use base::limits::{
    LOGIN_ONCE_AGE, LOGIN_ONCE_MAX, SESSION_AGE, SESSION_IDLE, SESSIONS_MAX, SIGN_IN_FREE_FAILURES,
    SIGN_IN_MEMORY, SIGN_IN_PEERS_MAX, SIGN_IN_WAIT_MAX,
};

/// All sign-in state of one server.
#[derive(Debug, Default)]
pub struct Sessions {
    sessions: HashMap<String, Session>,
    once: HashMap<String, Once>,
    failures: HashMap<IpAddr, Failures>,
}

#[derive(Debug)]
struct Session {
    user: String,
    since_ns: u64,
    used_ns: u64,
}

#[derive(Debug)]
struct Once {
    user: String,
    since_ns: u64,
}

#[derive(Debug)]
struct Failures {
    count: u32,
    last_ns: u64,
}

impl Sessions {
    /// Opens a session of `user` under `token`, which must be unguessable.
    pub fn open(&mut self, token: String, user: &str, now_ns: u64) {
        self.sessions.retain(|_, s| s.is_alive(now_ns));
        if self.sessions.len() >= SESSIONS_MAX {
            make_room(&mut self.sessions, |s| s.used_ns);
        }
        let session = Session { user: user.to_owned(), since_ns: now_ns, used_ns: now_ns };
        self.sessions.insert(token, session);
    }

    /// The user of a session, which counts as its use.
    pub fn user(&mut self, token: &str, now_ns: u64) -> Option<String> {
        let session = self.sessions.get_mut(token)?;
        if !session.is_alive(now_ns) {
            self.sessions.remove(token);
            return None;
        }
        session.used_ns = now_ns;
        Some(session.user.clone())
    }

    /// Ends a session. Unknown tokens are no error: it is over either way.
    pub fn close(&mut self, token: &str) {
        self.sessions.remove(token);
    }

    /// Makes `token` good for one sign-in as `user`.
    pub fn offer_once(&mut self, token: String, user: &str, now_ns: u64) {
        self.once.retain(|_, once| age(once.since_ns, now_ns) < LOGIN_ONCE_AGE);
        if self.once.len() >= LOGIN_ONCE_MAX {
            make_room(&mut self.once, |once| once.since_ns);
        }
        self.once.insert(token, Once { user: user.to_owned(), since_ns: now_ns });
    }

    /// Uses a one-time token up.
    pub fn take_once(&mut self, token: &str, now_ns: u64) -> Option<String> {
        let once = self.once.remove(token)?;
        (age(once.since_ns, now_ns) < LOGIN_ONCE_AGE).then_some(once.user)
    }

    /// How long `peer` must wait before its next password is looked at, if it must.
    pub fn must_wait(&self, peer: IpAddr, now_ns: u64) -> Option<Duration> {
        let failures = self.failures.get(&peer)?;
        let beyond = failures.count.checked_sub(SIGN_IN_FREE_FAILURES)?;
        // 1 s, 2 s, 4 s, …; the shift is capped long before it could overflow.
        let wait = Duration::from_secs(1 << beyond.min(16)).min(SIGN_IN_WAIT_MAX);
        wait.checked_sub(age(failures.last_ns, now_ns)).filter(|left| !left.is_zero())
    }

    /// Remembers a wrong password.
    pub fn failed(&mut self, peer: IpAddr, now_ns: u64) {
        self.failures.retain(|_, f| age(f.last_ns, now_ns) < SIGN_IN_MEMORY);
        if self.failures.len() >= SIGN_IN_PEERS_MAX && !self.failures.contains_key(&peer) {
            make_room(&mut self.failures, |f| f.last_ns);
        }
        let failures = self.failures.entry(peer).or_insert(Failures { count: 0, last_ns: 0 });
        failures.count = failures.count.saturating_add(1);
        failures.last_ns = now_ns;
    }

    /// Forgets the wrong passwords of a peer that has now sent a right one.
    pub fn succeeded(&mut self, peer: IpAddr) {
        self.failures.remove(&peer);
    }
}

impl Session {
    fn is_alive(&self, now_ns: u64) -> bool {
        age(self.used_ns, now_ns) < SESSION_IDLE && age(self.since_ns, now_ns) < SESSION_AGE
    }
}

fn age(since_ns: u64, now_ns: u64) -> Duration {
    Duration::from_nanos(now_ns.saturating_sub(since_ns))
}

/// Removes the entry with the smallest `key`: a full table never refuses newcomers.
fn make_room<K: Clone + Eq + std::hash::Hash, V>(
    table: &mut HashMap<K, V>,
    key: impl Fn(&V) -> u64,
) {
    let oldest = table.iter().min_by_key(|(_, value)| key(value)).map(|(k, _)| k.clone());
    if let Some(oldest) = oldest {
        table.remove(&oldest);
    }
}

#[cfg(test)]
mod tests;
