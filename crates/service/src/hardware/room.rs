//! The hardware while the server runs: one thread looks at it, another queries the health of disks,
//! by smartctl as a child of the server if that is root, else of the helper.

use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use base::clock::{NS_PER_S, wall_ns};
use base::node::{Path, Value};
use control::state::effective_uid;
use control::state::files::{read_if_there, write_atomic};
use control::tree::Operational;
use host::Root;
use host_hardware::Hardware;
use host_hardware::disk::{self, Disk};
use host_hardware::faults::{self, Fault};
use host_hardware::smart::report::Report;
use host_hardware::smart::{self, Output, RunError};
use host_hardware::watch::{Remembered, Watch};
use host_helper::client::Client;
use host_helper::request::{Reply, Request};
use parking_lot::Mutex;

use super::pool::{Member, Members, pool_of};
use super::shown::{self, Sources};
use crate::network::link::{SOCKET, unexpected};
use crate::problems::Source;

/// Where it is in the tree.
pub const PREFIX: [&str; 2] = ["maintenance", "hardware"];
/// Its name as a source of problems.
pub const NAME: &str = "hardware";
/// The file in the state directory.
pub const FILE: &str = "hardware.json";
/// Time between two looks. A fault has to be shown within a minute; a look takes some milliseconds
/// and touches no disk.
const LOOK: Duration = Duration::from_secs(20);
/// How long a look is good: a page reads hundreds of nodes.
const GOOD: Duration = Duration::from_secs(2);
/// Time from the start to the first query of disks, and between looks for one that is due.
const HEALTH: Duration = Duration::from_secs(10);

/// Hardware as it was read last.
struct Look {
    at: Instant,
    hardware: Arc<Hardware>,
}

/// What is remembered, and what of it is on disk.
struct Memory {
    watch: Watch,
    stored: Vec<u8>,
}

/// `/maintenance/hardware`.
pub struct HardwareRoom {
    root: Root,
    file: PathBuf,
    look: Mutex<Option<Look>>,
    memory: Mutex<Memory>,
    /// Why the health of disks is not known.
    lack: Mutex<Option<String>>,
    /// Disks of pools.
    members: OnceLock<Members>,
}

impl HardwareRoom {
    /// For a server with this state directory.
    pub fn new(state: &FilePath) -> Arc<Self> {
        let file = state.join(FILE);
        let stored = read_if_there(&file).ok().flatten().unwrap_or_default();
        let watch = serde_json::from_slice(&stored).unwrap_or_default();
        Arc::new(Self {
            root: Root::default(),
            file,
            look: Mutex::new(None),
            memory: Mutex::new(Memory { watch, stored }),
            lack: Mutex::new(None),
            members: OnceLock::new(),
        })
    }

    /// With the pools of the machine.
    pub fn with_pools(&self, members: Members) {
        // Once, when the server starts.
        let _ = self.members.set(members);
    }

    fn members(&self) -> Vec<Member> {
        self.members.get().map(|members| members()).unwrap_or_default()
    }

