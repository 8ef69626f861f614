//! What the demonstration makes of the exit status of the summary.

use super::*;

#[test]
fn a_summary_with_reservations_is_complete() {
    let of = |code: u8| outcome(ExitCode::from(code));
    assert_eq!(of(0), ExitCode::SUCCESS);
    assert_eq!(of(::lab::cli::EXIT_DEGRADED), ExitCode::SUCCESS);
    assert_eq!(of(1), ExitCode::FAILURE);
    assert_eq!(of(2), ExitCode::from(2));
}
