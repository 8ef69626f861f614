//! Answers from recorded datasets: a separate table in each frame, computed from operation records
//! at the end of its second.

use std::sync::Arc;

use base::limits::IO_SIZE_MAX;
use probe::hub::Hub;
use probe::phases::{PARTS, Phase};
use probe::stat::StatId;

use super::bins::{Bins, Grid};
use super::from_store::PHASE;
use super::{Frames, from_recorder};
use crate::model::{Frame, Key, Rows, Table};
use crate::names::Names;
use crate::store::Part;

/// The table of one second; nothing if collection was off.
pub(super) fn table(stat: &StatId, names: &Names, hub: &Hub, second: u64) -> Option<Table> {
    let grid = Grid { from: second, to: second + 1, step: 1 };
    let found = from_recorder::Plan::new(stat, names)?.scan(hub, grid, second + 1);
    let bins = found.bins;
    if bins.covered.first().is_none_or(|covered| *covered == 0) {
        return None;
    }
    // Sums of one second: whole numbers, with phases of their parts.
    let scale = scale(stat) as f64;
    let whole = |values: &[f64]| (values.iter().sum::<f64>() * scale).round() as u64;
    let (cells, other) = bins.by_step();
    let mut rows = Rows::default();
    for (key, values) in cells {
        let sum = whole(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        let ns = phase_of(stat, key).map_or(0, |phase| bins.sum_ns(phase) as u64);
        rows.add(key.clone(), Key::Other, [sum, ns]);
    }
    if whole(other) > 0 {
        rows.add(Key::Other, Key::Other, [whole(other), 0]);
    }
    let by = stat.breakdown.as_deref().unwrap_or_default();
    let (id, error) = (Arc::from(stat.to_string()), [whole(&bins.error), 0]);
    let mut table = Table::from_rows(id, [Arc::from(by), Arc::from("")], rows, error);
    // The second figure counts the seconds: a dataset may begin within a minute.
    table.total = [whole(&bins.total), 1];
    table.trim(crate::model::rows_max(&table));
    Some(table)
}

/// What one operation is in such a table.
fn scale(stat: &StatId) -> u64 {
    if stat.dimensions().contains(&PHASE) { PARTS } else { 1 }
}

/// The phase that a row is of, if they are broken down by it.
fn phase_of(stat: &StatId, key: &Key) -> Option<Phase> {
    match key {
        Key::Name(name) if stat.breakdown.as_deref() == Some(PHASE) => Phase::from_id(&name.key),
        _ => None,
    }
}

/// How such a table is read.
pub(super) struct Plan<'a> {
    stat: &'a StatId,
    id: String,
    bytes: bool,
    broken_down: bool,
    scale: f64,
}

impl<'a> Plan<'a> {
    pub fn new(stat: &'a StatId) -> Self {
        let (bytes, broken_down) = (stat.metric == "bytes", stat.breakdown.is_some());
        Self { stat, id: stat.to_string(), bytes, broken_down, scale: 1.0 / scale(stat) as f64 }
    }
}

impl Frames for Plan<'_> {
    fn wants(&self, stat: &str, _dimensions: [&str; 2]) -> Part {
        match (stat == self.id, self.broken_down) {
            (false, _) => Part::Nothing,
            (true, false) => Part::Total,
            (true, true) => Part::Rows,
        }
    }

    fn add(&self, bins: &mut Bins<Key>, frame: &Frame) {
        let Some(step) = bins.grid.at(frame.time) else { return };
        let Some(table) = frame.tables.iter().find(|table| *table.stat == *self.id) else { return };
        bins.covered[step] += table.total[1];
        bins.dropped[step] += frame.dropped;
        // The dropped operations are unknown: each may belong to any element.
        let most = if self.bytes { u64::from(IO_SIZE_MAX) } else { 1 };
        bins.error[step] += frame.dropped.saturating_mul(most) as f64;
        bins.error[step] += table.error[0] as f64 * self.scale;
        bins.total[step] += table.total[0] as f64 * self.scale;
        for (key, _, [value, ns]) in table.rows.iter().filter(|_| self.broken_down) {
            if let Some(phase) = phase_of(self.stat, key) {
                bins.add_time(step, phase, *ns as f64);
            }
            let key = Some(key).filter(|key| **key != Key::Other).cloned();
            bins.add(step, key, *value as f64 * self.scale);
        }
    }
}
