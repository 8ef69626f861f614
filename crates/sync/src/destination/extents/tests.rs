//! Ranges against a table of single bytes.

use base::random::{Random, SeededRandom};

use super::Extents;

#[test]
fn ranges_are_what_a_table_of_bytes_says() {
    for seed in 0..200 {
        let mut random = SeededRandom::new(seed);
        let (mut extents, mut table) = (Extents::default(), [false; 64]);
        for _ in 0..60 {
            let (one, other) = (random.below(65), random.below(65));
            let (start, end) = (one.min(other), (one.min(other) + random.below(6)).min(64));
            let place = &mut table[start as usize..end as usize];
            let free = !place.is_empty() && place.iter().all(|taken| !taken);
            assert_eq!(extents.add(start, end), free, "seed {seed}: {start}..{end}");
            if free {
                place.fill(true);
            }
            let begins = |at: &usize| table[*at] && (*at == 0 || !table[at - 1]);
            assert_eq!(extents.count(), (0..64).filter(begins).count());
        }
    }
}

#[test]
fn what_has_come_in_any_order_is_one_in_the_end() {
    let (mut extents, mut random) = (Extents::default(), SeededRandom::new(1));
    let mut left: Vec<u64> = (0..1_000).collect();
    while !left.is_empty() {
        let at = left.swap_remove(random.below(left.len() as u64) as usize);
        assert!(extents.add(at * 10, at * 10 + 10));
    }
    assert_eq!(extents.count(), 1);
    assert!(!extents.add(u64::MAX, u64::MAX) && extents.add(u64::MAX - 1, u64::MAX));
}
