//! Each number once, whatever their count; another order for another seed, and no pattern in it.

use super::*;

fn order(all: u64, seed: u64) -> Vec<u64> {
    let shuffle = Shuffle::new(all, seed);
    (0..all).map(|position| shuffle.at(position)).collect()
}

#[test]
fn each_number_comes_once() {
    for all in (1..=70).chain([255, 256, 257, 1_000, 4_096, 65_537]) {
        let mut found = order(all, all);
        found.sort_unstable();
        assert!(found.iter().copied().eq(0..all), "{all}");
    }
}

#[test]
fn a_seed_is_an_order() {
    assert_eq!(order(1_000, 1), order(1_000, 1));
    assert_ne!(order(1_000, 1), order(1_000, 2));
    // Of any count about one number stays where it is, and about one follows the one before it.
    let found = order(10_000, 3);
    let fixed = found.iter().zip(0..).filter(|(number, at)| **number == *at).count();
    let follow = found.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
    assert!(fixed < 10 && follow < 10, "{fixed} {follow}");
    // Both halves of the order have all parts of the file.
    let low = found[..5_000].iter().filter(|number| **number < 5_000).count();
    assert!((2_300..2_700).contains(&low), "{low}");
}

#[test]
fn more_numbers_than_fit_in_memory() {
    let shuffle = Shuffle::new(u64::MAX, 1);
    let found: Vec<u64> = (0..1_000).map(|position| shuffle.at(position)).collect();
    let mut sorted = found.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), found.len());
}
