//! Free ports for servers under test, apart from those of other test processes that run at the
//! same time.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

/// Standard ports of the services, of the test service too, which all move by the offset.
const PORTS: [u16; 12] = [7, 21, 80, 111, 215, 218, 443, 445, 990, 2049, 2150, 3260];
/// Offsets that tests use: below the range from which the kernel assigns ports (32768 and up), and
/// above the ports of the default offset of 10000, which tests of `crates/appliance` use.
const OFFSETS: Range<u16> = 13_300..29_000;
/// How often another offset is tried.
const TRIES: u16 = 400;

/// Offsets that a process reserves before it uses one of them again: each is a descriptor for each
/// of [`PORTS`], of 1,024 that a process may have.
const KEPT: usize = 40;

/// The offsets with ports that this process has reserved, until it ends; the oldest one first.
static RESERVED: Mutex<VecDeque<(u16, Vec<UnixListener>)>> = Mutex::new(VecDeque::new());

/// An offset at which all services find their ports free at `address`. No other test process gets
/// one of these ports while this process lives: between finding a port free and binding it,
/// another might bind it. A process that has had [`KEPT`] of them gets one of its own again.
///
/// # Panics
/// When none is found.
pub fn free_offset(address: &str) -> u16 {
    let is_free =
        |offset: u16| PORTS.iter().all(|port| TcpListener::bind((address, port + offset)).is_ok());
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    if reserved.len() >= KEPT
        && let Some(at) = reserved.iter().position(|(offset, _)| is_free(*offset))
        && let Some((offset, names)) = reserved.remove(at)
    {
        reserved.push_back((offset, names));
        return offset;
    }
    for offset in (0..TRIES).map(|_| next_offset()) {
        if let Some(names) = reserve(offset)
            && is_free(offset)
        {
            reserved.push_back((offset, names));
            return offset;
        }
    }
    panic!("no free ports found")
}

/// Reserves the ports of an offset by names that only one process can have; an abstract name of a
/// Unix socket goes with the process.
fn reserve(offset: u16) -> Option<Vec<UnixListener>> {
    let name = |port: &u16| {
        let name = format!("plimsoll-test-port-{}", port + offset);
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).ok()?).ok()
    };
    PORTS.iter().map(name).collect()
}

/// An offset that this process has not had for long.
pub fn next_offset() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
    let length = u32::from(OFFSETS.end - OFFSETS.start);
    OFFSETS.start + ((std::process::id() * 631 + step * 17) % length) as u16
}

#[cfg(test)]
mod tests;
