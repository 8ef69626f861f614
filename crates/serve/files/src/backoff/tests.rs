//! How long the pauses are.

use std::time::Duration;

use base::clock::Deadline;
use base::limits::POOL_LOOK_MAX;

use super::Backoff;

#[test]
fn pauses_double_up_to_the_longest() {
    let mut wait = Backoff::endless();
    let pauses: Vec<_> = (0..9).filter_map(|_| wait.next_pause()).collect();
    let ms: Vec<_> = pauses.iter().map(Duration::as_millis).collect();
    assert_eq!(ms, [1, 2, 4, 8, 16, 32, 64, 64, POOL_LOOK_MAX.as_millis()]);
}

#[test]
fn none_follows_the_deadline() {
    assert_eq!(Backoff::until(Deadline::after(Duration::ZERO)).next_pause(), None);
}
