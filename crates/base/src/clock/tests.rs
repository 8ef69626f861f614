//! The cheap stamp agrees with the wall clock, and a manual clock stands still.

use std::cell::Cell;

use super::*;

#[test]
fn stamp_agrees_with_wall_clock() {
    calibrate();
    let (stamp, wall) = together(stamp, wall_ns, TOGETHER_NS);
    let off = stamp.abs_diff(wall);
    assert!(off < 5_000_000, "stamp is {off} ns away from the wall clock");
}

/// Clocks that show the same, with what passes before each of their readings, ns.
fn same_clocks(passes: impl Fn(u32) -> u64) -> (u64, u64) {
    let (now, reading) = (Cell::new(0), Cell::new(0));
    let read = || {
        now.set(now.get() + passes(reading.get()));
        reading.set(reading.get() + 1);
        now.get()
    };
    together(read, read, TOGETHER_NS)
}

#[test]
fn a_thread_that_loses_its_processor_between_two_clocks_reads_them_again() {
    // Readings 1 and 2 are those of the other clock and of the clock after it, and so on.
    for pauses in [&[][..], &[1], &[2], &[1, 5], &[2, 4, 8, 10, 14]] {
        let (first, second) = same_clocks(|n| if pauses.contains(&n) { 30_000_000 } else { 100 });
        assert!(first.abs_diff(second) <= TOGETHER_NS, "{pauses:?}: {first} and {second}");
    }
}

#[test]
fn clocks_that_are_never_read_undisturbed_are_read_a_limited_number_of_times() {
    let (first, second) = same_clocks(|n| 30_000_000 - u64::from(n) * 100_000);
    assert!(first.abs_diff(second) < 30_000_000, "{first} and {second}");
}

#[test]
fn manual_clock_moves_only_when_advanced() {
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
