//! The cheap stamp agrees with the wall clock, and a manual clock stands still.

use super::*;

#[test]
fn stamp_agrees_with_wall_clock() {
    calibrate();
    let off = (stamp() as i64 - wall_ns() as i64).abs();
    assert!(off < 5_000_000, "stamp is {off} ns away from the wall clock");
}

#[test]
fn manual_clock_moves_only_when_told() {
    let clock = ManualClock::at(7);
    assert_eq!(clock.wall_ns(), 7);
    clock.advance(Duration::from_nanos(5));
    assert_eq!((clock.wall_ns(), clock.monotonic_ns()), (12, 12));
}

#[test]
fn a_deadline_passes_once_and_for_all() {
    let now = Deadline::after(Duration::ZERO);
    assert!(now.passed());
    assert_eq!(now.left(), None);
    let later = Deadline::after(Duration::from_secs(3600));
    assert!(!later.passed());
    assert!(later.left().is_some_and(|left| left > Duration::from_secs(3500)));
    assert!(!Deadline::after(Duration::MAX).passed());
}
