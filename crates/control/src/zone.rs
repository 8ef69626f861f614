//! The time zone of this machine.

/// Seconds that clocks here are ahead of UTC at a second since the epoch.
pub fn offset(second: u64) -> i64 {
    let time = libc::time_t::try_from(second).unwrap_or(0);
    // SAFETY: plain data, for which all zeros is a value.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to values of this function; the result is one of them or null, and
    // not used.
    unsafe { libc::localtime_r(&raw const time, &raw mut parts) };
    parts.tm_gmtoff
}

/// What a clock that is so many seconds ahead of UTC shows, as seconds from 1970-01-01 00:00 on it.
pub fn shown(second: u64, offset: i64) -> i64 {
    i64::try_from(second).unwrap_or(i64::MAX).saturating_add(offset)
}
