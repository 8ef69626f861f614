//! Both ends of a profile through all transactions: prepared, introduced to each other, started at
//! the same moment, drained, compared.

mod ends;

use super::record::{
    ConnectionRecord, EndRecord, FlowopRecord, HostRecord, KIND, NetResult, TransactionRecord,
    VERSION,
};
use super::{built_in, judge};
use crate::agent::clock;
use crate::agent::net::{FromNet, NetEnded, NetFlowop, ToNet};
use crate::conduct::agents::Source;
use crate::hist;
use crate::record::provenance::{Provenance, now};
use crate::record::{Latency, SteadyVerdict};
use crate::verdict::evenness::{self, ClientShare};
use base::limits::LAB_SILENCE_MAX;
use base::random::{Random, SystemRandom};
pub use ends::NetError;
use ends::{Drained, Ends};
use lab_net::count::{ConnCount, Faults, Sums};
use lab_net::engine::{Peer, Setup};
use lab_net::profile::{Flowop, Profile, Protocol};
use lab_net::script::{End, Script, scripts};
use std::time::Duration;

/// Length of a window.
const WINDOW: Duration = Duration::from_millis(250);
/// From the command to the begin of a transaction, at least: all agents have it by then.
const LEAD: Duration = Duration::from_millis(100);

/// How a profile is run.
pub struct NetOptions {
    /// The profile.
    pub profile: Profile,
    /// Where the far ends run: started here, or agents on other machines in the order of the hosts.
    pub far: Source,
    /// The command that starts the near end.
    pub agent: Vec<String>,
    /// The command that repeats the run, for the record.
    pub command: Vec<String>,
}

/// Runs a profile.
///
/// # Errors
/// When there are no agents. Whatever goes wrong later is in the result: `failed`, `degraded`.
pub fn run(options: &NetOptions, progress: &mut dyn FnMut(&str)) -> Result<NetResult, NetError> {
    let started = now();
    let profile = &options.profile;
    let mut ends = Ends::gather(options)?;
    let mut result = NetResult {
        provenance: Provenance::new(KIND, VERSION, started, options.command.clone()),
        profile: profile.name.clone(),
        hosts: profile.hosts(),
        groups: profile.groups.iter().map(|group| group.name.clone()).collect(),
        threads: profile.threads(),
        published: built_in::published(&profile.name),
        notes: profile.notes.clone(),
        ends: ends.records(),
        transactions: Vec::new(),
        connections: Vec::new(),
        degraded: Vec::new(),
        failed: None,
    };
    if let Err(error) = conduct(options, &mut ends, &mut result, progress) {
        result.failed = Some(crate::agent::with_sources(&error));
    }
    let mut endpoints = profile.flowops().filter_map(Flowop::endpoint);
    let datagrams = endpoints.any(|endpoint| endpoint.protocol == Protocol::Udp);
    conclude(&mut ends, datagrams, &mut result);
    result.provenance.ended = now();
    Ok(result)
}

fn conduct(
    options: &NetOptions,
    ends: &mut Ends,
    result: &mut NetResult,
    progress: &mut dyn FnMut(&str),
) -> Result<(), NetError> {
    introduce(options, ends)?;
    let profile = &options.profile;
    let all: Vec<Vec<Script>> = std::iter::once(End::Near)
        .chain((0..result.hosts.len() as u32).map(End::Far))
        .map(|end| scripts(profile, end))
        .collect();
    for number in 0..profile.transactions() as u32 {
        let record = transaction(number, ends, (result, &all))?;
        progress(&sentence(&record));
        let over = record.faults.iter().any(|faults| faults.count > 0) || ends.lost();
        result.transactions.push(record);
        if over {
            break;
        }
    }
    close(ends, result)
}

