//! Snapshots by schedule: which are due, and which go. Pure: the snapshots that there are and the
//! time are given.
//!
//! A schedule makes one snapshot in each of its periods, which begin by the calendar in UTC: hours,
//! days, weeks from Monday, months, or a number of minutes. One is due if the last one that it has
//! made is not of the present period. Which one is the last is given by the order in which they
//! were made and not by their times, so that a clock that is set back or forward neither stops a
//! schedule nor makes it destroy more than one for each that it makes. Periods in which nothing
//! ran, as while the server was off, are not made up for: one snapshot follows.
//!
//! Snapshots belong to a schedule by their names, `hourly-2026-11-29-14-00`. All others stay.

use base::units::{Civil, civil, days_from_civil};

/// Snapshots of a schedule within the same minute, as after the clock was set back.
const SAME_MINUTE_MAX: u32 = 1_000;
/// Between the name of a minute and the number of a further snapshot in it.
const AGAIN: char = '.';

/// How often a schedule makes a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Every {
    /// A number of minutes, counted from 1970.
    Minutes(u32),
    /// Each hour.
    Hour,
    /// Each day.
    Day,
    /// Each week, from Monday.
    Week,
    /// Each month.
    Month,
}

impl Every {
    /// The start of the names of its snapshots.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Minutes(_) => "frequent",
            Self::Hour => "hourly",
            Self::Day => "daily",
            Self::Week => "weekly",
            Self::Month => "monthly",
        }
    }

    /// Number of the period that a time in seconds since 1970 is in.
    pub fn period(self, at_s: i64) -> i64 {
        let day = at_s.div_euclid(86_400);
        match self {
            Self::Minutes(n) => at_s.div_euclid(60 * i64::from(n.max(1))),
            Self::Hour => at_s.div_euclid(3_600),
            Self::Day => day,
            // 1970 began on a Thursday.
            Self::Week => (day + 3).div_euclid(7),
            Self::Month => {
                let Civil { year, month, .. } = civil(at_s);
                year * 12 + month
            }
        }
    }
}

/// A schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// How often.
    pub every: Every,
    /// How many of its snapshots are kept.
    pub keep: u32,
}

/// The time in the name of a snapshot that a schedule with this prefix has made.
fn time_of(name: &str, prefix: &str) -> Option<i64> {
    let text = name.strip_prefix(prefix)?.strip_prefix('-')?;
    let (text, again) = text.split_once(AGAIN).map_or((text, None), |(a, b)| (a, Some(b)));
    if again.is_some_and(|again| again.parse::<u32>().is_err()) {
        return None;
    }
    let mut parts = text.split('-');
    let mut number = |digits: usize, least: i64, most: i64| {
        let part = parts.next()?;
        let is_plain = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 = part.parse().ok()?;
        (is_plain && (least..=most).contains(&number)).then_some(number)
    };
    let (year, month, day) = (number(4, 1970, 9_999)?, number(2, 1, 12)?, number(2, 1, 31)?);
    let (hour, minute) = (number(2, 0, 23)?, number(2, 0, 59)?);
    if parts.next().is_some() {
        return None;
    }
    Some(days_from_civil(year, month, day) * 86_400 + hour * 3_600 + minute * 60)
}

/// Whether a name is that of a snapshot made by a schedule. Others may not have such names, or a
/// schedule would destroy what it has not made.
pub fn is_scheduled(name: &str) -> bool {
    let all = [Every::Minutes(1), Every::Hour, Every::Day, Every::Week, Every::Month];
    all.iter().any(|every| time_of(name, every.prefix()).is_some())
}

fn name(every: Every, now_s: i64, is_taken: impl Fn(&str) -> bool) -> Option<String> {
    let Civil { year, month, day, hour, minute, .. } = civil(now_s);
    let prefix = every.prefix();
    let plain = format!("{prefix}-{year:04}-{month:02}-{day:02}-{hour:02}-{minute:02}");
    if !is_taken(&plain) {
        return Some(plain);
    }
    let further = (2..SAME_MINUTE_MAX).map(|n| format!("{plain}{AGAIN}{n}"));
    further.into_iter().find(|name| !is_taken(name))
}

/// Names of the snapshots that are due at a time. `snapshots` are those that there are, in the
/// order in which they were made.
pub fn due(schedules: &[Schedule], snapshots: &[&str], now_s: u64) -> Vec<String> {
    let now_s = i64::try_from(now_s).unwrap_or(i64::MAX);
    let one = |schedule: &Schedule| {
        let every = schedule.every;
        let last = snapshots.iter().rev().find_map(|name| time_of(name, every.prefix()));
        let is_due = last.is_none_or(|last| every.period(last) != every.period(now_s));
        if !is_due || schedule.keep == 0 {
            return None;
        }
        name(every, now_s, |name| snapshots.contains(&name))
    };
    schedules.iter().filter_map(one).collect()
}

/// Names of the snapshots that go: of each schedule all but the last ones that it keeps.
pub fn excess(schedules: &[Schedule], snapshots: &[&str]) -> Vec<String> {
    let of = |schedule: &Schedule| {
        let prefix = schedule.every.prefix();
        let own = snapshots.iter().rev().filter(move |name| time_of(name, prefix).is_some());
        // One that keeps nothing is none, and what it has made before stays.
        let keep = if schedule.keep == 0 { usize::MAX } else { schedule.keep as usize };
        own.skip(keep).map(|name| (*name).to_owned()).collect::<Vec<_>>()
    };
    schedules.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests;
