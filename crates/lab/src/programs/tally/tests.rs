//! Counts and quantiles of acts.

use super::*;

#[test]
fn tallies_of_threads_add_up() {
    let (mut a, mut b) = (ActTally::default(), ActTally::default());
    (0..99).for_each(|_| a.record(1_000, 10));
    b.record(5_000_000, 1);
    a.add(&b);
    assert_eq!((a.calls, a.bytes, a.max_ns), (100, 991, 5_000_000));
    assert!((a.mean_us() - 50.99).abs() < 0.001, "{}", a.mean_us());
    let median = a.quantile_us(0.5);
    assert!((0.8..=1.3).contains(&median), "{median}");
    let last = a.quantile_us(1.0);
    assert!((4_000.0..=5_000.0).contains(&last), "{last}");
    let none = ActTally::default();
    assert_eq!((none.mean_us(), none.quantile_us(0.5)), (0.0, 0.0));
}
