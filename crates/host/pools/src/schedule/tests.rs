//! Schedules over 400 days against a list by brute force; names; clocks that are set.

use base::random::{Random, SeededRandom};
use base::units::{utc, weekday};

use super::*;

const DAY: u64 = 86_400;
/// 2026-02-20 05:07 UTC.
const BEGIN: u64 = 1_771_564_020;

/// The period of a time as the calendar shows it, without arithmetic of periods.
fn label(prefix: &str, now_s: u64) -> String {
    let text = utc(now_s as i64);
    match prefix {
        "hourly" => text[..13].to_owned(),
        "daily" => text[..10].to_owned(),
        "monthly" => text[..7].to_owned(),
        _ => {
            let mut day = now_s as i64;
            while weekday(day) != "Mon" {
                day -= DAY as i64;
            }
            utc(day)[..10].to_owned()
        }
    }
}

/// What one schedule has made, by brute force: the label of the period, and the name.
struct Model {
    prefix: &'static str,
    keep: usize,
    all: Vec<(String, String)>,
}

impl Model {
    fn at(&mut self, now_s: u64) {
        let period = label(self.prefix, now_s);
        if self.all.last().is_none_or(|(last, _)| *last != period) {
            let time: String = utc(now_s as i64)[..16].replace([' ', ':'], "-");
            let plain = format!("{}-{time}", self.prefix);
            // Those that still exist: a name is used again when its snapshot is gone.
            let kept = self.kept();
            let names = (2..).map(|n| format!("{plain}.{n}"));
            let mut names = [plain.clone()].into_iter().chain(names);
            let name = names.find(|name| !kept.contains(name)).expect("a name");
            self.all.push((period, name));
        }
    }

    fn kept(&self) -> Vec<String> {
        let from = self.all.len().saturating_sub(self.keep);
        self.all[from..].iter().map(|(_, name)| name.clone()).collect()
    }
}

/// The minute after this one, or a change of the clock, or a time without a server.
fn next(now_s: u64, random: &mut SeededRandom) -> u64 {
    match random.below(2_000) {
        // Off for up to ten days.
        0 => now_s + random.below(10 * DAY),
        // The clock is set forward, and back.
        1 => now_s + random.below(3 * DAY),
        2 => now_s - random.below(3 * DAY),
        3 => now_s - random.below(7_200),
        _ => now_s + 60 * (1 + random.below(40)),
    }
}

#[test]
fn what_is_kept_over_400_days_is_what_brute_force_lists() {
    let mut random = SeededRandom::new(41);
    let schedules = [(Every::Hour, 24), (Every::Day, 31), (Every::Week, 8)]
        .map(|(every, keep)| Schedule { every, keep });
    let mut models = schedules.map(|Schedule { every, keep }| Model {
        prefix: every.prefix(),
        keep: keep as usize,
        all: Vec::new(),
    });
    let mut snapshots = vec!["monday".to_owned(), "hourly-by-hand".to_owned()];
    let (mut now_s, mut passed, mut changes) = (BEGIN, 0, 0);
    while passed < 400 * DAY {
        let names: Vec<&str> = snapshots.iter().map(String::as_str).collect();
        let made = due(&schedules, &names, now_s);
        changes += made.len();
        snapshots.extend(made);
        let names: Vec<&str> = snapshots.iter().map(String::as_str).collect();
        let gone = excess(&schedules, &names);
        snapshots.retain(|name| !gone.contains(name));
        models.iter_mut().for_each(|model| model.at(now_s));
        let mut wanted: Vec<String> = models.iter().flat_map(Model::kept).collect();
        wanted.extend(["monday".to_owned(), "hourly-by-hand".to_owned()]);
        let mut kept = snapshots.clone();
        wanted.sort();
        kept.sort();
        assert_eq!(kept, wanted, "at {}", utc(now_s as i64));
        let then = next(now_s, &mut random);
        passed += then.saturating_sub(now_s);
        now_s = then;
    }
    assert_eq!(snapshots.len(), 24 + 31 + 8 + 2);
    assert!(changes > 7_000, "{changes}");
}

#[test]
fn a_name_has_the_time_and_only_such_names_are_of_a_schedule() {
    let at = |every| due(&[Schedule { every, keep: 1 }], &[], 1_796_000_459);
    assert_eq!(at(Every::Hour), ["hourly-2026-11-30-01-00"]);
    assert_eq!(at(Every::Minutes(15)), ["frequent-2026-11-30-01-00"]);
    for name in ["hourly-2026-11-29-14-00", "monthly-2026-11-29-14-00.2", "daily-1970-01-01-00-00"]
    {
        assert!(is_scheduled(name), "{name}");
    }
    for name in [
        "hourly",
        "hourly-2026-11-29-14",
        "hourly-2026-11-29-14-00-00",
        "hourly-2026-13-29-14-00",
        "hourly-+026-11-29-14-00",
        "hourly-2026-11-29-14-0",
        "hourly-2026-11-29-14-00.x",
        "hourly-2026-11-29-24-00",
        "yearly-2026-11-29-14-00",
        "xhourly-2026-11-29-14-00",
    ] {
        assert!(!is_scheduled(name), "{name}");
    }
}

#[test]
fn a_clock_that_is_set_back_neither_stops_a_schedule_nor_takes_a_name_twice() {
    let hourly = [Schedule { every: Every::Hour, keep: 3 }];
    let year = 365 * DAY;
    let first = due(&hourly, &[], BEGIN + year);
    let names: Vec<&str> = first.iter().map(String::as_str).collect();
    let second = due(&hourly, &names, BEGIN);
    assert_eq!(second, ["hourly-2026-02-20-05-07"]);
    let names = [first[0].as_str(), second[0].as_str()];
    assert_eq!(due(&hourly, &names, BEGIN + 60), Vec::<String>::new());
    // And forward into the minute that has its name already.
    assert_eq!(due(&hourly, &names, BEGIN + year), [format!("{}.2", first[0])]);
}

#[test]
fn minutes_and_months_begin_by_the_calendar() {
    let made = |every, before: u64, now: u64| {
        let schedule = [Schedule { every, keep: 9 }];
        let first = due(&schedule, &[], before);
        !due(&schedule, &[first[0].as_str()], now).is_empty()
    };
    let quarter = 1_796_000_400;
    assert!(!made(Every::Minutes(15), quarter, quarter + 14 * 60 + 59));
    assert!(made(Every::Minutes(15), quarter, quarter + 15 * 60));
    // 2026-11-30 23:59 and 2026-12-01 00:00.
    assert!(made(Every::Month, 1_796_083_140, 1_796_083_200));
    assert!(!made(Every::Month, 1_796_000_459, 1_796_083_140));
}

#[test]
fn a_schedule_that_keeps_nothing_makes_and_destroys_nothing() {
    let off = [Schedule { every: Every::Day, keep: 0 }];
    assert_eq!(due(&off, &[], BEGIN), Vec::<String>::new());
    let names = ["daily-2026-11-29-14-00", "daily-2026-11-30-14-00"];
    assert_eq!(excess(&off, &names), Vec::<String>::new());
}
