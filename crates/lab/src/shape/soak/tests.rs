//! Drift with planted slopes under noise of a seed.

use super::*;
use base::random::{Random, SeededRandom};

/// Windows of a second around a line that changes by `change` from begin to end, ± `noise`.
fn windows(change: f64, noise: f64, seed: u64, count: u32) -> Vec<f64> {
    let mut random = SeededRandom::new(seed);
    let mut share = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
    let level = |n: u32| 1.0 + change * (f64::from(n) / f64::from(count) - 0.5);
    (0..count).map(|n| 1e4 * (level(n) + 2.0 * noise * share())).collect()
}

#[test]
fn a_fall_of_thirty_percent_is_named_with_its_interval() {
    for seed in 0..20 {
        let drift = drift(&windows(-0.30, 0.15, seed, 600), 1.0, 5.0).expect("a drift");
        assert!(drift.drifts && !drift.open, "{drift:?}");
        assert!((drift.change_percent + 30.0).abs() <= drift.interval_percent * 1.6, "{drift:?}");
        assert!(drift.sentence.starts_with("throughput fell by -"), "{}", drift.sentence);
        assert!(drift.sentence.contains("a drift is 5 %"), "{}", drift.sentence);
    }
}

#[test]
fn even_runs_do_not_drift() {
    let all = (0..40).filter_map(|seed| drift(&windows(0.0, 0.15, seed, 600), 1.0, 5.0));
    let drifts = all.filter(|drift| drift.drifts).count();
    assert_eq!(drifts, 0);
}

#[test]
fn the_limit_decides() {
    let rates = windows(-0.10, 0.01, 1815, 600);
    assert!(drift(&rates, 1.0, 9.0).is_some_and(|d| d.drifts));
    assert!(drift(&rates, 1.0, 11.0).is_some_and(|d| !d.drifts && !d.open));
}

#[test]
fn what_noise_hides_is_open() {
    let found = drift(&windows(-0.05, 0.8, 3, 60), 1.0, 5.0).expect("a drift");
    assert!(found.open && found.sentence.contains("is open"), "{found:?}");
    assert!(drift(&[1.0; 5], 1.0, 5.0).is_none(), "too few windows");
}
