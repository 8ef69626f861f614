//! Bytes that are held for the clients of each address, with a limit for all of them and for each.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bytes. Addresses that have none are not kept.
#[derive(Debug, Default)]
pub struct AddressBytes {
    taken: Mutex<ByteCounts>,
}

#[derive(Debug, Default)]
struct ByteCounts {
    each: HashMap<IpAddr, u64>,
    all: u64,
}

impl AddressBytes {
    fn lock(&self) -> MutexGuard<'_, ByteCounts> {
        // Nothing under this lock panics.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes for an address where there may be `most`, and `most_each` of an address; false,
    /// with nothing taken, if these would be more.
    pub fn take(&self, address: IpAddr, bytes: u64, (most, most_each): (u64, u64)) -> bool {
        let mut taken = self.lock();
        let (all, of_it) = (taken.all, taken.each.get(&address).copied().unwrap_or(0));
        let fits = |held: u64, most| held.checked_add(bytes).is_some_and(|sum| sum <= most);
        if !fits(all, most) || !fits(of_it, most_each) {
            return false;
        }
        if bytes > 0 {
            taken.all = all + bytes;
            taken.each.insert(address, of_it + bytes);
        }
        true
    }

    /// Gives bytes back that were taken.
    pub fn give(&self, address: IpAddr, bytes: u64) {
        let mut taken = self.lock();
        let of_it = taken.each.get(&address).copied().unwrap_or(0);
        let bytes = bytes.min(of_it);
        taken.all -= bytes;
        match of_it - bytes {
            0 => taken.each.remove(&address),
            left => taken.each.insert(address, left),
        };
    }

    /// Bytes that are taken.
    pub fn taken(&self) -> u64 {
        self.lock().all
    }

    /// Bytes of an address.
    pub fn of(&self, address: IpAddr) -> u64 {
        self.lock().each.get(&address).copied().unwrap_or(0)
    }
}
