//! What a run holds in memory that the other side, or the files, make it hold: names, directories
//! that wait, files of several names, data that was not acknowledged. Each run has a limit; runs
//! that share a process take their bytes from one account as well, with a part for each address.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::limits::DSYNC_RESERVE_STEP;
use base::refusals::Limit;
use base::tally::AddressBytes;
use base::units;

/// The memory of a run.
#[derive(Debug)]
pub struct RunMemory {
    most: u64,
    held: AtomicU64,
    account: Option<Account>,
}

/// The memory of all runs of a process, and the address that this one works for.
#[derive(Debug)]
struct Account {
    bytes: Arc<AddressBytes>,
    address: IpAddr,
    limits: (u64, u64),
}

/// Why there is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryFull {
    /// The run holds all that a run may.
    Run(u64),
    /// All runs, or those of the address, hold all that they may.
    Account,
}

impl fmt::Display for MemoryFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(most) => {
                write!(f, "a dsync run holds at most {}", units::bytes(*most as f64))
            }
            Self::Account => {
                f.write_str("the dsync runs of this server use all memory for them; retry later")
            }
        }
    }
}

impl RunMemory {
    /// The memory of a run that has its process to itself.
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, held: AtomicU64::new(0), account: None })
    }

    /// The memory of a run for an address, with limits of all runs, and of those of an address.
    pub fn shared(
        most: u64,
        bytes: Arc<AddressBytes>,
        address: IpAddr,
        limits: (u64, u64),
    ) -> Arc<Self> {
        let account = Some(Account { bytes, address, limits });
        Arc::new(Self { most, held: AtomicU64::new(0), account })
    }

    /// Nothing of it, which can grow.
    pub fn reserve(self: &Arc<Self>) -> Reserved {
        Reserved { memory: Arc::clone(self), used: 0, reserved: 0 }
    }

    fn take(&self, bytes: u64) -> Result<(), MemoryFull> {
        let more = |held: u64| held.checked_add(bytes).filter(|held| *held <= self.most);
        if self.held.fetch_update(Relaxed, Relaxed, more).is_err() {
            return Err(MemoryFull::Run(self.most));
        }
        let Some(account) = &self.account else { return Ok(()) };
        if account.bytes.take(account.address, bytes, account.limits) {
            return Ok(());
        }
        self.held.fetch_sub(bytes, Relaxed);
        Limit::DsyncMemory.count();
        Err(MemoryFull::Account)
    }

    fn give(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Relaxed);
        if let Some(account) = &self.account {
            account.bytes.give(account.address, bytes);
        }
    }
}

/// A part of it, until it is dropped.
#[derive(Debug)]
pub struct Reserved {
    memory: Arc<RunMemory>,
    used: u64,
    /// What was taken for it: more than is used, so that not each name takes a lock.
    reserved: u64,
}

impl Reserved {
    /// Takes more bytes.
    ///
    /// # Errors
    /// There are none; it is as before.
    pub fn grow(&mut self, bytes: u64) -> Result<(), MemoryFull> {
        let lacking = (self.used.saturating_add(bytes)).saturating_sub(self.reserved);
        if lacking > 0 {
            let step = lacking.checked_next_multiple_of(DSYNC_RESERVE_STEP).unwrap_or(lacking);
            let taken = match self.memory.take(step) {
                Ok(()) => step,
                Err(_) => self.memory.take(lacking).map(|()| lacking)?,
            };
            self.reserved += taken;
        }
        self.used += bytes;
        Ok(())
    }

    /// Gives bytes back.
    pub fn shrink(&mut self, bytes: u64) {
        self.used -= bytes.min(self.used);
        let spare = self.reserved - self.used;
        if spare >= 2 * DSYNC_RESERVE_STEP {
            let back = spare - DSYNC_RESERVE_STEP;
            self.reserved -= back;
            self.memory.give(back);
        }
    }

    /// Bytes that are used.
    pub fn used(&self) -> u64 {
        self.used
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.memory.give(self.reserved);
    }
}

#[cfg(test)]
mod tests;
