//! Points of time as people write and read them: `2026-11-25 09:00`, `yesterday 09:00`, `-2h`,
//! RFC 3339, or seconds since the epoch. Times without a zone are in the time zone of this machine.

use crate::clock::{NS_PER_S, wall_ns};
use crate::node::parse_seconds;
use crate::units::{civil, days_from_civil, utc};

/// What [`LocalClock::parse`] accepts, for hints.
pub const FORMS: &str = "'2026-11-25 09:00', 'yesterday 09:00', 09:00, -2h, \
    2026-11-25T09:00:00Z, or seconds since the epoch";

/// Seconds in a day without a change of daylight saving time.
const DAY: i64 = 86_400;

/// Now and the time zone, to which points of time are relative.
#[derive(Debug, Clone, Copy)]
pub struct LocalClock {
    /// Seconds since the epoch.
    pub now: i64,
    /// Seconds that local time is ahead of UTC, at a second since the epoch.
    pub offset: fn(i64) -> i64,
}

impl LocalClock {
    /// The clock and the time zone of this machine.
    pub fn of_machine() -> Self {
        Self { now: (wall_ns() / NS_PER_S).cast_signed(), offset }
    }

    /// Seconds since the epoch from `now`, a span before or after now (`-90`, `-2h`, `+7d`),
    /// seconds since the epoch, a time of today (`09:00`), or `today`, `yesterday` or a date, with
    /// or without a time of day, and with or without a zone (`Z`, `UTC`, `+01:00`). `None` for
    /// anything else.
    pub fn parse(&self, text: &str) -> Option<i64> {
        let text = text.trim();
        if text == "now" {
            return Some(self.now);
        }
        if let Some(span) = parse_relative(text) {
            return self.now.checked_add(span);
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok();
        }
        let (day, rest) = self.parse_day(text)?;
        let (time, zone) = split_zone(rest);
        let second = day * DAY + if time.is_empty() { 0 } else { parse_time_of_day(time)? };
        match zone {
            Some(zone) => Some(second - parse_offset(zone)?),
            None => self.utc_of(second),
        }
    }

    /// `2026-11-25 09:00:00 +01:00`, with `UTC` for no offset.
    pub fn show(&self, epoch: i64) -> String {
        let offset = (self.offset)(epoch);
        format!("{} {}", utc(epoch.saturating_add(offset)), show_offset(offset))
    }

    /// An interval, with the zone once if it is the same at both ends.
    pub fn show_interval(&self, from: i64, to: i64) -> String {
        let (start, end) = (self.show(from), self.show(to));
        if (self.offset)(from) != (self.offset)(to) {
            return format!("{start} to {end}");
        }
        let zone = format!(" {}", show_offset((self.offset)(from)));
        format!("{} to {end}", start.strip_suffix(&zone).unwrap_or(&start))
    }

    /// The day as a number since the epoch, and the text after it.
    fn parse_day<'t>(&self, text: &'t str) -> Option<(i64, &'t str)> {
        let today = (self.now + (self.offset)(self.now)).div_euclid(DAY);
        let (first, rest) = text.split_once([' ', 'T']).unwrap_or((text, ""));
        match first {
            "today" => Some((today, rest)),
            "yesterday" => Some((today - 1, rest)),
            _ if first.contains('-') => Some((parse_date(first)?, rest)),
            _ if first.contains(':') => Some((today, text)),
            _ => None,
        }
    }

    /// Seconds since the epoch when local clocks show `second`, by the rule of [`utc_of`].
    fn utc_of(&self, second: i64) -> Option<i64> {
        utc_of(second, &self.offset)
    }
}

