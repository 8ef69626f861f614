//! What TCP knows of its connections, by client, as statistics (`schema/tcp.toml`): by the
//! kernel's own diagnosis, sock_diag(7), in the network namespace of this process.
//!
//! A look at all connections costs in proportion to their number, so the interval between two
//! looks grows with that cost. What came between two looks is spread over the seconds until the
//! next, so that sums stay what the kernel counted. A connection that ends between two looks is
//! reported by the kernel ([`ended`]).

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv6Addr;

use probe::core::thread_cpu_ns;
use probe::sample::{Sample, Sampler};

use crate::Root;
use crate::counters::protocol_counter;
use crate::sampler::interval_ns;
use crate::socket_diagnosis::CONNECTIONS_MAX;
use diagnosis::{Connection, connections};
use ended::Ends;

pub mod diagnosis;
pub mod ended;

/// The part of a core that looks may cost.
const COST_PART: f64 = 0.01;
/// Longest interval: an older level is of little use.
const INTERVAL_MAX_S: u32 = 60;
/// Clients with rows of their own in each statistic, the greatest first: what they have together
/// is in the total in any case.
const CLIENTS_MAX: usize = 256;
/// Connections with data to send.
const LIMITED: &str = "tcp.limited";
/// What limits them.
const WHY: [&str; 3] = ["network", "receiver", "send-buffer"];

/// Samples the connections.
pub struct ConnectionSampler {
    root: Root,
    /// `None` where the kernel reports no ends.
    ends: Option<Ends>,
    last: Option<Look>,
    /// Connections that ended since the last look.
    ended: HashMap<u64, Connection>,
    schedule: Schedule,
    /// What is given in each second until the next look.
    held: Vec<Sample>,
}

/// When connections are looked at: as often as the processor time of it allows.
#[derive(Debug, Default)]
struct Schedule {
    /// Seconds between looks, and until the next.
    interval: u32,
    wait: u32,
    /// Processor time that no interval accounts for yet.
    spent_ns: u64,
}

/// One look.
struct Look {
    time_ns: u64,
    /// By cookie, which the kernel gives no other socket.
    connections: HashMap<u64, Connection>,
    /// Those that ended since the look before.
    ended: HashMap<u64, Connection>,
    /// Of the whole namespace: retransmitted, received out of order.
    counters: [u64; 2],
}

/// A client's part between two looks.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    connections: u64,
    events: [u64; 2],
    /// Microseconds by [`WHY`].
    limited: [u64; 3],
    rtt_us: u64,
    /// Connections with a round-trip time.
    timed: u64,
}

impl Part {
    /// What a connection did since `before`.
    fn add(&mut self, before: &Connection, after: &Connection) {
        for (n, count) in after.events.into_iter().enumerate() {
            self.events[n] += u64::from(count.wrapping_sub(before.events[n]));
        }
        let [busy, receiver, buffer] =
            [0, 1, 2].map(|n| after.limited_us[n].saturating_sub(before.limited_us[n]));
        let network = busy.saturating_sub(receiver + buffer);
        let new = [network, receiver, buffer];
        self.limited.iter_mut().zip(new).for_each(|(sum, new)| *sum += new);
    }
}

impl ConnectionSampler {
    /// A sampler of the namespace of this process.
    pub fn new(root: Root) -> Self {
        let ends = root.is_real().then(Ends::open).and_then(Result::ok);
        let (ended, held) = (HashMap::new(), Vec::new());
        Self { root, ends, last: None, ended, schedule: Schedule::default(), held }
    }

    /// Seconds between two looks now.
    pub const fn interval(&self) -> u32 {
        self.schedule.interval
    }

    fn look(&mut self, time_ns: u64) -> Look {
        let mut connections = match self.root.is_real() {
            true => connections().unwrap_or_default(),
            false => HashMap::new(),
        };
        // Behind the connections: one that ends in between is in both, and its end has more.
        self.drain();
        let ended = std::mem::take(&mut self.ended);
        connections.retain(|cookie, _| !ended.contains_key(cookie));
        let text = |name: &str| self.root.read(name).unwrap_or_default();
        // Behind the connections: what comes in between is theirs rather than missing.
        let retransmits = protocol_counter(&text("proc/net/snmp"), "Tcp", "RetransSegs");
        let disordered = protocol_counter(&text("proc/net/netstat"), "TcpExt", "TCPOFOQueue");
        let counters = [retransmits, disordered].map(Option::unwrap_or_default);
        Look { time_ns, connections, ended, counters }
    }

    fn drain(&mut self) {
        if let Some(ends) = &self.ends {
            ends.drain(&mut self.ended);
        }
    }
}

impl Sampler for ConnectionSampler {
    fn sample(&mut self, now_ns: u64) -> Vec<Sample> {
        let mut clock = CpuClock::start();
        if self.schedule.is_due() {
            let now = self.look(now_ns);
            let parts = self.last.as_ref().map(|last| (parts(last, &now), last));
            self.schedule.spend(clock.lap_ns());
            // What follows is accounted for by the next interval.
            let seconds = self.schedule.looked();
            let made =
                parts.map(|(parts, last)| samples(&parts, (last, &now), seconds, &self.held));
            self.held = made.unwrap_or_default();
            self.last = Some(now);
        } else {
            self.drain();
        }
        let held = self.held.clone();
        self.schedule.spend(clock.lap_ns());
        held
    }
}

/// Processor time of this thread.
struct CpuClock(u64);

impl CpuClock {
    fn start() -> Self {
        Self(thread_cpu_ns())
    }

