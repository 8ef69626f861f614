//! Other programs, run to their end with a deadline.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a small tool may take; this machine may be busy.
pub const DEADLINE: Duration = crate::patience(60);

/// Runs `command` to its end and returns what it printed.
///
/// # Panics
/// When it does not start, or is not done by the deadline (it is killed then).
pub fn run(command: &mut Command, deadline: Duration) -> Output {
    run_with_stdin(command.stdin(Stdio::null()), deadline)
}

/// The same with the standard input that the command has.
///
/// # Panics
/// When it cannot be started or takes too long.
pub fn run_with_stdin(command: &mut Command, deadline: Duration) -> Output {
    let what = format!("{command:?}");
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let pid = child.id();
    let (done, outcome) = mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    match outcome.recv_timeout(deadline) {
        Ok(output) => output.unwrap_or_else(|e| panic!("{what}: {e}")),
        Err(_) => {
            signal(pid, libc::SIGKILL);
            panic!("{what}: not done after {deadline:?}");
        }
    }
}

/// Runs `command`, which must succeed, and returns its standard output.
///
/// # Panics
/// When it fails; with everything it printed.
pub fn succeed(command: &mut Command) -> Vec<u8> {
    let output = run(command, DEADLINE);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Sends a signal to a process that this test started.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: plain numbers; a wrong one is an error that is of no interest here.
    unsafe { libc::kill(pid as i32, signal) };
}

/// Sends a signal to all processes of a group that this test started.
pub fn signal_group(leader: u32, signal: i32) {
    // SAFETY: as above; the leader was made one when it was started.
    unsafe { libc::kill(-(leader as i32), signal) };
}

/// Waits for a child's end; `None` when it is still there after `deadline`.
pub fn wait(child: &mut Child, deadline: Duration) -> Option<ExitStatus> {
    if let Ok(Some(status)) = child.try_wait() {
        return Some(status);
    }
    // SAFETY: the child is ours and not reaped yet, so its id names it and no other process.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) } as i32;
    if fd >= 0 {
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry; the descriptor is closed once, here.
        unsafe {
            libc::poll(&raw mut poll, 1, deadline.as_millis() as i32);
            libc::close(fd);
        }
    }
    child.try_wait().ok().flatten()
}

/// Makes `command` start with `most` descriptors at most.
pub fn limit_descriptors(command: &mut Command, most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: a valid structure that lives as long as the closure.
    let set = move || match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    };
    // SAFETY: between fork and exec there is one system call on a copied value.
    unsafe { command.pre_exec(set) };
}

/// Lets this process open as many descriptors as it may; how many that is.
pub fn raise_descriptors() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: one valid structure, read and written by these calls only.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
    limit.rlim_cur
}

/// Bytes of the highest stack of a process.
pub fn peak_stack(pid: u32) -> u64 {
    highest_stack(&std::fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default())
}

/// What is resident of the mappings that have the size of a thread's stack and a guard below them,
/// and of the first thread's. A guard is small: the unused part of one of malloc's arenas, which is
/// not, may have another arena of just that size behind it.
fn highest_stack(maps: &str) -> u64 {
    const THREAD: u64 = 2 << 20;
    const GUARD_MAX: u64 = 64 << 10;
    let (mut guard, mut stack, mut most) = (0, false, 0);
    for line in maps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [range, rights, ..] = words[..]
            && let Some((from, to)) = range.split_once('-')
            && let (Ok(from), Ok(to)) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16))
        {
            stack = line.ends_with("[stack]") || (from == guard && to - from == THREAD);
            guard = if rights == "---p" && to - from <= GUARD_MAX { to } else { 0 };
        } else if stack && let ["Rss:", kib, _] = words[..] {
            most = most.max(kib.parse::<u64>().unwrap_or(0) << 10);
        }
    }
    most
}

/// A figure of `/proc/PID/status` in bytes, as `VmRSS` or `VmHWM`; 0 when it is not there.
pub fn memory(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests;
