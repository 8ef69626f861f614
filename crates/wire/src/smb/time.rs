//! FILETIME (MS-DTYP §2.3.3): hundreds of nanoseconds since the year 1601.

/// Seconds from 1601 to 1970.
const EPOCH: i64 = 11_644_473_600;
const PER_SECOND: i64 = 10_000_000;

/// A time from seconds and nanoseconds since 1970; before 1601 it is 0, beyond the range the last
/// representable one.
pub fn from_unix(sec: i64, nsec: u32) -> u64 {
    let ticks = sec.saturating_add(EPOCH).saturating_mul(PER_SECOND);
    u64::try_from(ticks.saturating_add(i64::from(nsec / 100))).unwrap_or(0)
}

/// Seconds and nanoseconds since 1970.
pub fn to_unix(time: u64) -> (i64, u32) {
    let time = i64::try_from(time).unwrap_or(i64::MAX);
    let (sec, ticks) = (time.div_euclid(PER_SECOND), time.rem_euclid(PER_SECOND));
    (sec - EPOCH, ticks as u32 * 100)
}
