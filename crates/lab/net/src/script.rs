//! What the threads of one end do: the near end what the profile states, the far ends its mirror: a
//! write of one is a read of the other, and each far end has the connections of its host alone.

use crate::profile::{Endpoint, Flowop, Group, Op, Profile, Size, Transaction};
use base::random::{Random, SeededRandom};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Which end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The one that the profile describes.
    Near,
    /// That of this host.
    Far(u32),
}

/// The threads of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Index of the group.
    pub group: u32,
    /// Their numbers.
    pub threads: Range<u32>,
    /// What they do.
    pub transactions: Vec<TransactionScript>,
}

/// One transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionScript {
    /// How often, unless there is a duration.
    pub iterations: u64,
    /// For how long, ns.
    pub duration_ns: Option<u64>,
    /// How many begin in a second.
    pub rate: Option<u32>,
    /// In their order.
    pub acts: Vec<Act>,
    /// How long a thread may be without progress because of the profile itself, ns.
    pub pause_ns: u64,
}

/// One flowop as this end performs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// Index of the flowop in its transaction.
    pub flowop: u32,
    /// Its line.
    pub line: u32,
    /// Its name at this end.
    pub name: &'static str,
    /// Which connection.
    pub conn: u32,
    /// How often.
    pub count: u64,
    /// A failure ends nothing.
    pub canfail: bool,
    /// How long it may wait, ns.
    pub timeout_ns: Option<u64>,
    /// What it does.
    pub kind: Kind,
}

/// What an act does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Opens a connection to this host.
    Open(u32, Endpoint),
    /// Takes one from this host.
    Accept(u32, Endpoint),
    /// Closes it.
    Close,
    /// Sends.
    Send(Size),
    /// Sends a file.
    SendFile(u32),
    /// Receives.
    Receive(Size),
    /// Waits.
    Think {
        /// How long, ns.
        ns: u64,
        /// With a busy processor.
        busy: bool,
    },
    /// Nothing.
    Nop,
}

/// What each group of threads of an end does; groups that do nothing are left out.
pub fn scripts(profile: &Profile, end: End) -> Vec<Script> {
    let hosts = profile.hosts();
    let mut first = 0;
    let mut out = Vec::new();
    for (number, group) in profile.groups.iter().enumerate() {
        let threads = first..first + group.threads;
        first = threads.end;
        let transactions = transactions(group, &hosts, end);
        let touches = |act: &Act| !matches!(act.kind, Kind::Think { .. } | Kind::Nop);
        let used = transactions.iter().flat_map(|t| &t.acts).any(touches);
        if used || end == End::Near {
            out.push(Script { group: number as u32, threads, transactions });
        }
    }
    out
}

fn transactions(group: &Group, hosts: &[String], end: End) -> Vec<TransactionScript> {
    let index = |host: &String| hosts.iter().position(|h| h == host).unwrap_or(0) as u32;
    // The host of each connection, as flowops before have opened it.
    let mut open: BTreeMap<u32, u32> = BTreeMap::new();
    let mut out = Vec::new();
    for transaction in &group.transactions {
        let mut script = TransactionScript {
            iterations: transaction.iterations,
            duration_ns: transaction.duration_ns,
            rate: transaction.rate,
            acts: Vec::new(),
            pause_ns: pause(transaction),
        };
        for (number, flowop) in transaction.flowops.iter().enumerate() {
            if let Some(endpoint) = flowop.endpoint() {
                open.insert(flowop.conn, index(&endpoint.host));
            }
            let host = open.get(&flowop.conn).copied().unwrap_or(0);
            let both = matches!(flowop.op, Op::Think { .. } | Op::Nop);
            match end {
                End::Near => script.acts.push(act(number, flowop, host, flowop.op.name())),
                End::Far(far) if far == host || both => {
                    let mirrored = mirrored(flowop);
                    let mut act = act(number, &mirrored, host, mirrored.op.name());
                    in_calls_of_rsize(&mut act, flowop, transaction, &mut script.iterations);
                    script.acts.push(act);
                }
                End::Far(_) => {}
            }
        }
        out.push(script);
    }
    out
}

