//! The figures that people read.

use super::*;

#[test]
fn figures_read_as_written_by_hand() {
    assert_eq!(bytes(1536.0), "1.5 KiB");
    assert_eq!(bytes(0.0), "0 B");
    assert_eq!(bytes(1_048_576.0), "1 MiB");
    assert_eq!(count(1_234_567.0), "1.23 M");
    assert_eq!(count(12.0), "12");
    assert_eq!(time_ns(870.0), "870 ns");
    assert_eq!(time_ns(12_500.0), "12.5 µs");
    assert_eq!(time_ns(3_200_000.0), "3.2 ms");
    assert_eq!(time_ns(1.5e9), "1.5 s");
}

#[test]
fn dates() {
    assert_eq!(utc(0), "1970-01-01 00:00:00");
    assert_eq!(utc(951_782_400), "2000-02-29 00:00:00");
    assert_eq!(utc(1_795_219_199), "2026-11-20 23:59:59");
    assert_eq!(utc(47_540 * 86_400), "2100-02-28 00:00:00");
    assert_eq!(utc(47_541 * 86_400), "2100-03-01 00:00:00");
    assert_eq!(utc(-1), "1969-12-31 23:59:59");
}

#[test]
fn every_day_is_its_own() {
    for day in -200_000..200_000 {
        let sec = day * 86_400 + 5;
        assert_eq!(civil(sec).seconds(), sec);
    }
}

#[test]
fn days_and_months_have_names() {
    assert_eq!((weekday(0), civil(0).month_name()), ("Thu", "Jan"));
    assert_eq!((weekday(-1), civil(-1).month_name()), ("Wed", "Dec"));
    assert_eq!((weekday(784_111_777), civil(784_111_777).month_name()), ("Sun", "Nov"));
}
