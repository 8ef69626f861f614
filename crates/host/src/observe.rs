//! A server as its machine shows it: the processes that belong to it, the counters of its network
//! namespace, the device below its data, and what of it is in the page cache.
//!
//! All counters are cumulative, so that a reader takes differences. What cannot be observed is
//! absent, with the reason in words; it is never 0.
//!
//! - [`family`]: a server's processes, those that it forks and that end included.
//! - [`netns`]: which process listens at an address, in any network namespace of this machine.
//! - [`device`]: from a file to the block devices below it, their counters and caps.
//! - [`storage`]: where the server's data is. [`cache`]: pages of it in memory.

pub mod cache;
pub mod device;
pub mod family;
pub mod netns;
pub mod storage;

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::PathBuf;

use probe::core::thread_cpu_ns;

use crate::{Root, counters};
use cache::{Dropped, Pages};
use device::{Cap, DeviceIo, Devices, Number};
use family::{Family, FamilySample};
use storage::Hints;

/// Counters of a network interface, received and sent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Bytes, headers included.
    pub bytes: [u64; 2],
    /// Packets; of a virtual device what the kernel handed over at once.
    pub packets: [u64; 2],
    /// Bytes per second that a real adapter can; virtual ones name a rate that has no effect.
    pub speed: Option<u64>,
}

/// Counters of TCP in a network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tcp {
    /// Segments received.
    pub received: u64,
    /// Segments sent.
    pub sent: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Segments that came out of order.
    pub out_of_order: u64,
}

/// A server at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Its processes; `None` when there are none to be seen.
    pub family: Option<FamilySample>,
    /// The interfaces of its network namespace.
    pub interfaces: Vec<Interface>,
    /// TCP there.
    pub tcp: Tcp,
    /// The device below its data, and those below that; empty if unknown or if there is none.
    pub devices: Vec<DeviceIo>,
    /// Caps on these devices for the server's control group.
    pub caps: Vec<Cap>,
    /// Why there is no device; `None` as long as that is not known.
    pub no_device: Option<String>,
    /// Its test files in the page cache.
    pub pages: Option<Pages>,
    /// Memory of the machine that is available, bytes.
    pub memory_available: u64,
    /// CPU time that taking this sample took, ns.
    pub cost_ns: u64,
}

/// Observes one server.
pub struct Observer {
    root: Root,
    family: Option<Family>,
    /// A process of the namespace that is observed.
    network_of: String,
    hints: Hints,
    devices: Option<Devices>,
    looked: u32,
    /// Rates of the adapters, each read once: each reading queries the adapter.
    speeds: HashMap<String, Option<u64>>,
}

/// In how many samples the device below the data is looked for: a server opens the files of a run
/// when the first step begins.
const LOOKS: u32 = 64;

impl Observer {
    /// An observer of the processes `pids` and all that they start; with none, of this machine.
    /// `network_of` is a process of the server's network namespace.
    pub fn new(root: Root, pids: &[u32], network_of: Option<u32>, hints: Hints) -> Self {
        let family = Family::new(&root, pids);
        let network_of = network_of.or(pids.first().copied());
        let network_of = network_of.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        Self { root, family, network_of, hints, devices: None, looked: 0, speeds: HashMap::new() }
    }

