//! CPU time of another process, to the nanosecond, dead threads included.

use std::io;

/// User and system time that process `pid` has used so far, in seconds.
///
/// # Errors
/// When there is no such process.
pub fn of(pid: u32) -> io::Result<f64> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut clock = 0;
    // SAFETY: `clock` is a valid place for the answer.
    match unsafe { libc::clock_getcpuclockid(pid, &mut clock) } {
        0 => read(clock),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// The same for this process.
///
/// # Errors
/// Never on Linux.
pub fn own() -> io::Result<f64> {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> io::Result<f64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Ok(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9),
        _ => Err(io::Error::last_os_error()),
    }
}
