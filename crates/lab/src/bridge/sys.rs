//! System calls of the bridge: devices, network namespaces, the scheduler, waiting. The only
//! unsafe code of the bridge is here.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use libc::c_int;

/// Result of a system call.
fn done(code: c_int) -> io::Result<c_int> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}

/// Which of a request's fields to fill.
enum Field {
    None,
    Flags(c_int),
    Number(c_int),
    Address(Ipv4Addr),
}

/// A request about the device `name`. A name that is too long is cut, which does not happen: names
/// are checked when they are read.
fn request(name: &str, field: Field) -> libc::ifreq {
    // SAFETY: plain old data for which all zeros are valid.
    let mut request: libc::ifreq = unsafe { zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().take(room).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    match field {
        Field::None => {}
        Field::Flags(flags) => request.ifr_ifru.ifru_flags = flags as i16,
        Field::Number(number) => request.ifr_ifru.ifru_mtu = number,
        Field::Address(address) => {
            // SAFETY: as above; the structure is as large as the union's own address.
            let mut at: libc::sockaddr_in = unsafe { zeroed() };
            at.sin_family = libc::AF_INET as libc::sa_family_t;
            at.sin_addr.s_addr = u32::from(address).to_be();
            // SAFETY: both are plain old data of 16 bytes, a sockaddr in two descriptions.
            request.ifr_ifru.ifru_addr =
                unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(at) };
        }
    }
    request
}

/// Makes a TUN device in this thread's namespace. Its packets have a `virtio_net_hdr` before them,
/// and may be larger than the line's, with checksums that are not complete.
///
/// # Errors
/// No `/dev/net/tun`, no right to it (CAP_NET_ADMIN), or a device of that name exists.
pub fn open_tun(name: &str) -> io::Result<File> {
    let file = File::options().read(true).write(true).open("/dev/net/tun")?;
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
    let mut ask = request(name, Field::Flags(flags));
    // SAFETY: the descriptor is open, and the request lives as long as the call.
    done(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut ask) })?;
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
    // UDP only from Linux 6.2 on.
    // SAFETY: the request takes a number.
    let offer = |offloads: libc::c_uint| unsafe {
        libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads))
    };
    done(offer(tcp | udp)).or_else(|_| done(offer(tcp)))?;
    set_nonblocking(file.as_raw_fd())?;
    Ok(file)
}

