//! Every value falls between the edges of its bucket, and the edges leave no gap.

use super::*;

#[test]
fn every_value_lies_within_its_bucket() {
    let mut values: Vec<u64> = (0..5_000).collect();
    values.extend((2..64).flat_map(|p| [(1u64 << p) - 1, 1 << p, (1 << p) + 1]));
    values.push(u64::MAX);
    for value in values {
        let i = index(value);
        assert!(i < COUNT, "{value} has bucket {i}");
        assert!(low(i) <= value && (value < high(i) || high(i) == u64::MAX), "{value} in {i}");
    }
}

#[test]
fn buckets_are_contiguous_and_at_most_a_quarter_wide() {
    for i in 0..COUNT - 1 {
        assert_eq!(high(i), low(i + 1));
        assert!(high(i) - low(i) <= low(i).max(4) / 4 || i < 8);
    }
}

#[test]
fn quantile_of_nothing_is_nothing() {
    assert_eq!(quantile(&[0; COUNT], 0.5), None);
}

#[test]
fn quantile_finds_the_bucket_of_the_ranked_value() {
    let mut counts = vec![0; COUNT];
    for value in 1..=1000u64 {
        counts[index(value)] += 1;
    }
    let median = quantile(&counts, 0.5).unwrap();
    assert!((400..=640).contains(&median), "median {median}");
}
