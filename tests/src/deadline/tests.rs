//! How time counts against a deadline.

use std::time::Duration;

use super::{Deadline, runnable, share};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn time_counts_whole_where_each_thread_has_a_processor() {
    assert_eq!(share(SECOND, 0, 2), SECOND);
    assert_eq!(share(SECOND, 2, 2), SECOND);
}

#[test]
fn time_counts_by_the_share_of_a_thread_on_a_busy_machine() {
    assert_eq!(share(SECOND, 8, 2), SECOND / 4);
    assert_eq!(share(SECOND, 3, 1), SECOND / 3);
}

#[test]
fn a_deadline_ends() {
    assert!(Deadline::after(Duration::ZERO).is_over());
    let mut later = Deadline::after(SECOND * 3600);
    assert!(!later.is_over());
    // This thread runs.
    assert!(runnable() >= 1);
}
