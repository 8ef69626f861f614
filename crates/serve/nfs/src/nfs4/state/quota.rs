//! How many records of clients each address may have, and which are evicted at the limit: those
//! that were never confirmed, the oldest first. A host can create such a record with one call,
//! under any name; without a limit for each address one host could use them all. Pure.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Entries of records that are gone or confirmed that a queue may hold beyond as many as there are.
const QUEUE_SLACK: usize = 64;

/// Records that were not confirmed when they were made, oldest first. Those that are gone or
/// confirmed are taken out later.
#[derive(Debug, Default)]
struct Unconfirmed(VecDeque<u64>);

impl Unconfirmed {
    fn add(&mut self, id: u64, there_are: usize, still: impl Fn(u64) -> bool) {
        self.0.push_back(id);
        if self.0.len() > 2 * there_are + QUEUE_SLACK {
            self.0.retain(|id| still(*id));
        }
    }

    fn oldest(&mut self, still: impl Fn(u64) -> bool) -> Option<u64> {
        loop {
            let id = self.0.pop_front()?;
            if still(id) {
                return Some(id);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Part {
    records: usize,
    unconfirmed: Unconfirmed,
}

/// The limits, and the records in use.
#[derive(Debug)]
pub struct Quota {
    most: usize,
    most_each: usize,
    records: usize,
    unconfirmed: Unconfirmed,
    /// Only of those that have any.
    parts: HashMap<IpAddr, Part>,
}

/// What stands in the way of one more record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaConflict {
    /// Nothing.
    Free,
    /// This record, which must go first.
    Instead(u64),
    /// All are confirmed.
    None,
}

impl Quota {
    /// At most `most` records, `most_each` of one [`origin`].
    pub fn new(most: usize, most_each: usize) -> Self {
        let (unconfirmed, parts) = (Unconfirmed::default(), HashMap::new());
        Self { most, most_each, records: 0, unconfirmed, parts }
    }

    /// Whether there is room for one more record of an origin. `still` returns whether a record
    /// exists and is not confirmed.
    pub fn room(&mut self, origin: IpAddr, still: impl Fn(u64) -> bool) -> QuotaConflict {
        let instead = |id: Option<u64>| id.map_or(QuotaConflict::None, QuotaConflict::Instead);
        match self.parts.get_mut(&origin) {
            Some(part) if part.records >= self.most_each => instead(part.unconfirmed.oldest(still)),
            _ if self.records >= self.most => instead(self.unconfirmed.oldest(still)),
            _ => QuotaConflict::Free,
        }
    }

    /// A record was made.
    pub fn add(&mut self, id: u64, origin: IpAddr, still: impl Fn(u64) -> bool) {
        self.records += 1;
        let part = self.parts.entry(origin).or_default();
        part.records += 1;
        part.unconfirmed.add(id, part.records, &still);
        self.unconfirmed.add(id, self.records, &still);
    }

    /// A record of this origin is gone.
    pub fn remove(&mut self, origin: IpAddr) {
        self.records = self.records.saturating_sub(1);
        if let Some(part) = self.parts.get_mut(&origin) {
            part.records = part.records.saturating_sub(1);
            if part.records == 0 {
                self.parts.remove(&origin);
            }
        }
    }
}

#[cfg(test)]
mod tests;
