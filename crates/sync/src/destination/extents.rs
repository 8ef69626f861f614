//! Which parts of a file have come. Pieces come in any order, but cover it without gaps in the end,
//! so the list is as short as what is in flight.

use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// Ranges that neither meet nor lie on each other.
#[derive(Debug, Default)]
pub struct Extents(BTreeMap<u64, u64>);

impl Extents {
    /// Adds `start..end`; whether nothing of it was there, and it is not empty.
    pub fn add(&mut self, start: u64, end: u64) -> bool {
        let before = self.0.range(..=start).next_back().map(|(s, e)| (*s, *e));
        let after = self.0.range(start..).next().map(|(s, e)| (*s, *e));
        let overlaps =
            before.is_some_and(|(_, e)| e > start) || after.is_some_and(|(s, _)| s < end);
        if overlaps || start >= end {
            return false;
        }
        let (mut start, mut end) = (start, end);
        if let Some((s, _)) = before.filter(|(_, e)| *e == start) {
            start = s;
        }
        if let Some((s, e)) = after.filter(|(s, _)| *s == end) {
            self.0.remove(&s);
            end = e;
        }
        self.0.insert(start, end);
        true
    }

    /// What of the bytes before `end` lies in none.
    pub fn gaps(&self, end: u64) -> Vec<(u64, u64)> {
        let (mut at, mut gaps) = (0, Vec::new());
        for (start, next) in self.0.iter().map(|(start, next)| (*start, *next)).chain([(end, end)])
        {
            if at < start {
                gaps.push((at, start));
            }
            at = next;
        }
        gaps
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}
