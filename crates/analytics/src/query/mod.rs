//! A statistic id and an interval in, a graph out.
//!
//! Single breakdowns and declared pairs come from frames, in memory or on disk, at the finest
//! fidelity that the step needs; any other chain of filters comes from the flight recorder. The
//! answer includes its source, its exactness, and how far back it could go.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base::clock::{NS_PER_S, wall_ns};
use base::limits::{ANSWER_VALUES_MAX, POINTS_MAX, ROWS_MAX, SECONDS_IN_MEMORY};
use probe::hub::Hub;
use probe::phases::Phase;
use probe::schema::{Statistic, schema};
use probe::stat::{StatError, StatId};

use crate::bus::{Bus, Ticks};
use crate::model::{Frame, Key};
use crate::names::{Dimension, Names, Resolver};
use crate::recorded::DatasetTable;
use crate::store::{Fidelity, Part, Store, StoreError};

mod bins;
mod counts;
mod data;
mod from_kept;
mod from_recorder;
mod from_store;
mod info;
pub mod merge;

pub(crate) use from_store::is_in_frames;

pub use counts::{Count, Counts};
pub use data::{
    BreakdownInfo, Bucket, Budget, Data, Other, PhaseTime, RecorderInfo, Row, Source, StatisticInfo,
};

use bins::{Bins, Grid, Line};

/// How an answer is read from frames.
trait Frames {
    /// Which tables of a frame it needs.
    fn wants(&self, stat: &str, dimensions: [&str; 2]) -> Part;
    /// Adds a frame to it.
    fn add(&self, bins: &mut Bins<Key>, frame: &Frame);
}

