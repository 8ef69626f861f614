//! One process: CPU, memory, descriptors, threads.

use std::io;

use base::memory::page_size;

use crate::Root;

/// Nanoseconds in a tick of `/proc/PID/stat`: USER_HZ is 100 on every architecture that we know.
pub const TICK_NS: u64 = 10_000_000;

/// The fields of `/proc/PID`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Process {
    /// CPU time in user mode, in ns (to the tick), of all threads.
    pub user_ns: u64,
    /// CPU time in kernel mode, in ns (to the tick).
    pub kernel_ns: u64,
    /// Threads now.
    pub threads: u64,
    /// Resident memory in bytes.
    pub resident: u64,
    /// When it started, in ticks since boot; with the pid it names a process for good.
    pub started: u64,
    /// Voluntary and involuntary context switches.
    pub switches: [u64; 2],
}

/// Parses `/proc/PID/stat`; memory in pages of `page` bytes.
pub fn stat(text: &str, page: u64) -> Option<Process> {
    // The name may hold anything, brackets too: the fields begin after the last one.
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    // `proc(5)` counts from 1, and the state that comes first here is its third.
    let field = |n: usize| fields.get(n - 3).and_then(|w| w.parse::<u64>().ok());
    Some(Process {
        user_ns: field(14)? * TICK_NS,
        kernel_ns: field(15)? * TICK_NS,
        threads: field(20)?,
        started: field(22)?,
        resident: field(24)? * page,
        switches: [0; 2],
    })
}

/// Voluntary and involuntary context switches in `/proc/PID/status`.
pub fn switches(text: &str) -> [u64; 2] {
    ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"].map(|name| {
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.and_then(|v| v.trim().parse().ok()).unwrap_or(0)
    })
}

/// Reads process `pid`, `self` for this one.
///
/// # Errors
/// When there is no such process or it may not be seen.
pub fn read(root: &Root, pid: &str) -> io::Result<Process> {
    let text = root.read(&format!("proc/{pid}/stat"))?;
    let garbled = || io::Error::new(io::ErrorKind::InvalidData, "/proc/PID/stat is not valid");
    let mut process = stat(&text, page_size()).ok_or_else(garbled)?;
    if let Ok(status) = root.read(&format!("proc/{pid}/status")) {
        process.switches = switches(&status);
    }
    Ok(process)
}

/// Open descriptors of `pid`; `None` when they may not be seen.
pub fn descriptors(root: &Root, pid: &str) -> Option<usize> {
    Some(root.list(&format!("proc/{pid}/fd")).len()).filter(|n| *n > 0)
}

/// CPU time of process `pid` (0: this one), all threads, dead ones too, to the nanosecond.
///
/// # Errors
/// When there is no such process.
pub fn cpu_ns(pid: i32) -> io::Result<u64> {
    let mut clock = 0;
    // SAFETY: the call writes a clock id into a local variable.
    let failed = unsafe { libc::clock_getcpuclockid(pid, &mut clock) };
    if failed != 0 {
        return Err(io::Error::from_raw_os_error(failed));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec into a local one.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
