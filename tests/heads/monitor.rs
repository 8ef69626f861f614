//! The status monitor of a client host, with its port mapper: notes from where and for which name
//! the restart of a server was notified.

use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use e2e::netns::Namespace;
use wire::portmap::{self, Mapping};
use wire::rpc::{self, open_call};
use wire::xdr::{Decode, Encode, Reader, Writer};
use wire::{nlm4, nsm};

/// Where a port mapper is on every host.
const PORTMAP: u16 = 111;
/// How often the end of the test is looked for.
const EVERY: Duration = Duration::from_millis(100);
/// Longest datagram.
const DATAGRAM_MAX: usize = 2048;

/// A notification: from where it came, and which host has restarted.
pub type Notification = (IpAddr, String);

/// The status monitor, until it is dropped.
pub struct Monitor {
    ends: Arc<AtomicBool>,
    notifications: Arc<Mutex<Vec<Notification>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Monitor {
    /// Starts it on a host.
    pub fn start(host: &Namespace) -> Self {
        let (ends, notifications) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<_>>>::default());
        let (until, list) = (ends.clone(), notifications.clone());
        let sockets = host.spawn(|| ["0.0.0.0:111", "0.0.0.0:0"].map(UdpSocket::bind));
        let [mapper, monitor] = sockets.join().expect("sockets").map(|one| one.expect("a socket"));
        let port = monitor.local_addr().expect("a port").port();
        let map = move |_: IpAddr, proc: u32, args: &[u8]| {
            assert_eq!(proc, portmap::Proc::GETPORT.0, "at port {PORTMAP}");
            let asked = Mapping::decode(&mut Reader::new(args)).expect("a question");
            match (asked.prog, asked.prot) {
                (nsm::NSM_PROGRAM, portmap::IPPROTO_UDP) => u32::from(port),
                _ => 0,
            }
        };
        let note = move |from: IpAddr, proc: u32, args: &[u8]| {
            if proc == nsm::Proc::NOTIFY.0 {
                let args = nsm::NotifyArgs::decode(&mut Reader::new(args)).expect("a notification");
                let name = String::from_utf8_lossy(args.mon_name.0).into_owned();
                list.lock().expect("a list").push((from, name));
            }
        };
        let ends_too = until.clone();
        let threads = vec![
            std::thread::spawn(move || answer(&mapper, &until, map)),
            std::thread::spawn(move || answer(&monitor, &ends_too, note)),
        ];
        Self { ends, notifications, threads }
    }

    /// What it was notified of so far.
    pub fn notifications(&self) -> Vec<Notification> {
        self.notifications.lock().expect("a list").clone()
    }

    /// The same list, for another thread.
    pub fn list(&self) -> Arc<Mutex<Vec<Notification>>> {
        self.notifications.clone()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let _failed = thread.join();
        }
    }
}

/// Answers calls by datagram.
fn answer<T: Encode>(
    socket: &UdpSocket,
    ends: &AtomicBool,
    mut results: impl FnMut(IpAddr, u32, &[u8]) -> T,
) {
    socket.set_read_timeout(Some(EVERY)).expect("a limit");
    let mut room = [0; DATAGRAM_MAX];
    while !ends.load(Ordering::SeqCst) {
        let Ok((length, from)) = socket.recv_from(&mut room) else { continue };
        let Ok((header, args)) = open_call(&room[..length]) else { continue };
        assert_ne!(header.prog, nlm4::NLM_PROGRAM, "no lock is waited for");
        let results = results(from.ip(), header.proc, args.rest());
        let mut reply = Vec::new();
        let mut w = Writer::new(&mut reply);
        rpc::success(&mut w, header.xid);
        results.encode(&mut w);
        // A caller that does not receive it sends its call again.
        let _lost = socket.send_to(&reply, from);
    }
}
