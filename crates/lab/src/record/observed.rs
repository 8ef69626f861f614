//! What a step's record has of the server as its machine shows it, of each client, and of the
//! server's own counts.

use crate::observe::ServerSample;
use host::observe::Sample;
use host::observe::cache::Pages;
use host::observe::device::{Cap, DeviceIo};
use serde::{Deserialize, Serialize};

/// Bytes before the payload of a segment: Ethernet, IPv4, TCP with timestamps.
const HEADERS: u64 = 14 + 20 + 32;

/// One end of a step, between two samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Observed {
    /// `server`.
    pub role: String,
    /// Time of the first sample, seconds since the Unix epoch.
    pub started: f64,
    /// Time from the first sample to the last. All amounts below are of this time.
    pub seconds: f64,
    /// CPU time of the server's processes, seconds; of children that ended meanwhile, too.
    pub cpu: Option<f64>,
    /// What counted it: `control-group` or `processes`.
    pub cpu_by: Option<String>,
    /// Processes at the end.
    pub processes: Option<u32>,
    /// Resident memory of these, bytes; what they share counts for each.
    pub memory: Option<u64>,
    /// Memory of the machine that is available, bytes.
    pub memory_available: u64,
    /// Share of the time that each core was busy.
    pub cores: Vec<f64>,
    /// The device below the share, then those below that; empty if unknown or if there is none.
    pub devices: Vec<ObservedDevice>,
    /// Why there is no device.
    pub no_device: Option<String>,
    /// Bytes read from the first of these.
    pub disk_read: Option<u64>,
    /// Bytes written to it.
    pub disk_write: Option<u64>,
    /// Time of a read there, ns.
    pub read_latency: Option<f64>,
    /// Caps on these devices.
    pub caps: Vec<Cap>,
    /// The test files in the page cache, before.
    pub pages_before: Option<Pages>,
    /// The test files in the page cache, after.
    pub pages_after: Option<Pages>,
    /// The interfaces of the server's network namespace.
    pub interfaces: Vec<ObservedInterface>,
    /// TCP segments sent again.
    pub retransmitted: u64,
    /// TCP segments that came out of order.
    pub out_of_order: u64,
    /// CPU time that observing took, seconds.
    pub cost: f64,
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ObservedDevice {
    /// Its name.
    pub name: String,
    /// Bytes read, written.
    pub bytes: [u64; 2],
    /// Reads, writes.
    pub ops: [u64; 2],
    /// Time of a read, of a write, ns; `None` without any.
    pub latency: [Option<f64>; 2],
    /// Flushes.
    pub flushes: u64,
    /// Time of a write or flush, ms.
    pub write_or_flush_ms: f64,
    /// Share of the time that it was busy.
    pub busy: f64,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ObservedInterface {
    /// Its name.
    pub name: String,
    /// Bytes received.
    pub rx: u64,
    /// Bytes sent.
    pub tx: u64,
    /// Payload of the clients' operations that it carried; `None` on those that carried none.
    pub payload: Option<u64>,
    /// Bytes that headers of the packets in its direction take; of a virtual interface, with
    /// packets as large as the kernel hands them over, a lower bound.
    pub headers_expected: Option<u64>,
    /// Bytes per second that it can.
    pub speed: Option<u64>,
}

/// The payload of a step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Payload {
    /// Bytes per second.
    pub bytes_s: f64,
    /// Whether it goes to the server.
    pub inward: bool,
}

impl Observed {
    /// Between the first and the last of the samples; `None` without two that lie apart.
    /// `started` is the time of the first one.
    pub fn between(
        first: &ServerSample,
        last: &ServerSample,
        payload: Payload,
        started: f64,
    ) -> Option<Self> {
        let seconds = last.at_ns.saturating_sub(first.at_ns) as f64 / 1e9;
        let (a, b) = (first.observed.as_ref()?, last.observed.as_ref()?);
        if seconds <= 0.0 {
            return None;
        }
        let families = a.family.as_ref().zip(b.family.as_ref());
        let by_group = families.is_some_and(|(a, b)| a.group_ns.and(b.group_ns).is_some());
        let by = if by_group { "control-group" } else { "processes" };
        let devices = devices(a, b, seconds);
        let first_device = devices.first().cloned();
        let cores =
            first.machine.cores.iter().zip(&last.machine.cores).map(|(a, b)| {
                b.0.saturating_sub(a.0) as f64 / b.1.saturating_sub(a.1).max(1) as f64
            });
        Some(Self {
            role: "server".into(),
            started,
            seconds,
            cpu: families.map(|(a, b)| b.cpu_since(a) as f64 / 1e9),
            cpu_by: families.map(|_| by.to_owned()),
            processes: b.family.as_ref().map(|f| f.processes.len() as u32),
            memory: b.family.as_ref().map(|f| f.resident),
            memory_available: b.memory_available,
            cores: cores.collect(),
            disk_read: first_device.as_ref().map(|d| d.bytes[0]),
            disk_write: first_device.as_ref().map(|d| d.bytes[1]),
            read_latency: first_device.and_then(|d| d.latency[0]),
            no_device: b.no_device.clone(),
            caps: b.caps.clone(),
            pages_before: a.pages,
            pages_after: b.pages,
            interfaces: interfaces(a, b, payload, seconds),
            retransmitted: b.tcp.retransmitted.saturating_sub(a.tcp.retransmitted),
            out_of_order: b.tcp.out_of_order.saturating_sub(a.tcp.out_of_order),
            cost: 0.0,
            devices,
        })
    }

