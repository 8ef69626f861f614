//! Credits are used once, in any order, and never run out.

use super::*;

#[test]
fn each_number_is_used_once() {
    let mut credits = Credits::default();
    assert!(!credits.use_up(1, 1));
    assert!(credits.use_up(0, 0));
    assert!(!credits.use_up(0, 1));
    assert_eq!(credits.grant(8, SMB_CREDITS_MAX), 8);
    assert!(credits.use_up(3, 2));
    assert!(!credits.use_up(4, 1));
    assert!(credits.use_up(1, 2));
    assert!(!credits.use_up(8, 2));
    assert!(credits.use_up(5, 4));
    assert!(!credits.use_up(u64::MAX, 1));
    assert_eq!(credits.grant(0, SMB_CREDITS_MAX), 1);
}

#[test]
fn no_more_than_the_limit_are_granted() {
    let mut credits = Credits::default();
    assert_eq!(credits.grant(u16::MAX, SMB_CREDITS_MAX), SMB_CREDITS_MAX - 1);
    assert_eq!(credits.grant(u16::MAX, SMB_CREDITS_MAX), 0);
    // Number 0 is never used: the window is bounded, and there is always one to continue with.
    for id in 1..100_000 {
        if credits.use_up(id, 1) {
            credits.grant(1, SMB_CREDITS_MAX);
        }
    }
    assert!(credits.free.len() <= usize::from(2 * SMB_CREDITS_MAX) + 1);
}
