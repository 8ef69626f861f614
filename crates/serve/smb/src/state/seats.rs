//! How much opens take, in all and of each client: one that opens without end keeps nobody else
//! out. In units of [`SMB_OPEN_UNIT`]: an open is one, and more if its path is long.

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
    units: usize,
}

impl OpenBudget {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what an open with so many bytes of its own needs; `None` if the client, or all
    /// together, have too many.
    pub fn take(self: &Arc<Self>, from: IpAddr, bytes: usize) -> Option<OpenReservation> {
        let (client, units) = (peer::network(from), 1 + bytes / SMB_OPEN_UNIT);
        let mut inner = self.inner();
        let own = inner.by_client.get(&client).copied().unwrap_or(0) + units;
        let taken = inner.taken + units;
        if own > SMB_OPEN_UNITS_PER_CLIENT || taken > SMB_OPEN_UNITS_MAX {
            return None;
        }
        inner.taken = taken;
        inner.by_client.insert(client, own);
        Some(OpenReservation { seats: Arc::clone(self), client, units })
    }

    /// Units that are taken.
    pub fn taken(&self) -> usize {
        self.inner().taken
    }
}

impl Drop for OpenReservation {
    fn drop(&mut self) {
        let mut inner = self.seats.inner();
        inner.taken = inner.taken.saturating_sub(self.units);
        let own = inner.by_client.get(&self.client).copied().unwrap_or(0);
        match own.saturating_sub(self.units) {
            0 => drop(inner.by_client.remove(&self.client)),
            left => drop(inner.by_client.insert(self.client, left)),
        }
    }
}

#[cfg(test)]
mod tests;