    /// In one sentence.
    pub fn sentence(&self) -> String {
        let mut parts = Vec::new();
        if let (Some(cpu), Some(processes)) = (self.cpu, self.processes) {
            let s = if processes == 1 { "" } else { "es" };
            parts.push(format!("{:.2} cores in {processes} process{s}", cpu / self.seconds));
        }
        let rate = |n: u64| base::units::bytes(n as f64 / self.seconds);
        match (self.devices.first(), &self.no_device) {
            (Some(device), _) => {
                let [read, written] = device.bytes.map(rate);
                parts.push(format!("{} {read}/s read, {written}/s written", device.name));
            }
            (None, Some(why)) => parts.push(why.clone()),
            (None, None) => parts.push("the device of the data is not known".to_owned()),
        }
        if let Some(pages) = self.pages_before.filter(|pages| pages.all > 0) {
            let share = pages.resident as f64 / pages.all as f64 * 100.0;
            parts.push(format!("{share:.0} % of the test files in the page cache before"));
        }
        let most = self.interfaces.iter().max_by_key(|i| i.rx.max(i.tx));
        if let Some(i) = most {
            parts.push(format!("{} {}/s received, {}/s sent", i.name, rate(i.rx), rate(i.tx)));
        }
        parts.join("; ")
    }
}

fn devices(a: &Sample, b: &Sample, seconds: f64) -> Vec<ObservedDevice> {
    let both = b.devices.iter().filter_map(|now| {
        let before = a.devices.iter().find(|d| d.name == now.name)?;
        Some(ObservedDevice::between(before, now, seconds))
    });
    both.collect()
}

impl ObservedDevice {
    fn between(before: &DeviceIo, now: &DeviceIo, seconds: f64) -> Self {
        let since = |now: [u64; 2], before: [u64; 2]| {
            [now[0].saturating_sub(before[0]), now[1].saturating_sub(before[1])]
        };
        let (ops, ms) = (since(now.ops, before.ops), since(now.ms, before.ms));
        let flushes = since(now.flushes, before.flushes);
        let each = |n: usize| (ops[n] > 0).then(|| ms[n] as f64 * 1e6 / ops[n] as f64);
        let stable = (ops[1] + flushes[0]).max(1) as f64;
        let busy = now.busy_ms.saturating_sub(before.busy_ms) as f64 / 1e3 / seconds;
        Self {
            name: now.name.clone(),
            bytes: since(now.bytes, before.bytes),
            ops,
            latency: [each(0), each(1)],
            flushes: flushes[0],
            write_or_flush_ms: (ms[1] + flushes[1]) as f64 / stable,
            busy: busy.min(1.0),
        }
    }
}

fn interfaces(a: &Sample, b: &Sample, payload: Payload, seconds: f64) -> Vec<ObservedInterface> {
    let direction = usize::from(!payload.inward);
    let mut packets = Vec::new();
    let mut found = Vec::new();
    for now in &b.interfaces {
        let Some(before) = a.interfaces.iter().find(|i| i.name == now.name) else { continue };
        let since = |n: usize| now.bytes[n].saturating_sub(before.bytes[n]);
        packets.push(now.packets[direction].saturating_sub(before.packets[direction]));
        let (name, speed) = (now.name.clone(), now.speed);
        let (rx, tx) = (since(0), since(1));
        found.push(ObservedInterface { name, rx, tx, speed, ..Default::default() });
    }
    let carried = |i: &ObservedInterface| if payload.inward { i.rx } else { i.tx };
    let loads: Vec<u64> = found.iter().map(carried).collect();
    for (n, bytes) in spread((payload.bytes_s * seconds) as u64, &loads) {
        found[n].payload = Some(bytes);
        found[n].headers_expected = Some(packets[n] * HEADERS);
    }
    found
}

