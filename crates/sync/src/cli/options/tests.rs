//! Rates as people write them.

use super::rate;

#[test]
fn rates_are_what_they_say() {
    for (text, bytes) in [
        ("1", 1),
        ("10MB/s", 10_000_000),
        ("10M", 10_000_000),
        ("1.5MiB/s", 1_572_864),
        ("800KiB", 819_200),
        ("800 kB/s", 800_000),
        ("2G", 2_000_000_000),
    ] {
        assert_eq!(rate(text), Some(bytes), "{text}");
    }
    for text in ["", "fast", "0", "-1", "10X", "1i", "inf", "NaN"] {
        assert_eq!(rate(text), None, "{text}");
    }
}
