//! The system calls that commands need and std does not have: signals, and probes of the kernel.

use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::signal::{SigSet, Signal};

/// The signals that are waited for.
fn held() -> SigSet {
    SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP])
}

/// Holds them back in this thread and all that it starts, so that [`wait_for_signal`] is the one
/// place that gets them. To be called before the first thread.
pub fn hold_signals() {
    // It fails for a mask that is none only.
    let _held = held().thread_block();
}

/// Waits for the next of them. True for SIGHUP, a request to read files again; after one of the
/// others, which are requests to end, SIGINT ends the process at once.
pub fn wait_for_signal() -> bool {
    let number = loop {
        if let Ok(number) = held().wait() {
            break number;
        }
    };
    let reloads = number == Signal::SIGHUP;
    if !reloads {
        let _free = SigSet::from(Signal::SIGINT).thread_unblock();
    }
    reloads
}

/// Moves standard input to a descriptor that children do not get and that stays open until the
/// process ends; `/dev/null` is in its place.
pub fn retain_input() -> Result<()> {
    let input = std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned()?;
    let null = File::open("/dev/null")?;
    // SAFETY: two open descriptors; standard input is not read by this process.
    check(unsafe { libc::dup2(null.as_raw_fd(), libc::STDIN_FILENO) }.into())?;
    let _open = std::os::fd::IntoRawFd::into_raw_fd(input);
    Ok(())
}

/// Ends standard output for its reader; `/dev/null` is in its place.
pub fn end_output() -> Result<()> {
    let null = File::options().write(true).open("/dev/null")?;
    // SAFETY: two open descriptors.
    check(unsafe { libc::dup2(null.as_raw_fd(), libc::STDOUT_FILENO) }.into())?;
    Ok(())
}

/// Ends this process at once, as `kill -9` does.
pub fn kill_self() {
    // SAFETY: plain numbers.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

/// Whether the file system of `dir` holds users to quotas (quotactl_fd(2), Linux 5.14).
pub fn quotas_are_on(dir: &File) -> Result<bool> {
    // In the form introduced by xfs, which the kernel supports for all file systems.
    const Q_XGETQSTAT: libc::c_long = 0x5805;
    const USRQUOTA: libc::c_long = 0;
    const USERS_ENFORCED: u16 = 1 << 1;
    // struct fs_quota_stat is 80 bytes; its flags are the second 16 bits.
    let mut status = [0u16; 128];
    // SAFETY: the kernel writes its structure, which is shorter than `status`.
    let result = unsafe {
        libc::syscall(
            libc::SYS_quotactl_fd,
            dir.as_raw_fd(),
            Q_XGETQSTAT << 8 | USRQUOTA,
            0,
            status.as_mut_ptr(),
        )
    };
    match check(result) {
        Ok(()) => Ok(status[1] & USERS_ENFORCED != 0),
        // All are off, or the file system has none.
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::ESRCH)) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Whether io_uring may be used.
pub fn try_io_uring() -> Result<()> {
    // struct io_uring_params is 120 bytes; all zero selects the defaults.
    let mut params = [0u64; 15];
    // SAFETY: the kernel writes at most the 120 bytes of `params`.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1u32, params.as_mut_ptr()) };
    take(fd as RawFd).map(drop)
}

/// Whether the kernel can encrypt on a TCP connection (kernel TLS); tried on one to ourselves.
pub fn try_kernel_tls() -> Result<()> {
    const TCP_ULP: libc::c_int = 31;
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    let stream = std::net::TcpStream::connect(listener.local_addr()?)?;
    let name = b"tls";
    // SAFETY: pointer and length describe `name`, which the kernel reads.
    check(i64::from(unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_ULP,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    }))
}

/// Whether changes of a directory can be watched (inotify).
pub fn try_watch(dir: &std::path::Path) -> Result<()> {
    let inotify = Inotify::init(InitFlags::IN_CLOEXEC)?;
    Ok(inotify.add_watch(dir, AddWatchFlags::IN_DELETE_SELF).map(drop)?)
}

/// Whether the kernel's clock is synchronised (adjtimex(2)).
pub fn clock_is_kept() -> Result<bool> {
    // SAFETY: plain numbers; all zero reads the state and changes nothing.
    let mut clock: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: a live structure that the kernel fills.
    let state = unsafe { libc::adjtimex(&raw mut clock) };
    check(state.into())?;
    Ok(state != libc::TIME_ERROR && clock.status & libc::STA_UNSYNC == 0)
}

/// The offloads of a network device or of the driver just above it (ethtool's SIOCETHTOOL): whether
/// large segments are cut into packets, and whether packets are joined before the protocol sees
/// them.
pub fn offloads(device: &str) -> Result<(bool, bool)> {
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    const GET_TSO: u32 = 0x1e;
    const GET_GRO: u32 = 0x2b;
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    let get = |what: u32| {
        let mut value = [what, 0u32];
        // SAFETY: plain bytes and pointers.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let room = request.ifr_name.len() - 1;
        for (to, from) in request.ifr_name.iter_mut().take(room).zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        // SAFETY: the request and the two numbers that it leads to are live.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) }.into())?;
        Ok::<_, Error>(value[1] != 0)
    };
    Ok((get(GET_TSO)?, get(GET_GRO)?))
}

/// Writes over each place of this process's command line, as `/proc/PID/cmdline` and `ps` show it,
/// that ends an argument with `secret`. If the kernel does not report its location, nothing is
/// done: it was readable until now anyway, and the help describes how to avoid that.
pub fn hide_argument(secret: &str) {
    let Some((start, length)) = command_line() else { return };
    // SAFETY: the kernel reports this as the location of our own argument strings; they are on the
    // writable stack and live as long as the process. Before the first thread is started nothing
    // else reads them, and std copies them on each query.
    let line = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, length) };
    for argument in line.split_mut(|byte| *byte == 0) {
        if let Some(at) = argument.len().checked_sub(secret.len())
            && argument[at..] == *secret.as_bytes()
        {
            argument[at..].fill(b'*');
        }
    }
}

/// Where this process's arguments lie: `arg_start` and the length, proc(5).
fn command_line() -> Option<(usize, usize)> {
    const ARG_START: usize = 48;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name in parentheses that may hold anything; the third follows it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(ARG_START - 3);
    let start: usize = fields.next()?.parse().ok()?;
    let end: usize = fields.next()?.parse().ok()?;
    (start != 0).then_some((start, end.checked_sub(start)?))
}

fn check(result: i64) -> Result<()> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

fn take(fd: RawFd) -> Result<OwnedFd> {
    check(fd.into())?;
    // SAFETY: the call has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
