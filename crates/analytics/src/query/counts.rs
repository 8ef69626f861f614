//! What was counted between two moments, to the nanosecond: operations by client from the flight
//! recorder, to be compared with the counts of clients.

use std::collections::HashMap;

use base::limits::COMBINATIONS_MAX;
use probe::cell::Cell;
use probe::op::{Protocol, flag};
use probe::schema::schema;
use serde::Serialize;

use super::Engine;
use crate::names::Dimension;

/// Operations of one kind by one client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The operation.
    pub op: String,
    /// The client's address.
    pub client: String,
    /// How many ended.
    pub count: u64,
    /// Bytes of file data that they moved.
    pub bytes: u64,
    /// Their latencies added up, in ns.
    pub latency_ns: u64,
}

/// What a protocol did in an interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Whether the recorder still held all of it.
    pub complete: bool,
    /// By operation and client.
    pub rows: Vec<Count>,
}

impl Engine {
    /// The operations of a group of statistics that ended in `from_ns..to_ns` of the wall clock;
    /// `None` when it has no operations.
    pub fn counts(&self, group: &str, from_ns: u64, to_ns: u64) -> Option<Counts> {
        let protocols: Vec<Protocol> = schema().protocols(group).collect();
        if protocols.is_empty() {
            return None;
        }
        let hub = self.hub();
        let mut cells: HashMap<(u8, u8, u32), (Cell, u64)> = HashMap::new();
        let mut complete = !hub.paused_within(from_ns, to_ns);
        let recorded = hub.scan(from_ns, to_ns, |record| {
            let wanted = protocols.iter().any(|p| record.protocol == *p as u8);
            if !wanted || record.flags & flag::REPLAY != 0 {
                return;
            }
            let key = (record.protocol, record.op, record.client);
            if cells.len() >= COMBINATIONS_MAX && !cells.contains_key(&key) {
                complete = false;
                return;
            }
            let cell = Cell::of(record);
            let (sum, latency_ns) = cells.entry(key).or_default();
            sum.merge(cell);
            *latency_ns += record.latency_ns * cell.count;
        });
        complete &= recorded.since_ns <= from_ns;
        let row = |((protocol, op, client), (cell, latency_ns)): ((u8, u8, u32), (Cell, u64))| {
            let protocol = Protocol::from_u8(protocol)?;
            let name = |dimension, n| self.names().name(protocol, dimension, n).key.clone();
            Some(Count {
                op: name(Dimension::Op, u64::from(op)),
                client: name(Dimension::Client, u64::from(client)),
                count: cell.count,
                bytes: cell.bytes,
                latency_ns,
            })
        };
        let mut rows: Vec<Count> = cells.into_iter().filter_map(row).collect();
        rows.sort_by(|a, b| (&a.op, &a.client).cmp(&(&b.op, &b.client)));
        Some(Counts { complete, rows })
    }
}

#[cfg(test)]
mod tests;
