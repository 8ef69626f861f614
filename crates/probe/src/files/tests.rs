//! Exact while it fits; afterwards never too high and never lower than the error bound allows.

use std::collections::HashMap;

use base::random::{Random, SeededRandom};

use super::*;

#[test]
fn few_files_are_counted_exactly() {
    let mut files = Files::new();
    for n in 0..1000u64 {
        files.add(n % 10 + 1, 1, 6, Cell { count: 1, bytes: 4096 });
    }
    let (rows, error) = files.take();
    assert_eq!((rows.len(), error), (10, Cell::default()));
    assert!(rows.iter().all(|r| r.cell == Cell { count: 100, bytes: 409_600 }));
    assert!(files.take().0.is_empty());
}

#[test]
fn many_files_keep_to_the_error_bound() {
    for seed in 0..4 {
        let mut random = SeededRandom::new(seed);
        let mut files = Files::new();
        let mut truth: HashMap<u64, Cell> = HashMap::new();
        for _ in 0..300_000 {
            // A tenth of the load on 50 files, the rest spread over 100 000.
            let busy = random.below(10) == 0;
            let file = if busy { 1 + random.below(50) } else { 1000 + random.below(100_000) };
            let op = 6 + random.below(2) as u8;
            // Every thousandth operation moves a thousand times more.
            let bytes = 1 << (10 * u64::from(random.below(1000) == 0));
            files.add(file, 1, op, Cell { count: 1, bytes });
            truth.entry(file).or_default().merge(Cell { count: 1, bytes });
        }
        let (rows, error) = files.take();
        assert!(error.count > 0 && error.count < 300, "error bound {error:?}");
        let mut found: HashMap<u64, Cell> = HashMap::new();
        rows.iter().for_each(|r| found.entry(r.file).or_default().merge(r.cell));
        for (file, is) in &truth {
            let row = found.get(file).copied().unwrap_or_default();
            assert!(
                row.count <= is.count && row.bytes <= is.bytes,
                "{file} is {is:?}, not {row:?}"
            );
            assert!(row.count + error.count >= is.count, "{file} is {is:?}: {row:?} {error:?}");
            assert!(row.bytes + error.bytes >= is.bytes, "{file} is {is:?}: {row:?} {error:?}");
        }
    }
}
