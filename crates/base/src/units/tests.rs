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
    assert_eq!(utc(-1), "1969-12-31 23:59:59");
}
