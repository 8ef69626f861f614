//! Answers from frames: any single breakdown, and the declared pairs.

use std::sync::Arc;

use probe::phases::{PARTS, Phase};
use probe::schema::{Source, Statistic, schema};
use probe::stat::{StatId, range};

use base::buckets;
use base::limits::IO_SIZE_MAX;

use super::Frames;
use super::bins::Bins;
use crate::model::{Figures, Frame, Key, Name, PAIRS, SAMPLE_SCALE, Table, hundredths};
use crate::store::Part;

/// How a statistic is read from frames.
pub(super) struct Plan<'a> {
    stat: &'a StatId,
    /// The groups of the tables: the group itself or its members.
    groups: Vec<Arc<Name>>,
    /// The tables' metric: bytes are kept with the operations.
    metric: &'a str,
    column: usize,
    scale: f64,
    operations: bool,
    /// The pairs of dimensions that are kept of operations.
    pairs: &'static [[&'static str; 2]],
    /// Which dimensions the table must have.
    needs: Vec<&'a str>,
    filters: Vec<Filter<'a>>,
}

struct Filter<'a> {
    dimension: &'a str,
    value: &'a str,
    range: Option<(u64, u64)>,
}

impl Filter<'_> {
    fn passes(&self, key: &Key) -> bool {
        match (key, self.range) {
            (Key::Name(name), None) => name.matches(self.value),
            (Key::Bucket(n), Some((low, high))) => {
                let n = usize::from(*n);
                low <= buckets::low(n) && buckets::high(n) <= high
            }
            _ => false,
        }
    }
}

/// The dimension of parts of operations.
pub(super) const PHASE: &str = "phase";

/// The dimension that distinguishes the members of a group.
pub(super) const PROTOCOL: &str = "protocol";

/// A group as an element: its id, and as titles have it.
pub(super) fn group_name(id: &str) -> Arc<Name> {
    let label = schema().group(id).map_or_else(|| id.to_owned(), |group| group.name.clone());
    Arc::new(Name { key: id.to_owned(), label })
}

/// The groups that a statistic is the sum of: its own, or the members of it.
fn groups(stat: &StatId) -> Vec<Arc<Name>> {
    match schema().group(&stat.group) {
        Some(group) if !group.members.is_empty() => {
            group.members.iter().map(|member| group_name(member)).collect()
        }
        _ => vec![group_name(&stat.group)],
    }
}

/// Whether a range begins and ends where buckets do.
fn aligned((low, high): (u64, u64)) -> bool {
    let edge = |n: u64| n == u64::MAX || buckets::low(buckets::index(n)) == n;
    edge(low) && edge(high)
}

