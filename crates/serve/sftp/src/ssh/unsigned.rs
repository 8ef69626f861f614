//! Connections before sign-in. Their key exchange is expensive, and unauthenticated clients cause
//! it: their number is limited, in all and for each client, and a client with connections that end
//! without sign-in is refused for a time.
//!
//! The penalties are those of OpenSSH 9.8 (`PerSourcePenalties`, sshd_config(5)): each such end
//! adds a penalty to its client, which decays with time, and above a threshold the client is
//! refused before anything is computed for it. Wrong passwords are delayed elsewhere as well, for
//! all services together. A pure state machine: monotonic nanoseconds are handed in.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::limits::{
    SSH_PENALTIES_KEPT, SSH_PENALTY_MAX, SSH_PENALTY_MIN, SSH_UNSIGNED_MAX, SSH_UNSIGNED_PEER_MAX,
};
use base::peer::network;
use base::permits::{PermitLimits, PermitTable, RevokeSignal};

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct Unsigned(Arc<Mutex<UnsignedClients>>);

#[derive(Debug)]
struct UnsignedClients {
    here: PermitTable,
    /// Until when what is on a client's account is taken off.
    owed: HashMap<IpAddr, u64>,
}

/// A place among them, until it is dropped.
#[derive(Debug)]
pub struct UnsignedPermit {
    all: Unsigned,
    from: IpAddr,
    id: u64,
}

impl Default for UnsignedClients {
    fn default() -> Self {
        Self { here: PermitTable::new(1), owed: HashMap::new() }
    }
}

impl Unsigned {
    fn lock(&self) -> MutexGuard<'_, UnsignedClients> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lock().here.taken()
    }

    /// A place for a client, unless it must wait. If there are too many, one of them ends: it
    /// learns that from its signal.
    pub fn enter(
        &self,
        from: IpAddr,
        now_ns: u64,
        signal: Option<Arc<RevokeSignal>>,
    ) -> Option<UnsignedPermit> {
        let from = network(from);
        let mut strangers = self.lock();
        if strangers.owes(from, now_ns) > SSH_PENALTY_MIN {
            return None;
        }
        let limits = PermitLimits::new(SSH_UNSIGNED_MAX, SSH_UNSIGNED_PEER_MAX);
        let taken = strangers.here.take(0, from, limits, signal.unwrap_or_default())?;
        Some(UnsignedPermit { all: self.clone(), from, id: taken.id })
    }
}

impl UnsignedClients {
    fn owes(&self, from: IpAddr, now_ns: u64) -> Duration {
        let until = self.owed.get(&from).copied().unwrap_or(0);
        Duration::from_nanos(until.saturating_sub(now_ns))
    }

    fn charge(&mut self, from: IpAddr, penalty: Duration, now_ns: u64) {
        let owed = self.owes(from, now_ns).saturating_add(penalty).min(SSH_PENALTY_MAX);
        if self.owed.len() >= SSH_PENALTIES_KEPT && !self.owed.contains_key(&from) {
            self.owed.retain(|_, until| *until > now_ns);
        }
        // A flood from this many addresses is not stopped by one more entry.
        if self.owed.len() < SSH_PENALTIES_KEPT || self.owed.contains_key(&from) {
            self.owed.insert(from, now_ns.saturating_add(owed.as_nanos() as u64));
        }
    }
}

impl UnsignedPermit {
    /// The connection has ended without sign-in: adds this penalty to its client.
    pub fn charge(&self, penalty: Duration, now_ns: u64) {
        self.all.lock().charge(self.from, penalty, now_ns);
    }
}

impl Drop for UnsignedPermit {
    fn drop(&mut self) {
        self.all.lock().here.give(self.id);
    }
}

#[cfg(test)]
mod tests;
