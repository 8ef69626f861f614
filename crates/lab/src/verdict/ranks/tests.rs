//! The tests against published tables, and Holm's correction worked out by hand.

use super::*;

/// Critical values of the signed-rank test, two-sided: n = 12, sum 13 has p = 0.0425, 14 has
/// 0.0522.
#[test]
fn signed_ranks_have_the_probabilities_of_the_table() {
    let p = |n, sum| 2.0 * signed_ranks(n)[..=sum].iter().sum::<f64>();
    assert!((p(12, 13) - 0.0425).abs() < 5e-5, "{}", p(12, 13));
    assert!((p(12, 14) - 0.0522).abs() < 1e-4, "{}", p(12, 14));
    assert!((p(6, 0) - 0.03125).abs() < 1e-12);
    assert!((signed_ranks(20).iter().sum::<f64>() - 1.0).abs() < 1e-12);
}

/// The rank-sum test: groups of 5 and 5, U = 2 has p = 0.0317 (two-sided), U = 3 0.0556.
#[test]
fn rank_sums_have_the_probabilities_of_the_table() {
    let p = |a, b, u| 2.0 * rank_sums(a, b)[..=u].iter().sum::<f64>();
    assert!((p(5, 5, 2) - 0.0317).abs() < 5e-5, "{}", p(5, 5, 2));
    assert!((p(5, 5, 3) - 0.0556).abs() < 5e-5, "{}", p(5, 5, 3));
    assert!((p(3, 4, 0) - 2.0 / 35.0).abs() < 1e-12);
    assert_eq!(rank_sums(4, 7).len(), 29);
}

#[test]
fn pairs_have_an_estimate_an_interval_and_a_probability() {
    let differences = [1.1, 2.2, 0.3, -0.4, -0.5, 0.6, -0.7, 0.8, -0.9, 1.0];
    let found = paired(&differences, 0.05).unwrap();
    // The rank sum of the negative ones is 2 + 3 + 5 + 7 = 17.
    let expected = 2.0 * signed_ranks(10)[..=17].iter().sum::<f64>();
    assert!((found.p - expected).abs() < 1e-12, "{found:?}");
    assert!((found.value - 0.325).abs() < 0.05 && found.low < 0.0 && found.high > 0.9, "{found:?}");
    assert!(paired(&[], 0.05).is_none());
    let few = paired(&[0.1, 0.2, 0.3, 0.4, 0.5], 0.05).unwrap();
    assert!(few.low.is_infinite() && few.high.is_infinite() && few.p == 0.0625, "{few:?}");
    let six = paired(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 0.05).unwrap();
    assert_eq!((six.low, six.high, six.p), (0.1, 0.6, 0.03125));
}

#[test]
fn groups_have_an_estimate_an_interval_and_a_probability() {
    let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [11.0, 12.0, 13.0, 14.0, 15.0]);
    let found = grouped(&a, &b, 0.05).unwrap();
    assert_eq!(found.value, 10.0);
    assert!((found.p - 2.0 / 252.0).abs() < 1e-12, "{found:?}");
    assert!(found.low >= 6.0 && found.high <= 14.0 && found.low < 10.0, "{found:?}");
    let same = grouped(&a, &a, 0.05).unwrap();
    assert!(same.value == 0.0 && same.p > 0.9, "{same:?}");
    assert!(grouped(&a, &[1.0], 0.05).unwrap().low.is_infinite());
}

#[test]
fn holm_multiplies_by_what_is_left() {
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
    let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
    for (a, b) in adjusted.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
        close(a, b);
    }
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
}

#[test]
fn more_rows_take_more_pairs() {
    assert_eq!(pairs_min(1, 0.05), 6);
    assert_eq!(pairs_min(1, 0.02), 7);
    assert_eq!(pairs_min(6, 0.02), 10);
}
