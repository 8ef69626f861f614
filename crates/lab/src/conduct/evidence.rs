//! From what was sampled in a step to the evidence that the limiter is judged by.

use super::counts;
use super::server::{ServerSample, mean_latency};
use crate::agent::proto::Window;
use crate::client::target::Counting;
use crate::limit::{Device, Evidence, OBSERVE, Point};
use crate::proc::ProcessCpu;
use crate::record::Step;
use crate::record::observed::Observed;
use crate::workload::Kind;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// What the evidence of one step is made from.
pub struct Inputs<'a> {
    /// The step with its figures.
    pub step: &'a Step,
    /// The workload.
    pub kind: Kind,
    /// Samples of the server in the windows that count, in order.
    pub samples: &'a [ServerSample],
    /// The clients' windows that count.
    pub windows: &'a [&'a Window],
    /// Whether agents and server share a machine.
    pub same_host: bool,
    /// What generator reaches against nothing.
    pub null_ops_s: Option<f64>,
    /// Group of the protocol's statistics.
    pub protocol: &'static str,
    /// How the server counts.
    pub counting: Counting,
    /// The server's statistics.
    pub statistics: &'a Map<String, Value>,
}

/// Gathers the evidence of one step; curve, levelling and lost clients are added by the caller.
pub fn gather(i: &Inputs<'_>) -> Evidence {
    let mut e = Evidence {
        cores: f64::from(crate::proc::cores()),
        same_host: i.same_host,
        null_ops_s: i.null_ops_s,
        little_deviation: i.step.little.deviation_percent / 100.0,
        synchronous: i.kind == Kind::SyncWrite,
        payload: i.kind.payload(),
        point: point(i.step),
        server_latency_ns: server_latency(i),
        ..Default::default()
    };
    generator(i, &mut e);
    if let (Some(first), Some(last)) = (i.samples.first(), i.samples.last()) {
        server(first, last, &mut e);
        let queues: Vec<_> = i.samples.iter().filter_map(|s| s.queues).collect();
        let clients = client_queues(i.windows);
        if !queues.is_empty() {
            let n = queues.len() as f64;
            let tx = queues.iter().map(|q| q.0).sum::<f64>() / n;
            let rx = queues.iter().map(|q| q.1).sum::<f64>() / n;
            e.connections = queues.iter().map(|q| f64::from(q.2)).sum::<f64>() / n;
            e.queued_to_send = clients.map(|c| (tx, c.0));
            e.queued_to_read = clients.map(|c| (rx, c.1));
        }
    }
    i.step.observe.iter().for_each(|o| observed(o, &mut e));
    e
}

fn server_latency(i: &Inputs<'_>) -> Option<f64> {
    let counted = i.step.server_counts.as_ref();
    if let Some(mean) = counted.and_then(|c| counts::mean_latency(c, i.counting, i.kind)) {
        return Some(mean);
    }
    i.statistics.get(&format!("{}.ops[latency]", i.protocol)).and_then(mean_latency)
}

/// A step as a point of the curve.
pub fn point(step: &Step) -> Point {
    Point {
        in_flight: f64::from(super::step::in_flight(step.clients, step.threads, step.last_threads)),
        ops_s: step.ops_s,
        bytes_s: step.bytes_s,
        latency_ns: step.latency.mean,
    }
}

fn generator(i: &Inputs<'_>, e: &mut Evidence) {
    let window_ns = i.step.window_s * 1e9;
    let count = (i.step.used.1 - i.step.used.0).max(1) as f64;
    let shares = |pick: fn(&Window) -> u64| {
        // Windows come client by client, `count` of each.
        let each = i
            .windows
            .chunks((count as usize).max(1))
            .map(|client| client.iter().map(|w| pick(w) as f64).sum::<f64>() / (window_ns * count));
        each.collect::<Vec<f64>>()
    };
    let worst = |shares: Vec<f64>| shares.into_iter().fold(0.0, f64::max);
    e.generator_cores = shares(|w| w.cpu_ns).iter().sum();
    e.generator_busiest = worst(shares(|w| w.driver_cpu_ns)).min(1.0);
    e.generator_throttled = worst(shares(|w| w.throttled_ns)).min(1.0);
    e.generator_waiting = worst(shares(|w| w.wait_ns)).min(1.0);
}

/// Mean bytes per client: waiting to be sent, waiting to be read.
fn client_queues(windows: &[&Window]) -> Option<(f64, f64)> {
    let seen: Vec<_> = windows.iter().filter_map(|w| w.transport).collect();
    let n = seen.len() as f64;
    let unsent = seen.iter().map(|t| f64::from(t.unsent_bytes)).sum::<f64>() / n;
    let unread = seen.iter().map(|t| f64::from(t.unread_bytes)).sum::<f64>() / n;
    (!seen.is_empty()).then_some((unsent, unread))
}

pub(super) fn server(first: &ServerSample, last: &ServerSample, e: &mut Evidence) {
    let seconds = last.at_ns.saturating_sub(first.at_ns) as f64 / 1e9;
    if seconds < 0.05 {
        return;
    }
    if let (Some(a), Some(b)) = (&first.process, &last.process) {
        process(a, b, seconds, e);
    }
    machine(first, last, seconds, e);
}

