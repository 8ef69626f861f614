//! The cores' counts of a second as tables: each with the same total.

use std::collections::HashMap;
use std::sync::Arc;

use probe::op::Protocol;
use probe::second::{Cell, CoreSecond};

use crate::model::{Figures, Key, Rows, Table};
use crate::names::{Dimension, Names};

/// The pairs of dimensions that the store keeps of operations; any other chain is answered from the
/// flight recorder. In this order, so that the first that fits a question is the exact one.
pub const PAIRS: [[&str; 2]; 10] = [
    ["share", "op"],
    ["status", "op"],
    ["client", "op"],
    ["user", "op"],
    ["op", "latency"],
    ["client", "latency"],
    ["share", "latency"],
    ["op", "size"],
    ["op", "offset"],
    ["file", "op"],
];

/// All tables of all protocols that had an operation.
pub(super) fn tables(cores: &[&CoreSecond], names: &Names) -> Vec<Table> {
    let mut tables = Vec::new();
    for protocol in [Protocol::Nfs3, Protocol::Mount3] {
        let counts = Counts::of(cores, protocol, names);
        if !counts.ops.is_empty() {
            tables.extend(counts.tables(cores, protocol));
        }
        if counts.replays.sum() != [0, 0] {
            let stat = format!("{}.replays", protocol.group()).into();
            tables.push(Table::from_rows(stat, dimensions("client", "op"), counts.replays, 0));
        }
    }
    tables
}

fn dimensions(a: &str, b: &str) -> [Arc<str>; 2] {
    [a.into(), b.into()]
}

fn figures(cell: Cell) -> Figures {
    [cell.count, cell.bytes]
}

fn minus(a: Figures, b: Figures) -> Figures {
    [a[0].saturating_sub(b[0]), a[1].saturating_sub(b[1])]
}

/// Rows by dimensions, while they are added up.
struct Counts<'a> {
    names: &'a Names,
    /// Totals by operation; `Other` is what came while collection was off.
    ops: HashMap<Key, Figures>,
    client: Rows,
    user: Rows,
    share: Rows,
    status: Rows,
    replays: Rows,
}

impl<'a> Counts<'a> {
    fn of(cores: &[&CoreSecond], protocol: Protocol, names: &'a Names) -> Self {
        let mut counts = Self {
            names,
            ops: HashMap::new(),
            client: Rows::default(),
            user: Rows::default(),
            share: Rows::default(),
            status: Rows::default(),
            replays: Rows::default(),
        };
        let all = cores.iter().flat_map(|c| &c.combinations);
        for (who, cell) in all.filter(|(who, _)| who.protocol == protocol as u8) {
            let key = |dimension, number: Option<u64>| names.key(protocol, dimension, number);
            let op = key(Dimension::Op, who.op.map(u64::from));
            let client = key(Dimension::Client, who.client.map(u64::from));
            let cell = figures(*cell);
            if who.replay {
                counts.replays.add(client, op, cell);
                continue;
            }
            let user = key(Dimension::User, who.user.map(u64::from));
            let share = key(Dimension::Share, who.share.map(u64::from));
            let status = key(Dimension::Status, who.status.map(u64::from));
            let sum = counts.ops.entry(op.clone()).or_default();
            *sum = [sum[0] + cell[0], sum[1] + cell[1]];
            counts.client.add(client, op.clone(), cell);
            counts.user.add(user, op.clone(), cell);
            counts.share.add(share, op.clone(), cell);
            counts.status.add(status, op, cell);
        }
        counts
    }

