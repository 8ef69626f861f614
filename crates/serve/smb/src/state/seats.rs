//! How much opens take, in all and of each client: one that opens without end leaves others their
//! part. In units of [`SMB_OPEN_UNIT`]: an open is one, and more if its path is long.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::limits::{SMB_OPEN_UNIT, SMB_OPEN_UNITS_MAX, SMB_OPEN_UNITS_PER_CLIENT};
use base::peer;

/// All of them.
#[derive(Debug, Default)]
pub struct OpenBudget {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    taken: usize,
    by_client: HashMap<IpAddr, usize>,
}

/// What one open takes; given back when dropped.
#[derive(Debug)]
pub struct OpenReservation {
    seats: Arc<OpenBudget>,
    client: IpAddr,
    units: Cell<usize>,
}

/// Units of an open with `bytes` bytes of its own.
const fn units_of(bytes: usize) -> usize {
    1 + bytes / SMB_OPEN_UNIT
}

impl OpenBudget {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what an open with `bytes` bytes of its own needs; `None` if the client, or all
    /// together, have too many.
    pub fn take(self: &Arc<Self>, from: IpAddr, bytes: usize) -> Option<OpenReservation> {
        let none = OpenReservation {
            seats: Arc::clone(self),
            client: peer::network(from),
            units: Cell::new(0),
        };
        none.change(units_of(bytes)).then_some(none)
    }

    /// Units that are taken.
    pub fn taken(&self) -> usize {
        self.inner().taken
    }
}

impl OpenReservation {
    /// Takes what an open with `bytes` bytes of its own needs, in place of what it has, which it
    /// gives; `None` if that is too much.
    pub fn resize(&self, bytes: usize) -> Option<usize> {
        let before = self.units.get();
        self.change(units_of(bytes)).then_some(before)
    }

    /// Takes `units` units in place of those that it has; fewer are never too many.
    pub fn change(&self, units: usize) -> bool {
        let before = self.units.get();
        let mut inner = self.seats.inner();
        let own = inner.by_client.get(&self.client).copied().unwrap_or(0);
        let own = own.saturating_sub(before) + units;
        let taken = inner.taken.saturating_sub(before) + units;
        let is_much = own > SMB_OPEN_UNITS_PER_CLIENT || taken > SMB_OPEN_UNITS_MAX;
        if units > before && is_much {
            return false;
        }
        inner.taken = taken;
        match own {
            0 => drop(inner.by_client.remove(&self.client)),
            own => drop(inner.by_client.insert(self.client, own)),
        }
        self.units.set(units);
        true
    }
}

impl Drop for OpenReservation {
    fn drop(&mut self) {
        self.change(0);
    }
}

#[cfg(test)]
mod tests;
