//! How many of something each address has, and all of them together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;

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

#[cfg(test)]
mod tests;
