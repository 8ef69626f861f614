//! Times as `YYYYMMDDHHMMSS`, with a fraction or without, UTC (RFC 3659 §2.3).

use base::units::{Civil, civil, days_from_civil};

use super::Malformed;
use super::addr::number;

/// Digits of a time without its fraction.
const DIGITS: usize = 14;
/// Years that can be written.
const YEARS: std::ops::RangeInclusive<i64> = 0..=9999;

/// Seconds since the epoch as a time. What has no year of four digits is shown as the nearest.
pub fn time_text(epoch: i64) -> String {
    let at = |year, month, day| days_from_civil(year, month, day) * 86_400;
    let epoch = epoch.clamp(at(0, 1, 1), at(10_000, 1, 1) - 1);
    let Civil { year, month, day, hour, minute, second } = civil(epoch);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
}

/// Seconds and nanoseconds since the epoch.
///
/// # Errors
/// It is no time.
pub fn time(text: &[u8]) -> Result<(i64, u32), Malformed> {
    let (whole, fraction) = text.split_at_checked(DIGITS).ok_or(Malformed::Time)?;
    let part = |from: usize, len: usize| {
        let digits = whole.get(from..from + len).unwrap_or_default();
        number::<u32>(digits).map(i64::from).map_err(|_| Malformed::Time)
    };
    let (year, month, day) = (part(0, 4)?, part(4, 2)?, part(6, 2)?);
    // A leap second is the last one of its minute here, as everywhere on Unix.
    let (hour, minute, second) = (part(8, 2)?, part(10, 2)?, part(12, 2)?.min(60));
    let days = days_from_civil(year, month, day);
    let epoch = days * 86_400 + hour * 3600 + minute * 60 + second.min(59);
    let again = civil(epoch);
    if !YEARS.contains(&year)
        || (again.year, again.month, again.day) != (year, month, day)
        || (again.hour, again.minute) != (hour, minute)
    {
        return Err(Malformed::Time);
    }
    Ok((epoch, nanoseconds(fraction)?))
}

fn nanoseconds(fraction: &[u8]) -> Result<u32, Malformed> {
    let Some((dot, digits)) = fraction.split_first() else { return Ok(0) };
    if *dot != b'.' || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Malformed::Time);
    }
    let nine = digits.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    Ok(nine.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
}
