//! The number of something that each address has, and of all of them. What one client may have of a
//! table, where the entry that is removed for a new one is of the client with most.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::bytes::AddressBytes;

mod bytes;

/// The amounts. Addresses that have none are not kept.
#[derive(Debug, Default)]
pub struct Tally {
    each: HashMap<IpAddr, u64>,
    all: u64,
}

impl Tally {
    /// How much this address has.
    pub fn of(&self, address: IpAddr) -> u64 {
        self.each.get(&address).copied().unwrap_or(0)
    }

    /// How much there is.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// How many addresses have any.
    pub fn addresses(&self) -> usize {
        self.each.len()
    }

    /// Adds an amount for an address where there may be `most`, and `most_each` of an address;
    /// false, with nothing added, if that would be more.
    pub fn add(&mut self, address: IpAddr, n: u64, (most, most_each): (u64, u64)) -> bool {
        let fits = |held: u64, most| held.checked_add(n).is_some_and(|sum| sum <= most);
        if !fits(self.all, most) || !fits(self.of(address), most_each) {
            return false;
        }
        if n > 0 {
            self.all += n;
            *self.each.entry(address).or_default() += n;
        }
        true
    }

    /// Takes off an amount of those that were added.
    pub fn remove(&mut self, address: IpAddr, n: u64) {
        let Entry::Occupied(mut of_it) = self.each.entry(address) else { return };
        let n = n.min(*of_it.get());
        self.all -= n;
        *of_it.get_mut() -= n;
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
        let is_taken = self.lock().add(address, 1, (most as u64, most_each as u64));
        is_taken.then(|| AddressPermit { permits: Arc::clone(self), address })
    }

    /// Permits taken.
    pub fn taken(&self) -> usize {
        self.lock().all() as usize
    }

    /// Addresses that have any.
    pub fn addresses(&self) -> usize {
        self.lock().addresses()
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        self.permits.lock().remove(self.address, 1);
    }
}

/// Removes one entry of a full table for a new one: of the first owner with most entries (such as a
/// user), at its second with most of these (such as an address), the one with the smallest `rank`.
/// So an owner loses its own entries before it takes those of others.
pub fn evict_of_most<K: Clone + Eq + Hash, V, A: Clone + Eq + Hash, B: Clone + Eq + Hash>(
    table: &mut HashMap<K, V>,
    owner: impl Fn(&V) -> (A, B),
    rank: impl Fn(&V) -> u64,
) -> Option<V> {
    let first = most(table.values().map(|value| (owner(value).0, rank(value))))?;
    let of_first = table.values().map(|value| (owner(value), rank(value)));
    let second = most(of_first.filter(|((a, _), _)| *a == first).map(|((_, b), at)| (b, at)))?;
    let is_theirs = |value: &V| owner(value) == (first.clone(), second.clone());
    let rows = table.iter().filter(|(_, value)| is_theirs(value));
    let oldest = rows.min_by_key(|(_, value)| rank(value)).map(|(key, _)| key.clone())?;
    table.remove(&oldest)
}

/// The owner with most entries; of several, the one with the smallest rank.
fn most<T: Eq + Hash>(entries: impl Iterator<Item = (T, u64)>) -> Option<T> {
    let mut all: HashMap<T, (usize, u64)> = HashMap::new();
    for (owner, rank) in entries {
        let (count, least) = all.entry(owner).or_insert((0, rank));
        (*count, *least) = (*count + 1, rank.min(*least));
    }
    let most = all.into_iter().max_by_key(|(_, (count, least))| (*count, Reverse(*least)));
    most.map(|(owner, _)| owner)
}

#[cfg(test)]
mod tests;
