//! The time zone of this machine.

/// Seconds that clocks here are ahead of UTC at a second since the epoch.
pub fn offset(second: u64) -> i64 {
    base::local_time::offset(i64::try_from(second).unwrap_or(0))
}

/// The local time of a clock that is `offset` seconds ahead of UTC, as seconds since 1970-01-01
/// 00:00 local time.
pub fn shown(second: u64, offset: i64) -> i64 {
    i64::try_from(second).unwrap_or(i64::MAX).saturating_add(offset)
}