/// The CPU of all processes and the device below the share, in place of what one process and the
/// busiest disk of the machine show.
pub(super) fn observed(observed: &Observed, e: &mut Evidence) {
    let seconds = observed.seconds;
    if seconds < 0.05 {
        return;
    }
    if let Some(cpu) = observed.cpu {
        e.server_cores = Some(cpu / seconds);
    }
    let Some(device) = observed.devices.first() else {
        // The busiest disk may be another one.
        e.disk = None;
        if observed.no_device.is_none() {
            let command = format!("{OBSERVE} --share-path DIRECTORY");
            e.unseen.push(("device below the share".to_owned(), command));
        }
        return;
    };
    let rate = |n: u64| n as f64 / seconds;
    let busiest = observed.devices.iter().map(|d| d.busy).fold(0.0, f64::max);
    e.disk = Some((device.name.clone(), busiest, device.write_or_flush_ms));
    e.device = Some(Device {
        name: device.name.clone(),
        bytes_s: rate(device.bytes[0] + device.bytes[1]),
        ops_s: rate(device.ops[0] + device.ops[1]),
        busy: busiest,
        by_direction: Some([0, 1].map(|n| (rate(device.bytes[n]), rate(device.ops[n])))),
        read_latency_ns: device.latency[0],
        write_latency_ns: device.latency[1],
        caps: observed.caps.clone(),
    });
}

fn process(first: &ProcessCpu, last: &ProcessCpu, seconds: f64, e: &mut Evidence) {
    e.server_cores = Some((last.seconds - first.seconds).max(0.0) / seconds);
    let before: HashMap<u32, f64> = first.threads.iter().map(|t| (t.0, t.2)).collect();
    let busy = last.threads.iter().map(|(id, name, cpu)| {
        (format!("{name} ({id})"), (cpu - before.get(id).copied().unwrap_or(0.0)) / seconds)
    });
    e.server_hot_thread = busy.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(n, s)| (n, s.min(1.0)));
    e.server_wanted = wanted(first, last, seconds);
    let throttled = (last.throttled_s - first.throttled_s).max(0.0) / seconds;
    // Several cores of a group can be throttled at once.
    e.server_throttled = Some(throttled.min(1.0));
    e.server_quota_cores = last.quota_cores;
}

/// Cores that the server's threads used or stood in line for: all, the busiest. `None` where the
/// kernel does not report the waiting time.
fn wanted(first: &ProcessCpu, last: &ProcessCpu, seconds: f64) -> Option<(f64, f64)> {
    let used: HashMap<u32, f64> = first.threads.iter().map(|t| (t.0, t.2)).collect();
    let waited: HashMap<u32, f64> = first.waits.iter().copied().collect();
    let now: HashMap<u32, f64> = last.threads.iter().map(|t| (t.0, t.2)).collect();
    let before = |map: &HashMap<u32, f64>, id: &u32| map.get(id).copied().unwrap_or(0.0);
    let each = last.waits.iter().map(|(id, wait)| {
        (before(&now, id) - before(&used, id) + wait - before(&waited, id)) / seconds
    });
    let each: Vec<f64> = each.collect();
    let busiest = each.iter().copied().reduce(f64::max)?;
    Some((each.iter().sum(), busiest))
}

fn machine(first: &ServerSample, last: &ServerSample, seconds: f64, e: &mut Evidence) {
    let (a, b) = (&first.machine, &last.machine);
    let cores = a.cores.iter().zip(&b.cores).map(|(a, b)| {
        let all = b.1.saturating_sub(a.1);
        if all == 0 { 0.0 } else { b.0.saturating_sub(a.0) as f64 / all as f64 }
    });
    let cores: Vec<f64> = cores.collect();
    if !cores.is_empty() {
        e.cores = cores.len() as f64;
        e.host_busy = Some(cores.iter().sum::<f64>() / cores.len() as f64);
        e.hottest_core = cores.iter().copied().reduce(f64::max);
    }
    let links = b.nics.iter().filter_map(|(name, rx, tx)| {
        let old = a.nics.iter().find(|n| n.0 == *name)?;
        // A link is full when either direction is.
        let most = rx.saturating_sub(old.1).max(tx.saturating_sub(old.2));
        let known =
            last.observed.as_ref().and_then(|o| o.interfaces.iter().find(|i| i.name == *name));
        let rate = match known {
            Some(interface) => interface.speed.map(|speed| speed as f64),
            None => link_rate(name),
        };
        Some((name.clone(), most as f64 / seconds, rate))
    });
    e.link = links.max_by(|a, b| a.1.total_cmp(&b.1));
    let disks = b.disks.iter().filter_map(|(name, busy_ms, n, ms)| {
        let old = a.disks.iter().find(|d| d.0 == *name)?;
        let each = (ms.saturating_sub(old.3)) as f64 / n.saturating_sub(old.2).max(1) as f64;
        let busy = busy_ms.saturating_sub(old.1) as f64 / 1000.0 / seconds;
        Some((name.clone(), busy.min(1.0), each))
    });
    e.disk = disks.max_by(|a, b| a.1.total_cmp(&b.1));
    let sent = b.tcp.0.saturating_sub(a.tcp.0).max(1);
    e.retransmitted = b.tcp.1.saturating_sub(a.tcp.1) as f64 / sent as f64;
}

/// Bytes per second that a real adapter can; the rate of a virtual one has no meaning.
fn link_rate(name: &str) -> Option<f64> {
    let dir = std::path::Path::new("/sys/class/net").join(name);
    if !dir.join("device").exists() {
        return None;
    }
    let megabits: f64 = std::fs::read_to_string(dir.join("speed")).ok()?.trim().parse().ok()?;
    (megabits > 0.0).then_some(megabits * 1e6 / 8.0)
}
