//! From evidence to the name of the limiter. A pure function: what a run measured goes in, a
//! verdict with its confidence and its sentences comes out, so that every rule can be tried on
//! planted evidence.
//!
//! The rules follow the USE method (utilisation, saturation, errors of each resource), asked in
//! the order in which one cause hides another: a quota before the CPU, the generator before the
//! server, what is saturated before what is merely slow.

use host::observe::device::Cap;
use serde::{Deserialize, Serialize};

/// A CPU counts as saturated from this share on: the rest is lost between the samples.
const BUSY: f64 = 0.90;
/// A control group over its quota for this share of the time is what limits.
const THROTTLED: f64 = 0.05;
/// A side counts as a user of the cores from this share of all cores on.
const LARGE: f64 = 0.15;
/// One side that uses this share of all cores used them alone.
const ALONE: f64 = 0.75;
/// A side that neither runs nor waits for a core for this share of the time does not lack one,
/// however busy others keep the machine.
const UNWANTED: f64 = 0.50;
/// A link counts as full from this share of its rate on; headers take the rest.
const LINK_FULL: f64 = 0.85;
/// A disk counts as saturated from this share of busy time on.
const DISK_BUSY: f64 = 0.85;
/// Bytes that wait to be sent on a connection, on average, when the network is what holds them.
const QUEUED: f64 = 32_768.0;
/// Time that it takes to carry what waits, s, when the network is what holds it: more than is in
/// flight on a path within a machine, or through a switch that is not full.
const QUEUE_LASTS: f64 = 0.0005;
/// A machine busier than this is part of the path itself: data then waits for the CPU that copies
/// and acknowledges it, and a queue is no evidence about the link.
const QUEUE_TELLS: f64 = 0.75;
/// Throughput within this share of what the generator reaches against nothing.
const NEAR_NULL: f64 = 0.70;
/// What a step gains at least where throughput still rises.
const GAIN: f64 = 0.03;
/// Latency that changes by less than this while concurrency changes is constant.
const CONSTANT: f64 = 0.30;
/// One core counts as hot from this share on, when no thread is known to use it.
const CORE_HOT: f64 = 0.95;
/// Other processes that use this share of all cores are why nothing can be concluded.
const MOST: f64 = 0.5;
/// A hot core of a machine that both share may be an agent's from this share of a core on.
const AGENT_HALF: f64 = 0.5;
/// A side has little to read below this part of what waits to be sent to it.
const LITTLE_TO_READ: f64 = 0.25;
/// Share of TCP segments sent again from which it is named.
const RETRANSMITTED: f64 = 0.001;
/// All cores together are idle enough below this share that something else must limit.
const IDLE: f64 = 0.80;
/// Share of an operation's latency within the server from which it is named.
const WITHIN_SERVER: f64 = 0.60;
/// Share of the operations' time lost in the generator that cannot be an edge effect.
const LOST_MUCH: f64 = 0.25;
/// Share of that time from which it is the limiter if nothing else is.
const LOST: f64 = 0.10;
/// Share of the time that an agent waits for a core from which that is the limiter if nothing else
/// is.
const WAITING: f64 = 0.50;
/// Command that observes a server which is not seen, on its host.
pub const OBSERVE: &str = "plimsoll lab agent --observe --listen ADDRESS:2150";
/// A clock further off than this, ns, cannot be compared with the server's seconds.
pub const CLOCK_SKEW_MAX_NS: u64 = 100_000_000;

/// What limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// All cores of the server, used by the server.
    ServerCpu,
    /// One core or one thread of the server.
    HotCore,
    /// All cores, used by server and generator together.
    CpuShared,
    /// The CPU quota of the server's control group.
    CpuQuota,
    /// The network between.
    Network,
    /// The server's disk.
    Disk,
    /// Nothing is full: each operation waits for something slow behind the server.
    Latency,
    /// The load generator.
    Generator,
    /// Throughput was still rising when the schedule ended.
    NotReached,
    /// The evidence is not sufficient.
    Unknown,
}

impl Limiter {
    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::ServerCpu => "server CPU",
            Self::HotCore => "a hot core of the server",
            Self::CpuShared => "CPU shared with the generator",
            Self::CpuQuota => "CPU quota of the server",
            Self::Network => "network",
            Self::Disk => "disk",
            Self::Latency => "latency",
            Self::Generator => "the load generator itself",
            Self::NotReached => "not a limit: throughput still rising",
            Self::Unknown => "unknown",
        }
    }
}

