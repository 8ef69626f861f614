//! How many of something each address has, and all of them together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The counts. Addresses that have none are not kept.
#[derive(Debug, Default)]
pub struct Tally {
    each: HashMap<IpAddr, usize>,
    all: usize,
}

impl Tally {
    /// How many this address has.
    pub fn of(&self, address: IpAddr) -> usize {
        self.each.get(&address).copied().unwrap_or(0)
    }

    /// How many there are.
    pub fn all(&self) -> usize {
        self.all
    }

    /// How many addresses have any.
    pub fn addresses(&self) -> usize {
        self.each.len()
    }

    /// One more.
    pub fn add(&mut self, address: IpAddr) {
        self.all += 1;
        *self.each.entry(address).or_default() += 1;
    }

    /// One less, of those that were added.
    pub fn remove(&mut self, address: IpAddr) {
        let Entry::Occupied(mut of_it) = self.each.entry(address) else { return };
        self.all -= 1;
        *of_it.get_mut() -= 1;
        if *of_it.get() == 0 {
            of_it.remove();
        }
    }
}

/// Permits with a limit in all, and a limit for each address.
#[derive(Debug, Default)]
pub struct AddressPermits {
    taken: Mutex<Tally>,
}

/// One permit; given back when dropped.
#[derive(Debug)]
pub struct AddressPermit {
    permits: Arc<AddressPermits>,
    address: IpAddr,
}

impl AddressPermits {
    fn lock(&self) -> MutexGuard<'_, Tally> {
        // Nothing under this lock panics.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for an address, where there may be `most`, and `most_each` of an address; `None` if
    /// these are taken.
    pub fn take(
        self: &Arc<Self>,
        address: IpAddr,
        (most, most_each): (usize, usize),
    ) -> Option<AddressPermit> {
        let mut taken = self.lock();
        if taken.all() >= most || taken.of(address) >= most_each {
            return None;
        }
        taken.add(address);
        Some(AddressPermit { permits: Arc::clone(self), address })
    }

    /// Permits taken.
    pub fn taken(&self) -> usize {
        self.lock().all()
    }

    /// Addresses that have any.
    pub fn addresses(&self) -> usize {
        self.lock().addresses()
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        self.permits.lock().remove(self.address);
    }
}

#[cfg(test)]
mod tests;
