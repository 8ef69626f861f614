//! Histograms survive the journey and merge exactly.

use super::*;

#[test]
fn round_trip_keeps_every_count() {
    let mut hist = new();
    for value in [900, 1_000, 55_000, 2_000_000, 90_000_000_000] {
        hist.saturating_record(value);
    }
    assert_eq!(from_text(&to_text(&hist)).unwrap(), hist);
    assert!(from_text("AAAA").is_err());
}

#[test]
fn buckets_keep_the_total() {
    let mut hist = new();
    (0..1000u64).for_each(|n| hist.saturating_record(n * n + 1));
    assert_eq!(to_buckets(&hist).iter().map(|b| b.1).sum::<u64>(), 1000);
}