/// One step of the staircase, as far as the limiter is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Point {
    /// Operations in flight: clients × threads.
    pub in_flight: f64,
    /// Operations per second.
    pub ops_s: f64,
    /// Bytes per second.
    pub bytes_s: f64,
    /// Mean latency, ns.
    pub latency_ns: f64,
}

/// Which way the payload of a workload goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// To the clients.
    Read,
    /// To the server.
    Write,
}

/// The device below a share in one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Bytes per second that it read and wrote.
    pub bytes_s: f64,
    /// Reads and writes per second.
    pub ops_s: f64,
    /// Share of the time that it was busy.
    pub busy: f64,
    /// Bytes and operations per second, read and written.
    #[serde(default)]
    pub by_direction: Option<[(f64, f64); 2]>,
    /// Time of a read, ns.
    #[serde(default)]
    pub read_latency_ns: Option<f64>,
    /// Time of a write, ns.
    #[serde(default)]
    pub write_latency_ns: Option<f64>,
    /// What the server's control group caps.
    #[serde(default)]
    pub caps: Vec<Cap>,
}

/// What is known about the step that is judged. Shares are of 1; `None` is "not seen".
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Cores of the server's machine.
    pub cores: f64,
    /// Whether generator and server share a machine.
    pub same_host: bool,
    /// Cores that the server process used.
    pub server_cores: Option<f64>,
    /// The busiest thread of the server, share of a core, and its name.
    pub server_hot_thread: Option<(String, f64)>,
    /// Cores that the server's threads used or stood in line for: all together, the busiest.
    pub server_wanted: Option<(f64, f64)>,
    /// All cores of the server's machine, share busy.
    pub host_busy: Option<f64>,
    /// The busiest core, share.
    pub hottest_core: Option<f64>,
    /// Share of the time that the server's control group was over its quota.
    pub server_throttled: Option<f64>,
    /// That quota, in cores.
    pub server_quota_cores: Option<f64>,
    /// Cores that all agents used together.
    pub generator_cores: f64,
    /// The busiest agent's driving thread, share of a core.
    pub generator_busiest: f64,
    /// Share of the time that an agent's control group was over its quota, the worst.
    pub generator_throttled: f64,
    /// Share of the time that an agent was ready and had no core, the worst.
    pub generator_waiting: f64,
    /// Operations per second against nothing, with as many clients and threads.
    pub null_ops_s: Option<f64>,
    /// Little's law: (N − X·R) ÷ N, share of the operations' time that was lost in the generator.
    pub little_deviation: f64,
    /// The link between: name, bytes per second that passed, bytes per second it can.
    pub link: Option<(String, f64, Option<f64>)>,
    /// Bytes waiting to be sent per connection: at the server, at the clients; mean.
    pub queued_to_send: Option<(f64, f64)>,
    /// Number of the connections with these queues; 0 where an older result does not have it.
    pub connections: f64,
    /// Bytes waiting to be read per connection: at the server, at the clients; mean.
    pub queued_to_read: Option<(f64, f64)>,
    /// Share of TCP segments sent again.
    pub retransmitted: f64,
    /// The busiest disk: name, share of time busy, ms per write or flush.
    pub disk: Option<(String, f64, f64)>,
    /// The device below the share, if it was observed.
    pub device: Option<Device>,
    /// What was not observed although the rest of the server was: name, command that observes it.
    pub unseen: Vec<(String, String)>,
    /// Mean latency that the server saw, until replies were handed to the network, ns.
    pub server_latency_ns: Option<f64>,
    /// Whether every operation must reach the disk before it is answered.
    pub synchronous: bool,
    /// Which way the payload goes; `None` where it goes neither way, or an older result does not
    /// have it.
    pub payload: Option<Direction>,
    /// Throughput levelled by the declared rule.
    pub levelled: bool,
    /// The judged step.
    pub point: Point,
    /// All steps, in order.
    pub curve: Vec<Point>,
    /// Clients that were lost, with what happened.
    pub lost: Vec<String>,
    /// Clients with a clock that is further off than [`CLOCK_SKEW_MAX_NS`] or drifted: what was
    /// found.
    pub skewed: Vec<String>,
    /// Clients that made no progress for a while and came back.
    pub paused: Vec<String>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What limits.
    pub limiter: Limiter,
    /// 0 to 1.
    pub confidence: f64,
    /// Why, in sentences, the strongest first.
    pub why: Vec<String>,
    /// What was looked at and is not it.
    pub ruled_out: Vec<String>,
    /// What makes the whole run doubtful: lost, paused or skewed clients.
    pub marks: Vec<String>,
}