/// Latest time of an answer, in seconds since the epoch: later ones are beyond 64 bits of
/// nanoseconds. Milliseconds of this century are later.
const SECONDS_MAX: u64 = u64::MAX / NS_PER_S - 1;
/// Default length of an answer, in seconds.
const DEFAULT_LENGTH: u64 = 60;
/// Default number of rows of an answer.
const DEFAULT_TOP: usize = 20;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The statistic does not exist: the caller's fault.
    #[error(transparent)]
    Stat(#[from] StatError),
    /// The interval is invalid: the caller's fault.
    #[error("invalid interval: {0}")]
    Interval(&'static str),
    /// Too many subscribers at once.
    #[error("too many subscribers")]
    Busy,
    /// The store cannot be read: ours or the disk's fault.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Interval and detail of a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Query {
    /// Start in seconds since the epoch; negative counts back from now; `None`: a minute before
    /// the end.
    pub from: Option<i64>,
    /// End, not included; as `from`; `None`: the end of the newest complete second.
    pub to: Option<i64>,
    /// Seconds between values; 0 is 1.
    pub step: u64,
    /// Rows; 0 is 20.
    pub top: usize,
    /// Where to take the answer from; `None`: the store if it has it.
    pub source: Option<Source>,
}

impl Query {
    /// Its interval in seconds since the epoch, the end not included, where `now` is the end of the
    /// newest complete second; perhaps an empty one.
    pub fn interval(&self, now: u64) -> (u64, u64) {
        let time = |t: i64| match t {
            0.. => t as u64,
            _ => now.saturating_sub(t.unsigned_abs()),
        };
        let to = self.to.map_or(now, time);
        (self.from.map_or(to.saturating_sub(DEFAULT_LENGTH), time), to)
    }
}

/// Answers questions; holds the present in memory and the past in a store.
pub struct Engine {
    hub: Arc<Hub>,
    names: Arc<Names>,
    store: Option<Store>,
    kept: DatasetTable,
    recent: Mutex<VecDeque<Arc<Frame>>>,
    bus: Bus,
    problem: Mutex<Option<String>>,
    /// Seconds from this one on are in memory alone, because the clock was set back and the store
    /// has other seconds of these numbers; [`u64::MAX`]: the store has all.
    unstored: AtomicU64,
}

impl Engine {
    /// An engine over what `hub` records and, if there is one, the history in `store`.
    pub fn new(hub: Arc<Hub>, resolver: Arc<dyn Resolver>, store: Option<Store>) -> Arc<Self> {
        Arc::new(Self {
            names: Arc::new(Names::new(hub.clone(), resolver)),
            hub,
            store,
            kept: DatasetTable::default(),
            recent: Mutex::default(),
            bus: Bus::default(),
            problem: Mutex::default(),
            unstored: AtomicU64::new(u64::MAX),
        })
    }

    /// The hub with the records.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// The names that it shows.
    pub fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// The history on disk, if there is one.
    pub fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// The recorded datasets.
    pub fn kept(&self) -> &DatasetTable {
        &self.kept
    }

    /// Every finished second from now on.
    ///
    /// # Errors
    /// When there are too many subscribers.
    pub fn ticks(&self) -> Result<Ticks, QueryError> {
        self.bus.subscribe().ok_or(QueryError::Busy)
    }

    /// What stands in the way of keeping history, if anything does: a sentence.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<Arc<Frame>>> {
        self.recent.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Takes in a finished second: to the store, to memory, to subscribers.
    pub fn push(&self, mut frame: Frame) {
        let kept = self.kept.at(frame.time);
        let table = |stat| from_kept::table(stat, &self.names, &self.hub, frame.time);
        let kept: Vec<_> = kept.iter().filter_map(table).collect();
        frame.tables.extend(kept);
        if let Some(store) = &self.store {
            let problem = match store.append(&frame) {
                Ok(true) => {
                    self.unstored.store(u64::MAX, Ordering::Relaxed);
                    None
                }
                Ok(false) => {
                    self.unstored.fetch_min(frame.time, Ordering::Relaxed);
                    Some(
                        "the clock was set back: recording is paused until it catches up"
                            .to_owned(),
                    )
                }
                Err(error) => Some(format!("statistics are not being stored: {error}")),
            };
            *self.problem.lock().unwrap_or_else(|e| e.into_inner()) = problem;
        }
        let frame = Arc::new(frame);
        let mut recent = self.recent();
        // The clock was set back: these seconds come again.
        while recent.back().is_some_and(|last| last.time >= frame.time) {
            recent.pop_back();
        }
        if recent.len() >= SECONDS_IN_MEMORY {
            recent.pop_front();
        }
        recent.push_back(frame.clone());
        drop(recent);
        let lost = self.bus.publish(&frame);
        self.hub.gauges().lost_samples.add(lost);
    }

    /// Ends subscriptions and brings the store to the disk.
    pub fn close(&self) {
        self.bus.close();
        if let Some(Err(error)) = self.store.as_ref().map(Store::sync) {
            *self.problem.lock().unwrap_or_else(|e| e.into_inner()) = Some(error.to_string());
        }
    }

    /// The answer to `stat` over an interval.
    ///
    /// # Errors
    /// When there is no such statistic, the interval is invalid or the store cannot be read.
    pub fn data(&self, stat: &StatId, query: &Query) -> Result<Data, QueryError> {
        let statistic = schema().check(stat)?;
        let grid = self.grid(query)?;
        let top = if query.top == 0 { DEFAULT_TOP } else { query.top.min(ROWS_MAX) };
        let plan = match query.source {
            Some(Source::Recorder) if from_recorder::is_recorded(stat) => None,
            _ => from_store::Plan::new(stat, statistic),
        };
        match plan {
            Some(plan) => self.query_store(stat, statistic, &plan, grid, top),
            None if query.source != Some(Source::Recorder) && self.was_kept(stat, grid) => {
                self.query_store(stat, statistic, &from_kept::Plan::new(stat), grid, top)
            }
            None => Ok(self.query_recorder(stat, statistic, grid, top)),
        }
    }

    /// Whether it was recorded as a dataset, and the recorder does not reach back as far.
    fn was_kept(&self, stat: &StatId, grid: Grid) -> bool {
        self.kept.has(stat) && grid.from < self.hub.recorded().since_ns.div_ceil(NS_PER_S)
    }

    /// The answer to `stat` for the one second of `frame`.
    ///
    /// # Errors
    /// When there is no such statistic.
    pub fn at(&self, stat: &StatId, frame: &Frame, top: usize) -> Result<Data, QueryError> {
        let statistic = schema().check(stat)?;
        let grid = Grid { from: frame.time, to: frame.time + 1, step: 1 };
        let top = if top == 0 { DEFAULT_TOP } else { top.min(ROWS_MAX) };
        let Some(plan) = from_store::Plan::new(stat, statistic) else {
            return Ok(self.query_recorder(stat, statistic, grid, top));
        };
        let mut bins = Bins::new(grid);
        plan.add(&mut bins, frame);
        Ok(self.answer(stat, statistic, bins, top, Source::Store))
    }

    /// Live answers to `stats`, each second.
    ///
    /// # Errors
    /// When one of them does not exist or there are too many subscribers.
    pub fn subscribe(self: &Arc<Self>, stats: Vec<StatId>) -> Result<Subscription, QueryError> {
        for stat in &stats {
            schema().check(stat)?;
        }
        let ticks = self.bus.subscribe().ok_or(QueryError::Busy)?;
        Ok(Subscription { engine: self.clone(), stats, ticks })
    }

    /// End of the newest complete second; of the present one when nothing is collected.
    fn now(&self) -> u64 {
        let now = wall_ns() / NS_PER_S;
        let newest = self.recent().back().map(|f| f.time + 1);
        newest.filter(|t| *t + 5 > now && *t <= now + 5).unwrap_or(now)
    }

    fn grid(&self, query: &Query) -> Result<Grid, QueryError> {
        let (from, to) = query.interval(self.now());
        if from >= to {
            return Err(QueryError::Interval("`from` must be before `to`"));
        }
        if to > SECONDS_MAX {
            return Err(QueryError::Interval("times are in seconds, and this one has too many"));
        }
        // So that it can be added to a time; any of this length is one step.
        let wanted = query.step.clamp(1, SECONDS_MAX);
        // Long intervals are answered from minutes or hours: reading seconds would take seconds.
        let least = (to - from).div_ceil(POINTS_MAX);
        let step = match least {
            0..=1 => wanted,
            2..=60 => wanted.max(Fidelity::Minute.span()),
            _ => wanted.max(Fidelity::Hour.span()).max(least),
        };
        Ok(Grid { from, to, step })
    }

    fn query_store(
        &self,
        stat: &StatId,
        statistic: &Statistic,
        plan: &dyn Frames,
        grid: Grid,
        top: usize,
    ) -> Result<Data, QueryError> {
        let (grid, fidelity, note) = self.fidelity(grid);
        let mut bins = Bins::new(grid);
        let recent: Vec<Arc<Frame>> = self.recent().iter().cloned().collect();
        let memory = recent.first().map_or(u64::MAX, |f| f.time);
        if fidelity == Fidelity::Second && memory <= grid.from || self.store.is_none() {
            recent.iter().for_each(|frame| plan.add(&mut bins, frame));
        } else if let Some(store) = &self.store {
            let unstored = match fidelity {
                Fidelity::Second => self.unstored.load(Ordering::Relaxed),
                _ => u64::MAX,
            };
            let want = |stat: &str, dimensions: [&str; 2]| plan.wants(stat, dimensions);
            // The coarse frames, then finer ones for what they do not reach yet.
            let mut from = grid.from;
            for fidelity in Fidelity::ALL.into_iter().rev().filter(|f| *f <= fidelity) {
                let mut reached = from;
                store.read(fidelity, (from, grid.to.min(unstored)), &want, &mut |frame| {
                    plan.add(&mut bins, &frame);
                    reached = frame.time + fidelity.span();
                })?;
                from = from.max(reached);
            }
            let unstored = recent.iter().filter(|frame| frame.time >= unstored);
            unstored.for_each(|frame| plan.add(&mut bins, frame));
        }
        let mut data = self.answer(stat, statistic, bins, top, Source::Store);
        data.note = joined(note.into_iter().chain(data.note));
        Ok(data)
    }

    /// The coarsest frames that a step allows, and the finest that are still kept.
    fn fidelity(&self, grid: Grid) -> (Grid, Fidelity, Option<String>) {
        let Some(store) = &self.store else { return (grid, Fidelity::Second, None) };
        let by_step = match grid.step {
            ..60 => Fidelity::Second,
            60..3600 => Fidelity::Minute,
            _ => Fidelity::Hour,
        };
        let kept = |f: Fidelity| store.oldest(f).unwrap_or(u64::MAX);
        let wanted = kept(by_step);
        // Only where a coarser fidelity reaches back further, by a whole segment of its own: the
        // finest that reaches far enough, or else the one that reaches furthest.
        let reaches = |f: Fidelity| {
            f > by_step && grid.from < wanted && kept(f).saturating_add(f.segment()) <= wanted
        };
        let fidelity = match (reaches(Fidelity::Minute), reaches(Fidelity::Hour)) {
            (true, false) => Fidelity::Minute,
            (true, true) if kept(Fidelity::Minute) <= grid.from => Fidelity::Minute,
            (_, true) => Fidelity::Hour,
            (false, false) => by_step,
        };
        if fidelity == Fidelity::Second {
            return (grid, fidelity, None);
        }
        let span = fidelity.span();
        let step = grid.step.next_multiple_of(span);
        let from = grid.from - grid.from % span;
        let note = (fidelity > by_step)
            .then(|| format!("statistics this old are only stored per {}", fidelity.name()));
        (Grid { from, to: grid.to, step }, fidelity, note)
    }

    fn query_recorder(&self, stat: &StatId, statistic: &Statistic, grid: Grid, top: usize) -> Data {
        let Some(plan) = from_recorder::Plan::new(stat, &self.names) else {
            return self.answer(stat, statistic, Bins::new(grid), top, Source::Recorder);
        };
        // Seconds that are not over yet are left out.
        let newest = self.recent().back().map_or(0, |f| f.time + 1);
        let closed = self.hub.closed().min(newest.max(wall_ns() / NS_PER_S));
        let found = plan.scan(&self.hub, grid, closed);
        let folded = found.bins.folded;
        let mut data = self.answer(stat, statistic, found.bins, top, Source::Recorder);
        data.exact &= found.complete;
        let mut notes = Vec::new();
        if found.since > grid.from {
            let back = (wall_ns() / NS_PER_S).saturating_sub(found.since);
            notes.push(format!(
                "this combination is only in the flight recorder, which covers the last {back} s \
                 (since {})",
                found.since
            ));
        }
        if found.paused {
            notes.push("collection was switched off for part of this time".to_owned());
        }
        if !found.complete && !folded {
            notes.push(FOLDED.to_owned());
        }
        data.note = joined(notes.into_iter().chain(data.note));
        data
    }

    fn answer(
        &self,
        stat: &StatId,
        statistic: &Statistic,
        mut bins: Bins<Key>,
        top: usize,
        source: Source,
    ) -> Data {
        bins.unite();
        let Grid { from, to, step } = bins.grid;
        let ranges = stat.breakdown.as_deref().is_some_and(|b| schema().is_range(b));
        let wanted = if ranges { usize::MAX } else { top }.min(bins.elements());
        let shown = wanted.min((ANSWER_VALUES_MAX / bins.grid.len()).max(1));
        let (mut lines, other) = bins.ranked(shown);
        let (rows, buckets) = if ranges {
            lines.sort_by(|x, y| x.key.cmp(&y.key));
            (None, Some(lines.into_iter().filter_map(bucket).collect()))
        } else {
            let mut rows: Vec<Row> = lines.into_iter().filter_map(row).collect();
            if stat.breakdown.as_deref() == Some(from_store::PHASE) {
                put_times(&mut rows, &bins);
            }
            (Some(rows), None)
        };
        let folded = bins.folded.then(|| FOLDED.to_owned());
        let cut = (shown < wanted)
            .then(|| format!("top {shown} of {wanted}; use longer steps to see all"));
        let error = bins.means(&bins.error).into_iter().flatten().fold(0.0, f64::max);
        Data {
            stat: stat.to_string(),
            title: schema().title(stat, |dimension, value| self.label(stat, dimension, value)),
            unit: statistic.unit.clone(),
            from,
            to,
            step,
            times: bins.grid.times(),
            total: bins.means(&bins.total),
            rows,
            other: other.map(|line| Other { average: line.average, values: line.values }),
            buckets,
            dropped: bins.dropped,
            source,
            exact: error == 0.0,
            error_bound: error,
            note: joined(folded.into_iter().chain(cut)),
        }
    }

    /// The name to show for a filter's value.
    fn label(&self, stat: &StatId, dimension: &str, value: &str) -> String {
        // Users and files are the same in all members of a group.
        let protocol = schema().protocols(&stat.group).next();
        if dimension == from_store::PROTOCOL {
            return from_store::group_name(value).label.clone();
        }
        let named = match (dimension, protocol) {
            ("user", Some(p)) => {
                value.parse().ok().map(|n: u32| (p, Dimension::User, u64::from(n)))
            }
            ("file", Some(p)) => {
                u64::from_str_radix(value, 16).ok().map(|n| (p, Dimension::File, n))
            }
            _ => None,
        };
        match named {
            Some((p, dimension, n)) => self.names.name(p, dimension, n).label.clone(),
            None => value.to_owned(),
        }
    }
}

/// The note of an answer when elements have become `other`.
const FOLDED: &str = "there were more elements than can be counted separately";

/// One note of several.
fn joined(notes: impl Iterator<Item = String>) -> Option<String> {
    let notes: Vec<String> = notes.collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn row(line: Line<Key>) -> Option<Row> {
    let Key::Name(name) = line.key else { return None };
    let (key, label) = (name.key.clone(), name.label.clone());
    Some(Row { key, label, average: line.average, values: line.values, time: None })
}

/// Adds to the rows of phases their time for each operation.
fn put_times(rows: &mut [Row], bins: &Bins<Key>) {
    let all_ns: f64 = Phase::ALL.into_iter().map(|phase| bins.sum_ns(phase)).sum();
    let operations: f64 = bins.total.iter().sum();
    for row in rows.iter_mut().filter(|_| all_ns > 0.0 && operations > 0.0) {
        row.time = Phase::from_id(&row.key).map(|phase| {
            let ns = bins.sum_ns(phase);
            let value = |(step, count): (usize, &f64)| {
                (*count > 0.0).then(|| bins.time_ns(step, phase) / count)
            };
            let values_ns = bins.total.iter().enumerate().map(value).collect();
            PhaseTime { average_ns: ns / operations, share: ns / all_ns, values_ns }
        });
    }
}

fn bucket(line: Line<Key>) -> Option<Bucket> {
    let Key::Bucket(n) = line.key else { return None };
    let (low, high) = (base::buckets::low(n.into()), base::buckets::high(n.into()));
    Some(Bucket { low, high, average: line.average, values: line.values })
}

/// Live answers; dropping it ends them.
pub struct Subscription {
    engine: Arc<Engine>,
    stats: Vec<StatId>,
    ticks: Ticks,
}

/// The answers of one second.
#[derive(Debug, Clone)]
pub struct Update {
    /// Seconds that were lost before it, because the subscriber was slow.
    pub lost: u64,
    /// One for each statistic, in the order of the subscription.
    pub data: Vec<Data>,
}

impl Subscription {
    fn update(&self, tick: crate::bus::Tick) -> Update {
        let one = |stat| self.engine.at(stat, &tick.frame, 0).ok();
        Update { lost: tick.lost, data: self.stats.iter().filter_map(one).collect() }
    }

    /// The next second's answers; `None` when the server ends. Chains that only the recorder can
    /// answer are computed in the caller's thread: milliseconds.
    pub async fn next(&mut self) -> Option<Update> {
        let tick = self.ticks.next().await?;
        Some(self.update(tick))
    }

    /// As [`Subscription::next`] for threads; `None` also when none came within `wait`.
    pub fn recv_timeout(&mut self, wait: std::time::Duration) -> Option<Update> {
        let tick = self.ticks.recv_timeout(wait)?;
        Some(self.update(tick))
    }
}

#[cfg(test)]
mod tests;
