//! Free ports for servers under test, apart from those of other test processes that run at the
//! same time.

use std::net::TcpListener;
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

/// Standard ports of the services, which all move by the offset.
const PORTS: [u16; 11] = [21, 80, 111, 215, 218, 443, 445, 990, 2049, 2150, 3260];
/// Offsets that tests use: below the range that the kernel hands out by itself (32768 and up), and
/// above the ports of the default offset of 10000, which tests of `crates/appliance` use.
const OFFSETS: Range<u16> = 13_300..29_000;
/// How often another offset is tried.
const TRIES: u16 = 400;

/// The ports that this process has reserved, until it ends.
static RESERVED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// An offset at which all services find their ports free at `address`. No other test process gets
/// one of these ports while this process lives: between finding a port free and binding it,
/// another might bind it.
///
/// # Panics
/// When none is found.
pub fn free_offset(address: &str) -> u16 {
    let found = (0..TRIES).map(|_| next_offset()).find(|offset| {
        let free = |port: &u16| TcpListener::bind((address, port + offset)).is_ok();
        reserve(*offset) && PORTS.iter().all(free)
    });
    found.unwrap_or_else(|| panic!("no free ports found"))
}

/// Reserves the ports of an offset by names that only one process can have; an abstract name of a
/// Unix socket goes with the process.
fn reserve(offset: u16) -> bool {
    let name = |port: &u16| {
        let name = format!("plimsoll-test-port-{}", port + offset);
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).ok()?).ok()
    };
    let names: Option<Vec<UnixListener>> = PORTS.iter().map(name).collect();
    let Some(names) = names else { return false };
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
    true
}

/// An offset that this process has not had for long.
pub fn next_offset() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
    let length = u32::from(OFFSETS.end - OFFSETS.start);
    OFFSETS.start + ((std::process::id() * 631 + step * 17) % length) as u16
}
