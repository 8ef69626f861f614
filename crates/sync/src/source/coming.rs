//! Sums of files that are being sent as they come.

use std::collections::HashMap;

use base::limits::DSYNC_SUMS_MAX;
use wire::dsync::Sum;

use crate::error::SyncError;

/// By the number of the question.
#[derive(Default)]
pub struct Coming {
    sums: HashMap<u64, Sums>,
    /// Those that no thread waits for any more: one at most, if the other side sends all sums of a
    /// file before it requests the next.
    ended: usize,
}

struct Sums {
    have: Vec<Sum>,
    came: usize,
    wanted: usize,
    /// Whether no thread waits for them any more.
    done: bool,
}

impl Coming {
    /// `wanted` sums will come; whether none of that number are coming already.
    pub fn expect(&mut self, id: u64, wanted: usize) -> bool {
        let sums = Sums { have: Vec::new(), came: 0, wanted, done: false };
        self.sums.insert(id, sums).is_none()
    }

    /// How many files have sums to come that no thread waits for.
    pub fn ended(&self) -> usize {
        self.ended
    }

    /// The next ones; nothing if none of that number are expected.
    pub fn add(&mut self, id: u64, sums: Vec<Sum>) -> Option<Result<(), SyncError>> {
        let these = self.sums.get_mut(&id)?;
        these.came += sums.len();
        if these.came > these.wanted {
            return Some(Err(SyncError::Broken("more checksums than announced")));
        }
        if !these.done {
            these.have.extend(sums);
        } else if these.came == these.wanted {
            self.sums.remove(&id);
            self.ended -= 1;
        }
        Some(Ok(()))
    }

    /// What has come from one on, a message's worth at most; nothing before that one.
    pub fn from(&self, id: u64, first: usize) -> Option<Vec<Sum>> {
        let here = self.sums.get(&id)?.have.get(first..)?;
        let some = here.get(..here.len().min(DSYNC_SUMS_MAX))?;
        (!some.is_empty()).then(|| some.to_vec())
    }

    /// All of them, when they have come.
    pub fn all(&mut self, id: u64) -> Option<Vec<Sum>> {
        let these = self.sums.get_mut(&id)?;
        (these.came == these.wanted).then(|| std::mem::take(&mut these.have))
    }

    /// No thread waits for them any more. Those that still come are dropped.
    pub fn end(&mut self, id: u64) {
        let Some(these) = self.sums.get_mut(&id) else { return };
        these.done = true;
        these.have = Vec::new();
        if these.came == these.wanted {
            self.sums.remove(&id);
        } else {
            self.ended += 1;
        }
    }
}

#[cfg(test)]
mod tests;
