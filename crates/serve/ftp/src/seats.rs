//! Places for control connections: so many in all, so many for each address.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::settings::Settings;
use engine::transport::tally::Tally;

/// Who is there.
#[derive(Debug, Default)]
pub(super) struct SessionLimits {
    taken: Mutex<Tally>,
}

/// One place, until it is dropped.
pub(super) struct Seat {
    seats: Arc<SessionLimits>,
    from: IpAddr,
}

impl SessionLimits {
    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for an address; `None` if there are too many.
    pub(super) fn take(self: &Arc<Self>, from: IpAddr, settings: &Settings) -> Option<Seat> {
        let mut taken = self.lock();
        let full = taken.all() >= settings.connections_max;
        if full || taken.of(from) >= settings.per_address_max {
            return None;
        }
        taken.add(from);
        Some(Seat { seats: Arc::clone(self), from })
    }

    /// Places taken.
    pub(super) fn taken(&self) -> usize {
        self.lock().all()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().remove(self.from);
    }
}

#[cfg(test)]
mod tests;
