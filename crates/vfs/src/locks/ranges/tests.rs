//! The locks of a file against a model that remembers each byte.

use proptest::prelude::*;

use super::Ranges;
use crate::locks::{ClientKey, Kind, Owner, Protocol, Range};

const BYTES: u64 = 24;

fn owner(n: u8) -> Owner {
    let client = ClientKey { protocol: Protocol::Nfs4, id: u64::from(n / 2) };
    Owner::new(client, &[n]).expect("short")
}

/// Byte → owner → kind; the last byte stands for all that follow.
type Model = Vec<Vec<Option<Kind>>>;

fn bytes(range: Range) -> std::ops::RangeInclusive<usize> {
    range.start.min(BYTES) as usize..=range.end.min(BYTES) as usize
}

fn step() -> impl Strategy<Value = (u8, Range, Option<Kind>)> {
    let kind = prop_oneof![Just(None), Just(Some(Kind::Read)), Just(Some(Kind::Write))];
    let range = (0..BYTES, 0..BYTES, any::<bool>()).prop_map(|(start, len, end)| {
        let len = len.min(BYTES - 1 - start);
        if end { Range::to_end(start) } else { Range { start, end: start + len } }
    });
    (0_u8..4, range, kind)
}

proptest! {
    #[test]
    fn equals_a_model_of_single_bytes(steps in prop::collection::vec(step(), 1..60)) {
        let mut model: Model = vec![vec![None; 4]; BYTES as usize + 1];
        let mut ranges = Ranges::default();
        for (who, range, kind) in steps {
            let me = owner(who);
            if let Some(kind) = kind {
                let clash = bytes(range).any(|at| {
                    (0..4).any(|other| other != usize::from(who)
                        && model[at][other].is_some_and(|held| held.conflicts(kind)))
                });
                prop_assert_eq!(ranges.conflict(&me, range, kind).is_some(), clash);
                if clash {
                    continue;
                }
            }
            ranges.set(&me, range, kind);
            bytes(range).for_each(|at| model[at][usize::from(who)] = kind);
            for (at, owners) in model.iter().enumerate() {
                for (n, expected) in owners.iter().enumerate() {
                    let at = Range { start: at as u64, end: at as u64 };
                    let held: Vec<_> = ranges
                        .iter()
                        .filter(|held| held.owner == owner(n as u8) && held.range.overlaps(&at))
                        .collect();
                    prop_assert!(held.len() <= 1, "an owner's locks do not overlap");
                    prop_assert_eq!(held.first().map(|held| held.kind), *expected);
                }
            }
            // As few as can be: what touches and is alike is one lock.
            for a in ranges.iter() {
                let next = a.range.end.checked_add(1);
                prop_assert!(!ranges.iter().any(|b| b.owner == a.owner
                    && b.kind == a.kind && Some(b.range.start) == next));
            }
        }
    }
}

#[test]
fn edges() {
    let (a, b) = (owner(0), owner(2));
    let mut ranges = Ranges::default();
    ranges.set(&a, Range { start: 0, end: u64::MAX }, Some(Kind::Write));
    assert!(ranges.conflict(&b, Range::to_end(u64::MAX), Kind::Read).is_some());
    ranges.set(&a, Range::to_end(u64::MAX), None);
    assert!(ranges.conflict(&b, Range::to_end(u64::MAX), Kind::Write).is_none());
    ranges.set(&a, Range { start: 0, end: 0 }, None);
    let left: Vec<_> = ranges.iter().map(|held| held.range).collect();
    assert_eq!(left, [Range { start: 1, end: u64::MAX - 1 }]);
    assert_eq!(Range::new(u64::MAX, 2), None);
    assert_eq!(Range::new(5, 0), None);
    assert_eq!(Range::new(u64::MAX, 1).map(|range| range.end), Some(u64::MAX));
    assert_eq!(Range::nlm(7, 0), Some(Range::to_end(7)));
    assert_eq!(Range::nfs4(7, u64::MAX), Some(Range::to_end(7)));
    assert_eq!(ranges.release(|owner| *owner == a), [(a.clone(), 1)]);
    assert!(ranges.is_empty());
}

