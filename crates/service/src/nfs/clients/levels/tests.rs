//! Recalls are events, whatever the time between two readings.

use super::*;

#[test]
fn a_recall_is_reported_once() {
    let mut reported = 0;
    let counts = [2, 2, 3, 3].map(|now| recalled(&mut reported, now).total);
    assert_eq!(counts, [2.0, 0.0, 1.0, 0.0]);
}