/// Prepares all ends, and passes to each where the others listen.
fn introduce(options: &NetOptions, ends: &mut Ends) -> Result<(), NetError> {
    let mut secret = [0; lab_net::engine::SECRET];
    SystemRandom.fill(&mut secret);
    let seed = SystemRandom.next_u64();
    for number in 0..ends.len() {
        let end = if number == 0 { End::Near } else { End::Far(number as u32 - 1) };
        let bind = ends.bind(number);
        let setup = Setup { profile: options.profile.clone(), end, secret, seed, bind };
        ends.send(number, ToNet::Prepare(Box::new(setup)))?;
    }
    let ports = ends.answers(LAB_SILENCE_MAX, |message| match message {
        FromNet::Prepared { ports } => Some(ports),
        _ => None,
    })?;
    let near = ports.first().copied().flatten().ok_or(NetError::Order)?;
    let mut far = Vec::new();
    for (number, ports) in ports.iter().enumerate().skip(1) {
        let (host, ports) = (number as u32 - 1, ports.ok_or(NetError::Order)?);
        let address = ends.address(number)?;
        let peer = Peer { host, address: ends.near_address(address), ports: near };
        ends.send(number, ToNet::Meet { peers: vec![peer] })?;
        far.push(Peer { host, address, ports });
    }
    ends.send(0, ToNet::Meet { peers: far })?;
    ends.answers(LAB_SILENCE_MAX, |message| matches!(message, FromNet::Met).then_some(()))?;
    Ok(())
}

/// Runs one transaction at all ends.
fn transaction(
    number: u32,
    ends: &mut Ends,
    (result, scripts): (&NetResult, &[Vec<Script>]),
) -> Result<TransactionRecord, NetError> {
    let begin_ns = clock::mono_ns() + LEAD.as_nanos() as u64 + 2 * ends.round_trip_ns();
    let window_ns = WINDOW.as_nanos() as u64;
    for end in 0..ends.len() {
        let begin_ns = ends.to_theirs(end, begin_ns);
        ends.send_if_there(end, ToNet::Start { transaction: number, begin_ns, window_ns });
    }
    let mut windows: Vec<Sums> = Vec::new();
    let ended = ends.ended(&mut |index, sums: Sums| {
        if index as usize == windows.len() && windows.len() < base::limits::LAB_WINDOWS_MAX {
            windows.push(sums);
        }
    });
    let far_counts: Vec<ConnCount> =
        ended.iter().skip(1).flatten().flat_map(|end| end.counts.iter().copied()).collect();
    let near_counts = ended.first().cloned().flatten().map(|end| end.counts).unwrap_or_default();
    for end in 0..ends.len() {
        let host = end.wrapping_sub(1) as u32;
        let of_host = |count: &&ConnCount| count.key.host == host;
        let sent = match end {
            0 => far_counts.clone(),
            _ => near_counts.iter().filter(of_host).copied().collect(),
        };
        ends.send_if_there(end, ToNet::Drain { sent });
    }
    let drained = ends.drained();
    let mut record = TransactionRecord {
        number,
        window_s: WINDOW.as_secs_f64(),
        windows,
        ..TransactionRecord::default()
    };
    times(&mut record, ends, &ended);
    compare(&mut record, result, ended.len(), &ended, &drained);
    if !judge::alike(scripts.get(1..).unwrap_or_default(), number as usize) {
        record.evenness = None;
    }
    for (end, ended) in ended.iter().enumerate() {
        let name = name_of(result, end);
        let ended = ended.as_ref();
        let flowops = ended.iter().flat_map(|ended| &ended.flowops);
        let scripts = scripts.get(end).map_or(&[][..], Vec::as_slice);
        record.flowops.extend(flowops.map(|f| flowop(name, f, number, result, scripts)));
        record.cpu_s.push(ended.map_or(0.0, |ended| ended.cpu_ns as f64 / 1e9));
        record.faults.push(ended.map(|ended| ended.faults.clone()).unwrap_or_default());
    }
    Ok(record)
}

fn name_of(result: &NetResult, end: usize) -> &str {
    result.ends.get(end).map_or("", |end| end.name.as_str())
}

/// When it began and ended, and what counts.
fn times(record: &mut TransactionRecord, ends: &Ends, ended: &[Option<NetEnded>]) {
    let begun: Vec<u64> = ended
        .iter()
        .enumerate()
        .filter_map(|(end, ended)| Some(ends.to_ours(end, ended.as_ref()?.begun_ns)))
        .collect();
    let skew = begun.iter().max().zip(begun.iter().min()).map_or(0, |(last, first)| last - first);
    record.start_skew_s = skew as f64 / 1e9;
    let near = ended.first().cloned().flatten();
    let ns = near.map_or(0, |near| near.ended_ns.saturating_sub(near.begun_ns));
    record.seconds = ns as f64 / 1e9;
    let (used, steady) = judge::windows(&record.windows, record.window_s);
    (record.used, record.steady) = (used, steady);
    let counted = &record.windows[used.0..used.1];
    let seconds = counted.len() as f64 * record.window_s;
    if seconds > 0.0 {
        let bytes: u64 = counted.iter().map(|sums| sums.sent + sums.received).sum();
        record.bytes_s = bytes as f64 / seconds;
        record.calls_s = counted.iter().map(|sums| sums.calls).sum::<u64>() as f64 / seconds;
    }
}