fn set_nonblocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: plain numbers.
    let flags = done(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: plain numbers.
    done(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

fn socket(family: c_int) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers; nothing else owns the descriptor.
    let fd = done(unsafe { libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn ask(on: &OwnedFd, what: libc::c_ulong, mut request: libc::ifreq) -> io::Result<libc::ifreq> {
    // SAFETY: the descriptor is open, and the request lives as long as the call.
    done(unsafe { libc::ioctl(on.as_raw_fd(), what as libc::Ioctl, &raw mut request) })?;
    Ok(request)
}

/// Sets a device of this thread's namespace up: its largest packet, how many packets it keeps, its
/// address.
///
/// # Errors
/// What the kernel refuses.
pub fn set_up(name: &str, mtu: u32, queue: u32, at: (IpAddr, u8)) -> io::Result<()> {
    let link = socket(libc::AF_INET)?;
    let number = |n: u32| Field::Number(c_int::try_from(n).unwrap_or(c_int::MAX));
    ask(&link, libc::SIOCSIFMTU, request(name, number(mtu)))?;
    // The root of a user namespace may not, and has a queue of 500 packets: what finds no room
    // there is counted, and condemns the run.
    match ask(&link, libc::SIOCSIFTXQLEN, request(name, number(queue))) {
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => {}
        done => {
            done?;
        }
    }
    if let (IpAddr::V4(address), prefix) = at {
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
        ask(&link, libc::SIOCSIFADDR, request(name, Field::Address(address)))?;
        let mask = Field::Address(Ipv4Addr::from(mask));
        ask(&link, libc::SIOCSIFNETMASK, request(name, mask))?;
    }
    bring_up(&link, name)?;
    if let (IpAddr::V6(address), prefix) = at {
        add_ip6(&link, name, address, prefix)?;
    }
    Ok(())
}

fn bring_up(link: &OwnedFd, name: &str) -> io::Result<()> {
    let flags = ask(link, libc::SIOCGIFFLAGS, request(name, Field::None))?;
    // SAFETY: the request has filled this field.
    let flags = c_int::from(unsafe { flags.ifr_ifru.ifru_flags }) | libc::IFF_UP;
    ask(link, libc::SIOCSIFFLAGS, request(name, Field::Flags(flags))).map(drop)
}

fn add_ip6(link: &OwnedFd, name: &str, address: Ipv6Addr, prefix: u8) -> io::Result<()> {
    let index = ask(link, libc::SIOCGIFINDEX, request(name, Field::None))?;
    let mut new = libc::in6_ifreq {
        ifr6_addr: libc::in6_addr { s6_addr: address.octets() },
        ifr6_prefixlen: u32::from(prefix),
        // SAFETY: the request has filled this field.
        ifr6_ifindex: unsafe { index.ifr_ifru.ifru_ifindex },
    };
    let six = socket(libc::AF_INET6)?;
    let what = libc::SIOCSIFADDR as libc::Ioctl;
    // SAFETY: the descriptor is open, and the request lives as long as the call.
    done(unsafe { libc::ioctl(six.as_raw_fd(), what, &raw mut new) }).map(drop)
}

/// Moves this thread into a network namespace.
///
/// # Errors
/// No right to it (CAP_SYS_ADMIN there and here).
pub fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: an open descriptor and a number.
    done(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Moves this thread into a new network namespace, brings its loopback up, and keeps it at `path`
/// as `ip netns add` does.
///
/// # Errors
/// No right to it, or something is there.
pub fn make_namespace(path: &Path) -> io::Result<()> {
    // SAFETY: a number; only this thread is moved.
    done(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    bring_up(&socket(libc::AF_INET)?, "lo")?;
    let target = c_path(path)?;
    let own = c"/proc/thread-self/ns/net";
    let none = std::ptr::null();
    // SAFETY: both paths end in zero and live as long as the call; the rest is not looked at.
    let code = unsafe {
        libc::mount(own.as_ptr(), target.as_ptr(), none, libc::MS_BIND, std::ptr::null())
    };
    done(code).map(drop)
}

/// Lets go of what [`make_namespace`] keeps.
///
/// # Errors
/// Nothing is there.
pub fn drop_namespace(path: &Path) -> io::Result<()> {
    let target = c_path(path)?;
    // SAFETY: the path ends in zero and lives as long as the call.
    done(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) })?;
    std::fs::remove_file(path)
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_encoded_bytes())?)
}

/// Lets this thread go before all ordinary ones (SCHED_FIFO), and its timers be exact.
///
/// # Errors
/// No right to it (CAP_SYS_NICE).
pub fn go_first(priority: c_int) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: a number; ordinary threads have their timers up to 50 µs late without it.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
    // SAFETY: 0 is this thread; the structure lives as long as the call.
    done(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) }).map(drop)
}

/// Waits until one of `fds` can be read, for `ns` nanoseconds at most; which can.
///
/// # Errors
/// An error of ppoll(2) other than EINTR.
pub fn wait<const N: usize>(fds: [RawFd; N], ns: u64) -> io::Result<[bool; N]> {
    let mut polls = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let most = libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the array and the time live as long as the call.
    let code = unsafe {
        libc::ppoll(polls.as_mut_ptr(), N as libc::nfds_t, &raw const most, std::ptr::null())
    };
    match done(code) {
        Err(e) if e.kind() != io::ErrorKind::Interrupted => Err(e),
        _ => Ok(polls.map(|poll| poll.revents != 0)),
    }
}

/// Signals that end the bridge, as something to read; they then do nothing else, in threads that
/// are started from now on too.
///
/// # Errors
/// What the kernel refuses.
pub fn end_signals() -> io::Result<OwnedFd> {
    // SAFETY: plain old data for which all zeros are valid, filled by the next calls.
    let mut set: libc::sigset_t = unsafe { zeroed() };
    // SAFETY: the set lives as long as the calls.
    let fd = unsafe {
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    // SAFETY: the descriptor is new, and nothing else owns it.
    done(fd).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Asks a process to end (SIGTERM).
///
/// # Errors
/// There is none, or no right to it.
pub fn end(pid: u32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: two numbers.
    done(unsafe { libc::kill(pid, libc::SIGTERM) }).map(drop)
}

/// The effective user of this program.
pub fn user() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

/// The user of the process at the other end of a local socket (SO_PEERCRED, unix(7)).
pub fn peer_user(stream: &impl AsRawFd) -> io::Result<u32> {
    // SAFETY: plain old data for which all zeros are valid.
    let mut peer: libc::ucred = unsafe { zeroed() };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `peer` has `length` bytes.
    done(unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    })?;
    Ok(peer.uid)
}

// What the address of a request is made of.
const _: () = assert!(size_of::<libc::sockaddr_in>() == size_of::<libc::sockaddr>());
