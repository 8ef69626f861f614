//! The machine's counters as statistics: rates between two readings, levels as they are.
//!
//! The ids are those of `schema/cpu.toml`, `nic.toml`, `io.toml`, `mem.toml` and `process.toml`.

use std::collections::HashMap;

use probe::sample::{Sample, Sampler};

use crate::counters::{self, CpuTime, Device, Disk, Stat};
use crate::process::{self, Process};
use crate::{Root, counters::Memory};

/// Rates over shorter intervals are dominated by noise: CPU time is counted in steps of 10 ms.
pub(crate) const INTERVAL_MIN_NS: u64 = 50_000_000;

/// The time between two readings; `None` when it is too short for rates, or the clock was set back.
/// A collector that was late makes up for the seconds that it missed within milliseconds.
pub(crate) fn interval_ns(last_ns: u64, now_ns: u64) -> Option<u64> {
    now_ns.checked_sub(last_ns).filter(|ns| *ns >= INTERVAL_MIN_NS)
}

/// One reading of everything.
#[derive(Debug, Clone, Default)]
struct Reading {
    time_ns: u64,
    stat: Stat,
    devices: Vec<Device>,
    disks: Vec<Disk>,
    memory: Memory,
    process: Process,
    process_cpu_ns: Option<u64>,
    descriptors: Option<usize>,
    retransmits: Option<u64>,
    /// CPU, I/O, memory.
    pressure: [Option<u64>; 3],
    throttled: Option<u64>,
}

/// Samples this machine and this process.
pub struct HostSampler {
    root: Root,
    cgroup: Option<String>,
    /// Whole disks: partitions are counted with them.
    whole: Vec<String>,
    last: Option<Reading>,
    /// The rates that were given last.
    rates: Vec<Sample>,
}

impl HostSampler {
    /// A sampler of the machine at `root`.
    pub fn new(root: Root) -> Self {
        let own = root.read("proc/self/cgroup").unwrap_or_default();
        let file = |path: &str| format!("sys/fs/cgroup/{path}/cpu.stat");
        let cgroup = counters::cgroup(&own).map(file);
        let whole = root.list("sys/block");
        Self { root, cgroup, whole, last: None, rates: Vec::new() }
    }

    fn read(&self, time_ns: u64) -> Reading {
        let text = |name: &str| self.root.read(name).unwrap_or_default();
        let pressure = |what: &str| counters::pressure(&text(&format!("proc/pressure/{what}")));
        let mut disks = counters::disks(&text("proc/diskstats"));
        disks.retain(|d| d.ops != [0, 0] && self.whole.contains(&d.name));
        Reading {
            time_ns,
            stat: counters::stat(&text("proc/stat")),
            devices: counters::devices(&text("proc/net/dev")),
            disks,
            memory: counters::memory(&text("proc/meminfo")),
            process: process::read(&self.root, "self").unwrap_or_default(),
            process_cpu_ns: process::cpu_ns(0).ok(),
            descriptors: process::descriptors(&self.root, "self"),
            retransmits: counters::protocol_counter(&text("proc/net/snmp"), "Tcp", "RetransSegs"),
            pressure: ["cpu", "io", "memory"].map(pressure),
            throttled: self.cgroup.as_deref().and_then(|file| counters::throttled(&text(file))),
        }
    }
}

impl Sampler for HostSampler {
    fn sample(&mut self, now_ns: u64) -> Vec<Sample> {
        let now = self.read(now_ns);
        let mut samples = levels(&now);
        let Some(last) = &self.last else {
            self.last = Some(now);
            return samples;
        };
        let is_long = interval_ns(last.time_ns, now_ns).is_some();
        if is_long {
            self.rates = rates(last, &now);
        }
        // Without an interval of its own, a second has the rates of the one before: none would be
        // shown as 0.
        samples.extend(self.rates.iter().cloned());
        if is_long || now_ns < last.time_ns {
            self.last = Some(now);
        }
        samples
    }
}

