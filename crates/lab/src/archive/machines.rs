//! The machines of a run: kernel and its command line, processor, network devices with driver and
//! offloads, mounts, settings of the kernel that matter, the program and its hash. Values that look
//! like secrets are left out.

mod offloads;

use super::Measured;
use super::sums::sha256_of_file;
use crate::proc;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;

/// Settings of the kernel that change what a network or disk can do.
const SETTINGS: [&str; 15] = [
    "net/core/default_qdisc",
    "net/core/netdev_max_backlog",
    "net/core/rmem_max",
    "net/core/somaxconn",
    "net/core/wmem_max",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_window_scaling",
    "net/ipv4/tcp_wmem",
    "vm/dirty_background_ratio",
    "vm/dirty_ratio",
    "vm/nr_hugepages",
    "vm/swappiness",
];
/// Mounts of these kinds hold no data.
const NO_DATA: [&str; 14] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "debugfs",
    "devpts",
    "devtmpfs",
    "mqueue",
    "nsfs",
    "proc",
    "securityfs",
    "sysfs",
    "tracefs",
];
/// Mounts that are listed; machines with containers have thousands.
const MOUNTS_MAX: usize = 64;
/// A key that contains one of these has a secret as value.
const SECRETS: [&str; 6] = ["pass", "secret", "token", "credential", "key", "cookie"];

/// The machines of these runs.
pub fn of(results: &[Measured<'_>]) -> Value {
    let first = results.first();
    let clients: Map<String, Value> = results
        .iter()
        .flat_map(|result| result.clients)
        .filter_map(|c| Some((c.machine["name"].as_str()?.to_owned(), c.machine.clone())))
        .collect();
    let server = |result: &Measured<'_>| {
        let server = result.server;
        json!({
            "target": result.target,
            "seen": server.seen,
            "machine": server.machine,
            "program": server.pid.and_then(|pid| program(&format!("/proc/{pid}/exe"))),
            "version": server.status.as_ref().map(|status| status["version"].clone()),
        })
    };
    let mut servers: Vec<Value> = results.iter().map(server).collect();
    servers.dedup();
    json!({
        "format": 1,
        "lab": first.map(|result| result.program),
        "conductor": here(),
        "clients": clients,
        "servers": servers,
    })
}

/// This machine, in detail.
pub fn here() -> Value {
    let mut machine = proc::machine();
    let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    machine["kernel_command_line"] = without_secrets(&line("/proc/cmdline"), ' ').into();
    machine["kernel_version"] = line("/proc/version").into();
    let governor = line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    machine["cpu_governor"] = if governor.is_empty() { Value::Null } else { governor.into() };
    machine["network"] = network();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    machine["mounts"] = parse_mounts(&mounts).into();
    let settings = SETTINGS.iter().filter_map(|name| {
        let value = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
        let words: Vec<&str> = value.split_whitespace().collect();
        Some((name.replace('/', "."), Value::from(words.join(" "))))
    });
    machine["sysctl"] = settings.collect::<Map<_, _>>().into();
    machine["program"] = program("/proc/self/exe").unwrap_or_default();
    machine
}

/// A program: its file and hash.
fn program(exe: &str) -> Option<Value> {
    let hash = sha256_of_file(Path::new(exe)).ok()?;
    let path = fs::read_link(exe).ok()?;
    Some(json!({ "path": path.display().to_string(), "sha256": hash }))
}

/// Network devices with what they do for the kernel.
fn network() -> Value {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let device = |entry: fs::DirEntry| {
        let (name, dir) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        let read = |what: &str| fs::read_to_string(dir.join(what)).ok();
        let number = |what: &str| read(what).and_then(|text| text.trim().parse::<i64>().ok());
        let driver = fs::read_link(dir.join("device/driver")).ok();
        let driver = driver.and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned()));
        let queues = |kind: &str| {
            let names = fs::read_dir(dir.join("queues")).into_iter().flatten().flatten();
            names.filter(|e| e.file_name().to_string_lossy().starts_with(kind)).count()
        };
        let about = json!({
            "driver": driver,
            "mtu": number("mtu"),
            "speed_mbit": number("speed").filter(|speed| *speed > 0),
            "state": read("operstate").map(|text| text.trim().to_owned()),
            "queues": { "rx": queues("rx-"), "tx": queues("tx-") },
            "offloads": offloads::of(&name),
        });
        (name, about)
    };
    entries.map(device).collect::<Map<_, _>>().into()
}

/// Mounts that hold data, as `device directory type options`.
fn parse_mounts(text: &str) -> Vec<String> {
    let mount = |line: &str| {
        let mut words = line.split(' ');
        let (device, dir) = (words.next()?, words.next()?);
        let (kind, options) = (words.next()?, words.next()?);
        let options = without_secrets(options, ',');
        (!NO_DATA.contains(&kind)).then(|| format!("{device} {dir} {kind} {options}"))
    };
    text.lines().filter_map(mount).take(MOUNTS_MAX).collect()
}

/// A list of settings without the values of those that look like secrets.
fn without_secrets(text: &str, between: char) -> String {
    let word = |word: &str| match word.split_once('=') {
        Some((key, _)) if SECRETS.iter().any(|s| key.to_ascii_lowercase().contains(s)) => {
            format!("{key}=...")
        }
        _ => word.to_owned(),
    };
    text.split(between).map(word).collect::<Vec<_>>().join(&between.to_string())
}

#[cfg(test)]
mod tests;
