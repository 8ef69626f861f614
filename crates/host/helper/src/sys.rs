//! System calls that std does not have: the peer of a socket, sessions, waiting with a limit.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The user of the process at the other end (SO_PEERCRED).
pub(crate) fn peer(stream: &UnixStream) -> io::Result<u32> {
    let mut credentials = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the pointers lead to a structure and its size, which the kernel fills.
    let done = unsafe {
        libc::getsockopt(
            stream.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if done == 0 { Ok(credentials.uid) } else { Err(io::Error::last_os_error()) }
}

/// Becomes the leader of a session of its own, if the process leads no group.
pub(crate) fn leave_session() {
    // SAFETY: no pointers. It fails for the leader of a group, which is what is wanted.
    let _ = unsafe { libc::setsid() };
}

/// The user of this process.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: no arguments; it cannot fail.
    unsafe { libc::geteuid() }
}

/// Waits until a pipe has ended or the time is over.
pub(crate) fn wait_for_end(pipe: BorrowedFd<'_>, limit: Duration) -> io::Result<()> {
    wait_for_any([Some(pipe)], Some(limit)).map(drop)
}

/// Waits until one of these can be read or has ended, or the time is over; `None` is no limit.
/// Returns what can be read, in their order.
pub(crate) fn wait_for_any<const N: usize>(
    files: [Option<BorrowedFd<'_>>; N],
    limit: Option<Duration>,
) -> io::Result<[bool; N]> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    loop {
        // A negative descriptor is left out.
        let mut polls = files.map(|file| libc::pollfd {
            fd: file.map_or(-1, |file| file.as_raw_fd()),
            events: libc::POLLIN,
            revents: 0,
        });
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left
            .map_or(-1, |left| i32::try_from(left.as_micros().div_ceil(1_000)).unwrap_or(i32::MAX));
        // SAFETY: N structures, which the kernel fills.
        match unsafe { libc::poll(polls.as_mut_ptr(), N as libc::nfds_t, timeout) } {
            0 if left.is_some_and(|left| left.as_millis() >= i32::MAX as u128) => {}
            n if n >= 0 => return Ok(polls.map(|poll| poll.revents != 0)),
            _ => {
                let e = io::Error::last_os_error();
                if e.kind() != io::ErrorKind::Interrupted {
                    return Err(e);
                }
            }
        }
    }
}
