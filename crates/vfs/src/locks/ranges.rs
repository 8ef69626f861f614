//! Byte-range locks of one file. Pure.
//!
//! By the rules of POSIX one owner's locks split, merge and replace each other, and different
//! owners' exclude each other. Those of SMB (`stacks`, MS-FSA §2.1.5.8) stay as
//! they were made: each ends separately, an owner's exclusive lock excludes another of its own, and
//! there are locks of no bytes.
//!
//! Locks are ordered by their first byte, in groups of at most [`LOCK_GROUP_MAX`]. Each group knows
//! the greatest last byte of its locks, for each kind and of two owners, so that a search passes
//! over the groups in which nothing conflicts: a search takes steps by the square root of the
//! number of locks, not by their number. The locks of each owner are listed by owner as well.

use std::collections::{BTreeMap, HashMap};

use base::limits::LOCK_GROUP_MAX;

use super::kinds::{HeldRange, Kind, Owner, Protocol, Range};

/// Whether locks of this protocol are neither split nor merged.
const fn stacks(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Smb)
}

/// Whether what an owner holds is in the way of another lock of the same owner.
fn excludes_own(owner: &Owner, kind: Kind) -> bool {
    // The owner of an exclusive range may also lock it shared (MS-FSA §2.1.4.10).
    stacks(owner.client.protocol) && kind == Kind::Write
}

/// Where a lock is: its first byte, and a number that no other lock has.
type At = (u64, u64);

/// A lock in its group.
#[derive(Debug)]
struct Item {
    held: HeldRange,
    number: u64,
}

impl Item {
    const fn at(&self) -> At {
        (self.held.range.start, self.number)
    }
}

/// The greatest last byte among locks of one kind, and that among the locks of all other owners:
/// positions in the group.
#[derive(Debug, Clone, Copy, Default)]
struct Greatest {
    first: Option<(usize, u64)>,
    other: Option<(usize, u64)>,
}

impl Greatest {
    fn of(items: &[Item], kind: Kind) -> Self {
        let ends = || {
            let of_kind = items.iter().enumerate().filter(move |(_, item)| item.held.kind == kind);
            of_kind.map(|(at, item)| (at, item.held.range.end))
        };
        let first = ends().max_by_key(|(_, end)| *end);
        let owner = first.and_then(|(at, _)| items.get(at)).map(|item| &item.held.owner);
        let differs = |at: &usize| items.get(*at).map(|item| &item.held.owner) != owner;
        let other = ends().filter(|(at, _)| differs(at)).max_by_key(|(_, end)| *end);
        Self { first, other }
    }

    /// Whether a lock of any owner but this one comes as far as `start`.
    fn reaches(&self, items: &[Item], but: Option<&Owner>, start: u64) -> bool {
        let Some((at, end)) = self.first.filter(|(_, end)| *end >= start) else { return false };
        let is_own = items.get(at).is_some_and(|item| Some(&item.held.owner) == but);
        let own_end = if is_own { self.other.map(|(_, end)| end) } else { Some(end) };
        own_end.is_some_and(|end| end >= start)
    }
}

/// Locks in order.
#[derive(Debug, Default)]
struct Group {
    items: Vec<Item>,
    reads: Greatest,
    writes: Greatest,
}

impl Group {
    fn new(items: Vec<Item>) -> Self {
        let mut group = Self { items, ..Self::default() };
        group.sum();
        group
    }

    fn sum(&mut self) {
        self.reads = Greatest::of(&self.items, Kind::Read);
        self.writes = Greatest::of(&self.items, Kind::Write);
    }

    fn first(&self) -> At {
        self.items.first().map_or((0, 0), Item::at)
    }
}

/// What a search looks for: locks of these kinds, of any owner but the one that is named.
#[derive(Clone, Copy)]
struct Search<'a> {
    range: Range,
    /// Shared locks: whether they are meant, and the owner with those that are not.
    reads: Option<Option<&'a Owner>>,
    /// The same of exclusive ones.
    writes: Option<Option<&'a Owner>>,
}

impl Search<'_> {
    fn may_be_in(&self, group: &Group) -> bool {
        let reaches =
            |greatest: &Greatest, but| greatest.reaches(&group.items, but, self.range.start);
        self.reads.is_some_and(|but| reaches(&group.reads, but))
            || self.writes.is_some_and(|but| reaches(&group.writes, but))
    }

    fn is(&self, held: &HeldRange) -> bool {
        let wanted = if held.kind == Kind::Read { self.reads } else { self.writes };
        wanted.is_some_and(|but| but != Some(&held.owner)) && held.range.overlaps(&self.range)
    }
}

