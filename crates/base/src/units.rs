//! Figures for people: bytes in powers of two with IEC names, rates, times with their unit.

/// `1536` → `1.5 KiB`.
pub fn bytes(n: f64) -> String {
    scaled(n, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

/// `1234567.0` → `1.23 M`, for counts and rates.
pub fn count(n: f64) -> String {
    scaled(n, 1000.0, &["", "K", "M", "G", "T"]).trim_end().to_owned()
}

/// Nanoseconds as `870 ns`, `12.5 µs`, `3.2 ms`, `1.5 s`.
pub fn time_ns(ns: f64) -> String {
    if ns < 1e6 {
        scaled(ns, 1000.0, &["ns", "µs"])
    } else if ns < 1e9 {
        format!("{} ms", digits(ns / 1e6))
    } else {
        format!("{} s", digits(ns / 1e9))
    }
}

fn scaled(n: f64, step: f64, units: &[&str]) -> String {
    let (mut value, mut unit) = (n, 0);
    while value.abs() >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    format!("{} {}", digits(value), units[unit])
}

/// Three significant digits, no trailing zeros.
fn digits(value: f64) -> String {
    let places = match value.abs() {
        v if v >= 99.95 || v == 0.0 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Permission bits in octal digits, `most` at most.
pub fn octal(text: &str, most: u32) -> Option<u32> {
    let is_plain = text.chars().all(|digit| digit.is_digit(8));
    u32::from_str_radix(text, 8).ok().filter(|bits| is_plain && *bits <= most)
}

/// Seconds since the epoch as `2026-11-20 23:59:59`, UTC.
pub fn utc(epoch: i64) -> String {
    let Civil { year, month, day, hour: h, minute: m, second: s } = civil(epoch);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}")
}

/// A moment as the Gregorian calendar and the clock show it, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// The year, with the century.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
}

impl Civil {
    /// Seconds since the epoch. The day may be beyond the month's end.
    pub fn seconds(&self) -> i64 {
        let days = days_from_civil(self.year, self.month, self.day);
        days * 86_400 + self.hour * 3600 + self.minute * 60 + self.second
    }

    /// The name of its month in three letters.
    pub fn month_name(&self) -> &'static str {
        usize::try_from(self.month - 1).ok().and_then(|m| MONTHS.get(m)).unwrap_or(&"Jan")
    }
}

/// Months, as mail, HTTP and listings of files name them.
pub const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The day of the week at `epoch` seconds since the epoch, in three letters.
pub fn weekday(epoch: i64) -> &'static str {
    // The epoch was a Thursday.
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    DAYS.get(epoch.div_euclid(86_400).rem_euclid(7) as usize).unwrap_or(&"Thu")
}

/// What the calendar and the clock show at `epoch` seconds since the epoch.
pub fn civil(epoch: i64) -> Civil {
    let (days, second) = (epoch.div_euclid(86_400), epoch.rem_euclid(86_400));
    // Howard Hinnant's civil_from_days: eras of 400 years that begin on 1 March.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let year = yoe + era * 400 + i64::from(month <= 2);
    Civil { year, month, day, hour: second / 3600, minute: second / 60 % 60, second: second % 60 }
}

/// Days from the epoch to a date of the Gregorian calendar. The day may be beyond the month's end.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Howard Hinnant's days_from_civil: years that begin on 1 March.
    let y = year - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    era * 146_097 + doe - 719_468
}

#[cfg(test)]
mod tests;
