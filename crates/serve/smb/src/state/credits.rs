//! Credits of a connection (MS-SMB2 §3.3.1.1): the numbers of requests that a client may use, each
//! once.

use std::collections::VecDeque;

use base::limits::SMB_CREDITS_MAX;

/// The numbers that are granted and not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credits {
    /// The lowest number that may still be used.
    low: u64,
    /// Whether each from there on may be used.
    free: VecDeque<bool>,
    /// How many may.
    count: u16,
}

impl Default for Credits {
    /// One, number 0.
    fn default() -> Self {
        Self { low: 0, free: VecDeque::from([true]), count: 1 }
    }
}

impl Credits {
    /// Uses `charge` numbers from `id` on; false if one of them is not to be used.
    pub fn use_up(&mut self, id: u64, charge: u16) -> bool {
        let Some(at) = id.checked_sub(self.low).and_then(|at| usize::try_from(at).ok()) else {
            return false;
        };
        let charge = charge.max(1);
        let Some(end) = at.checked_add(charge.into()).filter(|end| *end <= self.free.len()) else {
            return false;
        };
        if self.free.range(at..end).any(|free| !free) {
            return false;
        }
        self.free.range_mut(at..end).for_each(|free| *free = false);
        self.count -= charge;
        while self.free.front() == Some(&false) {
            self.free.pop_front();
            self.low += 1;
        }
        true
    }

    /// Grants up to `asked` more, so that the client has `max` at most; returns how many. One at
    /// least if it has none.
    pub fn grant(&mut self, asked: u16, max: u16) -> u16 {
        // Numbers far behind the lowest would need ever more memory.
        let room = usize::from(2 * SMB_CREDITS_MAX).saturating_sub(self.free.len()) as u16;
        let left = max.saturating_sub(self.count).min(room);
        let least = u16::from(self.count == 0);
        let granted = asked.max(1).min(left).max(least);
        self.free.extend(std::iter::repeat_n(true, granted.into()));
        self.count += granted;
        granted
    }
}

#[cfg(test)]
mod tests;
