//! When the health of a disk may be queried: at most once an hour each. Reading it wakes a disk
//! that sleeps, and keeps one awake that wants to sleep (`-n standby` is for the first alone).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Time between two queries of a disk, in seconds.
pub const INTERVAL_S: u64 = 3_600;

/// Times of the last queries, by the identity of the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Schedule(BTreeMap<String, u64>);

impl Schedule {
    /// Whether a disk may be queried at this second since the epoch; if so, it counts as done.
    pub fn take(&mut self, identity: &str, now_s: u64) -> bool {
        let last = self.0.get(identity).copied();
        if let Some(last) = last {
            // A clock that was set back must not end the queries for ever, nor repeat one.
            if last > now_s {
                self.0.insert(identity.to_owned(), now_s);
            }
            if now_s < last.saturating_add(INTERVAL_S) {
                return false;
            }
        }
        self.0.insert(identity.to_owned(), now_s);
        true
    }

    /// Forgets all disks but these.
    pub fn retain(&mut self, stays: impl Fn(&str) -> bool) {
        self.0.retain(|identity, _| stays(identity));
    }
}

#[cfg(test)]
mod tests;