/// The locks of a file, by first byte.
#[derive(Debug, Default)]
pub struct Ranges {
    groups: Vec<Group>,
    owners: HashMap<Owner, BTreeMap<At, (u64, Kind)>>,
    len: usize,
    next: u64,
}

impl Ranges {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &HeldRange> {
        self.groups.iter().flat_map(|group| &group.items).map(|item| &item.held)
    }

    /// The owners, and how many locks each has.
    pub fn owners(&self) -> impl Iterator<Item = (&Owner, usize)> {
        self.owners.iter().map(|(owner, own)| (owner, own.len()))
    }

    /// Whether an owner for which `is` holds has any.
    pub fn has_any(&self, is: impl Fn(&Owner) -> bool) -> bool {
        self.owners.keys().any(is)
    }

    fn find(&self, search: Search<'_>) -> Option<&HeldRange> {
        let near = self.groups.iter().take_while(|group| group.first().0 <= search.range.end);
        let near = near.inspect(|_| count_step()).filter(|group| search.may_be_in(group));
        let mut items = near.flat_map(|group| &group.items).inspect(|_| count_step());
        items.find(|item| search.is(&item.held)).map(|item| &item.held)
    }

    /// The first lock that is in the way: another owner's, or where locks stack the owner's own.
    pub fn conflict(&self, owner: &Owner, range: Range, kind: Kind) -> Option<&HeldRange> {
        let but = if excludes_own(owner, kind) { None } else { Some(owner) };
        self.find(Search { range, reads: (kind == Kind::Write).then_some(but), writes: Some(but) })
    }

    /// The first lock of another owner that conflicts.
    pub fn conflict_of_others(
        &self,
        owner: &Owner,
        range: Range,
        kind: Kind,
    ) -> Option<&HeldRange> {
        let but = Some(owner);
        self.find(Search { range, reads: (kind == Kind::Write).then_some(but), writes: Some(but) })
    }

    /// The first lock that reading (or with `writes` writing) is not permitted over: of another
    /// owner, or of the owner itself if it has locked it shared and writes.
    pub fn forbids_io(&self, owner: &Owner, range: Range, writes: bool) -> Option<&HeldRange> {
        self.find(Search { range, reads: writes.then_some(None), writes: Some(Some(owner)) })
    }

    /// Takes one lock that is exactly so, an exclusive one first; false if there is none.
    pub fn take_exact(&mut self, owner: &Owner, range: Range) -> bool {
        [Kind::Write, Kind::Read].into_iter().any(|kind| self.take_exact_kind(owner, range, kind))
    }

    /// Takes one lock that is exactly so, and of this kind; false if there is none.
    pub fn take_exact_kind(&mut self, owner: &Owner, range: Range, kind: Kind) -> bool {
        let Some(own) = self.owners.get(owner) else { return false };
        let mut from = own.range((range.start, 0)..=(range.start, u64::MAX));
        let at = from.find(|(_, held)| **held == (range.end, kind)).map(|(at, _)| *at);
        at.is_some_and(|at| {
            self.take(owner, at);
            true
        })
    }

    /// Whether the owner holds anything in the range.
    pub fn holds(&self, owner: &Owner, range: Range) -> bool {
        let Some(own) = self.owners.get(owner) else { return false };
        let mut before = own.range(..=(range.end, u64::MAX)).rev();
        if stacks(owner.client.protocol) {
            return before.any(|(_, (end, _))| *end >= range.start);
        }
        // An owner's locks do not overlap: the last one comes furthest.
        before.next().is_some_and(|(_, (end, _))| *end >= range.start)
    }

    /// What the owner holds, by first byte.
    pub fn of(&self, owner: &Owner) -> impl Iterator<Item = (Range, Kind)> {
        let own = self.owners.get(owner).into_iter().flatten();
        own.map(|(at, (end, kind))| (Range { start: at.0, end: *end }, *kind))
    }

    /// Whether the owner holds anything at all.
    pub fn holds_any(&self, owner: &Owner) -> bool {
        self.owners.contains_key(owner)
    }

    /// Whether the range is inside of a lock of the owner, so that it would be split.
    pub fn splits(&self, owner: &Owner, range: Range) -> bool {
        let Some(own) = self.owners.get(owner) else { return false };
        let before = own.range(..(range.start, 0)).next_back();
        before.is_some_and(|(_, (end, _))| *end > range.end)
    }

