//! Signed-in users: sessions and one-time sign-in URLs.
//!
//! A pure state machine: monotonic nanoseconds are handed in, tokens come from the caller's
//! generator, every table is bounded. Tokens are kept as digests: what leaks from here opens
//! nothing, and looking one up takes no time that depends on the secret.

pub mod node;

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use base::limits::{LOGIN_ONCE_AGE, LOGIN_ONCE_MAX, SESSION_AGE, SESSION_IDLE, SESSIONS_MAX};
use base::peer::network;
use base::tally::evict_of_most;
use base::throttle::{age, make_room};

use crate::state::files::{Digest, digest};

/// All sessions of one server.
#[derive(Debug)]
pub struct Sessions {
    sessions: HashMap<Digest, Session>,
    once: HashMap<Digest, Once>,
    /// The public id of the next session.
    next: u64,
    lifetime: Lifetime,
}

/// When sessions end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// After this time without a request.
    pub idle: Duration,
    /// After this time whatever happens.
    pub age: Duration,
}

impl Default for Lifetime {
    fn default() -> Self {
        Self { idle: SESSION_IDLE, age: SESSION_AGE }
    }
}

#[derive(Debug)]
struct Session {
    id: u64,
    user: String,
    from: IpAddr,
    since_ns: u64,
    used_ns: u64,
}

#[derive(Debug)]
struct Once {
    user: String,
    since_ns: u64,
}

/// A session as people may see it: nothing in it opens anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its public name, `s1`, `s2`, … since the start of the server.
    pub id: String,
    /// Its user.
    pub user: String,
    /// Where it was opened.
    pub from: IpAddr,
    /// How long it has been open.
    pub open: Duration,
    /// How long it has not been used.
    pub idle: Duration,
}

impl Default for Sessions {
    fn default() -> Self {
        let lifetime = Lifetime::default();
        Self { sessions: HashMap::new(), once: HashMap::new(), next: 1, lifetime }
    }
}

impl Sessions {
    /// Sets when sessions end; those open already follow.
    pub fn set_lifetime(&mut self, lifetime: Lifetime) {
        self.lifetime = lifetime;
    }

    /// When sessions end.
    pub fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// Opens a session of `user` under `token`, which must be unguessable.
    pub fn open(&mut self, token: &str, user: &str, from: IpAddr, now_ns: u64) {
        self.drop_ended(now_ns);
        if self.sessions.len() >= SESSIONS_MAX {
            let owner = |s: &Session| (s.user.clone(), network(s.from));
            evict_of_most(&mut self.sessions, owner, |s| s.used_ns);
        }
        let id = self.next;
        self.next += 1;
        let from = from.to_canonical();
        let session =
            Session { id, user: user.to_owned(), from, since_ns: now_ns, used_ns: now_ns };
        self.sessions.insert(digest(token), session);
    }

    /// The session of a token. A lookup counts as its use.
    pub fn find(&mut self, token: &str, now_ns: u64) -> Option<SessionInfo> {
        let key = digest(token);
        let session = self.sessions.get_mut(&key)?;
        if !session.is_alive(self.lifetime, now_ns) {
            self.sessions.remove(&key);
            return None;
        }
        session.used_ns = now_ns;
        Some(session.seen(now_ns))
    }

    /// The session of a token, without using it.
    pub fn look(&self, token: &str, now_ns: u64) -> Option<SessionInfo> {
        let session = self.sessions.get(&digest(token))?;
        session.is_alive(self.lifetime, now_ns).then(|| session.seen(now_ns))
    }

    /// All sessions, the oldest first.
    pub fn list(&mut self, now_ns: u64) -> Vec<SessionInfo> {
        self.drop_ended(now_ns);
        let mut sessions: Vec<&Session> = self.sessions.values().collect();
        sessions.sort_by_key(|s| s.id);
        sessions.into_iter().map(|s| s.seen(now_ns)).collect()
    }

    /// Ends a session by its token. Unknown tokens are no error: it is over either way.
    pub fn close(&mut self, token: &str) {
        self.sessions.remove(&digest(token));
    }

    /// Ends a session by its public name; whether there was one.
    pub fn end(&mut self, id: &str, now_ns: u64) -> bool {
        self.drop_ended(now_ns);
        let before = self.sessions.len();
        self.sessions.retain(|_, s| s.name() != id);
        self.sessions.len() < before
    }

    /// Ends the sessions and the one-time URLs of all users for which `stays` is false.
    pub fn end_others(&mut self, stays: impl Fn(&str) -> bool) {
        self.sessions.retain(|_, s| stays(&s.user));
        self.once.retain(|_, once| stays(&once.user));
    }

    /// Makes `token` good for one sign-in as `user`.
    pub fn offer_once(&mut self, token: &str, user: &str, now_ns: u64) {
        self.once.retain(|_, once| age(once.since_ns, now_ns) < LOGIN_ONCE_AGE);
        if self.once.len() >= LOGIN_ONCE_MAX {
            make_room(&mut self.once, |once| once.since_ns);
        }
        self.once.insert(digest(token), Once { user: user.to_owned(), since_ns: now_ns });
    }

    /// Uses a one-time token up.
    pub fn take_once(&mut self, token: &str, now_ns: u64) -> Option<String> {
        let once = self.once.remove(&digest(token))?;
        (age(once.since_ns, now_ns) < LOGIN_ONCE_AGE).then_some(once.user)
    }

    fn drop_ended(&mut self, now_ns: u64) {
        let lifetime = self.lifetime;
        self.sessions.retain(|_, s| s.is_alive(lifetime, now_ns));
    }
}

impl Session {
    fn is_alive(&self, lifetime: Lifetime, now_ns: u64) -> bool {
        age(self.used_ns, now_ns) < lifetime.idle && age(self.since_ns, now_ns) < lifetime.age
    }

    fn name(&self) -> String {
        format!("s{}", self.id)
    }

    fn seen(&self, now_ns: u64) -> SessionInfo {
        let (open, idle) = (age(self.since_ns, now_ns), age(self.used_ns, now_ns));
        SessionInfo { id: self.name(), user: self.user.clone(), from: self.from, open, idle }
    }
}

#[cfg(test)]
mod tests;
