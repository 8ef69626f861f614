//! What `/proc` and the control groups say of a process and its machine: pure parsers and the
//! thin readers around them.

use serde::{Deserialize, Serialize};
use std::fs;

/// Time a process waited for a core, and time its control group was kept from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Ready, but no core, ns.
    pub wait_ns: u64,
    /// Control group over its quota, ns.
    pub throttled_ns: u64,
}

/// CPU of one process.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProcessCpu {
    /// User and system time, seconds.
    pub seconds: f64,
    /// The same by thread: `(thread, name, seconds)`.
    pub threads: Vec<(u32, String, f64)>,
    /// Time that each thread was ready but had no core: `(thread, seconds)`.
    pub waits: Vec<(u32, f64)>,
    /// Time its control group was over its quota, seconds.
    pub throttled_s: f64,
    /// The group's quota in cores, if it has one.
    pub quota_cores: Option<f64>,
}

/// Counters of a machine, all cumulative.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MachineCounters {
    /// Per core: `(busy, all)` in clock ticks.
    pub cores: Vec<(u64, u64)>,
    /// Per network device: name, bytes received, bytes sent.
    pub nics: Vec<(String, u64, u64)>,
    /// Per disk: name, ms with I/O in flight, completed flushes and writes, ms spent in them.
    pub disks: Vec<(String, u64, u64, u64)>,
    /// TCP segments sent, and of these sent again.
    pub tcp: (u64, u64),
}

/// Host name of this machine.
pub fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// This machine in a few words, for a report.
pub fn machine() -> serde_json::Value {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    serde_json::json!({
        "name": host_name(),
        "cpu": field(&cpuinfo, "model name").unwrap_or("unknown"),
        "cores": cores(),
        "memory_bytes": field(&meminfo, "MemTotal").and_then(kib).unwrap_or(0),
        "kernel": release.trim(),
    })
}

/// Cores this process may use.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|l| l.starts_with(name))?;
    Some(line.split_once(':')?.1.trim())
}

fn kib(text: &str) -> Option<u64> {
    Some(text.strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Waits of this process since it began.
pub fn own_waits() -> Waits {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let wait_ns = tasks
        .filter_map(|t| fs::read_to_string(t.path().join("schedstat")).ok())
        .filter_map(|text| parse_schedstat(&text))
        .map(|(_, wait)| wait)
        .sum();
    let throttled_ns = (throttling("self").0 * 1e9) as u64;
    Waits { wait_ns, throttled_ns }
}

/// Time that the calling thread was ready but had no core, ns.
pub fn thread_wait_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    parse_schedstat(&text).map_or(0, |(_, wait)| wait)
}

/// `(run, wait)` in ns from `schedstat`.
pub fn parse_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace().map(str::parse);
    Some((words.next()?.ok()?, words.next()?.ok()?))
}

/// CPU of process `pid`; `None` when there is none or it is not ours to see.
pub fn process_cpu(pid: u32) -> Option<ProcessCpu> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, seconds) = parse_stat(&stat)?;
    let (threads, waits) = threads_of(pid)?;
    let (throttled_s, quota_cores) = throttling(&pid.to_string());
    Some(ProcessCpu { seconds, threads, waits, throttled_s, quota_cores })
}

/// Processes of a server of which each thread is read; of more the first ones.
const FAMILY_THREADS_MAX: usize = 256;

/// CPU by thread, with its name, and the time that each was ready but had no core.
type Threads = (Vec<(u32, String, f64)>, Vec<(u32, f64)>);

fn threads_of(pid: u32) -> Option<Threads> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let mut waits = Vec::new();
    let threads = tasks.filter_map(|task| {
        let id = task.file_name().to_str()?.parse().ok()?;
        let (name, ticks) = parse_stat(&fs::read_to_string(task.path().join("stat")).ok()?)?;
        let sched = fs::read_to_string(task.path().join("schedstat")).ok();
        let exact = sched.and_then(|text| parse_schedstat(&text));
        waits.extend(exact.map(|s| (id, s.1 as f64 / 1e9)));
        Some((id, name, exact.map_or(ticks, |s| s.0 as f64 / 1e9)))
    });
    let threads = threads.collect();
    Some((threads, waits))
}

/// CPU of the processes `pids`, which have used `seconds` together; the quota is that of `group`.
pub fn family_process(pids: &[u32], seconds: f64, group: u32) -> ProcessCpu {
    let mut all = ProcessCpu { seconds, ..Default::default() };
    for one in pids.iter().take(FAMILY_THREADS_MAX).filter_map(|pid| threads_of(*pid)) {
        all.threads.extend(one.0);
        all.waits.extend(one.1);
    }
    (all.throttled_s, all.quota_cores) = throttling(&group.to_string());
    all
}

fn ticks_per_second() -> f64 {
    // SAFETY: only queries a number.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64
}

/// Name and CPU seconds from a `stat` line (proc(5): fields 2, 14 and 15).
pub fn parse_stat(text: &str) -> Option<(String, f64)> {
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let mut words = after.split_whitespace().skip(11).map(str::parse::<u64>);
    let ticks = words.next()?.ok()? + words.next()?.ok()?;
    Some((name, ticks as f64 / ticks_per_second()))
}

