//! Listens at the bridge for gratuitous ARP: an address announced with its hardware address.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use e2e::netns::Namespace;

/// Bytes of Ethernet's header and of an ARP packet for IPv4.
const HEADER: usize = 14;
const PACKET: usize = 28;

/// The listener, until it is dropped.
pub struct Announcements {
    ends: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<(IpAddr, String)>>>,
    thread: Option<JoinHandle<()>>,
}

impl Announcements {
    /// Listens in a namespace.
    pub fn start(namespace: &Namespace) -> Self {
        let (ends, seen) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<_>>>::default());
        let (until, list) = (ends.clone(), seen.clone());
        let mut socket = namespace.spawn(open).join().expect("a socket");
        let work = move || {
            let mut room = [0; 2048];
            while !until.load(Ordering::SeqCst) {
                let Ok(length) = socket.read(&mut room) else { continue };
                let Some(packet) = room[..length].get(HEADER..HEADER + PACKET) else { continue };
                let (hardware, sender) = (&packet[8..14], &packet[14..18]);
                if sender == &packet[24..28] {
                    let sender: [u8; 4] = sender.try_into().expect("four bytes");
                    let hardware: Vec<_> = hardware.iter().map(|b| format!("{b:02x}")).collect();
                    let entry = (IpAddr::V4(Ipv4Addr::from(sender)), hardware.join(":"));
                    list.lock().expect("a list").push(entry);
                }
            }
        };
        Self { ends, seen, thread: Some(std::thread::spawn(work)) }
    }

    /// How many were seen.
    pub fn count(&self) -> usize {
        self.seen.lock().expect("a list").len()
    }

    /// Whether this address was announced with this hardware address since there were `before`.
    pub fn has(&self, before: usize, address: IpAddr, hardware: &str) -> bool {
        let seen = self.seen.lock().expect("a list");
        seen.iter().skip(before).any(|(at, with)| *at == address && with == hardware)
    }
}

impl Drop for Announcements {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        let _failed = self.thread.take().map(JoinHandle::join);
    }
}

/// A packet socket for ARP on all links of this thread's namespace.
fn open() -> File {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    let protocol = i32::from((libc::ETH_P_ARP as u16).to_be());
    // SAFETY: plain numbers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, protocol) };
    assert!(fd >= 0, "{}", std::io::Error::last_os_error());
    let limit = libc::timeval { tv_sec: 0, tv_usec: 100_000 };
    // SAFETY: the structure outlives the call, and the size is its own.
    let set = unsafe {
        let size = size_of::<libc::timeval>() as libc::socklen_t;
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const limit).cast(), size)
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the call has just returned this descriptor, which nothing else has.
    unsafe { File::from_raw_fd(fd) }
}