fn smb(id: u8) -> Owner {
    let client = ClientKey { protocol: Protocol::Smb, id: 1 };
    Owner::new(client, &[id]).expect("short")
}

#[test]
fn locks_of_smb_stay_as_they_were_made() {
    let mut ranges = Ranges::default();
    let (one, range) = (smb(1), Range { start: 10, end: 19 });
    for kind in [Kind::Write, Kind::Read, Kind::Read] {
        ranges.set(&one, range, Some(kind));
    }
    assert_eq!(ranges.len(), 3);
    // An exclusive one is in the way of the same owner's next.
    assert!(ranges.conflict(&one, range, Kind::Write).is_some());
    assert!(ranges.conflict(&one, range, Kind::Read).is_none());
    assert!(ranges.conflict(&smb(2), range, Kind::Read).is_some());
    // Each ends separately, and only exactly as it was made.
    assert!(!ranges.take_exact(&one, Range { start: 10, end: 18 }));
    assert!(!ranges.take_exact(&smb(2), range));
    assert!(ranges.take_exact(&one, range));
    assert!(ranges.conflict(&smb(2), range, Kind::Read).is_none());
    assert!(ranges.take_exact(&one, range) && ranges.take_exact(&one, range));
    assert!(!ranges.take_exact(&one, range) && ranges.is_empty());
}

#[test]
fn the_lock_that_ends_may_be_one_of_a_kind() {
    let mut ranges = Ranges::default();
    let (one, range) = (smb(1), Range { start: 10, end: 19 });
    for kind in [Kind::Write, Kind::Read] {
        ranges.set(&one, range, Some(kind));
    }
    assert!(!ranges.take_exact_kind(&one, Range { start: 10, end: 18 }, Kind::Read));
    assert!(ranges.take_exact_kind(&one, range, Kind::Read));
    assert!(!ranges.take_exact_kind(&one, range, Kind::Read), "there was one");
    assert!(ranges.conflict(&smb(2), range, Kind::Read).is_some(), "the exclusive one is held");
    assert!(ranges.take_exact_kind(&one, range, Kind::Write) && ranges.is_empty());
}

#[test]
fn a_lock_of_no_bytes_is_within_others() {
    let mut ranges = Ranges::default();
    let empty = Range::empty(15).expect("not at the front");
    ranges.set(&smb(1), Range { start: 10, end: 19 }, Some(Kind::Write));
    let is_free = |start: u64| {
        let range = Range::empty(start).expect("not at the front");
        ranges.conflict(&smb(2), range, Kind::Write).is_none()
    };
    assert_eq!([10, 11, 19, 20].map(is_free), [true, false, false, true]);
    assert_eq!(Range::empty(0), None);
    let mut ranges = Ranges::default();
    ranges.set(&smb(1), empty, Some(Kind::Write));
    assert!(ranges.conflict(&smb(2), Range { start: 10, end: 19 }, Kind::Read).is_some());
    assert!(ranges.conflict(&smb(2), Range { start: 15, end: 19 }, Kind::Read).is_none());
    assert!(ranges.conflict(&smb(2), empty, Kind::Write).is_none());
    // The end of an open takes them all.
    ranges.set(&smb(1), Range::to_end(0), None);
    assert!(ranges.is_empty());
}

#[test]
fn locks_forbid_reading_and_writing() {
    let mut ranges = Ranges::default();
    let (one, two, range) = (smb(1), smb(2), Range { start: 10, end: 19 });
    ranges.set(&one, range, Some(Kind::Write));
    let forbids = |ranges: &Ranges, who, writes| ranges.forbids_io(who, range, writes).is_some();
    assert!(!forbids(&ranges, &one, false) && !forbids(&ranges, &one, true));
    assert!(forbids(&ranges, &two, false) && forbids(&ranges, &two, true));
    assert!(ranges.take_exact(&one, range));
    ranges.set(&one, range, Some(Kind::Read));
    // The owner of a shared lock does not write either.
    assert!(!forbids(&ranges, &one, false) && forbids(&ranges, &one, true));
    assert!(!forbids(&ranges, &two, false) && forbids(&ranges, &two, true));
}