/// What of the payload each interface carried: those that carried most, as many as it takes, in
/// proportion to their bytes. If all together carried less, it passed by one that is not seen: then
/// the one that carried most is compared with all of it.
fn spread(payload: u64, carried: &[u64]) -> Vec<(usize, u64)> {
    let mut order: Vec<usize> = (0..carried.len()).collect();
    order.sort_by_key(|n| std::cmp::Reverse(carried[*n]));
    let (mut sum, mut needed) = (0, 0);
    while sum < payload && needed < order.len() {
        sum += carried[order[needed]];
        needed += 1;
    }
    order.truncate(if sum < payload { 1 } else { needed.max(1) });
    let sum: u64 = order.iter().map(|n| carried[*n]).sum();
    let part = |bytes: u64| match order.len() {
        1 => payload,
        _ => (payload as f64 * bytes as f64 / sum as f64) as u64,
    };
    order.iter().map(|n| (*n, part(carried[*n]))).collect()
}

/// What one client did in the windows that count.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "ClientForm")]
pub struct ClientStep {
    /// Its number.
    pub client: u32,
    /// Operations.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
    /// Faults, over the whole step.
    pub errors: u64,
    /// Address that its connections come from, if known.
    pub source: Option<String>,
    /// Interface of its machine that has this address, if known.
    pub interface: Option<String>,
    /// Address from which the server has its connections, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_as: Option<String>,
    /// The network that it reached the server in, if the run named any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<String>,
}

/// A network of a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SubnetStep {
    /// The network.
    pub network: String,
    /// The server's address there.
    pub server: String,
    /// The server's interface there, if that is known.
    pub interface: Option<String>,
    /// Clients that took part to the end.
    pub clients: u32,
    /// Clients that were lost, in this step or before.
    pub lost: u32,
    /// Operations per second.
    pub ops_s: f64,
    /// Bytes per second.
    pub bytes_s: f64,
    /// Faults, over the whole step.
    pub errors: u64,
    /// The whole step at both ends; `None` if a client was lost or the interface is not seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<WholeStep>,
}

/// What clients moved from their first operation to the last, and what the server's interface
/// counted from before to after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WholeStep {
    /// Bytes of all operations.
    pub payload: u64,
    /// Bytes received.
    pub rx: u64,
    /// Bytes sent.
    pub tx: u64,
    /// Packets received: of a virtual interface, as large as the kernel hands them over.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
}

/// How it is read: format 1 had pairs (client, operations).
#[derive(Deserialize)]
#[serde(untagged)]
enum ClientForm {
    Pair(u32, u64),
    Full {
        client: u32,
        ops: u64,
        #[serde(default)]
        bytes: u64,
        #[serde(default)]
        errors: u64,
        source: Option<String>,
        interface: Option<String>,
        #[serde(default)]
        seen_as: Option<String>,
        #[serde(default)]
        subnet: Option<String>,
    },
}

impl From<ClientForm> for ClientStep {
    fn from(form: ClientForm) -> Self {
        match form {
            ClientForm::Pair(client, ops) => Self { client, ops, ..Default::default() },
            ClientForm::Full { client, ops, bytes, errors, source, interface, seen_as, subnet } => {
                Self { client, ops, bytes, errors, source, interface, seen_as, subnet }
            }
        }
    }
}

/// What the server itself counted over the whole step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServerCounts {
    /// Begin, seconds since the Unix epoch.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Whether the server still had all of it.
    pub complete: bool,
    /// By operation.
    pub operations: Vec<OperationCount>,
    /// Clients with other addresses at the server than their own, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translated: Option<String>,
    /// Against what the clients counted; `None` for workloads without such a count.
    pub compared: Option<Comparison>,
}

/// An operation of the protocol.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OperationCount {
    /// Its name.
    pub op: String,
    /// How often.
    pub count: u64,
    /// Bytes of file data.
    pub bytes: u64,
    /// Mean latency at the server, ns.
    pub latency_ns: f64,
}

/// The counts of both ends.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Comparison {
    /// What is counted: `operations` or `bytes`.
    pub of: String,
    /// By the server.
    pub server: u64,
    /// By the clients.
    pub clients: u64,
    /// What may have been in flight at the borders.
    pub in_flight: u64,
    /// Whether they agree within that.
    pub agrees: bool,
}

impl Comparison {
    /// Compares.
    pub fn new(of: &str, server: u64, clients: u64, in_flight: u64) -> Self {
        let agrees = server.abs_diff(clients) <= in_flight;
        Self { of: of.to_owned(), server, clients, in_flight, agrees }
    }

    /// In a sentence.
    pub fn sentence(&self) -> String {
        let Self { of, server, clients, in_flight, agrees } = self;
        let verdict = if *agrees { "agree" } else { "do not agree" };
        format!(
            "counts of the server and of the clients {verdict}: {server} and {clients} {of}, at \
             most {in_flight} in flight at the borders"
        )
    }
}

#[cfg(test)]
mod tests;
