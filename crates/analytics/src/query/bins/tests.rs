//! An answer of more elements than have room.

use std::collections::BTreeMap;

use base::random::{Random, SeededRandom};

use super::*;

#[test]
fn elements_that_have_no_room_become_other_and_the_error_bound_holds() {
    const ROOM: usize = 64 << 10;
    let grid = Grid { from: 0, to: 40, step: 1 };
    let (mut bins, mut truth) = (Bins::within(grid, ROOM), BTreeMap::<(u64, usize), f64>::new());
    let mut random = SeededRandom::new(7);
    bins.covered.fill(1);
    for step in 0..grid.len() {
        // Two that are busy, in any order of cores, and many that come and go.
        for _ in 0..300 {
            let one = random.below(3);
            let key = if one < 2 { one } else { 2 + random.below(5_000) };
            bins.add(step, Some(key), 2.0);
            bins.add((step + 7) % grid.len(), Some(one.min(1)), 1.0);
            *truth.entry((key, step)).or_default() += 2.0;
            *truth.entry((one.min(1), (step + 7) % grid.len())).or_default() += 1.0;
        }
        assert!(bins.bytes <= ROOM && bins.cells.len() < ROOM / ELEMENT_BYTES);
    }
    assert!(bins.folded);
    let (lines, other) = bins.ranked(usize::MAX);
    let keys: Vec<u64> = lines.iter().take(2).map(|line| line.key).collect();
    assert!(keys == [0, 1] || keys == [1, 0], "{keys:?}");
    let found = |key: u64, step: usize| {
        let line = lines.iter().find(|line| line.key == key);
        line.and_then(|line| line.values[step]).unwrap_or(0.0)
    };
    for ((key, step), is) in &truth {
        let (value, bound) = (found(*key, *step), bins.error[*step]);
        assert!(value <= *is && is - value <= bound, "{key} at {step}: {value} of {is} ± {bound}");
    }
    let sums: f64 = lines.iter().flat_map(|line| &line.values).flatten().sum();
    let other: f64 = other.expect("the rest").values.iter().flatten().sum();
    assert_eq!(sums + other, truth.values().sum::<f64>());
}

#[test]
fn what_has_room_is_exact() {
    let mut bins = Bins::<u64>::within(Grid { from: 0, to: 10, step: 1 }, 1 << 20);
    (0..1000).for_each(|n| bins.add((n % 10) as usize, Some(n), 1.0));
    assert!(!bins.folded && bins.error.iter().all(|error| *error == 0.0));
    assert_eq!(bins.elements(), 1000);
}
