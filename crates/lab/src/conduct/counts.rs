//! What a Plimsoll server counted over a step, against what the clients counted: the same, less
//! what is in flight at its borders.

use crate::client::target::Counting;
use crate::record::observed::{Comparison, OperationCount, ServerCounts};
use crate::workload::Kind;
use base::limits::LAB_STREAM_BUFFER;
use serde::Deserialize;

/// An answer of the server's API (`/api/v1/analytics/counts`).
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct Counts {
    /// Whether the flight recorder still had all of it.
    pub complete: bool,
    /// By operation and client.
    pub rows: Vec<CountRow>,
}

/// A row of it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct CountRow {
    /// Operation.
    pub op: String,
    /// Address of the client.
    pub client: String,
    /// How often.
    pub count: u64,
    /// Bytes of file data.
    pub bytes: u64,
    /// Latencies added up, ns.
    pub latency_ns: u64,
}

/// What the clients counted over a whole step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientTotals {
    /// Operations without fault, COMMITs not.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
    /// Operations that can be in flight at once.
    pub slots: u64,
}

/// The rows of these clients, which all made calls; of all when the addresses of some are not
/// known, or when the server has no call from one: addresses may be translated on the way.
pub fn of_clients<'a>(counts: &'a Counts, clients: &[Option<String>]) -> Vec<&'a CountRow> {
    let known: Option<Vec<&str>> = clients.iter().map(Option::as_deref).collect();
    let Some(known) = known.filter(|all| all.iter().all(|address| has_calls(counts, address)))
    else {
        return counts.rows.iter().collect();
    };
    counts.rows.iter().filter(|row| known.contains(&&*row.client)).collect()
}

fn has_calls(counts: &Counts, address: &str) -> bool {
    counts.rows.iter().any(|row| row.client == address)
}

/// Clients that made calls and that the server has none from, while it has calls from
/// other addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    /// These clients' own addresses.
    pub own: Vec<String>,
    /// The other addresses.
    pub at_server: Vec<String>,
}

impl Translated {
    /// Among the clients that made calls, with their own addresses as far as they are known.
    pub fn of(counts: &Counts, clients: &[Option<String>]) -> Option<Self> {
        if !counts.complete {
            return None;
        }
        let mut own: Vec<String> = clients.iter().flatten().cloned().collect();
        let mut at_server: Vec<String> = counts.rows.iter().map(|r| r.client.clone()).collect();
        at_server.retain(|address| !own.contains(address));
        own.retain(|address| !has_calls(counts, address));
        own.sort();
        own.dedup();
        at_server.sort();
        at_server.dedup();
        (!own.is_empty() && !at_server.is_empty()).then_some(Self { own, at_server })
    }

    /// The address that a client with this one has at the server, if it can be only one.
    pub fn seen_as(&self, own: &str) -> Option<&str> {
        let is_one = self.own.iter().any(|address| address == own);
        self.at_server.first().filter(|_| is_one && self.at_server.len() == 1).map(String::as_str)
    }

    /// In a sentence.
    pub fn sentence(&self) -> String {
        format!(
            "addresses are translated on the way: clients leave from {}, the server sees {}",
            self.own.join(", "),
            self.at_server.join(", ")
        )
    }
}

/// The record of a step.
pub fn record(
    (from, to): (f64, f64),
    complete: bool,
    rows: &[&CountRow],
    asked: (Counting, Kind),
    clients: ClientTotals,
) -> ServerCounts {
    let mut operations: Vec<OperationCount> = Vec::new();
    for row in rows {
        let at = operations.iter().position(|o| o.op == row.op).unwrap_or_else(|| {
            operations.push(OperationCount { op: row.op.clone(), ..Default::default() });
            operations.len() - 1
        });
        let o = &mut operations[at];
        (o.count, o.bytes) = (o.count + row.count, o.bytes + row.bytes);
        // The sum for now.
        o.latency_ns += row.latency_ns as f64;
    }
    operations.iter_mut().for_each(|o| o.latency_ns /= o.count.max(1) as f64);
    operations.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.op.cmp(&b.op)));
    let compared = complete.then(|| compare(&operations, asked, clients)).flatten();
    ServerCounts { from, to, complete, operations, compared, translated: None }
}

/// Whether each operation of a workload makes exactly one of this name.
fn is_counted(op: &str, counting: Counting, kind: Kind) -> bool {
    // Commands of SCSI have the length of their block in the name.
    let is = |name: &str| op == name || op.strip_prefix(name).is_some_and(|o| o.starts_with('('));
    match (counting, kind) {
        (Counting::Bytes, _) => false,
        (_, Kind::SeqRead | Kind::RandRead) => is("read"),
        (_, Kind::SeqWrite | Kind::SyncWrite) => is("write"),
        (Counting::Transfers, _) => false,
        (Counting::Calls, Kind::Create) => is("create") || is("remove"),
        (Counting::Calls, kind) => is(kind.name()),
    }
}

/// Operations; of protocols that stream files, with one operation for a file, bytes.
fn compare(
    operations: &[OperationCount],
    (counting, kind): (Counting, Kind),
    clients: ClientTotals,
) -> Option<Comparison> {
    let moves = !matches!(kind, Kind::Create | Kind::Getattr | Kind::Lookup | Kind::Null);
    match counting {
        Counting::Bytes if moves => {
            let server = operations.iter().map(|o| o.bytes).sum();
            // What a server has handed over is in the buffers of both ends and of the client.
            let in_flight = clients.slots * (STREAM_BUFFERS + LAB_STREAM_BUFFER as u64);
            Some(Comparison::new("bytes", server, clients.bytes, in_flight))
        }
        Counting::Calls | Counting::Transfers if moves || counting == Counting::Calls => {
            let counted = operations.iter().filter(|o| is_counted(&o.op, counting, kind));
            // An operation of each slot may have its reply at the client and no acknowledgement of
            // it yet at the server; each slot also removes the last file that it has created.
            let after = clients.slots;
            let server = counted.map(|o| o.count).sum();
            Some(Comparison::new("operations", server, clients.ops, after))
        }
        _ => None,
    }
}

/// Bytes that the buffers of both ends of a TCP connection hold at most (`tcp_wmem`, `tcp_rmem`).
const STREAM_BUFFERS: u64 = (4 << 20) + (6 << 20);

/// Mean latency of the operations that were counted, ns.
pub fn mean_latency(counts: &ServerCounts, counting: Counting, kind: Kind) -> Option<f64> {
    let counted = counts.operations.iter().filter(|o| is_counted(&o.op, counting, kind));
    let add = |(sum, n): (f64, u64), o: &OperationCount| {
        (sum + o.latency_ns * o.count as f64, n + o.count)
    };
    let (sum, n) = counted.fold((0.0, 0), add);
    (n > 0).then(|| sum / n as f64)
}

#[cfg(test)]
mod tests;