    fn tables(&self, cores: &[&CoreSecond], protocol: Protocol) -> Vec<Table> {
        let stat: Arc<str> = format!("{}.ops", protocol.group()).into();
        let folded: u64 = cores.iter().map(|c| c.folded).sum();
        let copy = |rows: &Rows| rows.clone();
        let table = |a: &str, b: &str, rows, error| {
            Table::from_rows(stat.clone(), dimensions(a, b), rows, error)
        };
        let mut tables = vec![
            table("share", "op", copy(&self.share), 0),
            table("status", "op", copy(&self.status), 0),
            table("client", "op", copy(&self.client), folded),
            table("user", "op", copy(&self.user), folded),
        ];
        let [op, client, share] = self.latencies(cores, protocol);
        tables.push(table("op", "latency", op, 0));
        tables.push(table("client", "latency", client, folded));
        tables.push(table("share", "latency", share, 0));
        if protocol == Protocol::Nfs3 {
            let [size, offset] = self.ranges(cores, protocol);
            tables.push(table("op", "size", size, 0));
            tables.push(table("op", "offset", offset, 0));
            let error = cores.iter().map(|c| c.file_error).sum();
            tables.push(table("file", "op", self.files(cores, protocol), error));
        }
        tables
    }

    fn total(&self) -> Figures {
        self.ops.values().fold([0; 2], |sum, f| [sum[0] + f[0], sum[1] + f[1]])
    }

    fn latencies(&self, cores: &[&CoreSecond], protocol: Protocol) -> [Rows; 3] {
        let [mut ops, mut clients, mut shares] =
            [Rows::default(), Rows::default(), Rows::default()];
        let all = cores.iter().flat_map(|c| &c.latencies);
        for group in all.filter(|g| g.protocol == protocol as u8) {
            let key = |dimension, number| self.names.key(protocol, dimension, number);
            let op = key(Dimension::Op, Some(u64::from(group.op)));
            let client = key(Dimension::Client, group.client.map(u64::from));
            let share = key(Dimension::Share, group.share.map(u64::from));
            for (bucket, cell) in &group.buckets {
                let (bucket, cell) = (Key::Bucket(*bucket), figures(*cell));
                ops.add(op.clone(), bucket.clone(), cell);
                clients.add(client.clone(), bucket.clone(), cell);
                shares.add(share.clone(), bucket, cell);
            }
        }
        for rows in [&mut ops, &mut clients, &mut shares] {
            let rest = minus(self.total(), rows.sum());
            if rest[0] > 0 {
                rows.add(Key::Other, Key::Other, rest);
            }
        }
        [ops, clients, shares]
    }

    fn ranges(&self, cores: &[&CoreSecond], protocol: Protocol) -> [Rows; 2] {
        let [mut sizes, mut offsets] = [Rows::default(), Rows::default()];
        // Operations without a range are `other`, so that the sum is the total.
        let mut rest = self.ops.clone();
        let all = cores.iter().flat_map(|c| &c.ranges);
        for group in all.filter(|g| g.protocol == protocol as u8) {
            let op = self.names.key(protocol, Dimension::Op, Some(u64::from(group.op)));
            for (bucket, cell) in &group.sizes {
                sizes.add(op.clone(), Key::Bucket(*bucket), figures(*cell));
                if let Some(rest) = rest.get_mut(&op) {
                    *rest = minus(*rest, figures(*cell));
                }
            }
            for (bucket, cell) in &group.offsets {
                offsets.add(op.clone(), Key::Bucket(*bucket), figures(*cell));
            }
        }
        for (op, rest) in rest.into_iter().filter(|(_, f)| f[0] > 0) {
            sizes.add(op.clone(), Key::Other, rest);
            offsets.add(op, Key::Other, rest);
        }
        [sizes, offsets]
    }

    fn files(&self, cores: &[&CoreSecond], protocol: Protocol) -> Rows {
        let mut rows = Rows::default();
        let mut rest = self.ops.clone();
        let all = cores.iter().flat_map(|c| &c.files);
        for row in all.filter(|r| r.protocol == protocol as u8) {
            let op = self.names.key(protocol, Dimension::Op, Some(u64::from(row.op)));
            let file = self.names.key(protocol, Dimension::File, Some(row.file));
            if let Some(rest) = rest.get_mut(&op) {
                *rest = minus(*rest, figures(row.cell));
            }
            rows.add(file, op, figures(row.cell));
        }
        for (op, rest) in rest.into_iter().filter(|(_, f)| f[0] > 0) {
            rows.add(Key::Other, op, rest);
        }
        rows
    }
}

#[cfg(test)]
mod tests;