/// Seconds since the epoch when local clocks show `second`, counted from 1970-01-01 00:00 on them.
/// One rule for all zones, that of RFC 5545 §3.3.5 for local times: a time that clocks show twice
/// is the first of both, and one that they skip is as much later as they are set forward, as if
/// they had not been. `offset` is how far clocks are ahead of UTC at a second since the epoch.
/// `None` beyond the numbers that there are.
pub fn utc_of(second: i64, offset: &dyn Fn(i64) -> i64) -> Option<i64> {
    // No zone is a day or more away from UTC, so that these are before and after the moment.
    let (before, after) = (second.checked_sub(DAY)?, second.checked_add(DAY)?);
    let offsets = [before, second, after].map(offset);
    let moments = offsets.iter().filter_map(|ahead| second.checked_sub(*ahead));
    let is_shown = |moment: &i64| moment.checked_add(offset(*moment)) == Some(second);
    moments.filter(is_shown).min().or_else(|| second.checked_sub(offsets[0]))
}

/// Seconds that clocks of this machine are ahead of UTC at a second since the epoch.
pub fn offset(second: i64) -> i64 {
    let time = libc::time_t::from(second);
    // SAFETY: plain data, for which all zeros is a value.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to values of this function; the result is one of them or null, and
    // not used.
    unsafe { libc::localtime_r(&raw const time, &raw mut parts) };
    parts.tm_gmtoff
}

/// Seconds before (negative) or after now, from a text such as `-90`, `-15m`, `+2h`.
pub fn parse_relative(text: &str) -> Option<i64> {
    let (is_past, span) = match text.strip_prefix('-') {
        Some(span) => (true, span),
        None => (false, text.strip_prefix('+')?),
    };
    let has_number = span.starts_with(|first: char| first.is_ascii_digit());
    let span = parse_seconds(span).filter(|span| has_number && *span > 0)?;
    Some(if is_past { -span } else { span })
}

/// The number of a day since the epoch, from `2026-11-25`.
fn parse_date(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-').map(|part| parse_number(part, 4));
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let number = days_from_civil(year, month, day);
    let read = civil(number * DAY);
    ((read.year, read.month, read.day) == (year, month, day)).then_some(number)
}

/// Seconds from `09:00`, `9:00:30` or `09:00:30.5`; fractions are dropped.
fn parse_time_of_day(text: &str) -> Option<i64> {
    let (hour, rest) = text.split_once(':')?;
    let (minute, second) = rest.split_once(':').unwrap_or((rest, "0"));
    let (second, fraction) = second.split_once('.').unwrap_or((second, "0"));
    let numbers = [parse_number(hour, 2)?, parse_number(minute, 2)?, parse_number(second, 2)?];
    let has_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    match numbers {
        // RFC 3339 has second 60 for leap seconds.
        [hour @ 0..=23, minute @ 0..=59, second @ 0..=60] if has_fraction => {
            Some(hour * 3600 + minute * 60 + second)
        }
        _ => None,
    }
}

/// A number of at most `digits_max` digits, and nothing else.
fn parse_number(text: &str, digits_max: usize) -> Option<i64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && text.len() <= digits_max { text.parse().ok() } else { None }
}

/// A time of day, and its zone if there is one.
fn split_zone(text: &str) -> (&str, Option<&str>) {
    let text = text.trim();
    let at = text.rfind(['+', '-', 'Z', 'z']).or_else(|| text.rfind("UTC"));
    match at.and_then(|at| text.split_at_checked(at)) {
        Some((time, zone)) => (time.trim_end(), Some(zone)),
        None => (text, None),
    }
}

/// Seconds ahead of UTC from `Z`, `UTC`, `+01:00` or `+0100`.
fn parse_offset(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return matches!(zone, "Z" | "z" | "UTC").then_some(0),
    };
    let digits = zone.get(1..)?.replacen(':', "", 1);
    if digits.len() != 4 {
        return None;
    }
    let (hours, minutes) = digits.split_at_checked(2)?;
    match (parse_number(hours, 2)?, parse_number(minutes, 2)?) {
        (hours @ 0..=23, minutes @ 0..=59) => Some(sign * (hours * 3600 + minutes * 60)),
        _ => None,
    }
}

fn show_offset(offset: i64) -> String {
    if offset == 0 {
        return "UTC".to_owned();
    }
    let sign = if offset < 0 { '-' } else { '+' };
    let minutes = offset.abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests;