    /// The counters now; `None` when the server has ended.
    pub fn sample(&mut self) -> Option<Sample> {
        let begun = thread_cpu_ns();
        let family = match &mut self.family {
            Some(family) => Some(family.sample(&self.root)?),
            None => None,
        };
        let pids: Vec<u32> = family.iter().flat_map(|f| f.processes.iter().copied()).collect();
        self.look_for_devices(&pids);
        let text = |name: &str| self.root.read(name).unwrap_or_default();
        let net = |file: &str| text(&format!("proc/{}/net/{file}", self.network_of));
        let (snmp, netstat) = (net("snmp"), net("netstat"));
        let tcp = |name| counters::protocol_counter(&snmp, "Tcp", name).unwrap_or(0);
        let queued = counters::protocol_counter(&netstat, "TcpExt", "TCPOFOQueue");
        let adapters = counters::devices(&net("dev"));
        let interfaces = adapters.into_iter().map(|d| Interface {
            speed: speed(&self.root, &self.network_of, &mut self.speeds, &d.name),
            name: d.name,
            bytes: d.bytes,
            packets: d.packets,
        });
        let interfaces: Vec<Interface> = interfaces.collect();
        let mut sample = Sample {
            family,
            interfaces,
            tcp: Tcp {
                received: tcp("InSegs"),
                sent: tcp("OutSegs"),
                retransmitted: tcp("RetransSegs"),
                out_of_order: queued.unwrap_or(0),
            },
            memory_available: counters::memory(&text("proc/meminfo")).available,
            ..Default::default()
        };
        if let Some(devices) = &self.devices {
            sample.devices = devices.counters(&self.root);
            sample.no_device.clone_from(&devices.none);
            sample.caps = pids.first().map_or(Vec::new(), |pid| devices.caps(&self.root, *pid));
            sample.pages = match &devices.folder {
                Some(folder) => cache::of_test_files(folder),
                None => cache::of_files(&devices.units),
            };
        }
        sample.cost_ns = thread_cpu_ns().saturating_sub(begun);
        Some(sample)
    }

    fn look_for_devices(&mut self, pids: &[u32]) {
        if self.devices.is_some() || self.looked >= LOOKS {
            return;
        }
        self.looked += 1;
        self.devices = storage::find(&self.root, pids, &self.hints);
    }

    /// Drops the test files, or those of logical units, from the page cache, and names the block
    /// device of their file system.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn drop_cache(&mut self) -> Result<(Dropped, Option<String>), String> {
        let pids: Vec<u32> = match &mut self.family {
            Some(family) => match family.sample(&self.root) {
                Some(sample) => sample.processes,
                None => return Err("the server has ended".to_owned()),
            },
            None => Vec::new(),
        };
        // A folder that was made since is looked for again.
        self.devices = storage::find(&self.root, &pids, &self.hints).or(self.devices.take());
        let Some(devices) = &self.devices else {
            return Err("the folder of the data is not known".to_owned());
        };
        let dropped = match &devices.folder {
            Some(folder) => cache::drop_test_files(folder)?,
            None if devices.units.is_empty() => {
                return Err("no file of the data is known".to_owned());
            }
            None => cache::drop_files(&devices.units, None),
        };
        let pid = pids.first().map_or_else(|| "self".to_owned(), u32::to_string);
        let below = |dev| Devices::of(&self.root, Number::of(dev), &pid);
        let first = dropped.device.and_then(|dev| below(dev).chain.into_iter().next());
        Ok((dropped, first.map(|(_, name)| name)))
    }

    /// The folder with the test files, once it is known.
    pub fn folder(&self) -> Option<PathBuf> {
        self.devices.as_ref()?.folder.clone()
    }
}

/// What an adapter can, as far as `known` does not have it yet.
fn speed(
    root: &Root,
    network_of: &str,
    known: &mut HashMap<String, Option<u64>>,
    name: &str,
) -> Option<u64> {
    if let Some(known) = known.get(name) {
        return *known;
    }
    let namespace = |pid: &str| root.link(&format!("proc/{pid}/ns/net"));
    // /sys shows the namespace of the process that has mounted it.
    let own = namespace("self") == namespace(network_of);
    let dir = format!("sys/class/net/{name}");
    let real = own && root.path(&dir).join("device").exists();
    let text = real.then(|| root.read(&format!("{dir}/speed")).ok()).flatten();
    let megabits = text.and_then(|text| text.trim().parse::<u64>().ok());
    let speed = megabits.filter(|m| *m > 0).map(|m| m * 1_000_000 / 8);
    known.insert(name.to_owned(), speed);
    speed
}

#[cfg(test)]
mod tests;
