//! When a share is looked at, and which names are refused.

use super::*;

const NOW: u64 = 1_796_000_459;

#[test]
fn a_share_is_looked_at_when_a_period_begins_or_its_schedules_change() {
    let hourly = Schedule { every: Every::Hour, keep: 3 };
    let look = Look { periods: periods(&[hourly], NOW), failed: None };
    assert!(!look.is_due(&periods(&[hourly], NOW + 60), NOW + 60));
    assert!(look.is_due(&periods(&[hourly], NOW + 3_600), NOW + 3_600));
    assert!(look.is_due(&periods(&[hourly], NOW - 3_600), NOW - 3_600), "the clock is set back");
    let fewer = Schedule { keep: 2, ..hourly };
    assert!(look.is_due(&periods(&[fewer], NOW), NOW));
    assert!(look.is_due(&periods(&[hourly, Schedule { every: Every::Day, keep: 1 }], NOW), NOW));
}

#[test]
fn one_that_failed_is_tried_again_after_a_minute_and_is_a_problem() {
    let hourly = [Schedule { every: Every::Hour, keep: 3 }];
    let periods = periods(&hourly, NOW);
    let look = Look { periods: periods.clone(), failed: Some((NOW, "the pool is full".into())) };
    assert!(!look.is_due(&periods, NOW + 59));
    assert!(look.is_due(&periods, NOW + 60));
    assert!(look.is_due(&periods, NOW - 1), "the clock is set back");
    let made = Made::default();
    assert!(made.faults().is_empty());
    made.shares.lock().insert(("tank".into(), "projects".into()), look);
    let [fault] = made.faults().try_into().expect("one");
    assert_eq!(fault.id, "snapshot-tank-projects");
    assert!(fault.what.contains("projects failed: the pool is full"), "{}", fault.what);
}

#[test]
fn names_of_schedules_are_refused_for_others() {
    assert!(check_name("monday").is_ok());
    let why = check_name("hourly-2026-11-29-14-00").expect_err("refused");
    assert!(why.contains("of a schedule"), "{why}");
}
