//! Sizes, durations and times of the commands.

use super::{duration_s, size, time_s};

#[test]
fn sizes_have_units_of_1024() {
    for (text, expected) in [
        ("0", 0),
        ("275", 275),
        ("0B", 0),
        ("600K", 600 << 10),
        ("1.98M", 2_076_180),
        ("1.5T", 3 << 39),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(size(text), Some(expected), "{text}");
    }
    for text in ["", "-", "K", "1.2.3M", "99999999E", "1x", "none", "18446744073709551616"] {
        assert_eq!(size(text), None, "{text}");
    }
}

#[test]
fn durations_of_all_versions() {
    for (text, expected) in [
        ("0h0m", 0),
        ("27h5m", 97_500),
        ("00:12:34", 754),
        ("16:23:57", 59_037),
        ("1 days 02:55:32", 96_932),
        ("0 days 05:05:31", 18_331),
    ] {
        assert_eq!(duration_s(text), Some(expected), "{text}");
    }
    for text in ["", "h", "5m", "1:2", "1 days", "99999999999999999999h0m"] {
        assert_eq!(duration_s(text), None, "{text}");
    }
}

#[test]
fn times_are_utc() {
    // date -u -d '...' +%s
    for (text, expected) in [
        ("Wed Nov 25 02:39:24 2026", 1_795_574_364),
        ("Thu Jan  1 00:00:00 1970", 0),
        ("Tue Feb 29 23:59:59 2000", 951_868_799),
        ("Tue Apr 19 00:58:45 2022", 1_650_329_925),
        ("Fri Mar  1 00:00:00 2024", 1_709_251_200),
    ] {
        assert_eq!(time_s(text), Some(expected), "{text}");
    }
    for text in ["", "Wed Nov 25", "Wed Foo 25 02:39:24 2026", "Wed Nov 0 02:39:24 2026"] {
        assert_eq!(time_s(text), None, "{text}");
    }
}
