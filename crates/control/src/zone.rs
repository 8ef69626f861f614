//! The time zone of this machine.

/// Seconds that clocks here are ahead of UTC at a second since the epoch.
pub fn offset(second: u64) -> i64 {
    base::local_time::offset(i64::try_from(second).unwrap_or(0))
}

/// What a clock that is so many seconds ahead of UTC shows, as seconds from 1970-01-01 00:00 on it.
pub fn shown(second: u64, offset: i64) -> i64 {
    i64::try_from(second).unwrap_or(i64::MAX).saturating_add(offset)
}
