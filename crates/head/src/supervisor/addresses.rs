//! The addresses of what this head serves: set for as long as the lease is valid, so that the
//! kernel removes them when the head does not renew it, hangs or is gone.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use host_network::cidr::Cidr;
use host_network::resource_address::ResourceAddresses;

use crate::lease;
use crate::machine::Time;

/// The addresses.
#[derive(Debug)]
pub(super) struct Addresses {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    network: ResourceAddresses,
    /// By link and address.
    set: BTreeMap<(String, Cidr), ()>,
    until: Time,
}

impl Addresses {
    /// None yet.
    pub(super) fn open() -> io::Result<Self> {
        let network = ResourceAddresses::open()?;
        // Resources bind their address before it is there, so that no client is refused meanwhile.
        for family in ["ipv4", "ipv6"] {
            let path = format!("/proc/sys/net/{family}/ip_nonlocal_bind");
            match std::fs::write(&path, "1") {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        let state = State { network, set: BTreeMap::new(), until: Time::ZERO };
        Ok(Self { state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What it guards is whole between any two calls.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lease is valid until then, and so are all addresses.
    pub(super) fn extend(&self, until: Time) {
        let mut state = self.state();
        state.until = until;
        let all: Vec<_> = state.set.keys().cloned().collect();
        for (link, cidr) in all {
            if let Err(why) = state.set_one(&link, cidr) {
                base::warning!("head", "the address {cidr} cannot be set on {link}: {why}");
            }
        }
    }

    /// Sets an address and announces it.
    pub(super) fn add(&self, link: &str, cidr: Cidr) -> Result<(), String> {
        let mut state = self.state();
        state.set_one(link, cidr)?;
        state.set.insert((link.to_owned(), cidr), ());
        drop(state);
        self.announce(link, cidr);
        Ok(())
    }

    /// Announces an address if it is still set; whether it is.
    pub(super) fn announce(&self, link: &str, cidr: Cidr) -> bool {
        let mut state = self.state();
        let is_set = state.set.contains_key(&(link.to_owned(), cidr));
        if is_set && let Err(why) = state.network.announce(link, cidr.address) {
            base::warning!("head", "the address {cidr} cannot be announced on {link}: {why}");
        }
        is_set
    }

    /// Removes an address.
    pub(super) fn remove(&self, link: &str, cidr: Cidr) {
        let mut state = self.state();
        state.set.remove(&(link.to_owned(), cidr));
        if let Err(why) = state.network.remove(link, cidr) {
            base::warning!("head", "the address {cidr} cannot be removed from {link}: {why}");
        }
    }
}

impl State {
    /// Sets an address for what is left of the lease, in whole seconds.
    fn set_one(&mut self, link: &str, cidr: Cidr) -> Result<(), String> {
        let left = self.until.saturating_sub(lease::now());
        if left.is_zero() {
            return Err("the lease is over".to_owned());
        }
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        self.network.set(link, cidr, u32::try_from(seconds).unwrap_or(u32::MAX))
    }
}
