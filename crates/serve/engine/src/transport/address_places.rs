//! Places of which each address has the same number, whatever names its hosts have: what waits for
//! those of one does not hold up others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use base::peer::network;
use tokio::sync::Semaphore;

/// The places.
pub struct AddressPlaces {
    each: usize,
    of: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
}

impl AddressPlaces {
    /// This number for each.
    pub fn new(each: usize) -> Self {
        Self { each, of: Mutex::default() }
    }

    /// Those of an address ([`network`]). They are forgotten when none of them is held or waited
    /// for.
    pub fn of(&self, address: IpAddr) -> Arc<Semaphore> {
        let address = network(address);
        // Nothing under this lock panics.
        let mut all = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = all.get(&address).and_then(Weak::upgrade) {
            return places;
        }
        all.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.each));
        all.insert(address, Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests;