/// Both ends' bytes, by connection and host, next to what interfaces have counted.
fn compare(
    record: &mut TransactionRecord,
    result: &NetResult,
    ends: usize,
    ended: &[Option<NetEnded>],
    drained: &[Option<Drained>],
) {
    let counts = |end: usize| match (drained.get(end), ended.get(end)) {
        (Some(Some(drained)), _) => drained.counts.clone(),
        (_, Some(Some(ended))) => ended.counts.clone(),
        _ => Vec::new(),
    };
    let near = counts(0);
    let far: Vec<ConnCount> = (1..ends).flat_map(counts).collect();
    record.bytes = judge::both_ends(&near, &far);
    record.connections = judge::evenness(&near);
    let received = |host: usize| -> u64 {
        let of = |count: &&ConnCount| count.key.host as usize == host;
        let both = near.iter().chain(&far).filter(of);
        both.map(|count| count.received).sum()
    };
    for (host, name) in result.hosts.iter().enumerate() {
        record.by_host.push(HostRecord { host: name.clone(), bytes: received(host) });
    }
    let shares = record.by_host.iter().enumerate().map(|(number, host)| ClientShare {
        number: number as u32,
        done: host.bytes as f64,
        source: Some(host.host.clone()),
        interface: None,
    });
    record.evenness = evenness::judge(&shares.collect::<Vec<_>>());
    for (end, drained) in drained.iter().enumerate() {
        let Some(Drained { counts, interfaces, segments }) = drained else { continue };
        record.segments = record.segments.take().or_else(|| segments.clone());
        let sum = |of: fn(&ConnCount) -> u64| counts.iter().map(of).sum::<u64>();
        let payload = (sum(|count| count.sent), sum(|count| count.received));
        let each = interfaces.iter().cloned();
        let name = name_of(result, end);
        record.interfaces.extend(each.map(|i| judge::interface(name, i, payload)));
    }
    if record.bytes_s == 0.0 && record.seconds > 0.0 {
        let bytes = record.bytes.far_received + record.bytes.near_received;
        record.bytes_s = bytes as f64 / record.seconds;
        let calls = ended
            .first()
            .cloned()
            .flatten()
            .map_or(0, |near| near.flowops.iter().map(|flowop| flowop.calls).sum::<u64>());
        record.calls_s = calls as f64 / record.seconds;
    }
}

fn flowop(
    end: &str,
    count: &NetFlowop,
    number: u32,
    result: &NetResult,
    scripts: &[Script],
) -> FlowopRecord {
    let script = scripts.iter().find(|script| script.group == count.group);
    let acts = script.and_then(|script| script.transactions.get(number as usize));
    let act = acts.and_then(|t| t.acts.iter().find(|act| act.flowop == count.flowop));
    // A histogram of our own agents that cannot be read would be an internal fault.
    let latency = hist::from_text(&count.latency).unwrap_or_else(|_| hist::new());
    FlowopRecord {
        end: end.to_owned(),
        group: result.groups.get(count.group as usize).cloned().unwrap_or_default(),
        name: act.map_or("", |act| act.name).to_owned(),
        line: act.map_or(0, |act| act.line),
        calls: count.calls,
        failed: count.failed,
        bytes: count.bytes,
        latency: Latency::of(&latency),
    }
}

/// Closes all connections, and records their TCP statistics.
fn close(ends: &mut Ends, result: &mut NetResult) -> Result<(), NetError> {
    for end in 0..ends.len() {
        ends.send_if_there(end, ToNet::Close);
    }
    let closed = ends.answers(LAB_SILENCE_MAX, |message| match message {
        FromNet::Closed { accounts } => Some(accounts),
        _ => None,
    })?;
    for (end, accounts) in closed.into_iter().enumerate() {
        let name = name_of(result, end).to_owned();
        for (key, tcp) in accounts.into_iter().flatten() {
            result.connections.push(ConnectionRecord { end: name.clone(), key, tcp });
        }
    }
    Ok(())
}

