//! Exact while it fits; afterwards never too high and never lower than the error bound allows.

use std::collections::HashMap;

use base::random::{Random, SeededRandom};

use super::*;

#[test]
fn few_files_are_counted_exactly() {
    let mut files = Files::new();
    for n in 0..1000u64 {
        files.add(n % 10 + 1, 1, 6, 4096);
    }
    let (rows, error) = files.take();
    assert_eq!((rows.len(), error), (10, 0));
    assert!(rows.iter().all(|r| r.cell == Cell { count: 100, bytes: 409_600 }));
    assert!(files.take().0.is_empty());
}

#[test]
fn many_files_keep_to_the_error_bound() {
    for seed in 0..4 {
        let mut random = SeededRandom::new(seed);
        let mut files = Files::new();
        let mut truth: HashMap<(u64, u8), u64> = HashMap::new();
        for _ in 0..300_000 {
            // A tenth of the load on 50 files, the rest spread over 100 000.
            let busy = random.below(10) == 0;
            let file = if busy { 1 + random.below(50) } else { 1000 + random.below(100_000) };
            let op = 6 + random.below(2) as u8;
            files.add(file, 1, op, 1);
            *truth.entry((file, op)).or_default() += 1;
        }
        let (rows, error) = files.take();
        assert!(error > 0 && error < 150, "error bound {error}");
        let found: HashMap<_, _> = rows.iter().map(|r| ((r.file, r.op), r.cell.count)).collect();
        for (key, count) in &truth {
            let row = found.get(key).copied().unwrap_or(0);
            assert!(row <= *count, "{key:?} has {row}, more than {count}");
            assert!(row + error >= *count, "{key:?} has {row} of {count}, bound {error}");
        }
    }
}
