//! The cores' counts of a second as tables: each with the same total.

use std::collections::HashMap;

use probe::cell::Cell;
use probe::names::{NO_SHARE, NO_USER, OTHER_CLIENT};
use probe::op::Protocol;
use probe::phases::PARTS;
use probe::schema::schema;
use probe::second::{Combination, CoreSecond};

use crate::model::{Figures, Key, Rows, Table};
use crate::names::{Dimension, Names};

/// All tables of all protocols that had an operation.
pub(super) fn tables(cores: &[&CoreSecond], names: &Names) -> Vec<Table> {
    let mut tables = Vec::new();
    for protocol in Protocol::ALL {
        let counts = Counts::of(cores, protocol, names);
        if !counts.ops.is_empty() {
            tables.extend(counts.tables(cores, protocol));
        }
        if counts.replays.sum() != [0, 0] {
            let stat = names.text(&format!("{}.replays", protocol.id()));
            let (by, lacks) = (["client", "op"], counts.lacks.replays);
            let by = by.map(|dimension| names.text(dimension));
            tables.push(Table::from_rows(stat, by, counts.replays, lacks));
        }
    }
    tables
}

fn figures(cell: Cell) -> Figures {
    [cell.count, cell.bytes]
}

fn plus(into: &mut Figures, by: Figures) {
    *into = [into[0] + by[0], into[1] + by[1]];
}

fn minus(a: Figures, b: Figures) -> Figures {
    [a[0].saturating_sub(b[0]), a[1].saturating_sub(b[1])]
}

/// Whether the client is one of those that share a number, or is unknown.
fn is_other_client(client: Option<u32>) -> bool {
    client.is_none_or(|number| number == OTHER_CLIENT)
}

/// What is counted without a value that it has, because a table was full or collection was off:
/// by how much the elements of a dimension may be too low.
#[derive(Default)]
struct Lacks {
    op: Figures,
    client: Figures,
    user: Figures,
    share: Figures,
    status: Figures,
    transport: Figures,
    replays: Figures,
}

impl Lacks {
    fn add(&mut self, who: &Combination, cell: Figures) {
        let lacking = [
            (&mut self.op, who.op.is_none()),
            (&mut self.client, is_other_client(who.client)),
            (&mut self.user, who.user.is_none()),
            (&mut self.share, who.share.is_none()),
            (&mut self.status, who.status.is_none()),
            (&mut self.transport, who.rdma.is_none()),
        ];
        for (lacks, _) in lacking.into_iter().filter(|(_, lacking)| *lacking) {
            plus(lacks, cell);
        }
    }
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
    /// Of NFS only.
    transport: Rows,
    replays: Rows,
    blocks: Blocks,
    lacks: Lacks,
}

/// What operations on blocks have in the place of shares and users.
#[derive(Default)]
struct Blocks {
    lun: Rows,
    initiator: Rows,
    target: Rows,
}

/// Whether a protocol's operations are broken down by this dimension.
fn has(protocol: Protocol, dimension: &str) -> bool {
    let ops = schema().statistic(protocol.id(), "ops");
    ops.is_some_and(|ops| ops.breakdowns.iter().any(|by| by == dimension))
}

