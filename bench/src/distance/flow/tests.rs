//! What counts of a turn, and what does not.

use base::clock::NS_PER_S;

use super::rate;

/// A turn that stalls for `wait` seconds, begins slowly, then has 100 bytes a second, and takes
/// long for its last bytes.
fn turn(wait: u64, even: u64) -> Vec<(u64, u64)> {
    let mut all: Vec<_> = (0..=wait).map(|s| (s * NS_PER_S, 0)).collect();
    let mut bytes = 0;
    for each in [5, 10].into_iter().chain((0..even).map(|_| 100)).chain([5, 5, 5]) {
        bytes += each;
        all.push((all.len() as u64 * NS_PER_S, bytes));
    }
    all
}

#[test]
fn begin_and_end_do_not_count() {
    for wait in [1, 30] {
        let bits = rate(&turn(wait, 20)).expect("a rate");
        assert!((bits - 800.0).abs() < 1.0, "{bits}");
    }
}

#[test]
fn a_pause_in_the_middle_counts() {
    let mut samples = turn(1, 20);
    let later = samples.len() / 2;
    samples.iter_mut().skip(later).for_each(|sample| sample.0 += 16 * NS_PER_S);
    let bits = rate(&samples).expect("a rate");
    assert!((bits - 400.0).abs() < 5.0, "{bits}");
}

#[test]
fn few_samples_have_no_rate() {
    assert_eq!(rate(&[]), None);
    assert_eq!(rate(&[(0, 0)]), None);
    assert_eq!(rate(&turn(3, 1)), None);
    assert_eq!(rate(&[(0, 0), (NS_PER_S, 1_000_000)]), None);
    assert_eq!(rate(&[(0, 5), (NS_PER_S, 5)]), None);
}