/// Seconds that the control group of `pid` was throttled, and its quota in cores; both versions
/// of control groups.
fn throttling(pid: &str) -> (f64, Option<f64>) {
    let Ok(groups) = fs::read_to_string(format!("/proc/{pid}/cgroup")) else { return (0.0, None) };
    let mut found = (0.0, None);
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(kinds), Some(path)) = (parts.next(), parts.next()) else { continue };
        let roots: &[&str] = match kinds {
            "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            _ if kinds.split(',').any(|k| k == "cpu") => {
                &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
            }
            _ => continue,
        };
        for root in roots {
            let dir = format!("{root}{path}");
            let read = |name: &str| fs::read_to_string(format!("{dir}/{name}")).unwrap_or_default();
            found.0 = f64::max(found.0, parse_throttled(&read("cpu.stat")));
            let v1 = (read("cpu.cfs_quota_us"), read("cpu.cfs_period_us"));
            let quota = parse_cpu_max(&read("cpu.max"))
                .or_else(|| parse_cpu_max(&format!("{} {}", v1.0.trim(), v1.1.trim())));
            found.1 = found.1.or(quota);
        }
    }
    found
}

/// Seconds from `cpu.stat`: `throttled_usec` (version 2) or `throttled_time` in ns (version 1).
pub fn parse_throttled(text: &str) -> f64 {
    let number = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        line.trim().parse::<f64>().ok()
    };
    let v2 = number("throttled_usec ").map(|us| us / 1e6);
    v2.or_else(|| number("throttled_time ").map(|ns| ns / 1e9)).unwrap_or(0.0)
}

/// Cores from `cpu.max` ("50000 100000", "max 100000").
pub fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Counters of this machine now.
pub fn counters() -> MachineCounters {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    MachineCounters {
        cores: parse_cores(&read("/proc/stat")),
        nics: parse_nics(&read("/proc/net/dev")),
        disks: parse_disks(&read("/proc/diskstats")),
        tcp: parse_tcp(&read("/proc/net/snmp")),
    }
}

/// `(busy, all)` per core from `/proc/stat`.
pub fn parse_cores(text: &str) -> Vec<(u64, u64)> {
    let numbered = |l: &&str| l.starts_with("cpu") && !l.starts_with("cpu ");
    text.lines()
        .filter(numbered)
        .map(|line| {
            // user nice system idle iowait irq softirq steal; guest is within user.
            let ticks: Vec<u64> =
                line.split_whitespace().skip(1).take(8).filter_map(|w| w.parse().ok()).collect();
            let all: u64 = ticks.iter().sum();
            let idle: u64 = ticks.iter().skip(3).take(2).sum();
            (all - idle, all)
        })
        .collect()
}

/// Name, bytes received, bytes sent per device from `/proc/net/dev`.
pub fn parse_nics(text: &str) -> Vec<(String, u64, u64)> {
    let device = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let at = |n: usize| words.get(n)?.parse().ok();
        Some((name.trim().to_owned(), at(0)?, at(8)?))
    };
    text.lines().filter_map(device).collect()
}

/// Name, ms busy, writes and flushes, ms in them, per whole disk from `/proc/diskstats`.
pub fn parse_disks(text: &str) -> Vec<(String, u64, u64, u64)> {
    let disk = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = |n: usize| words.get(n).and_then(|w| w.parse::<u64>().ok());
        let name = (*words.get(2)?).to_owned();
        let virtual_ = ["loop", "ram", "zram"].iter().any(|p| name.starts_with(p));
        let (writes, write_ms) = (at(7)?, at(10)?);
        let (flushes, flush_ms) = (at(18).unwrap_or(0), at(19).unwrap_or(0));
        let row = (name, at(12)?, writes + flushes, write_ms + flush_ms);
        (!virtual_).then_some(row)
    };
    text.lines().filter_map(disk).collect()
}

/// Segments sent and sent again from `/proc/net/snmp`.
pub fn parse_tcp(text: &str) -> (u64, u64) {
    let mut lines = text.lines().filter_map(|l| l.strip_prefix("Tcp: "));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return (0, 0) };
    let get = |wanted: &str| {
        let mut pairs = names.split(' ').zip(values.split(' '));
        pairs.find(|p| p.0 == wanted).and_then(|p| p.1.parse().ok()).unwrap_or(0)
    };
    (get("OutSegs"), get("RetransSegs"))
}

/// Mean bytes waiting on the server's side of its connections at `port`, as `/proc/PID/net/tcp`
/// shows them: `(to be sent, to be read, connections)`.
pub fn socket_queues(pid: u32, port: u16) -> Option<(f64, f64, u32)> {
    let (mut tx, mut rx, mut n) = (0, 0, 0);
    let mut seen = false;
    for name in ["tcp", "tcp6"] {
        if let Ok(text) = fs::read_to_string(format!("/proc/{pid}/net/{name}")) {
            seen = true;
            for (t, r) in parse_queues(&text, port) {
                (tx, rx, n) = (tx + t, rx + r, n + 1);
            }
        }
    }
    seen.then(|| (tx as f64 / f64::from(n.max(1)), rx as f64 / f64::from(n.max(1)), n))
}

/// `(tx, rx)` of each established connection with the local port `port`.
pub fn parse_queues(text: &str, port: u16) -> Vec<(u64, u64)> {
    let row = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let local = words.next()?.rsplit_once(':')?.1;
        let (_, state, queues) = (words.next()?, words.next()?, words.next()?);
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        if hex(local)? != u64::from(port) || state != "01" {
            return None;
        }
        let (tx, rx) = queues.split_once(':')?;
        Some((hex(tx)?, hex(rx)?))
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests;
