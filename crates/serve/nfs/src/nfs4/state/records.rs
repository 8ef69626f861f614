//! Clients and their records on disk: written down before the first state is given, struck out
//! before anybody else is given what they held, and the end of the grace period.
//!
//! What is here waits for the disk, and so has no place on a connection's thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use vfs::locks::Protocol;
use wire::nfs4::Nfsstat4;

use super::clients::Client;
use super::{State, lock};

impl State {
    /// Writes a client down before it is given its first state (RFC 8881 §8.4.2.1).
    ///
    /// # Errors
    /// NFS4ERR_IO: nothing may be given to it. NFS4ERR_EXPIRED: it has just been ended.
    pub fn record(&self, client: &Client) -> Result<(), Nfsstat4> {
        // Held while it is written, so that it cannot be struck out and written in this order.
        let mut recorded = client.recorded.lock();
        if !*recorded {
            client.held.lock().room()?;
            self.records.record(&client.identity()).map_err(|_| Nfsstat4::IO)?;
            *recorded = true;
        }
        Ok(())
    }

    /// Writes a client down that has reclaimed all it wanted. Earlier it must not be: one that has
    /// reclaimed a half when the grace period ends would be given the other half after the next
    /// restart, though others had it meanwhile (RFC 8881 §8.4.3).
    ///
    /// # Errors
    /// NFS4ERR_DELAY: it has not said so.
    pub fn record_reclaimed(&self, client: &Client) -> Result<(), Nfsstat4> {
        if client.held.lock().is_empty() {
            return Ok(());
        }
        self.record(client).map_err(|_| Nfsstat4::DELAY)
    }

    /// Ends a client that is no longer in the table by name, and strikes it out. What it held is
    /// free afterwards, or, if the records cannot be written, once they can.
    pub(super) fn end(&self, client: Arc<Client>) {
        self.silence(&client);
        if self.strike(&client) {
            self.free(&client);
        } else {
            lock(&self.unforgotten).push(client);
        }
    }

    /// Strikes out a client that holds nothing any more. True if that is on disk.
    fn strike(&self, client: &Client) -> bool {
        let mut recorded = client.recorded.lock();
        if *recorded {
            *recorded = self.records.forget(&client.identity()).is_err();
        }
        !*recorded
    }

    /// Tries again to strike out those who are gone.
    pub(super) fn strike_unforgotten(&self) {
        let gone = std::mem::take(&mut *lock(&self.unforgotten));
        for client in gone {
            self.end(client);
        }
    }

    /// Ends the grace period if it is due and the records can be told so.
    pub fn end_grace_if_due(&self, now_ns: u64) {
        if !self.in_own_grace() || !lock(&self.grace).is_due(now_ns) {
            return;
        }
        if self.records.end_of_grace().is_ok() {
            lock(&self.grace).end();
            self.grace_is_on.store(false, Ordering::Relaxed);
            self.locks.end_grace(Protocol::Nfs4);
        }
    }
}
