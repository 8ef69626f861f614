//! Samples of a busy machine are condemned.

use super::*;

#[test]
fn a_sample_without_cores_is_condemned() {
    assert_eq!(without_core([0.01, 0.1]), None);
    let why = without_core([0.02, 0.12]).expect("condemned");
    assert_eq!(why, "children and server waited for a core for 12.0 % of the time, not 10 %");
}
