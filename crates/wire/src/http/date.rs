//! Dates of HTTP (RFC 9110 §5.6.7): always written in one form, read in three.

use base::units::{Civil, MONTHS, civil, utc, weekday};

/// The first and the last second that have a year of four digits.
const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;

/// `Sun, 06 Nov 1994 08:49:37 GMT`. What has no year of four digits is shown as the nearest.
pub fn write(sec: i64) -> String {
    let sec = sec.clamp(FIRST, LAST);
    let at = civil(sec);
    let Civil { year, day, hour: h, minute: m, second: s, .. } = at;
    let (weekday, month) = (weekday(sec), at.month_name());
    format!("{weekday}, {day:02} {month} {year:04} {h:02}:{m:02}:{s:02} GMT")
}

/// `1994-11-06T08:49:37Z` (RFC 3339); the same of years.
pub fn write_iso(sec: i64) -> String {
    utc(sec.clamp(FIRST, LAST)).replace(' ', "T") + "Z"
}

/// Seconds since the epoch, of a date in any of the three forms.
pub fn parse(text: &str) -> Option<i64> {
    let rest = text.split_once(' ')?.1.trim_start();
    if text.split(' ').next()?.ends_with(',') {
        // `06 Nov 1994 08:49:37 GMT` or `06-Nov-94 08:49:37 GMT`.
        let rest = rest.strip_suffix(" GMT")?;
        let (date, clock) = rest.rsplit_once(' ')?;
        let mut parts = date.split([' ', '-']);
        let (day, name, year) = (parts.next()?, parts.next()?, parts.next()?);
        let short = year.len() == 2;
        let year = digits(year)?;
        // Two digits are of this century unless that lies far ahead.
        let year = if short { year + if year < 70 { 2000 } else { 1900 } } else { year };
        return moment(year, name, day, clock).filter(|_| parts.next().is_none());
    }
    // `Nov  6 08:49:37 1994`.
    let mut parts = rest.split_ascii_whitespace();
    let (name, day, clock) = (parts.next()?, parts.next()?, parts.next()?);
    moment(digits(parts.next()?)?, name, day, clock)
}

fn moment(year: i64, month: &str, day: &str, clock: &str) -> Option<i64> {
    let month = MONTHS.iter().position(|m| *m == month)? as i64 + 1;
    let mut parts = clock.split(':').map(digits);
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let day = digits(day)?;
    let good = (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let then = Civil { year, month, day, hour, minute, second };
    let seconds = then.seconds();
    // Not the 31st of a month that has none.
    let is_day = civil(seconds - second).day == day;
    (good && is_day && parts.next().is_none()).then_some(seconds)
}

fn digits(text: &str) -> Option<i64> {
    let good = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    if good { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;
