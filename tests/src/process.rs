//! Other programs, run to their end with a deadline.

use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a small tool may take; this machine may be busy.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Runs `command` to its end and returns what it printed.
///
/// # Panics
/// When it does not start, or is not done by the deadline (it is killed then).
pub fn run(command: &mut Command, deadline: Duration) -> Output {
    let what = format!("{command:?}");
    let child = command
        .stdin(Stdio::null())
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