    /// Gives a range to its owner (or takes it, with `None`), whatever others hold: the caller
    /// has looked for conflicts.
    pub fn set(&mut self, owner: &Owner, range: Range, kind: Option<Kind>) {
        if stacks(owner.client.protocol) {
            return self.stack(owner, range, kind);
        }
        let mut new = kind.map(|kind| (range, kind));
        for (at, (end, held)) in self.touched(owner, range) {
            let old = Range { start: at.0, end };
            if let Some((grown, kind)) = &mut new
                && held == *kind
            {
                self.take(owner, at);
                grown.start = grown.start.min(old.start);
                grown.end = grown.end.max(old.end);
                continue;
            }
            if !old.overlaps(&range) {
                continue;
            }
            self.take(owner, at);
            // What sticks out on either side stays as it was.
            if let Some(end) = range.start.checked_sub(1).filter(|end| *end >= old.start) {
                self.put(HeldRange {
                    owner: owner.clone(),
                    range: Range { start: old.start, end },
                    kind: held,
                });
            }
            if let Some(start) = range.end.checked_add(1).filter(|at| *at <= old.end) {
                self.put(HeldRange {
                    owner: owner.clone(),
                    range: Range { start, end: old.end },
                    kind: held,
                });
            }
        }
        if let Some((range, kind)) = new {
            self.put(HeldRange { owner: owner.clone(), range, kind });
        }
    }

    /// An owner's locks that overlap with a range, or adjoin it. They do not overlap each other.
    fn touched(&self, owner: &Owner, range: Range) -> Vec<(At, (u64, Kind))> {
        let Some(own) = self.owners.get(owner) else { return Vec::new() };
        let last = range.end.saturating_add(1);
        let near = own.range(..=(last, u64::MAX)).rev();
        let near = near.take_while(|(_, (end, _))| end.saturating_add(1) >= range.start);
        near.map(|(at, held)| (*at, *held)).collect()
    }

    fn stack(&mut self, owner: &Owner, range: Range, kind: Option<Kind>) {
        if let Some(kind) = kind {
            return self.put(HeldRange { owner: owner.clone(), range, kind });
        }
        let Some(own) = self.owners.get(owner) else { return };
        let within = |end: u64, at: &At| Range { start: at.0, end }.overlaps(&range);
        let gone: Vec<At> =
            own.iter().filter(|(at, (end, _))| within(*end, at)).map(|(at, _)| *at).collect();
        gone.into_iter().for_each(|at| self.take(owner, at));
    }

    /// Adds a lock as it is.
    pub fn put(&mut self, held: HeldRange) {
        self.next += 1;
        let item = Item { held, number: self.next };
        let (at, held) = (item.at(), &item.held);
        let own = self.owners.entry(held.owner.clone()).or_default();
        own.insert(at, (held.range.end, held.kind));
        self.len += 1;
        // The last group that begins before it.
        let after = self.groups.partition_point(|group| group.first() < at);
        let group = after.saturating_sub(1);
        let Some(there) = self.groups.get_mut(group) else {
            self.groups.push(Group::new(vec![item]));
            return;
        };
        let place = there.items.partition_point(|other| other.at() < at);
        there.items.insert(place, item);
        if there.items.len() > LOCK_GROUP_MAX {
            let rest = there.items.split_off(LOCK_GROUP_MAX / 2);
            there.sum();
            self.groups.insert(group + 1, Group::new(rest));
        } else {
            there.sum();
        }
    }

    fn take(&mut self, owner: &Owner, at: At) {
        if let Some(own) = self.owners.get_mut(owner) {
            own.remove(&at);
            if own.is_empty() {
                self.owners.remove(owner);
            }
        }
        let after = self.groups.partition_point(|group| group.first() <= at);
        let group = after.saturating_sub(1);
        let Some(there) = self.groups.get_mut(group) else { return };
        let Ok(place) = there.items.binary_search_by_key(&at, Item::at) else { return };
        there.items.remove(place);
        self.len -= 1;
        if there.items.is_empty() {
            self.groups.remove(group);
        } else {
            there.sum();
        }
    }

    /// Takes everything from the owners that are meant; gives these, and how many locks each had.
    pub fn release(&mut self, whose: impl Fn(&Owner) -> bool) -> Vec<(Owner, usize)> {
        let gone: Vec<_> = self.owners.extract_if(|owner, _| whose(owner)).collect();
        if gone.is_empty() {
            return Vec::new();
        }
        for group in &mut self.groups {
            let before = group.items.len();
            group.items.retain(|item| !whose(&item.held.owner));
            if group.items.len() != before {
                group.sum();
            }
        }
        self.groups.retain(|group| !group.items.is_empty());
        let gone: Vec<_> = gone.into_iter().map(|(owner, own)| (owner, own.len())).collect();
        self.len -= gone.iter().map(|(_, count)| count).sum::<usize>();
        gone
    }
}

#[cfg(test)]
thread_local! {
    /// Groups and locks that searches of this thread have looked at.
    pub(super) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a group or a lock that a search looks at, in tests.
#[inline]
fn count_step() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

#[cfg(test)]
mod tests;
