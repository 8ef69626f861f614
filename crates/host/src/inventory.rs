//! What the machine is made of: for reports, `doctor` and the configuration part of a result.

use serde::{Deserialize, Serialize};

use crate::{Root, counters};

/// A network device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// `eth0`
    pub name: String,
    /// Megabits per second, if the driver reports it.
    pub speed_mbps: Option<u64>,
    /// Largest packet in bytes.
    pub mtu: Option<u64>,
    /// `up`, `down`, `unknown`
    pub state: String,
    /// Name of the driver.
    pub driver: Option<String>,
}

/// A disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskInfo {
    /// `vda`
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Whether it turns.
    pub rotational: bool,
    /// What the vendor calls it.
    pub model: Option<String>,
}

/// The machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Its name.
    pub host: String,
    /// Model of the CPU.
    pub cpu: String,
    /// CPUs that are online.
    pub cpus: usize,
    /// Sockets.
    pub sockets: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// Release of the kernel.
    pub kernel: String,
    /// Name and version of the distribution.
    pub system: Option<String>,
    /// Hypervisor or board, if it is reported.
    pub product: Option<String>,
    /// Clock source of the kernel.
    pub clock: Option<String>,
    /// Network devices.
    pub nics: Vec<Nic>,
    /// Whole disks with something in them.
    pub disks: Vec<DiskInfo>,
}

impl Inventory {
    /// Reads it.
    pub fn read(root: &Root) -> Self {
        let line = |name: &str| {
            root.read(name).ok().map(|t| t.trim().to_owned()).filter(|t| !t.is_empty())
        };
        let cpuinfo = root.read("proc/cpuinfo").unwrap_or_default();
        let values = |name: &str| {
            let value = |l: &str| {
                Some(l.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim().to_owned())
            };
            cpuinfo.lines().filter_map(value).collect::<Vec<_>>()
        };
        let mut sockets = values("physical id");
        sockets.sort();
        sockets.dedup();
        let release = line("etc/os-release").unwrap_or_default();
        let pretty = release.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="));
        let stat = counters::stat(&root.read("proc/stat").unwrap_or_default());
        Self {
            host: line("proc/sys/kernel/hostname").unwrap_or_default(),
            cpu: values("model name").into_iter().next().unwrap_or_default(),
            cpus: stat.cpus.len(),
            sockets: sockets.len().max(1),
            memory: counters::memory(&root.read("proc/meminfo").unwrap_or_default()).total,
            kernel: line("proc/sys/kernel/osrelease").unwrap_or_default(),
            system: pretty.map(|p| p.trim_matches('"').to_owned()),
            product: line("sys/class/dmi/id/product_name"),
            clock: line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            nics: root.list("sys/class/net").iter().map(|n| nic(root, n)).collect(),
            disks: root.list("sys/block").iter().filter_map(|n| disk(root, n)).collect(),
        }
    }
}

fn nic(root: &Root, name: &str) -> Nic {
    let read = |what: &str| root.read(&format!("sys/class/net/{name}/{what}")).ok();
    let number = |what: &str| read(what).and_then(|t| t.trim().parse().ok());
    let uevent = read("device/uevent").unwrap_or_default();
    let driver = uevent.lines().find_map(|l| l.strip_prefix("DRIVER=")).map(str::to_owned);
    let state = read("operstate").map_or_else(|| "unknown".into(), |t| t.trim().to_owned());
    Nic { name: name.to_owned(), speed_mbps: number("speed"), mtu: number("mtu"), state, driver }
}

fn disk(root: &Root, name: &str) -> Option<DiskInfo> {
    let read = |what: &str| {
        let text = root.read(&format!("sys/block/{name}/{what}")).ok();
        text.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty())
    };
    // In units of 512 bytes, whatever the device's own.
    let size = read("size")?.parse::<u64>().ok().filter(|n| *n > 0)? * 512;
    let rotational = read("queue/rotational").as_deref() == Some("1");
    Some(DiskInfo { name: name.to_owned(), size, rotational, model: read("device/model") })
}
