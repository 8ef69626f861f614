//! Throttling after wrong passwords, by address and by name.
//!
//! A pure state machine: monotonic nanoseconds are handed in, every table is bounded. An address
//! soon waits, a second and then twice as long each time. A name that is tried from many addresses
//! waits too, but not at addresses from which its owner has signed in before: a client that knows a
//! name must not be able to lock its owner out. Names that do not exist are treated like those that
//! do.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

use crate::limits::{
    SIGN_IN_FREE_FAILURES, SIGN_IN_KNOWN_AGE, SIGN_IN_KNOWN_MAX, SIGN_IN_MEMORY,
    SIGN_IN_NAME_FREE_FAILURES, SIGN_IN_NAME_WAIT_MAX, SIGN_IN_NAMES_MAX, SIGN_IN_PEERS_MAX,
    SIGN_IN_WAIT_MAX, USER_NAME_MAX,
};
use crate::peer::network;

/// What is remembered of wrong passwords.
#[derive(Debug, Default)]
pub struct Throttle {
    addresses: HashMap<IpAddr, Failures>,
    names: HashMap<String, Failures>,
    known: HashMap<(String, IpAddr), u64>,
}

#[derive(Debug, Default)]
struct Failures {
    count: u32,
    last_ns: u64,
}

impl Failures {
    fn add(&mut self, now_ns: u64) {
        self.count = self.count.saturating_add(1);
        self.last_ns = now_ns;
    }

    /// 1 s, 2 s, 4 s, … after `free` failures, up to `most`.
    fn wait(&self, free: u32, most: Duration, now_ns: u64) -> Option<Duration> {
        let beyond = self.count.checked_sub(free)?;
        // The shift is capped long before it could overflow.
        let wait = Duration::from_secs(1 << beyond.min(16)).min(most);
        wait.checked_sub(age(self.last_ns, now_ns)).filter(|left| !left.is_zero())
    }
}

impl Throttle {
    /// How long `peer` must wait before its next password for `name` is looked at, if it must.
    pub fn must_wait(&self, peer: IpAddr, name: &str, now_ns: u64) -> Option<Duration> {
        let (peer, name) = (network(peer), kept(name));
        let by_address = self
            .addresses
            .get(&peer)
            .and_then(|f| f.wait(SIGN_IN_FREE_FAILURES, SIGN_IN_WAIT_MAX, now_ns));
        if self.is_known(&name, peer, now_ns) {
            return by_address;
        }
        let by_name = self
            .names
            .get(&name)
            .and_then(|f| f.wait(SIGN_IN_NAME_FREE_FAILURES, SIGN_IN_NAME_WAIT_MAX, now_ns));
        by_address.max(by_name)
    }

    /// Remembers a wrong password.
    pub fn failed(&mut self, peer: IpAddr, name: &str, now_ns: u64) {
        let recent = |f: &Failures| age(f.last_ns, now_ns) < SIGN_IN_MEMORY;
        let last = |f: &Failures| f.last_ns;
        self.addresses.retain(|_, f| recent(f));
        self.names.retain(|_, f| recent(f));
        entry(&mut self.addresses, network(peer), SIGN_IN_PEERS_MAX, last).add(now_ns);
        entry(&mut self.names, kept(name), SIGN_IN_NAMES_MAX, last).add(now_ns);
    }

    /// Forgets the wrong passwords of a peer that has now sent a right one, and knows it from now
    /// on. Those that others sent for the same name still count.
    pub fn succeeded(&mut self, peer: IpAddr, name: &str, now_ns: u64) {
        let peer = network(peer);
        self.addresses.remove(&peer);
        self.known.retain(|_, since| age(*since, now_ns) < SIGN_IN_KNOWN_AGE);
        *entry(&mut self.known, (kept(name), peer), SIGN_IN_KNOWN_MAX, |since| *since) = now_ns;
    }

    fn is_known(&self, name: &str, peer: IpAddr, now_ns: u64) -> bool {
        let since = self.known.get(&(name.to_owned(), peer));
        since.is_some_and(|since| age(*since, now_ns) < SIGN_IN_KNOWN_AGE)
    }
}

/// A name as it is remembered. Names that are too long for any user share one entry.
fn kept(name: &str) -> String {
    if name.len() > USER_NAME_MAX { String::new() } else { name.to_owned() }
}

/// The entry of `key`; a full table drops the one with the smallest `rank`.
fn entry<K: Clone + Eq + Hash, V: Default>(
    table: &mut HashMap<K, V>,
    key: K,
    most: usize,
    rank: impl Fn(&V) -> u64,
) -> &mut V {
    if table.len() >= most && !table.contains_key(&key) {
        make_room(table, rank);
    }
    table.entry(key).or_default()
}

/// Removes the entry with the smallest `rank`: a full table never refuses newcomers.
pub fn make_room<K: Clone + Eq + Hash, V>(table: &mut HashMap<K, V>, rank: impl Fn(&V) -> u64) {
    let oldest = table.iter().min_by_key(|(_, value)| rank(value)).map(|(k, _)| k.clone());
    if let Some(oldest) = oldest {
        table.remove(&oldest);
    }
}

/// The time since a moment.
pub fn age(since_ns: u64, now_ns: u64) -> Duration {
    Duration::from_nanos(now_ns.saturating_sub(since_ns))
}

#[cfg(test)]
mod tests;