    /// What was used since the last call.
    fn lap_ns(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.0, thread_cpu_ns());
        self.0.saturating_sub(before)
    }
}

impl Schedule {
    /// Whether the second that begins is one with a look.
    fn is_due(&mut self) -> bool {
        self.wait = self.wait.saturating_sub(1);
        self.wait == 0
    }

    /// Processor time was used.
    fn spend(&mut self, ns: u64) {
        self.spent_ns += ns;
    }

    /// A look is done: the seconds until the next, which what was used is [`COST_PART`] of.
    fn looked(&mut self) -> u32 {
        let used_ns = std::mem::take(&mut self.spent_ns) as f64;
        self.interval = ((used_ns / 1e9 / COST_PART).ceil() as u32).clamp(1, INTERVAL_MAX_S);
        self.wait = self.interval;
        self.interval
    }
}

/// What came between two looks, for each of the `seconds` until the next; `held` is what was given
/// before.
fn samples(
    parts: &BTreeMap<Ipv6Addr, Part>,
    (last, now): (&Look, &Look),
    seconds: u32,
    held: &[Sample],
) -> Vec<Sample> {
    let rate = |n: u64| n as f64 / f64::from(seconds);
    let mut samples = Vec::new();
    for (n, stat) in ["tcp.retransmits", "tcp.out_of_order"].into_iter().enumerate() {
        let mut sample = by_client(stat, parts, |part| rate(part.events[n]));
        // What the kernel counted beyond them was of connections of which the end was not seen.
        let counted = rate(now.counters[n].saturating_sub(last.counters[n]));
        sample.total = sample.total.max(counted);
        samples.push(sample);
    }
    samples.push(by_client("tcp.connections", parts, |part| part.connections as f64));
    let rtt = |sum: u64, count: u64| sum as f64 * 1e3 / count.max(1) as f64;
    let mut sample = by_client("tcp.rtt", parts, |part| rtt(part.rtt_us, part.timed));
    let sum = |figure: fn(&Part) -> u64| parts.values().map(figure).sum::<u64>();
    sample.total = rtt(sum(|part| part.rtt_us), sum(|part| part.timed));
    samples.push(sample);
    samples.extend(match interval_ns(last.time_ns, now.time_ns) {
        Some(ns) => Some(limited(parts, ns as f64 / 1e3)),
        // A part of no time at all would be any number.
        None => held.iter().find(|sample| sample.stat == LIMITED).cloned(),
    });
    samples.push(Sample::raw("tcp.diagnosis_interval", f64::from(seconds) * 1e9));
    samples
}

/// A figure by client; the total is of all clients, whether they have a row or not.
fn by_client(
    stat: &'static str,
    parts: &BTreeMap<Ipv6Addr, Part>,
    figure: impl Fn(&Part) -> f64,
) -> Sample {
    let mut all: Vec<(Ipv6Addr, f64)> = parts.iter().map(|(a, p)| (*a, figure(p))).collect();
    let total = all.iter().map(|(_, value)| value).sum();
    all.retain(|(_, value)| *value > 0.0);
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(CLIENTS_MAX);
    let rows = all.into_iter().map(|(address, value)| (shown(address), String::new(), value));
    Sample { stat, dimensions: ["client", ""], total, rows: rows.collect() }
}

/// Connections with data to send, by what limited them and by client.
fn limited(parts: &BTreeMap<Ipv6Addr, Part>, passed_us: f64) -> Sample {
    let mut rows = Vec::new();
    let mut busy: Vec<(&Ipv6Addr, &Part)> = parts.iter().collect();
    busy.sort_by_key(|(_, part)| std::cmp::Reverse(part.limited.iter().sum::<u64>()));
    let mut rest = [0.0; WHY.len()];
    for (n, (address, part)) in busy.into_iter().enumerate() {
        for (why, (name, us)) in WHY.into_iter().zip(part.limited).enumerate() {
            let value = us as f64 / passed_us;
            match n < CLIENTS_MAX {
                true if value > 0.0 => rows.push((name.to_owned(), shown(*address), value)),
                true => {}
                false => rest[why] += value,
            }
        }
    }
    let others = WHY.into_iter().zip(rest).filter(|(_, value)| *value > 0.0);
    rows.extend(others.map(|(name, value)| (name.to_owned(), String::new(), value)));
    let total = rows.iter().map(|(_, _, value)| value).sum();
    Sample { stat: LIMITED, dimensions: ["why", "client"], total, rows }
}

fn shown(address: Ipv6Addr) -> String {
    address.to_canonical().to_string()
}

/// What each client's connections did between two looks.
fn parts(last: &Look, now: &Look) -> BTreeMap<Ipv6Addr, Part> {
    let mut parts: BTreeMap<Ipv6Addr, Part> = BTreeMap::new();
    // More than a look sees: one that it did not see is not new.
    let all = last.connections.len() < CONNECTIONS_MAX;
    for (cookie, after) in now.connections.iter().chain(&now.ended) {
        let part = parts.entry(after.peer).or_default();
        // One that is new began with nothing.
        let before = last.connections.get(cookie).copied();
        if let Some(before) = before.or(all.then(Connection::default)) {
            part.add(&before, after);
        }
    }
    for connection in now.connections.values() {
        let part = parts.entry(connection.peer).or_default();
        part.connections += 1;
        part.rtt_us += u64::from(connection.rtt_us);
        part.timed += u64::from(connection.rtt_us > 0);
    }
    parts
}

#[cfg(test)]
mod tests;