/// The share and the user of an operation, if it can have them.
fn files_of(who: &Combination, protocol: Protocol) -> (Option<u16>, Option<u32>) {
    match protocol {
        Protocol::Iscsi => (Some(NO_SHARE), Some(NO_USER)),
        _ => (who.share, who.user),
    }
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
            transport: Rows::default(),
            replays: Rows::default(),
            blocks: Blocks::default(),
            lacks: Lacks::default(),
        };
        let by_transport = has(protocol, "transport");
        let all = cores.iter().flat_map(|c| &c.combinations);
        for (who, cell) in all.filter(|(who, _)| who.protocol == protocol as u8) {
            let key = |dimension, number: Option<u64>| names.key(protocol, dimension, number);
            let op = key(Dimension::Op, who.op.map(u64::from));
            let client = key(Dimension::Client, who.client.map(u64::from));
            let cell = figures(*cell);
            if who.replay {
                if is_other_client(who.client) {
                    plus(&mut counts.lacks.replays, cell);
                }
                counts.replays.add(client, op, cell);
                continue;
            }
            counts.lacks.add(who, cell);
            let (share, user) = files_of(who, protocol);
            let user = key(Dimension::User, user.map(u64::from));
            let share = key(Dimension::Share, share.map(u64::from));
            let status = key(Dimension::Status, who.status.map(u64::from));
            plus(counts.ops.entry(op.clone()).or_default(), cell);
            counts.client.add(client, op.clone(), cell);
            counts.user.add(user, op.clone(), cell);
            counts.share.add(share, op.clone(), cell);
            if protocol == Protocol::Iscsi {
                let blocks = &mut counts.blocks;
                let nexus = |dimension| key(dimension, who.user.map(u64::from));
                let lun = key(Dimension::Lun, who.share.map(u64::from));
                blocks.lun.add(lun, op.clone(), cell);
                blocks.initiator.add(nexus(Dimension::Initiator), op.clone(), cell);
                blocks.target.add(nexus(Dimension::Target), op.clone(), cell);
            }
            if by_transport {
                let transport = key(Dimension::Transport, who.rdma.map(u64::from));
                counts.transport.add(transport, op.clone(), cell);
            }
            counts.status.add(status, op, cell);
        }
        counts
    }

    fn tables(&self, cores: &[&CoreSecond], protocol: Protocol) -> Vec<Table> {
        let stat = self.names.text(&format!("{}.ops", protocol.id()));
        let lacks = &self.lacks;
        let copy = |rows: &Rows| rows.clone();
        let table = |a: &str, b: &str, rows, error| {
            let by = [a, b].map(|dimension| self.names.text(dimension));
            Table::from_rows(stat.clone(), by, rows, error)
        };
        let mut tables = vec![
            table("share", "op", copy(&self.share), lacks.share),
            table("status", "op", copy(&self.status), lacks.status),
            table("client", "op", copy(&self.client), lacks.client),
            table("user", "op", copy(&self.user), lacks.user),
        ];
        let [op, client, share] = self.latencies(cores, protocol);
        tables.push(table("op", "latency", op.0, op.1));
        tables.push(table("client", "latency", client.0, client.1));
        if protocol == Protocol::Iscsi {
            let blocks = &self.blocks;
            tables.push(table("lun", "op", copy(&blocks.lun), lacks.share));
            tables.push(table("initiator", "op", copy(&blocks.initiator), lacks.user));
            tables.push(table("target", "op", copy(&blocks.target), lacks.user));
            tables.push(table("lun", "latency", share.0, share.1));
        } else {
            tables.push(table("share", "latency", share.0, share.1));
        }
        if has(protocol, "size") {
            let [size, offset] = self.ranges(cores, protocol);
            tables.push(table("op", "size", size, lacks.op));
            tables.push(table("op", "offset", offset, lacks.op));
        }
        if protocol.has_files() {
            let mut error = lacks.op;
            cores.iter().for_each(|c| plus(&mut error, figures(c.file_error)));
            tables.push(table("file", "op", self.files(cores, protocol), error));
        }
        if has(protocol, "transport") {
            tables.push(table("transport", "op", copy(&self.transport), lacks.transport));
        }
        if has(protocol, "phase") {
            let (rows, lacks) = self.phases(cores, protocol);
            tables.push(table("phase", "op", rows, lacks));
        }
        tables
    }

    fn total(&self) -> Figures {
        self.ops.values().fold([0; 2], |sum, f| [sum[0] + f[0], sum[1] + f[1]])
    }

    /// By op, client and share, each with what its elements may lack.
    fn latencies(&self, cores: &[&CoreSecond], protocol: Protocol) -> [(Rows, Figures); 3] {
        let mut all: [(Rows, Figures); 3] = Default::default();
        let [ops, clients, shares] = &mut all;
        let groups = cores.iter().flat_map(|c| &c.latencies);
        for group in groups.filter(|g| g.protocol == protocol as u8) {
            let key = |dimension, number| self.names.key(protocol, dimension, number);
            let op = key(Dimension::Op, Some(u64::from(group.op)));
            let client = key(Dimension::Client, group.client.map(u64::from));
            let named = match protocol {
                Protocol::Iscsi => Dimension::Lun,
                _ => Dimension::Share,
            };
            let share = key(named, group.share.map(u64::from));
            for (bucket, cell) in &group.buckets {
                let (bucket, cell) = (Key::Bucket(*bucket), figures(*cell));
                ops.0.add(op.clone(), bucket.clone(), cell);
                clients.0.add(client.clone(), bucket.clone(), cell);
                shares.0.add(share.clone(), bucket, cell);
                if is_other_client(group.client) {
                    plus(&mut clients.1, cell);
                }
                if group.share.is_none() {
                    plus(&mut shares.1, cell);
                }
            }
        }
        for (rows, lacks) in &mut all {
            let rest = minus(self.total(), rows.sum());
            if rest != [0; 2] {
                rows.add(Key::Other, Key::Other, rest);
                plus(lacks, rest);
            }
        }
        all
    }

    /// Parts of operations and nanoseconds by phase, and what is in none: operations that were
    /// counted without knowing which they were.
    fn phases(&self, cores: &[&CoreSecond], protocol: Protocol) -> (Rows, Figures) {
        let mut rows = Rows::default();
        let groups = cores.iter().flat_map(|c| &c.phases);
        for group in groups.filter(|g| g.protocol == protocol as u8) {
            let op = self.names.key(protocol, Dimension::Op, Some(u64::from(group.op)));
            for (phase, cell) in group.cells.iter().enumerate().filter(|(_, cell)| cell.parts > 0) {
                let phase = self.names.key(protocol, Dimension::Phase, Some(phase as u64));
                rows.add(phase, op.clone(), [cell.parts, cell.ns]);
            }
        }
        let lacks = [minus([self.total()[0] * PARTS, 0], rows.sum())[0], 0];
        if lacks[0] > 0 {
            rows.add(Key::Other, Key::Other, lacks);
        }
        (rows, lacks)
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
        for (op, rest) in rest.into_iter().filter(|(_, f)| *f != [0; 2]) {
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
        for (op, rest) in rest.into_iter().filter(|(_, f)| *f != [0; 2]) {
            rows.add(Key::Other, op, rest);
        }
        rows
    }
}

#[cfg(test)]
mod tests;
