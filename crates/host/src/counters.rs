//! The kernel's counters: pure parsers of what `/proc` shows, each with its source named.

/// CPU time in ticks of 1/100 s by mode (`proc(5)`, `/proc/stat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// User mode, nice included.
    pub user: u64,
    /// Kernel mode.
    pub kernel: u64,
    /// Interrupts, hard and soft.
    pub interrupt: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
    /// Idle, waiting for I/O included.
    pub idle: u64,
}

impl CpuTime {
    /// What was spent since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            kernel: self.kernel.saturating_sub(before.kernel),
            interrupt: self.interrupt.saturating_sub(before.interrupt),
            steal: self.steal.saturating_sub(before.steal),
            idle: self.idle.saturating_sub(before.idle),
        }
    }

    /// All but idle.
    pub fn busy(self) -> u64 {
        self.user + self.kernel + self.interrupt + self.steal
    }

    /// All.
    pub fn all(self) -> u64 {
        self.busy() + self.idle
    }
}

/// `/proc/stat`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stat {
    /// All CPUs together.
    pub all: CpuTime,
    /// Each CPU with its number.
    pub cpus: Vec<(u32, CpuTime)>,
    /// Context switches since boot.
    pub switches: u64,
}

/// Parses `/proc/stat`.
pub fn stat(text: &str) -> Stat {
    let mut stat = Stat::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        let numbers: Vec<u64> = words.map_while(|w| w.parse().ok()).collect();
        let n = |at: usize| numbers.get(at).copied().unwrap_or(0);
        // user nice system idle iowait irq softirq steal; guests are part of user already.
        let time = CpuTime {
            user: n(0) + n(1),
            kernel: n(2),
            interrupt: n(5) + n(6),
            steal: n(7),
            idle: n(3) + n(4),
        };
        match name.strip_prefix("cpu") {
            Some("") => stat.all = time,
            Some(number) => stat.cpus.extend(number.parse().ok().map(|number| (number, time))),
            None if name == "ctxt" => stat.switches = n(0),
            None => {}
        }
    }
    stat
}

/// What went through a network device since it came up (`/proc/net/dev`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// `eth0`
    pub name: String,
    /// Bytes in, out.
    pub bytes: [u64; 2],
    /// Packets in, out.
    pub packets: [u64; 2],
    /// Packets dropped or in error, in, out.
    pub drops: [u64; 2],
}

/// Parses `/proc/net/dev`.
pub fn devices(text: &str) -> Vec<Device> {
    let device = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let n: Vec<u64> = rest.split_ascii_whitespace().map_while(|w| w.parse().ok()).collect();
        let [
            rx_bytes,
            rx_packets,
            rx_errors,
            rx_drops,
            _,
            _,
            _,
            _,
            tx_bytes,
            tx_packets,
            tx_errors,
            tx_drops,
            ..,
        ] = n[..]
        else {
            return None;
        };
        Some(Device {
            name: name.trim().to_owned(),
            bytes: [rx_bytes, tx_bytes],
            packets: [rx_packets, tx_packets],
            drops: [rx_errors + rx_drops, tx_errors + tx_drops],
        })
    };
    text.lines().filter_map(device).collect()
}

/// What a block device has done since boot (Documentation/admin-guide/iostats.rst).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// `sda`
    pub name: String,
    /// Reads, writes completed.
    pub ops: [u64; 2],
    /// Bytes read, written.
    pub bytes: [u64; 2],
    /// Time in which at least one request was in flight, in ms.
    pub busy_ms: u64,
    /// Requests in flight.
    pub in_flight: u64,
}

/// Parses `/proc/diskstats`; partitions are in it too.
pub fn disks(text: &str) -> Vec<Disk> {
    /// The unit of the file, whatever the device's own sector is.
    const SECTOR: u64 = 512;
    let disk = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(2);
        let name = words.next()?.to_owned();
        let n: Vec<u64> = words.map_while(|w| w.parse().ok()).collect();
        let [reads, _, read_sectors, _, writes, _, written_sectors, _, in_flight, busy_ms, ..] =
            n[..]
        else {
            return None;
        };
        let bytes = [read_sectors * SECTOR, written_sectors * SECTOR];
        Some(Disk { name, ops: [reads, writes], bytes, busy_ms, in_flight })
    };
    text.lines().filter_map(disk).collect()
}

/// Bytes of memory (`/proc/meminfo`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// All there is for the kernel to give.
    pub total: u64,
    /// Unused.
    pub free: u64,
    /// Available without swapping.
    pub available: u64,
    /// Pages of files, buffers and reclaimable slabs.
    pub cache: u64,
    /// To be written back, or being so.
    pub dirty: u64,
    /// Memory of processes.
    pub anonymous: u64,
}

/// Parses `/proc/meminfo`.
pub fn memory(text: &str) -> Memory {
    let mut memory = Memory::default();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let kib: u64 =
            rest.split_ascii_whitespace().next().and_then(|w| w.parse().ok()).unwrap_or(0);
        let bytes = kib * 1024;
        match name {
            "MemTotal" => memory.total = bytes,
            "MemFree" => memory.free = bytes,
            "MemAvailable" => memory.available = bytes,
            "Buffers" | "Cached" | "SReclaimable" => memory.cache += bytes,
            "Dirty" | "Writeback" => memory.dirty += bytes,
            "AnonPages" => memory.anonymous = bytes,
            _ => {}
        }
    }
    memory
}

/// A counter of `/proc/net/snmp` or `/proc/net/netstat`: the value of `name` in the pair of lines
/// that begin with `group:`.
pub fn protocol_counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|l| l.strip_prefix(group)?.strip_prefix(':'));
    let at = lines.next()?.split_ascii_whitespace().position(|word| word == name)?;
    lines.next()?.split_ascii_whitespace().nth(at)?.parse().ok()
}

/// Microseconds since boot in which some task waited (`/proc/pressure/*`, the `some` line).
pub fn pressure(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// Microseconds for which a quota held the group back (`cpu.stat` of control groups, version 2).
pub fn throttled(text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix("throttled_usec "))?;
    value.trim().parse().ok()
}

/// The folder below `sys/fs/cgroup` named in `/proc/PID/cgroup` (version 2).
pub fn cgroup(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::/"))
}
