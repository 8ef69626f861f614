//! Which samples of the server belong to the windows that count.

use super::*;

fn times(of: &[u64], begin: u64, end: u64) -> Vec<u64> {
    let sample = |at_ns: &u64| ServerSample { at_ns: *at_ns, ..Default::default() };
    let kept = nearest(of.iter().map(sample).collect(), begin, end);
    kept.iter().map(|s| s.at_ns).collect()
}

#[test]
fn samples_nearest_the_edges() {
    assert_eq!(times(&[0, 10, 20, 30, 40], 9, 31), [10, 20, 30]);
    assert_eq!(times(&[0, 14, 26, 40], 10, 30), [14, 26]);
    // Few of them: still two.
    assert_eq!(times(&[0, 100], 40, 49), [0, 100]);
    assert_eq!(times(&[0, 45, 100], 40, 49), [0, 45, 100]);
    assert_eq!(times(&[7], 0, 10), [7]);
    assert_eq!(times(&[], 0, 10), [0u64; 0]);
}

#[test]
fn a_slow_server_is_not_a_step_that_hangs() {
    let (second, silence) = (1_000_000_000, LAB_SILENCE_MAX.as_nanos() as u64);
    // Twenty COMMITs may each take as long as a client waits for one.
    assert_eq!(abandon_ns(10 * second, 20), 10 * second + 21 * silence + REPORT_NS);
    // Each window in which something was completed extends the time.
    assert_eq!(abandon_ns(90 * second, 0) - abandon_ns(60 * second, 0), 30 * second);
}
