//! Values in the output of the commands: sizes, times and durations for people.

/// Days of a year before each month, without a leap day.
const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY_S: u64 = 86_400;

/// A size or a count: `0`, `275`, `1.98M`, `12.7T`, `600K`, `0B`.
pub fn size(text: &str) -> Option<u64> {
    let digits =
        text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = text.split_at_checked(digits)?;
    let shift = match unit {
        "" | "B" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        "P" => 50,
        "E" => 60,
        _ => return None,
    };
    if !number.contains('.') {
        let whole = number.parse::<u64>().ok()?;
        return whole.checked_mul(1 << shift);
    }
    let value = number.parse::<f64>().ok()? * (1_u64 << shift) as f64;
    // Rounded for people already: no more than three digits are right.
    (value.is_finite() && value >= 0.0 && value < u64::MAX as f64).then_some(value as u64)
}

/// A duration: `0h0m`, `27h5m`, `00:12:34`, `1 days 02:55:32`.
pub fn duration_s(text: &str) -> Option<u64> {
    let text = text.trim();
    let (days, rest) = match text.split_once(" days ") {
        Some((days, rest)) => (days.trim().parse::<u64>().ok()?, rest.trim()),
        None => (0, text),
    };
    let seconds = if let Some((hours, minutes)) = rest.split_once('h') {
        let hours = hours.parse::<u64>().ok()?;
        let minutes = minutes.strip_suffix('m')?.parse::<u64>().ok()?;
        hours.checked_mul(3_600)?.checked_add(minutes.checked_mul(60)?)?
    } else {
        let mut seconds = 0_u64;
        let mut count = 0;
        for part in rest.split(':') {
            seconds = seconds.checked_mul(60)?.checked_add(part.parse::<u64>().ok()?)?;
            count += 1;
        }
        (count == 3).then_some(seconds)?
    };
    days.checked_mul(DAY_S)?.checked_add(seconds)
}

/// A time as `ctime` writes it, in UTC: the commands run with that time zone.
pub fn time_s(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace().skip(1);
    let month = words.next()?;
    let month = MONTHS.iter().position(|one| *one == month)?;
    let day = words.next()?.parse::<u64>().ok().filter(|day| (1..=31).contains(day))?;
    let of_day = duration_s(words.next()?)?;
    let year = words.next()?.parse::<u64>().ok().filter(|year| (1970..=9999).contains(year))?;
    let leap = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = (year - 1970) * 365 + leap(year - 1) - leap(1969);
    let after = u64::from(is_leap && month > 1);
    let days = days + BEFORE.get(month)? + after + day - 1;
    days.checked_mul(DAY_S)?.checked_add(of_day)
}

#[cfg(test)]
mod tests;