/// A line for people.
fn sentence(record: &TransactionRecord) -> String {
    use base::units::{bytes, count};
    format!(
        "transaction {}: {:.1} s, {}/s, {} calls/s, ends differ by {:.3} %",
        record.number + 1,
        record.seconds,
        bytes(record.bytes_s),
        count(record.calls_s),
        record.bytes.difference_percent
    )
}

/// What fails the run, and what limits its value. Of profiles with datagrams, of which some may be
/// lost, a difference between the ends fails nothing.
fn conclude(ends: &mut Ends, datagrams: bool, result: &mut NetResult) {
    result.ends = ends.records();
    let mut failed: Vec<String> =
        result.transactions.iter().flat_map(|t| faults(t, result)).collect();
    let differ =
        result.transactions.iter().filter_map(|t| difference(t, result)).collect::<Vec<_>>();
    match datagrams {
        true => result.degraded.extend(differ),
        false => failed.extend(differ),
    }
    let mut degraded = Vec::new();
    for record in &result.transactions {
        let number = record.number + 1;
        degraded.extend(unsteady(record).map(|why| format!("transaction {number}: {why}")));
        let uneven = record.evenness.iter().flat_map(|even| &even.uneven);
        degraded.extend(uneven.map(|u| format!("transaction {number}: {}", u.sentence)));
    }
    let lost = |end: &EndRecord| Some(format!("lost {} end: {}", end.name, end.lost.as_ref()?));
    degraded.extend(result.ends.iter().filter_map(lost));
    degraded.extend(ends.paused());
    result.degraded.extend(degraded);
    settle(failed, result);
}

/// Whether what failed fails the run: an agent that is lost explains all of it.
fn settle(mut failed: Vec<String>, result: &mut NetResult) {
    failed.extend(result.failed.take());
    if result.ends.iter().any(|end| end.lost.is_some()) {
        result.degraded.extend(failed);
    } else if !failed.is_empty() {
        result.failed = Some(failed.join("; "));
    }
}

/// Threads that ended early, a sentence for each end.
fn faults(record: &TransactionRecord, result: &NetResult) -> Vec<String> {
    let sentence = |(end, faults): (usize, &Faults)| {
        let fault = faults.first.first()?;
        let more = match faults.count {
            1 => String::new(),
            count => format!(", and {} more threads", count - 1),
        };
        Some(format!(
            "transaction {}: {} end: thread {}, connection {}: line {}: flowop {}: {}{more}",
            record.number + 1,
            name_of(result, end),
            fault.key.thread,
            fault.key.conn,
            fault.line,
            fault.flowop,
            fault.what
        ))
    };
    record.faults.iter().enumerate().filter_map(sentence).collect()
}

/// Why the counts of both ends differ by too much, with the worst connection.
fn difference(record: &TransactionRecord, result: &NetResult) -> Option<String> {
    let both = &record.bytes;
    if both.difference_percent <= judge::DIFFERENCE_MAX {
        return None;
    }
    let worst = both.missing.first().map(|missing| {
        let host = result.hosts.get(missing.key.host as usize);
        format!(
            ": thread {}, connection {} with {}: {} bytes sent by the {} end, {} received",
            missing.key.thread,
            missing.key.conn,
            host.map_or("", String::as_str),
            missing.sent,
            if missing.from_far { "far" } else { "near" },
            missing.received
        )
    });
    let (number, percent) = (record.number + 1, both.difference_percent);
    let worst = worst.unwrap_or_default();
    Some(format!("transaction {number}: both ends differ by {percent:.3} % of the bytes{worst}"))
}

/// Why a transaction by duration is not steady.
fn unsteady(record: &TransactionRecord) -> Option<String> {
    let counted = record.used.1 - record.used.0;
    let why = match record.steady.verdict {
        SteadyVerdict::Drifting => "drifts",
        SteadyVerdict::Oscillating => "varies",
        _ => return None,
    };
    // Fewer windows say nothing about that.
    (counted >= 8).then(|| {
        format!(
            "throughput {why}: {:.0} % between the windows, {:+.0} % from first to last",
            record.steady.range_percent, record.steady.slope_percent
        )
    })
}

#[cfg(test)]
mod tests;
