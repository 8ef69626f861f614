//! Clients and their records on disk: a record is written before the client's first state is
//! granted, and removed before what the client held is granted to others; and the end of the grace
//! period.
//!
//! These calls wait for the disk, and so must not run on a connection's thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use vfs::locks::Protocol;
use wire::nfs4::Nfsstat4;

use super::clients::{Client, RecordState};
use super::{State, lock};

/// A client that may be given state: it is on record until this is dropped, and from then on if it
/// holds something.
pub struct OnRecord<'a> {
    state: &'a State,
    client: &'a Client,
}

impl Drop for OnRecord<'_> {
    fn drop(&mut self) {
        self.state.forget_unused(self.client);
    }
}

impl State {
    /// Writes a client down before it is given its first state (RFC 8881 §8.4.2.1).
    ///
    /// # Errors
    /// NFS4ERR_IO: nothing may be given to it. NFS4ERR_EXPIRED: it has just been ended.
    pub fn record<'a>(&'a self, client: &'a Client) -> Result<OnRecord<'a>, Nfsstat4> {
        let mut recorded = client.recorded.lock();
        self.write(client, &mut recorded)?;
        recorded.in_progress += 1;
        Ok(OnRecord { state: self, client })
    }

    /// Held while it is written, so that it cannot be struck out and written in this order.
    fn write(&self, client: &Client, recorded: &mut RecordState) -> Result<(), Nfsstat4> {
        if !recorded.on_disk {
            client.held.lock().room()?;
            self.records.record(&client.identity()).map_err(|_| Nfsstat4::IO)?;
            recorded.on_disk = true;
            recorded.is_unused = true;
        }
        Ok(())
    }

    /// An operation has ended that could have given state to a client. If that was the first and it
    /// failed, the client has nothing to reclaim: its record would only prolong the next grace
    /// period. In a grace period of this server the record stays, since it may be of before.
    fn forget_unused(&self, client: &Client) {
        let mut recorded = client.recorded.lock();
        recorded.in_progress -= 1;
        if !recorded.is_unused {
            return;
        }
        if !client.held.lock().is_empty() {
            recorded.is_unused = false;
        } else if recorded.in_progress == 0 && recorded.on_disk && !self.in_own_grace() {
            // If that cannot be written it is tried again when the next operation fails.
            recorded.on_disk = self.records.forget(&client.identity()).is_err();
        }
    }

    /// Records a client that has reclaimed all it wanted. It must not be recorded earlier: one that
    /// has reclaimed a half when the grace period ends would be granted the other half after the
    /// next restart, though others had it meanwhile (RFC 8881 §8.4.3).
    ///
    /// # Errors
    /// NFS4ERR_DELAY: it could not be recorded.
    pub fn record_reclaimed(&self, client: &Client) -> Result<(), Nfsstat4> {
        if client.held.lock().is_empty() {
            return Ok(());
        }
        let mut recorded = client.recorded.lock();
        self.write(client, &mut recorded).map_err(|_| Nfsstat4::DELAY)
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
        if recorded.on_disk {
            recorded.on_disk = self.records.forget(&client.identity()).is_err();
        }
        !recorded.on_disk
    }

    /// Tries again to remove the records of clients that are gone.
    pub(super) fn strike_unforgotten(&self) {
        let gone = std::mem::take(&mut *lock(&self.unforgotten));
        for client in gone {
            self.end(client);
        }
    }

    /// Ends the grace period if it is due and its end can be recorded.
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