fn levels(now: &Reading) -> Vec<Sample> {
    let mut samples = Vec::new();
    let m = &now.memory;
    if m.total > 0 {
        let used = m.total.saturating_sub(m.free + m.cache + m.anonymous);
        let uses =
            [("cache", m.cache), ("processes", m.anonymous), ("kernel", used), ("nothing", m.free)];
        let rows = uses.map(|(name, n)| (name.to_owned(), String::new(), n as f64)).into();
        let total = m.total as f64;
        samples.push(Sample { stat: "mem.bytes", dimensions: ["use", ""], total, rows });
        samples.push(Sample::raw("mem.dirty", m.dirty as f64));
    }
    samples.push(Sample::raw("process.memory", now.process.resident as f64));
    samples.push(Sample::raw("process.threads", now.process.threads as f64));
    let descriptors = now.descriptors.map(|n| Sample::raw("process.descriptors", n as f64));
    samples.extend(descriptors);
    samples
}

fn rates(last: &Reading, now: &Reading) -> Vec<Sample> {
    let seconds = now.time_ns.saturating_sub(last.time_ns) as f64 / 1e9;
    let mut samples = cpu(&last.stat, &now.stat);
    samples.extend(network(&last.devices, &now.devices, seconds));
    samples.extend(disk(&last.disks, &now.disks, seconds));
    samples.extend(own(last, now, seconds));
    let mut one = |stat, before: Option<u64>, after: Option<u64>, per_second: f64| {
        if let (Some(before), Some(after)) = (before, after) {
            let value = after.saturating_sub(before) as f64 / seconds * per_second;
            samples.push(Sample::raw(stat, value));
        }
    };
    one("nic.retransmits", last.retransmits, now.retransmits, 1.0);
    // Microseconds per second, as percent.
    let percent = 100.0 / 1e6;
    one("cpu.pressure", last.pressure[0], now.pressure[0], percent);
    one("io.pressure", last.pressure[1], now.pressure[1], percent);
    one("mem.pressure", last.pressure[2], now.pressure[2], percent);
    one("process.throttled", last.throttled, now.throttled, percent);
    samples
}

fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

fn cpu(last: &Stat, now: &Stat) -> Vec<Sample> {
    let spent = now.all.since(last.all);
    let modes = |t: CpuTime| {
        let CpuTime { user, kernel, interrupt, steal, .. } = t;
        [("user", user), ("kernel", kernel), ("interrupt", interrupt), ("steal", steal)]
    };
    let total = percent(spent.busy(), spent.all());
    let row = |(name, n): (&str, u64)| (name.to_owned(), String::new(), percent(n, spent.all()));
    let by_mode = modes(spent).map(row).into();
    // Each CPU in percent of itself, so that a hot one shows.
    let mut by_cpu = Vec::new();
    for (number, time) in &now.cpus {
        let before = last.cpus.iter().find(|(n, _)| n == number).map_or(*time, |(_, t)| *t);
        let spent = time.since(before);
        by_cpu.push((number.to_string(), String::new(), percent(spent.busy(), spent.all())));
    }
    let stat = "cpu.utilization";
    vec![
        Sample { stat, dimensions: ["mode", ""], total, rows: by_mode },
        Sample { stat, dimensions: ["cpu", ""], total, rows: by_cpu },
    ]
}

