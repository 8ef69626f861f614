//! DHCP clients, one for each link that has it on (`host_network::dhcp::Folder`).
//!
//! The file of a link starts and stops its client, written by any process: the keeper, the guard
//! of a change, or the helper before this one. So a lease stays over a restart of the server and
//! of the helper, and is verified first then (INIT-REBOOT). The clients take what they have to the
//! kernel under the lock of the folder, as all that takes steps.

mod socket;

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::time::Duration;

use base::clock::{NS_PER_S, monotonic_ns, wall_ns};
use base::random::{Random, SystemRandom};
use host_network::dhcp::client::Client as Machine;
use host_network::dhcp::message::Mac;
use host_network::dhcp::{Event, Lease};
use host_network::linux::{Files, Linux, mac_text};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use crate::files::Folder;
use crate::sys;
use socket::Sockets;

/// How long is waited until what cannot work is tried again: a link that is missing or down.
const AGAIN: Duration = Duration::from_secs(5);

/// Starts what runs the clients, in threads of this process.
///
/// # Errors
/// The operating system's.
pub fn start(folder: Folder, files: Files) -> io::Result<()> {
    folder.dhcp().make()?;
    let inotify = Inotify::init(InitFlags::IN_CLOEXEC)?;
    let changes = AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_DELETE;
    inotify.add_watch(folder.dhcp().path(), changes)?;
    let run = move || {
        let mut running = BTreeMap::new();
        loop {
            scan(&folder, &files, &mut running);
            // What a client writes wakes it, too: that is as rare as renewals.
            if let Err(e) = inotify.read_events()
                && e != nix::errno::Errno::EINTR
            {
                return base::error!("host", "DHCP is not followed any more: {e}");
            }
        }
    };
    std::thread::Builder::new().name("dhcp".to_owned()).spawn(run).map(drop)
}

/// Ends a client when it is dropped.
struct Running {
    started: u64,
    _stop: PipeWriter,
}

/// Starts and ends clients, so that each link with DHCP has one.
fn scan(folder: &Folder, files: &Files, running: &mut BTreeMap<String, Running>) {
    let on = folder.dhcp().all();
    running.retain(|link, one| on.get(link).is_some_and(|entry| entry.started == one.started));
    for (link, entry) in on {
        if running.contains_key(&link) {
            continue;
        }
        let (stopped, stop) = match io::pipe() {
            Ok(pipe) => pipe,
            Err(e) => {
                base::error!("host", "no DHCP client for {link}: {e}");
                continue;
            }
        };
        let started = entry.started;
        let client = Client { folder: folder.clone(), files: files.clone(), link, started };
        let link = client.link.clone();
        let thread = std::thread::Builder::new().name("dhcp-client".to_owned());
        match thread.spawn(move || client.run(&stopped)) {
            Ok(_) => drop(running.insert(link, Running { started, _stop: stop })),
            Err(e) => base::error!("host", "no DHCP client for {link}: {e}"),
        }
    }
}

/// The client of a link.
struct Client {
    folder: Folder,
    files: Files,
    link: String,
    /// Which start of DHCP it belongs to.
    started: u64,
}

impl Client {
    /// Runs until the other end of the pipe is closed.
    fn run(self, stopped: &PipeReader) {
        loop {
            match self.session(stopped) {
                Ok(()) => return,
                Err(why) => self.happens(Event::Failed(why)),
            }
            match sys::wait_for_any([Some(stopped.as_fd())], Some(AGAIN)) {
                Ok([false]) => {}
                Ok([true]) | Err(_) => return,
            }
        }
    }

    /// Follows a lease until the client is stopped; it begins with the one that the link has.
    fn session(&self, stopped: &PipeReader) -> Result<(), String> {
        let (index, mac) = self.hardware()?;
        let known = self.known(mac);
        let seed = SystemRandom.next_u64();
        let mut machine = Machine::new(mac, seed, known.as_ref(), now_ms());
        let mut sockets = Sockets::of(&self.link, index);
        loop {
            self.turn(&mut machine, &mut sockets).map_err(|e| e.to_string())?;
            if !machine.is_waiting() {
                sockets.close();
            }
            let left = machine.due().saturating_sub(now_ms());
            let limit = (machine.due() != u64::MAX).then(|| Duration::from_millis(left));
            let [packets, udp] = sockets.files();
            let woken = sys::wait_for_any([Some(stopped.as_fd()), packets, udp], limit);
            let [ended, ..] = woken.map_err(|e| e.to_string())?;
            if ended {
                self.release(&machine, &mut sockets);
                return Ok(());
            }
            for message in sockets.receive().map_err(|e| e.to_string())? {
                if let Some(event) = machine.receive(&message, now_ms(), now_s()) {
                    self.happens(event);
                }
            }
        }
    }

    fn hardware(&self) -> Result<(u32, Mac), String> {
        let mut linux = Linux::open(self.files.clone()).map_err(|e| e.to_string())?;
        let (index, mac) = linux.hardware(&self.link)?;
        let mac = mac.try_into().map_err(|_| format!("{} is not of Ethernet", self.link))?;
        Ok((index, mac))
    }

    /// The lease of this link, if it is valid.
    fn known(&self, mac: Mac) -> Option<Lease> {
        let entry = self.folder.dhcp().read(&self.link)?;
        if entry.mac != mac_text(&mac) {
            return None;
        }
        entry.valid(now_s()).cloned()
    }

    /// Does what is due.
    fn turn(&self, machine: &mut Machine, sockets: &mut Sockets) -> io::Result<()> {
        let now = now_ms();
        if machine.due() > now {
            return Ok(());
        }
        let turn = machine.turn(now);
        if let Some(event) = turn.event {
            self.happens(event);
        }
        turn.send.map_or(Ok(()), |outgoing| sockets.send(&outgoing))
    }

    /// Enters an event, unless DHCP was stopped or started again meanwhile.
    fn happens(&self, event: Event) {
        if let Err(why) = self.enter(event) {
            base::error!("host", "DHCP on {}: {why}", self.link);
        }
    }

    fn enter(&self, event: Event) -> Result<(), String> {
        let _lock = self.folder.lock().map_err(|e| e.to_string())?;
        let entry = self.folder.dhcp().read(&self.link);
        let Some(entry) = entry.filter(|entry| entry.started == self.started) else {
            return Ok(());
        };
        let after = entry.after(event, now_s());
        if after.lease.as_ref().map(|one| one.cidr) != entry.lease.as_ref().map(|one| one.cidr) {
            match &after.lease {
                Some(lease) => base::info!("host", "{} has {} by DHCP", self.link, lease.cidr),
                None => base::warning!("host", "{} has no address by DHCP any more", self.link),
            }
        }
        if after == entry {
            return Ok(());
        }
        let mut linux = Linux::open(self.files.clone()).map_err(|e| e.to_string())?;
        linux.hold(&self.link, &after)
    }

    fn release(&self, machine: &Machine, sockets: &mut Sockets) {
        let Some(outgoing) = machine.release() else { return };
        let address = outgoing.from;
        match sockets.send_packet(&outgoing) {
            Ok(()) => base::info!("host", "DHCP on {}: {address} is released", self.link),
            Err(e) => base::warning!("host", "DHCP on {}: {address} is kept: {e}", self.link),
        }
    }
}

/// The clock of turns.
fn now_ms() -> u64 {
    monotonic_ns() / 1_000_000
}

fn now_s() -> u64 {
    wall_ns() / NS_PER_S
}
