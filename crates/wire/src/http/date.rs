//! Dates of HTTP (RFC 9110 §5.6.7): always written in one form, read in three.

use base::units::{Civil, MONTHS, civil, weekday};

/// The first and the last second that have a year of four digits.
const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;

/// `Sun, 06 Nov 1994 08:49:37 GMT`. What has no year of four digits is shown as the nearest.
pub fn write(sec: i64) -> String {
    let mut out = String::with_capacity(29);
    put(sec, &mut out);
    out
}

/// The same, added to a text: a listing has two for each of its entries.
pub fn put(sec: i64, out: &mut String) {
    let sec = sec.clamp(FIRST, LAST);
    let at = civil(sec);
    out.push_str(weekday(sec));
    out.push_str(", ");
    put_two(at.day, out);
    out.push(' ');
    out.push_str(at.month_name());
    out.push(' ');
    put_year(at.year, out);
    out.push(' ');
    put_clock(&at, out);
    out.push_str(" GMT");
}

/// `1994-11-06T08:49:37Z` (RFC 3339); the same of years.
pub fn write_iso(sec: i64) -> String {
    let mut out = String::with_capacity(20);
    put_iso(sec, &mut out);
    out
}

/// The same, added to a text.
pub fn put_iso(sec: i64, out: &mut String) {
    let at = civil(sec.clamp(FIRST, LAST));
    put_year(at.year, out);
    for part in [at.month, at.day] {
        out.push('-');
        put_two(part, out);
    }
    out.push('T');
    put_clock(&at, out);
    out.push('Z');
}

/// Four digits: dates are clamped to the years 0 to 9999.
fn put_year(year: i64, out: &mut String) {
    put_two(year / 100, out);
    put_two(year % 100, out);
}

fn put_clock(at: &Civil, out: &mut String) {
    put_two(at.hour, out);
    for part in [at.minute, at.second] {
        out.push(':');
        put_two(part, out);
    }
}

/// Two digits of a number below 100.
fn put_two(number: i64, out: &mut String) {
    for digit in [number / 10 % 10, number % 10] {
        out.push(char::from(b'0' + digit as u8));
    }
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
