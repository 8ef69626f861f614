//! The exit code of several repeats.

use super::*;

#[test]
fn a_failed_repeat_counts_more_than_a_degraded_one_in_any_order() {
    let (done, failed) = (ExitCode::SUCCESS, ExitCode::FAILURE);
    let degraded = ExitCode::from(EXIT_DEGRADED);
    for (codes, expected) in [
        ([done, done, done], done),
        ([done, degraded, done], degraded),
        ([degraded, failed, done], failed),
        ([failed, degraded, done], failed),
    ] {
        assert_eq!(codes.into_iter().fold(done, worse), expected, "{codes:?}");
    }
}