    /// Begins to look.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let repeat = |name: &str, pause: Duration, work: fn(&Self), first: bool| {
            let room: Weak<Self> = Arc::downgrade(self);
            let follow = move || {
                let mut due = first;
                loop {
                    match room.upgrade() {
                        Some(room) if due => work(&room),
                        Some(_) => {}
                        None => return,
                    }
                    due = true;
                    std::thread::sleep(pause);
                }
            };
            std::thread::Builder::new().name(name.to_owned()).spawn(follow).map(drop)
        };
        repeat("hardware", LOOK, |room| drop(room.read()), true)?;
        repeat("disk-health", HEALTH, Self::query_disks, false)
    }

    /// The hardware, read again if the last look is too old.
    pub fn read(&self) -> Arc<Hardware> {
        let mut look = self.look.lock();
        if let Some(last) = look.as_ref().filter(|last| last.at.elapsed() < GOOD) {
            return last.hardware.clone();
        }
        let hardware = Arc::new(Hardware::read(&self.root));
        self.remember(|watch| watch.see(&hardware));
        *look = Some(Look { at: Instant::now(), hardware: hardware.clone() });
        hardware
    }

    /// Changes what is remembered, and writes it if it is other than before.
    fn remember<T>(&self, change: impl FnOnce(&mut Watch) -> T) -> T {
        let mut memory = self.memory.lock();
        let done = change(&mut memory.watch);
        let bytes = serde_json::to_vec(&memory.watch).unwrap_or_default();
        if bytes != memory.stored {
            match write_atomic(&self.file, &bytes, 0o600) {
                Ok(()) => memory.stored = bytes,
                Err(e) => base::error!("hardware", "{e}"),
            }
        }
        done
    }

    /// Queries the disks that are due.
    fn query_disks(&self) {
        let lack = lacks();
        // Disks of NVMe need no program.
        let is_nvme = |disk: &Disk| disk.devices.iter().any(|device| smart::nvme::is_one(device));
        let only_nvme = lack.is_some() && effective_uid() == 0;
        let stop = lack.is_some() && !(only_nvme && self.read().disks.iter().any(is_nvme));
        *self.lack.lock() = lack;
        if stop {
            return;
        }
        self.read();
        let now_s = wall_ns() / NS_PER_S;
        let due = self.remember(|watch| watch.due(&self.root, now_s));
        for (identity, device) in due {
            let report = match query(&device) {
                Ok(output) => Report::read(&output),
                Err(why) => Report::unknown(&why),
            };
            // The query may count as commands that have failed.
            let disks = disk::read(&self.root);
            let after = disks.iter().find(|disk| disk.identity == identity);
            let failed = after.and_then(|disk| disk.failed_commands);
            self.remember(|watch| watch.report(&identity, report, failed, now_s));
        }
    }
}

/// Why the health of no disk can be known, and what to do.
fn lacks() -> Option<String> {
    if effective_uid() == 0 {
        return (!smart::is_installed()).then(|| RunError::NotInstalled.to_string());
    }
    let helps = FilePath::new(SOCKET).exists();
    (!helps).then(|| {
        "the server is not root and no helper runs: start the helper (systemctl enable --now \
         plimsoll-host), or start the server as root"
            .to_owned()
    })
}

/// What smartctl prints of a disk.
fn query(device: &str) -> Result<Output, String> {
    if effective_uid() == 0 {
        return smart::run(device).map_err(|e| e.to_string());
    }
    let failed = |e: std::io::Error| format!("the helper does not answer: {e}");
    let mut client = Client::connect(FilePath::new(SOCKET)).map_err(failed)?;
    match client.ask(&Request::DiskHealth { disk: device.to_owned() }).map_err(failed)? {
        Reply::DiskHealth(output) => Ok(output),
        other => Err(unexpected(&other)),
    }
}

impl Source for HardwareRoom {
    fn name(&self) -> &'static str {
        NAME
    }

    fn faults(&self) -> Vec<Fault> {
        // The thread looks often enough; an alert must not read the machine each second.
        let last = self.look.lock().as_ref().map(|look| look.hardware.clone());
        let hardware = last.unwrap_or_else(|| self.read());
        let members = self.members();
        let of_disk =
            |one: &Remembered| pool_of(&members, &one.disk, one.absent).map(str::to_owned);
        faults::faults(&hardware, &self.memory.lock().watch, &of_disk)
    }

    fn can_be_marked(&self, id: &str) -> bool {
        faults::can_be_marked(id)
    }

    fn mark_repaired(&self, id: &str) -> Result<(), String> {
        self.remember(|watch| faults::mark_repaired(watch, id))
    }
}

impl Operational for HardwareRoom {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        let hardware = self.read();
        let lack = self.lack.lock().clone();
        let inside = inside(path);
        // Pools are read for the page of a disk only.
        let members = if inside.first() == Some(&"disks") { self.members() } else { Vec::new() };
        let memory = self.memory.lock();
        let found = Sources { hardware: &hardware, watch: &memory.watch, members: &members };
        shown::state(&found, lack.as_deref(), inside.as_slice())
    }

    fn items(&self, path: &Path) -> Vec<String> {
        let hardware = self.read();
        shown::items(&hardware, &self.memory.lock().watch, inside(path).as_slice())
    }
}

/// Names of a path below the branch.
fn inside(path: &Path) -> Vec<&str> {
    path.segments().iter().skip(PREFIX.len()).map(String::as_str).collect()
}
