//! Repeats a run after its connection broke, if that was requested.

use std::time::Duration;

use base::limits::{DSYNC_AGAIN_FIRST, DSYNC_AGAIN_LONGEST, DSYNC_SSH_FAILED};

use crate::SyncError;

/// When a run begins again.
pub struct Retry {
    most: u32,
    left: u32,
    wait: Duration,
    /// Whether the other side has been there: what is wrong from the beginning stays wrong.
    was_there: bool,
}

impl Retry {
    /// At most `most` retries in a row in which nothing is transferred.
    pub fn new(most: u32) -> Self {
        Self { most, left: most, wait: DSYNC_AGAIN_FIRST, was_there: false }
    }

    /// A try has ended for this reason, after it had `carried` something or not: how long it is
    /// until the next one, and how many there may be after that. `None` if there is none.
    pub fn after(&mut self, why: &SyncError, carried: bool) -> Option<(Duration, u32)> {
        let broke = match why {
            SyncError::Gone | SyncError::Link(_) => {
                self.was_there = true;
                true
            }
            SyncError::Silent => self.was_there,
            SyncError::Unreached(code) => self.was_there && *code == DSYNC_SSH_FAILED,
            // The other side of the attempt before has not noticed the disconnect yet.
            SyncError::Refused(why) => self.was_there && why.ends_with(SyncError::BUSY),
            _ => false,
        };
        if !broke {
            return None;
        }
        if carried {
            (self.left, self.wait) = (self.most, DSYNC_AGAIN_FIRST);
        }
        self.left = self.left.checked_sub(1)?;
        let wait = self.wait;
        self.wait = (wait * 2).min(DSYNC_AGAIN_LONGEST);
        Some((wait, self.left))
    }
}

#[cfg(test)]
mod tests;
