//! Byte-range locks of one file. Pure.
//!
//! By the rules of POSIX one owner's locks split, merge and replace one another, and different
//! owners' exclude one another. Those of SMB (`stacks`, MS-FSA §2.1.5.8) stay as
//! they were made: each ends by itself, an owner's exclusive lock excludes another of his own, and
//! there are locks of no bytes.

use super::kinds::{HeldRange, Kind, Owner, Protocol, Range};

/// Whether locks of this protocol are neither split nor merged.
const fn stacks(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Smb)
}

/// Whether what an owner holds is in the way of another lock of his.
fn excludes_own(held: &HeldRange, kind: Kind) -> bool {
    // Who has a range for himself may also lock it as one of many (MS-FSA §2.1.4.10).
    stacks(held.owner.client.protocol) && kind == Kind::Write
}

/// The locks of a file, by first byte.
#[derive(Debug, Default)]
pub struct Ranges {
    held: Vec<HeldRange>,
}

impl Ranges {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &HeldRange> {
        self.held.iter()
    }

    /// The first lock that is in the way: another owner's, or where locks stack the owner's own.
    pub fn conflict(&self, owner: &Owner, range: Range, kind: Kind) -> Option<&HeldRange> {
        let near = self.held.iter().take_while(|held| held.range.start <= range.end);
        near.filter(|held| held.range.end >= range.start && held.kind.conflicts(kind))
            .find(|held| held.owner != *owner || excludes_own(held, kind))
    }

    /// The first lock that reading (or with `writes` writing) is not permitted over: of another
    /// owner, or of the owner himself if he has locked it as one of many and writes.
    pub fn forbids_io(&self, owner: &Owner, range: Range, writes: bool) -> Option<&HeldRange> {
        let kind = if writes { Kind::Write } else { Kind::Read };
        let near = self.held.iter().take_while(|held| held.range.start <= range.end);
        near.filter(|held| held.range.overlaps(&range) && held.kind.conflicts(kind))
            .find(|held| held.owner != *owner || (writes && held.kind == Kind::Read))
    }

    /// Takes one lock that is exactly so, an exclusive one first; false if there is none.
    pub fn take_exact(&mut self, owner: &Owner, range: Range) -> bool {
        let is = |held: &HeldRange| held.range == range && held.owner == *owner;
        let exclusive = self.held.iter().position(|held| is(held) && held.kind == Kind::Write);
        let at = exclusive.or_else(|| self.held.iter().position(is));
        at.is_some_and(|at| {
            self.held.remove(at);
            true
        })
    }

    /// Whether the owner holds anything in the range.
    pub fn holds(&self, owner: &Owner, range: Range) -> bool {
        self.held.iter().any(|held| held.range.overlaps(&range) && held.owner == *owner)
    }

    /// Whether the owner holds anything at all.
    pub fn holds_any(&self, owner: &Owner) -> bool {
        self.held.iter().any(|held| held.owner == *owner)
    }

    /// Gives a range to its owner (or takes it, with `None`), whatever others hold: the caller
    /// has looked for conflicts.
    pub fn set(&mut self, owner: &Owner, range: Range, kind: Option<Kind>) {
        if stacks(owner.client.protocol) {
            return self.stack(owner, range, kind);
        }
        let mut rest = Vec::with_capacity(self.held.len() + 2);
        let mut new = kind.map(|kind| (range, kind));
        for held in self.held.drain(..) {
            if held.owner != *owner {
                rest.push(held);
                continue;
            }
            if let Some((grown, kind)) = &mut new
                && held.kind == *kind
                && touches(&held.range, grown)
            {
                grown.start = grown.start.min(held.range.start);
                grown.end = grown.end.max(held.range.end);
                continue;
            }
            // What sticks out on either side stays as it was.
            if !held.range.overlaps(&range) {
                rest.push(held);
                continue;
            }
            if let Some(end) = range.start.checked_sub(1).filter(|end| *end >= held.range.start) {
                let range = Range { start: held.range.start, end };
                rest.push(HeldRange { range, ..held.clone() });
            }
            if let Some(start) = range.end.checked_add(1).filter(|at| *at <= held.range.end) {
                let range = Range { start, end: held.range.end };
                rest.push(HeldRange { range, ..held });
            }
        }
        if let Some((range, kind)) = new {
            rest.push(HeldRange { owner: owner.clone(), range, kind });
        }
        rest.sort_by_key(|held| held.range.start);
        self.held = rest;
    }

    fn stack(&mut self, owner: &Owner, range: Range, kind: Option<Kind>) {
        match kind {
            Some(kind) => {
                let at = self.held.partition_point(|held| held.range.start <= range.start);
                self.held.insert(at, HeldRange { owner: owner.clone(), range, kind });
            }
            None => self.held.retain(|held| held.owner != *owner || !held.range.overlaps(&range)),
        }
    }

    /// Takes everything from the owners that are told; tells how many locks went.
    pub fn release(&mut self, whose: impl Fn(&Owner) -> bool) -> usize {
        let before = self.held.len();
        self.held.retain(|held| !whose(&held.owner));
        before - self.held.len()
    }
}

/// Whether two ranges overlap or follow one another without a gap.
fn touches(a: &Range, b: &Range) -> bool {
    a.overlaps(b) || a.end.checked_add(1) == Some(b.start) || b.end.checked_add(1) == Some(a.start)
}

#[cfg(test)]
mod tests;