/// A rule's finding.
type RuleFinding = Option<(Limiter, f64, Vec<String>)>;

/// Judges the evidence.
pub fn judge(e: &Evidence) -> Verdict {
    let rules: [fn(&Evidence) -> RuleFinding; 12] = [
        generator_throttled,
        server_quota,
        all_cores,
        generator_busy,
        network,
        disk,
        hot_core,
        generator_loses_much,
        still_rising,
        generator_near_null,
        slow_behind,
        generator_loses_time,
    ];
    let found = rules.iter().find_map(|rule| rule(e));
    let (limiter, confidence, why) = found.unwrap_or_else(|| unknown(e));
    let mut marks = Vec::new();
    marks.extend(e.lost.iter().map(|what| format!("client lost: {what}")));
    marks.extend(e.paused.iter().map(|what| format!("client paused: {what}")));
    marks.extend(e.skewed.iter().map(|what| format!("clock skew: {what}")));
    let doubt = if e.lost.is_empty() && e.paused.is_empty() { 1.0 } else { 0.7 };
    let ruled_out = ruled_out(e, limiter);
    let confidence = (confidence * doubt).clamp(0.0, 0.99);
    Verdict { limiter, confidence, why, ruled_out, marks }
}

/// Share of all cores of the server's machine that others used; `None` if that was not seen.
pub fn others(e: &Evidence) -> Option<f64> {
    let agents = if e.same_host { e.generator_cores } else { 0.0 };
    // Without a process of the server there is none: the target is this machine itself.
    let own = (e.server_cores.unwrap_or(0.0) + agents) / e.cores.max(1.0);
    Some((e.host_busy? - own).max(0.0))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// How far beyond a threshold, as a confidence between `low` and 0.97.
fn beyond(value: f64, threshold: f64, full: f64, low: f64) -> f64 {
    let part = ((value - threshold) / (full - threshold).max(1e-9)).clamp(0.0, 1.0);
    low + (0.97 - low) * part
}

fn generator_throttled(e: &Evidence) -> RuleFinding {
    if e.generator_throttled < THROTTLED
        || e.server_throttled.unwrap_or(0.0) > e.generator_throttled
    {
        return None;
    }
    let why = format!(
        "an agent's control group was throttled for {} of the time",
        percent(e.generator_throttled)
    );
    let confidence = beyond(e.generator_throttled, THROTTLED, 0.4, 0.8);
    Some((Limiter::Generator, confidence, vec![why]))
}

fn server_quota(e: &Evidence) -> RuleFinding {
    let share = e.server_throttled.filter(|s| *s >= THROTTLED)?;
    let quota = e.server_quota_cores.map_or(String::new(), |q| format!(" of {q:.2} cores"));
    let mut why = vec![format!(
        "the server's control group was throttled by its CPU quota{quota} for {} of the time",
        percent(share)
    )];
    if let (Some(used), Some(quota)) = (e.server_cores, e.server_quota_cores) {
        why.push(format!("the server used {used:.2} of the {quota:.2} cores it may use"));
    }
    Some((Limiter::CpuQuota, beyond(share, THROTTLED, 0.4, 0.85), why))
}

/// Whether neither server nor agents lacked a core: all cores may be busy, but with other things,
/// and the scheduler gave these two what they asked for.
fn cpu_is_not_it(e: &Evidence) -> bool {
    let Some((all, busiest)) = e.server_wanted else { return false };
    let agents = e.generator_busiest + e.generator_waiting;
    let here = if e.same_host { e.generator_cores } else { 0.0 };
    busiest < UNWANTED && agents < UNWANTED && all + here < UNWANTED * e.cores
}

fn all_cores(e: &Evidence) -> RuleFinding {
    let busy = e.host_busy.filter(|b| *b >= BUSY && !cpu_is_not_it(e))?;
    let server = e.server_cores.unwrap_or(0.0) / e.cores.max(1.0);
    let generator = if e.same_host { e.generator_cores / e.cores.max(1.0) } else { 0.0 };
    let mut confidence = beyond(busy, BUSY, 1.0, 0.8);
    let machine =
        format!("all {:.0} cores of the server's machine were {} busy", e.cores, percent(busy));
    let split = format!(
        "the server used {} and the agents {} of them",
        percent(server),
        percent(generator)
    );
    let mut why = vec![machine, split];
    let others = busy - server - generator;
    if others >= MOST {
        why.push(format!("other processes on that machine used {}", percent(others)));
        return Some((Limiter::Unknown, 0.5, why));
    }
    if others >= LARGE {
        why.push(format!("other processes on that machine used {}", percent(others)));
        confidence -= others;
    }
    let limiter = if server >= ALONE || !e.same_host && server >= LARGE {
        Limiter::ServerCpu
    } else if generator >= ALONE {
        Limiter::Generator
    } else if server >= LARGE && generator >= LARGE {
        Limiter::CpuShared
    } else if server > generator {
        Limiter::ServerCpu
    } else {
        Limiter::Generator
    };
    Some((limiter, confidence, why))
}

fn generator_busy(e: &Evidence) -> RuleFinding {
    if e.generator_busiest < BUSY || e.host_busy.is_some_and(|b| b >= BUSY) {
        return None;
    }
    let mut why =
        vec![format!("the busiest agent used {} of one core", percent(e.generator_busiest))];
    if let Some(server) = e.server_cores {
        why.push(format!("the server used only {server:.2} of {:.0} cores", e.cores));
    }
    Some((Limiter::Generator, beyond(e.generator_busiest, BUSY, 1.0, 0.75), why))
}

fn network(e: &Evidence) -> RuleFinding {
    let mut why = Vec::new();
    let mut confidence: f64 = 0.0;
    if let Some((name, rate, Some(capacity))) = &e.link {
        let share = rate / capacity.max(1.0);
        if share >= LINK_FULL {
            why.push(format!("{name} was used to {} of its capacity", percent(share)));
            confidence = beyond(share, LINK_FULL, 1.0, 0.85);
        }
    }
    if let (Some(send), Some(read)) = (e.queued_to_send, e.queued_to_read) {
        let idle = e.host_busy.is_none_or(|b| b < QUEUE_TELLS) || cpu_is_not_it(e);
        // Data that waits to leave while the other side has nothing to read is in the network. What
        // is merely in flight is carried within the time that the path takes.
        let waits = |bytes: f64| {
            let lasts = bytes * e.connections / e.point.bytes_s.max(1.0);
            bytes >= QUEUED && (e.connections == 0.0 || lasts >= QUEUE_LASTS)
        };
        let from_server = waits(send.0) && read.1 < send.0 * LITTLE_TO_READ;
        let from_client = waits(send.1) && read.0 < send.1 * LITTLE_TO_READ;
        if idle && (from_server || from_client) {
            let (who, bytes, other) = if from_server {
                ("server", send.0, ("clients have", read.1))
            } else {
                ("client", send.1, ("server has", read.0))
            };
            let held = base::units::bytes(bytes);
            let there = format!("{held} per connection are queued for sending at the {who}");
            let lasts = bytes * e.connections / e.point.bytes_s.max(1.0) * 1e9;
            let lasts = match e.connections > 0.0 {
                true => format!(", {} of the throughput", base::units::time_ns(lasts)),
                false => String::new(),
            };
            let (other, read) = (other.0, base::units::bytes(other.1));
            why.push(format!("{there}{lasts}, while the {other} {read} to read"));
            confidence = confidence.max(if e.levelled { 0.85 } else { 0.75 });
        }
    }
    if why.is_empty() {
        return None;
    }
    if let Some((name, rate, None)) = &e.link {
        why.push(format!("the busiest link, {name}, transferred {}/s", base::units::bytes(*rate)));
    }
    if e.retransmitted > RETRANSMITTED {
        why.push(format!(
            "{:.2} % of the TCP segments were retransmitted",
            e.retransmitted * 100.0
        ));
    }
    Some((Limiter::Network, confidence, why))
}

fn disk(e: &Evidence) -> RuleFinding {
    let (name, busy, ms) = e.disk.as_ref()?;
    if *busy < DISK_BUSY {
        return None;
    }
    // Synchronous writes keep a disk busy with few of them in flight; that is its latency.
    let per_op_ms = e.point.latency_ns / 1e6;
    let read = e.device.as_ref().and_then(|device| device.read_latency_ns);
    let each = match (e.payload, read) {
        (Some(Direction::Read), Some(ns)) => {
            format!("a read took {:.2} ms there, an operation {per_op_ms:.2} ms", ns / 1e6)
        }
        (Some(Direction::Read), None) => format!("an operation took {per_op_ms:.2} ms"),
        _ => format!("a write or flush took {ms:.2} ms there, an operation {per_op_ms:.2} ms"),
    };
    let mut why = vec![format!("{name} was busy {} of the time", percent(*busy)), each];
    if let Some(cpu) = e.host_busy {
        why.push(format!("the CPU was {} busy", percent(cpu)));
    }
    Some((Limiter::Disk, beyond(*busy, DISK_BUSY, 1.0, 0.7), why))
}

fn hot_core(e: &Evidence) -> RuleFinding {
    let thread = e.server_hot_thread.as_ref().filter(|t| t.1 >= BUSY);
    let spread = e.host_busy.is_some_and(|b| b < IDLE);
    if let Some((name, share)) = thread {
        let why = vec![
            format!("the server's thread {name} used {} of a core", percent(*share)),
            format!("all cores together were {} busy", percent(e.host_busy.unwrap_or(0.0))),
        ];
        return spread.then(|| (Limiter::HotCore, beyond(*share, BUSY, 1.0, 0.75), why));
    }
    // On one machine another process may use the hot core.
    let theirs = e.same_host && cpu_is_not_it(e);
    let seen = spread && e.server_cores.is_some() && !theirs;
    let hottest = e.hottest_core.filter(|h| *h >= CORE_HOT && seen)?;
    // Without a thread to blame it may be interrupts; with the agents elsewhere it is the server's.
    let confidence = if e.same_host { 0.5 } else { 0.8 };
    let why = format!(
        "one core was {} busy while all together were {}",
        percent(hottest),
        percent(e.host_busy.unwrap_or(0.0))
    );
    (!e.same_host || e.generator_busiest < AGENT_HALF)
        .then(|| (Limiter::HotCore, confidence, vec![why]))
}

fn still_rising(e: &Evidence) -> RuleFinding {
    if e.levelled || constant_latency(e).is_some() {
        return None;
    }
    let gain = last_gain(e).filter(|gain| *gain > GAIN)?;
    let why = format!(
        "throughput was still rising at {:.0} operations in flight, the end of the schedule: the \
         last step gained {:.1} %",
        e.point.in_flight,
        gain * 100.0
    );
    Some((Limiter::NotReached, 0.8, vec![why]))
}

/// What the last step gained over the best before it. A schedule may be too short for the rule of
/// levelling and still end on the level.
fn last_gain(e: &Evidence) -> Option<f64> {
    let (last, before) = e.curve.split_last()?;
    let best = before.iter().map(|p| p.ops_s).reduce(f64::max)?;
    (best > 0.0).then(|| last.ops_s / best - 1.0)
}

fn generator_near_null(e: &Evidence) -> RuleFinding {
    let null = e.null_ops_s.filter(|n| *n > 0.0)?;
    let share = e.point.ops_s / null;
    let why = format!("{} of the load generator's own limit", percent(share));
    (share >= NEAR_NULL)
        .then(|| (Limiter::Generator, beyond(share, NEAR_NULL, 1.0, 0.6), vec![why]))
}

/// Latency stays the same while concurrency grows: operations do not queue, each is slow. Returns
/// the largest change, at all steps with twice as many in flight as the first or more. What is
/// behind the server may have become slower since: then the same holds from a later step on, up to
/// four times as many.
fn constant_latency(e: &Evidence) -> Option<f64> {
    let usable = |p: &&Point| p.in_flight > 0.0 && p.latency_ns > 0.0;
    let steps: Vec<&Point> = e.curve.iter().filter(usable).collect();
    let from = |(n, first): (usize, &&Point)| {
        let wide = if n == 0 { 2.0 } else { 4.0 };
        let later = steps.iter().skip(n + 1).copied().chain([&e.point]);
        let more = later.filter(|p| p.in_flight >= 2.0 * first.in_flight);
        let change = more.map(|p| (p.latency_ns / first.latency_ns - 1.0).abs());
        let change = change.reduce(f64::max)?;
        (e.point.in_flight >= wide * first.in_flight && change <= CONSTANT).then_some(change)
    };
    steps.iter().enumerate().find_map(from)
}

fn slow_behind(e: &Evidence) -> RuleFinding {
    // What was not seen may be saturated.
    let busy = e.host_busy?;
    let idle = (busy < IDLE || cpu_is_not_it(e)) && e.generator_busiest < IDLE;
    let constant = constant_latency(e);
    if !idle || e.server_cores.is_none() && e.server_latency_ns.is_none() && constant.is_none() {
        return None;
    }
    let mut why = Vec::new();
    let mut confidence: f64 = 0.6;
    if let Some((wanted, _)) = e.server_wanted.filter(|_| busy >= IDLE) {
        let cores =
            format!("nothing was saturated: of {:.0} cores the server needed {wanted:.2}", e.cores);
        why.push(format!("{cores}, including other load"));
    } else {
        why.push(format!("nothing was saturated: the CPU was {} busy", percent(busy)));
        // The emptier the machine, the surer.
        confidence += (IDLE - busy).max(0.0) * 0.2;
    }
    why.push(format!("the busiest agent used {} of a core", percent(e.generator_busiest)));
    let each = base::units::time_ns(e.point.latency_ns);
    if let Some(change) = constant {
        let change = percent(change);
        why.push(format!("an operation took {each} at any concurrency, ± {change}"));
        confidence += 0.15;
    } else {
        why.push(format!("an operation took {each} with {:.0} in flight", e.point.in_flight));
    }
    // It lasts until replies are handed to the network: while they wait for that, it is no proof
    // of a slow back end.
    let waits_to_send = e.queued_to_send.is_some_and(|(server, _)| server >= QUEUED);
    let server = e.server_latency_ns.filter(|_| !waits_to_send);
    if let Some(server) = server.filter(|s| *s >= WITHIN_SERVER * e.point.latency_ns) {
        let share = percent((server / e.point.latency_ns).min(1.0));
        why.push(format!("{share} of that was spent within the server"));
        confidence += 0.1;
    }
    if e.synchronous {
        why.push("every operation waits until its data is stable".to_owned());
    }
    Some((Limiter::Latency, confidence, why))
}

fn generator_loses_much(e: &Evidence) -> RuleFinding {
    (e.little_deviation >= LOST_MUCH).then(|| generator_loses_time(e)).flatten()
}

fn generator_loses_time(e: &Evidence) -> RuleFinding {
    let mut why = Vec::new();
    if e.little_deviation >= LOST {
        why.push(format!(
            "{} of the operations' time was lost in the generator (Little's law)",
            percent(e.little_deviation)
        ));
    }
    if e.generator_waiting >= WAITING {
        why.push(format!(
            "an agent was ready and waited for a core for {} of the time",
            percent(e.generator_waiting)
        ));
    }
    let lost = beyond(e.little_deviation, LOST, 0.5, 0.5);
    let waited = beyond(e.generator_waiting, WAITING, 1.0, 0.5);
    (!why.is_empty()).then(|| (Limiter::Generator, lost.max(waited).min(0.8), why))
}

fn unknown(e: &Evidence) -> (Limiter, f64, Vec<String>) {
    let why = if e.host_busy.is_none() {
        format!(
            "no data of the server's machine, and neither network nor load generator was \
             saturated: `{OBSERVE}` on that machine, and --observe HOST:2150 here, show it"
        )
    } else {
        "no measured resource was saturated".to_owned()
    };
    (Limiter::Unknown, 0.3, vec![why])
}

fn ruled_out(e: &Evidence, limiter: Limiter) -> Vec<String> {
    let mut out = Vec::new();
    let mut add = |which: Limiter, sentence: Option<String>| {
        if which != limiter {
            out.extend(sentence);
        }
    };
    let cpu = e.host_busy.filter(|b| *b < BUSY);
    add(Limiter::ServerCpu, cpu.map(|b| format!("server CPU: {} busy", percent(b))));
    let link = e.link.as_ref().filter(|l| l.2.is_some_and(|c| l.1 < LINK_FULL * c));
    add(
        Limiter::Network,
        link.map(|l| format!("network: {} transferred {}/s", l.0, base::units::bytes(l.1))),
    );
    let disk = e.disk.as_ref().filter(|d| d.1 < DISK_BUSY);
    add(Limiter::Disk, disk.map(|d| format!("disk: {} busy {}", d.0, percent(d.1))));
    let generator = e.generator_busiest < BUSY;
    let busiest =
        format!("generator: the busiest agent used {} of a core", percent(e.generator_busiest));
    add(Limiter::Generator, generator.then_some(busiest));
    out
}

#[cfg(test)]
mod tests;
