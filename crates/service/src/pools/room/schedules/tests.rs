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

/// Snapshots of which some cannot be created, or destroyed.
struct Faulty {
    all: Mutex<Vec<String>>,
    not_created: &'static str,
    not_destroyed: &'static str,
}

impl Faulty {
    fn of(all: &[&str]) -> Self {
        let all = Mutex::new(all.iter().map(|name| (*name).to_owned()).collect());
        Self { all, not_created: "none", not_destroyed: "none" }
    }

    fn all(&self) -> Vec<String> {
        self.all.lock().clone()
    }
}

impl Snapshots for Faulty {
    fn names(&self) -> Result<Vec<String>, String> {
        Ok(self.all())
    }

    fn create(&self, snapshot: &str) -> Result<(), String> {
        if snapshot.starts_with(self.not_created) {
            return Err(format!("{snapshot}: the pool is full"));
        }
        self.all.lock().push(snapshot.to_owned());
        Ok(())
    }

    fn destroy(&self, snapshot: &str) -> Result<(), String> {
        if snapshot.starts_with(self.not_destroyed) {
            return Err(format!("{snapshot}: it has a clone"));
        }
        self.all.lock().retain(|name| name != snapshot);
        Ok(())
    }
}

#[test]
fn one_snapshot_that_fails_does_not_prevent_the_others() {
    let old = [
        "hourly-2026-11-28-09-00",
        "hourly-2026-11-28-10-00",
        "monday",
        "daily-2026-11-28-00-00",
        "daily-2026-11-27-00-00",
    ];
    let [hourly, daily] = [Every::Hour, Every::Day].map(|every| Schedule { every, keep: 1 });
    let made = |of: &Faulty, schedules: &[Schedule]| {
        let done = renew(of, schedules, NOW);
        let count = |prefix: &str| of.all().iter().filter(|name| name.starts_with(prefix)).count();
        assert_eq!(count("monday"), 1);
        (done, [count("hourly"), count("daily")])
    };
    assert_eq!(made(&Faulty::of(&old), &[hourly, daily]), (Ok(()), [1, 1]));
    let of = Faulty { not_destroyed: old[0], ..Faulty::of(&old) };
    let (done, left) = made(&of, &[hourly, daily]);
    assert!(done.is_err_and(|why| why.contains("it has a clone")), "{left:?}");
    assert_eq!(left, [2, 1], "the other hourly one and those of a day are destroyed");
    // What is left of before is still destroyed down to what is kept.
    let of = Faulty { not_created: "hourly", ..Faulty::of(&old) };
    let (done, left) = made(&of, &[hourly, daily]);
    assert!(done.is_err_and(|why| why.contains("the pool is full")), "{left:?}");
    assert_eq!(left, [1, 1]);
    assert!(of.all().contains(&old[1].to_owned()), "the last one is kept");
    let of = Faulty { not_created: "", ..Faulty::of(&old) };
    assert_eq!(made(&of, &[hourly, daily]).1, [1, 1]);
    assert!(of.all().contains(&old[4].to_owned()), "in the order in which they were made");
}
