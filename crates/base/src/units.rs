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

#[cfg(test)]
mod tests;
