//! Bytes that are held for the clients of each address, with a limit for all of them and for each.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Tally;

/// The bytes.
#[derive(Debug, Default)]
pub struct AddressBytes {
    taken: Mutex<Tally>,
}

impl AddressBytes {
    fn lock(&self) -> MutexGuard<'_, Tally> {
        // Nothing under this lock panics.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes for an address where there may be `most`, and `most_each` of an address; false,
    /// with nothing taken, if these would be more.
    pub fn take(&self, address: IpAddr, bytes: u64, (most, most_each): (u64, u64)) -> bool {
        self.lock().add(address, bytes, (most, most_each))
    }

    /// Gives bytes back that were taken.
    pub fn give(&self, address: IpAddr, bytes: u64) {
        self.lock().remove(address, bytes);
    }

    /// Bytes that are taken.
    pub fn taken(&self) -> u64 {
        self.lock().all()
    }

    /// Bytes of an address.
    pub fn of(&self, address: IpAddr) -> u64 {
        self.lock().of(address)
    }
}