/// A statistic with two rows for each name, as rates of two counters.
fn pairs(
    stat: &'static str,
    dimensions: [&'static str; 2],
    keys: [&str; 2],
    counters: Vec<(&str, [u64; 2], [u64; 2])>,
    seconds: f64,
) -> Sample {
    let mut rows = Vec::new();
    for (name, before, after) in counters {
        for n in 0..2 {
            // A counter that was reset has no rate for this second.
            let value = after[n].saturating_sub(before[n]) as f64 / seconds;
            if value > 0.0 {
                rows.push((name.to_owned(), keys[n].to_owned(), value));
            }
        }
    }
    let total = rows.iter().map(|(_, _, value)| value).sum();
    Sample { stat, dimensions, total, rows }
}

fn network(last: &[Device], now: &[Device], seconds: f64) -> Vec<Sample> {
    let before: HashMap<&str, &Device> = last.iter().map(|d| (d.name.as_str(), d)).collect();
    let sample = |stat, field: fn(&Device) -> [u64; 2]| {
        let counters = now.iter().filter_map(|d| {
            let name = d.name.as_str();
            Some((name, field(before.get(name)?), field(d)))
        });
        pairs(stat, ["device", "direction"], ["in", "out"], counters.collect(), seconds)
    };
    let mut kilobytes = sample("nic.kilobytes", |d| d.bytes);
    kilobytes.total /= 1024.0;
    kilobytes.rows.iter_mut().for_each(|row| row.2 /= 1024.0);
    vec![kilobytes, sample("nic.packets", |d| d.packets), sample("nic.drops", |d| d.drops)]
}

fn disk(last: &[Disk], now: &[Disk], seconds: f64) -> Vec<Sample> {
    let before: HashMap<&str, &Disk> = last.iter().map(|d| (d.name.as_str(), d)).collect();
    let sample = |stat, field: fn(&Disk) -> [u64; 2]| {
        let counters = now.iter().filter_map(|d| {
            let name = d.name.as_str();
            Some((name, field(before.get(name)?), field(d)))
        });
        pairs(stat, ["disk", "op"], ["read", "write"], counters.collect(), seconds)
    };
    let busy = |d: &Disk| {
        let ms = d.busy_ms.saturating_sub(before.get(d.name.as_str())?.busy_ms) as f64;
        Some((d.name.clone(), String::new(), (ms / 10.0 / seconds).min(100.0)))
    };
    let rows: Vec<_> = now.iter().filter_map(busy).collect();
    let total = rows.iter().map(|(_, _, v)| v).sum::<f64>() / rows.len().max(1) as f64;
    let utilization = Sample { stat: "io.utilization", dimensions: ["disk", ""], total, rows };
    vec![sample("io.ops", |d| d.ops), sample("io.bytes", |d| d.bytes), utilization]
}

/// This process.
fn own(last: &Reading, now: &Reading, seconds: f64) -> Vec<Sample> {
    let share = |before: u64, after: u64| after.saturating_sub(before) as f64 / 1e7 / seconds;
    let (before, after) = (&last.process, &now.process);
    let mut modes = [
        ("user", share(before.user_ns, after.user_ns)),
        ("kernel", share(before.kernel_ns, after.kernel_ns)),
    ];
    let ticks: f64 = modes.iter().map(|(_, v)| v).sum();
    // The clock is exact; ticks give the ratio of user and kernel mode.
    let exact = last.process_cpu_ns.zip(now.process_cpu_ns).map(|(b, a)| share(b, a));
    let total = exact.unwrap_or(ticks);
    match ticks > 0.0 {
        true => modes.iter_mut().for_each(|(_, v)| *v *= total / ticks),
        false => modes[0].1 = total,
    }
    let rows = modes.map(|(name, v)| (name.to_owned(), String::new(), v)).into();
    let cpu = Sample { stat: "process.cpu", dimensions: ["mode", ""], total, rows };
    let rate = |n: usize| after.switches[n].saturating_sub(before.switches[n]) as f64 / seconds;
    let kinds = [("voluntary", rate(0)), ("involuntary", rate(1))];
    let total = rate(0) + rate(1);
    let rows = kinds.map(|(name, v)| (name.to_owned(), String::new(), v)).into();
    vec![cpu, Sample { stat: "process.switches", dimensions: ["kind", ""], total, rows }]
}

#[cfg(test)]
mod tests;
