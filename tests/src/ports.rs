//! Free ports for servers under test, apart from those of other test programs that run beside.

use std::net::TcpListener;
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Standard ports of the services, which all move by the offset.
const PORTS: [u16; 11] = [21, 80, 111, 215, 218, 443, 445, 990, 2049, 2150, 3260];
/// Offsets that tests use: below the range that the kernel hands out by itself (32768 and up).
const OFFSETS: Range<u16> = 11_000..29_000;
/// Each test program takes its offsets from one lane. Lanes are so far apart that no port of one
/// is a port of another: between finding a port free and binding it another program may bind it.
const LANE: u16 = 4_500;
/// How many offsets a lane has: what is left beside the distance of the ports themselves.
const LANE_OFFSETS: u16 = LANE - (PORTS[PORTS.len() - 1] - PORTS[0]) - 1;
/// How often another offset is tried.
const TRIES: u16 = 200;

/// The lane of this process: the first that no other has, held by a name until the process ends;
/// the first of all, when there are more programs than lanes.
fn lane() -> Range<u16> {
    static HELD: OnceLock<(Option<UnixListener>, u16)> = OnceLock::new();
    let (_held, start) = HELD.get_or_init(|| {
        let hold = |start: u16| {
            let name = SocketAddr::from_abstract_name(format!("plimsoll-test-offsets-{start}"));
            Some((UnixListener::bind_addr(&name.ok()?).ok()?, start))
        };
        let mut starts = OFFSETS.step_by(usize::from(LANE));
        match starts.find_map(hold) {
            Some((held, start)) => (Some(held), start),
            None => (None, OFFSETS.start),
        }
    });
    *start..*start + LANE_OFFSETS
}

/// An offset at which all services find their ports free at `address`.
///
/// # Panics
/// When none is found.
pub fn free_offset(address: &str) -> u16 {
    let found = (0..TRIES).map(|_| next_offset()).find(|offset| {
        PORTS.iter().all(|port| TcpListener::bind((address, port + offset)).is_ok())
    });
    found.unwrap_or_else(|| panic!("no free ports found"))
}

/// An offset that this process has not had for long.
pub fn next_offset() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let (lane, step) = (lane(), u32::from(NEXT.fetch_add(1, Ordering::Relaxed)));
    lane.start + ((std::process::id() * 631 + step * 17) % u32::from(LANE_OFFSETS)) as u16
}