impl<'a> Plan<'a> {
    /// How to answer `stat` from frames; `None` when they do not hold it.
    pub fn new(stat: &'a StatId, statistic: &Statistic) -> Option<Self> {
        let operations = statistic.source == Source::Operations;
        let needs: Vec<_> = stat.dimensions().into_iter().filter(|d| *d != PROTOCOL).collect();
        let mut groups = groups(stat);
        let mut filters = Vec::new();
        for (dimension, value) in &stat.filters {
            if dimension == PROTOCOL {
                groups.retain(|group| group.matches(value));
                continue;
            }
            let range = match schema().is_range(dimension) {
                true => Some(range(dimension, value).ok().filter(|r| aligned(*r))?),
                false => None,
            };
            filters.push(Filter { dimension, value, range });
        }
        let bytes = operations && stat.metric == "bytes";
        let metric: &str = if bytes { "ops" } else { &stat.metric };
        let pairs: &'static [[&'static str; 2]] =
            if metric == "ops" { &PAIRS } else { &[["client", "op"]] };
        if operations && !pairs.iter().any(|pair| needs.iter().all(|d| pair.contains(d))) {
            return None;
        }
        Some(Self {
            stat,
            groups,
            metric,
            column: usize::from(bytes),
            scale: match operations {
                true if needs.contains(&PHASE) => 1.0 / PARTS as f64,
                true => 1.0,
                false => 1.0 / SAMPLE_SCALE,
            },
            operations,
            pairs,
            needs,
            filters,
        })
    }

    /// The group of a table, if it is in `groups`.
    fn group(&self, stat: &str) -> Option<&Arc<Name>> {
        let (group, metric) = stat.split_once('.')?;
        self.groups.iter().find(|name| name.key == group).filter(|_| metric == self.metric)
    }

    fn fits(&self, have: [&str; 2]) -> bool {
        self.needs.iter().all(|d| have.contains(d))
    }

    /// By how much an element may be too low: the error of the table's first keys. Second keys
    /// are unknown only of what came while collection was off, which has no operation either; any
    /// other `Other` size and offset is of an operation that has none.
    fn error(&self, table: &Table) -> f64 {
        if self.needs.contains(&&*table.dimensions[0]) {
            return self.figure(table.error);
        }
        let op_first = *table.dimensions[0] == *"op";
        let always = matches!(&*table.dimensions[1], "op" | "latency");
        let unknown = |(a, b, _): &&(Key, Key, Figures)| {
            *b == Key::Other && (always || op_first && *a == Key::Other)
        };
        if !self.operations || self.needs.is_empty() {
            return 0.0;
        }
        table.rows.iter().filter(unknown).map(|(.., figures)| self.figure(*figures)).sum()
    }

    /// The figure that is queried, before its scale.
    fn figure(&self, figures: Figures) -> f64 {
        if self.operations { figures[self.column] as f64 } else { hundredths(figures) }
    }

    fn add_table(&self, bins: &mut Bins<Key>, step: usize, group: &Arc<Name>, table: &Table) {
        let by_protocol = self.stat.breakdown.as_deref() == Some(PROTOCOL);
        let by_group = |bins: &mut Bins<Key>, value: f64| {
            if by_protocol && value > 0.0 {
                bins.add(step, Some(Key::Name(group.clone())), value);
            }
        };
        if self.needs.is_empty() {
            let value = self.figure(table.total) * self.scale;
            bins.total[step] += value;
            by_group(bins, value);
            return;
        }
        bins.error[step] += self.error(table) * self.scale;
        let mut sum = 0.0;
        let by_phase = self.stat.breakdown.as_deref() == Some(PHASE);
        for (a, b, figures) in &table.rows {
            let key = |dimension: &str| if *table.dimensions[0] == *dimension { a } else { b };
            let value = self.figure(*figures);
            if value <= 0.0 || !self.filters.iter().all(|f| f.passes(key(f.dimension))) {
                continue;
            }
            sum += value;
            if let (true, Key::Name(name)) = (by_phase, key(PHASE))
                && let Some(phase) = Phase::from_id(&name.key)
            {
                bins.add_time(step, phase, figures[1] as f64);
            }
            if let Some(breakdown) = self.stat.breakdown.as_ref().filter(|_| !by_protocol) {
                let key = Some(key(breakdown)).filter(|k| **k != Key::Other).cloned();
                bins.add(step, key, value * self.scale);
            }
        }
        // A statistic as a whole need not be the sum of its rows.
        let whole = if self.filters.is_empty() { self.figure(table.total) } else { sum };
        bins.total[step] += whole * self.scale;
        by_group(bins, whole * self.scale);
    }
}

impl Frames for Plan<'_> {
    /// Which tables of a frame the answer needs: one of each group's operations, and of samples
    /// all that fit.
    fn wants(&self, stat: &str, dimensions: [&str; 2]) -> Part {
        let first = self.pairs.iter().find(|pair| self.fits(**pair));
        if self.group(stat).is_none() || !self.fits(dimensions) {
            Part::Nothing
        } else if self.needs.is_empty() {
            // Any table has it.
            Part::Total
        } else if self.operations && first.is_some_and(|pair| *pair != dimensions) {
            Part::Nothing
        } else {
            Part::Rows
        }
    }

    /// Adds a frame to the answer.
    fn add(&self, bins: &mut Bins<Key>, frame: &Frame) {
        let Some(step) = bins.grid.at(frame.time) else { return };
        bins.covered[step] += u64::from(frame.covered);
        if self.operations {
            bins.dropped[step] += frame.dropped;
            // The dropped operations are unknown: each may belong to any element.
            let most = if self.column == 0 { 1 } else { u64::from(IO_SIZE_MAX) };
            bins.error[step] += frame.dropped.saturating_mul(most) as f64;
        }
        for group in &self.groups {
            let fits = |t: &&Table| {
                let [a, b] = &t.dimensions;
                self.group(&t.stat) == Some(group) && self.wants(&t.stat, [a, b]) != Part::Nothing
            };
            if let Some(table) = frame.tables.iter().find(fits) {
                self.add_table(bins, step, group, table);
            }
        }
    }
}

/// Whether every frame has a statistic.
pub(crate) fn is_in_frames(stat: &StatId, statistic: &Statistic) -> bool {
    Plan::new(stat, statistic).is_some()
}