fn pause(transaction: &Transaction) -> u64 {
    let each = transaction.flowops.iter().map(|flowop| match flowop.op {
        Op::Think { ns, .. } => ns.saturating_mul(flowop.count),
        _ => 0,
    });
    let between = transaction.rate.map_or(0, |rate| 1_000_000_000 / u64::from(rate));
    each.fold(between, u64::saturating_add)
}

fn act(number: usize, flowop: &Flowop, host: u32, name: &'static str) -> Act {
    let kind = match &flowop.op {
        Op::Connect(endpoint) => Kind::Open(host, endpoint.clone()),
        Op::Accept(endpoint) => Kind::Accept(host, endpoint.clone()),
        Op::Disconnect => Kind::Close,
        Op::Write(transfer) => Kind::Send(transfer.size),
        Op::Sendfile(transfer) => Kind::SendFile(transfer.size.max),
        Op::Read(transfer) => Kind::Receive(transfer.size),
        Op::Think { ns, busy } => Kind::Think { ns: *ns, busy: *busy },
        Op::Nop => Kind::Nop,
    };
    let Flowop { line, conn, count, canfail, timeout_ns, .. } = *flowop;
    Act { flowop: number as u32, line, name, conn, count, canfail, timeout_ns, kind }
}

fn mirrored(flowop: &Flowop) -> Flowop {
    use crate::profile::Verb;
    let op = match flowop.op.clone() {
        Op::Connect(endpoint) => Op::Accept(endpoint),
        Op::Accept(endpoint) => Op::Connect(endpoint),
        Op::Write(mut transfer) | Op::Sendfile(mut transfer) => {
            transfer.verb = if transfer.verb == Verb::Send { Verb::Recv } else { Verb::Read };
            Op::Read(transfer)
        }
        Op::Read(mut transfer) => {
            transfer.verb = if transfer.verb == Verb::Recv { Verb::Send } else { Verb::Write };
            Op::Write(transfer)
        }
        other => other,
    };
    Flowop { op, ..flowop.clone() }
}

/// The far end transfers `rsize` bytes a call, and as many in all.
fn in_calls_of_rsize(
    act: &mut Act,
    flowop: &Flowop,
    transaction: &Transaction,
    iterations: &mut u64,
) {
    let (Op::Write(transfer) | Op::Read(transfer)) = &flowop.op else { return };
    let (Some(rsize), Some(size)) = (transfer.rsize, transfer.size.as_fixed()) else { return };
    let (calls, bytes) = (u64::from(rsize), u64::from(size).saturating_mul(flowop.count));
    if bytes.is_multiple_of(calls) {
        act.count = bytes / calls;
    } else if transaction.flowops.len() == 1 {
        *iterations = u64::from(size).saturating_mul(transaction.iterations) / calls;
    }
    act.kind = match act.kind {
        Kind::Send(_) => Kind::Send(Size::fixed(rsize)),
        _ => Kind::Receive(Size::fixed(rsize)),
    };
}

/// Bytes of the `n`-th transfer of a flowop: a random size is the same at both ends.
pub fn bytes_of(
    size: Size,
    seed: u64,
    thread: u32,
    (transaction, flowop): (u32, u32),
    n: u64,
) -> u32 {
    let Size { min, max } = size;
    if min == max {
        return max;
    }
    let at = u64::from(thread) << 32 | u64::from(transaction) << 16 | u64::from(flowop);
    let mut first = SeededRandom::new(seed ^ at.wrapping_mul(0xd6e8_feb8_6659_fd93));
    let mut random = SeededRandom::new(first.next_u64() ^ n);
    min + random.below(u64::from(max - min) + 1) as u32
}

#[cfg(test)]
mod tests;
