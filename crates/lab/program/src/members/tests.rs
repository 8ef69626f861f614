//! Slices against a list of the same entries.

use super::*;
use base::random::{Random, SeededRandom};

#[test]
fn a_slice_is_as_a_list() {
    let mut random = SeededRandom::new(7);
    for (entries, first, step) in [(1, 0, 1), (64, 0, 1), (1000, 3, 7), (5000, 0, 1), (4096, 1, 2)]
    {
        let exists = |entry: u64| entry * 7 % 5 < 2;
        let mut slice = Slice::new(entries, first, step, exists);
        let all: Vec<u64> = (first..entries).step_by(step as usize).collect();
        let mut model: Vec<bool> = all.iter().map(|e| exists(*e)).collect();
        assert_eq!(slice.len(), all.len() as u64);
        for _ in 0..300 {
            let at = random.below(all.len() as u64) as usize;
            let to = random.below(2) == 1;
            slice.set(all[at], to);
            model[at] = to;
            let of = |value| {
                let pairs = all.iter().zip(&model).filter(move |(_, e)| **e == value);
                pairs.map(|(entry, _)| *entry).collect::<Vec<_>>()
            };
            let (there, missing) = (of(true), of(false));
            assert_eq!(slice.existing(), there.len() as u64);
            let n = random.below(all.len() as u64);
            assert_eq!(slice.nth_existing(n), there.get(n as usize).copied());
            assert_eq!(slice.nth_missing(n), missing.get(n as usize).copied());
            assert_eq!(slice.exists(all[at]), to);
        }
    }
}

#[test]
fn a_rotation_visits_each_entry_once() {
    let slice = Slice::new(500, 0, 1, |entry| entry % 3 == 0);
    let mut rotor = slice.rotor(1, 2);
    let mut visited: Vec<u64> =
        (0..slice.existing()).filter_map(|_| slice.next_existing(&mut rotor, |_| false)).collect();
    assert_eq!(visited[0], 252, "the second of two threads starts in the middle");
    visited.sort_unstable();
    visited.dedup();
    assert_eq!(visited.len() as u64, slice.existing());
    let missing = slice.next_missing(&mut Rotor::default(), |entry| entry < 400);
    assert_eq!(missing, Some(400));
}

#[test]
fn what_is_busy_is_passed_over() {
    let slice = Slice::new(10, 0, 1, |_| true);
    let mut rotor = Rotor::default();
    assert_eq!(slice.next_existing(&mut rotor, |entry| entry < 4), Some(4));
    assert_eq!(slice.next_existing(&mut rotor, |entry| entry != 2), Some(2), "around the end");
    assert_eq!(slice.next_existing(&mut rotor, |_| true), None);
    assert_eq!(slice.next_missing(&mut rotor, |_| false), None);
    assert_eq!(slice.nth_missing(0), None);
    assert!(Slice::new(3, 5, 1, |_| true).is_empty());
}
