//! Answers from operation records: any chain of filters and any breakdown, as far back as they go.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use base::buckets;
use base::clock::NS_PER_S;
use base::limits::{NAMES_REMEMBERED_MAX, RECORDER_SPAN_MAX_S};
use probe::cell::Cell;
use probe::hub::Hub;
use probe::names::{NO_SHARE, NO_USER, OTHER_CLIENT};
use probe::op::{OpRecord, Protocol, flag};
use probe::phases::{PARTS, Phase};
use probe::schema::schema;
use probe::stat::{StatId, range};

use super::bins::{Bins, Grid};
use super::from_store::{PHASE, PROTOCOL, group_name};
use crate::model::{Key, Name};
use crate::names::{Dimension, Names};

/// A field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// Which protocol.
    Protocol,
    Named(Dimension),
    Latency,
    Size,
    Offset,
    /// Of which a record has a part of each.
    Phase,
}

impl Field {
    fn of(dimension: &str) -> Option<Self> {
        Some(match dimension {
            PROTOCOL => Self::Protocol,
            "op" => Self::Named(Dimension::Op),
            "client" => Self::Named(Dimension::Client),
            "user" => Self::Named(Dimension::User),
            "share" => Self::Named(Dimension::Share),
            "file" => Self::Named(Dimension::File),
            "status" => Self::Named(Dimension::Status),
            "lun" => Self::Named(Dimension::Lun),
            "initiator" => Self::Named(Dimension::Initiator),
            "target" => Self::Named(Dimension::Target),
            "transport" => Self::Named(Dimension::Transport),
            PHASE => Self::Phase,
            "latency" => Self::Latency,
            "size" => Self::Size,
            "offset" => Self::Offset,
            _ => return None,
        })
    }

    /// Its value in a record, if it has one.
    fn value(self, r: &OpRecord) -> Option<u64> {
        let ranged = r.flags & flag::HAS_RANGE != 0;
        let is_block = r.protocol == Protocol::Iscsi as u8;
        match self {
            Self::Protocol => Some(u64::from(r.protocol)),
            Self::Named(Dimension::Op) => Some(of_protocol(r, r.op.into())),
            Self::Named(Dimension::Client) => {
                Some(u64::from(r.client)).filter(|_| r.client != OTHER_CLIENT)
            }
            // Blocks have no users and shares, but units and nexuses in their places.
            Self::Named(Dimension::User) if is_block => Some(u64::from(NO_USER)),
            Self::Named(Dimension::Share) if is_block => Some(u64::from(NO_SHARE)),
            Self::Named(Dimension::Lun) => is_block.then_some(u64::from(r.share)),
            Self::Named(Dimension::Initiator | Dimension::Target) => {
                is_block.then_some(u64::from(r.user))
            }
            Self::Named(Dimension::Transport) => Some(u64::from(r.flags & flag::RDMA != 0)),
            Self::Named(Dimension::User) => Some(u64::from(r.user)),
            Self::Named(Dimension::Share) => Some(u64::from(r.share)),
            Self::Named(Dimension::File) => Some(r.file).filter(|_| r.flags & flag::HAS_FILE != 0),
            Self::Named(Dimension::Status) => Some(of_protocol(r, r.status)),
            Self::Phase | Self::Named(Dimension::Phase) => None,
            Self::Latency => Some(r.latency_ns),
            Self::Size => ranged.then_some(u64::from(r.size)),
            Self::Offset => ranged.then_some(r.offset),
        }
    }
}

/// A number that means something else in each protocol.
fn of_protocol(r: &OpRecord, number: u16) -> u64 {
    u64::from(r.protocol) << 32 | u64::from(number)
}

enum Test {
    Range(u64, u64),
    /// Compared by name once for each number.
    Name(String, Dimension, RefCell<HashMap<u64, bool>>),
}

struct Filter {
    field: Field,
    test: Test,
}

/// How a statistic is read from records.
pub(super) struct Plan<'a> {
    names: &'a Names,
    /// The protocols with records that count; never empty.
    protocols: Vec<Protocol>,
    replay: bool,
    bytes: bool,
    filters: Vec<Filter>,
    /// The requested phase, or that of none, as a filter.
    part: Option<Option<Phase>>,
    /// Whether one filter is by client.
    by_client: bool,
    breakdown: Option<Field>,
}

/// What a scan has found.
pub(super) struct ScanResult {
    pub bins: Bins<Key>,
    /// Everything from this second on is in it.
    pub since: u64,
    /// Whether every element has been kept apart.
    pub complete: bool,
    /// Whether some second had no records because collection was off.
    pub paused: bool,
}

impl<'a> Plan<'a> {
    /// How to answer `stat`; `None` when it does not come from operations.
    pub fn new(stat: &StatId, names: &'a Names) -> Option<Self> {
        let mut protocols: Vec<_> = schema().protocols(&stat.group).collect();
        if protocols.is_empty() {
            return None;
        }
        let (mut filters, mut part) = (Vec::new(), None::<Option<Phase>>);
        for (dimension, value) in &stat.filters {
            let field = Field::of(dimension)?;
            if field == Field::Protocol {
                protocols.retain(|p| group_name(p.id()).matches(value));
                continue;
            }
            if field == Field::Phase {
                let phase = Phase::from_id(value)?;
                // What is of two phases is nothing.
                part = Some(part.map_or(Some(phase), |other| other.filter(|one| *one == phase)));
                continue;
            }
            let test = match field {
                Field::Named(named) => Test::Name(value.clone(), named, RefCell::default()),
                _ => range(dimension, value).map(|(low, high)| Test::Range(low, high)).ok()?,
            };
            filters.push(Filter { field, test });
        }
        let breakdown = match &stat.breakdown {
            Some(breakdown) => Some(Field::of(breakdown)?),
            None => None,
        };
        let (replay, bytes) = (stat.metric == "replays", stat.metric == "bytes");
        let by_client = filters.iter().any(|f| f.field == Field::Named(Dimension::Client));
        Some(Self { names, protocols, replay, bytes, filters, part, by_client, breakdown })
    }

    /// The name of what [`Field::value`] gave.
    fn name(&self, dimension: Dimension, value: u64) -> Arc<Name> {
        let numbered = matches!(dimension, Dimension::Op | Dimension::Status);
        let (protocol, number) = match numbered {
            true => (Protocol::from_u8((value >> 32) as u8), value & u64::from(u32::MAX)),
            false => (None, value),
        };
        let protocol = protocol.or(self.protocols.first().copied()).unwrap_or(Protocol::ALL[0]);
        self.names.name(protocol, dimension, number)
    }

    fn passes(&self, filter: &Filter, record: &OpRecord) -> bool {
        let Some(value) = filter.field.value(record) else { return false };
        match &filter.test {
            Test::Range(low, high) => (*low..*high).contains(&value),
            Test::Name(wanted, dimension, seen) => {
                let same = || self.name(*dimension, value).matches(wanted);
                let mut seen = seen.borrow_mut();
                if seen.len() >= NAMES_REMEMBERED_MAX {
                    seen.clear();
                }
                *seen.entry(value).or_insert_with(same)
            }
        }
    }

    fn wants(&self, r: &OpRecord) -> bool {
        self.protocols.iter().any(|p| r.protocol == *p as u8)
            && (r.flags & flag::REPLAY != 0) == self.replay
            && self.filters.iter().all(|f| self.passes(f, r))
    }

    /// Adds up the records of `grid`, of which seconds before `closed` are complete.
    pub fn scan(&self, hub: &Hub, grid: Grid, closed: u64) -> ScanResult {
        let since = |ns: u64| ns.div_ceil(NS_PER_S);
        let from = grid.from.max(grid.to.saturating_sub(RECORDER_SPAN_MAX_S));
        let from = from.max(since(hub.recorded().since_ns)).min(grid.to);
        let to = grid.to.min(closed).max(from);
        // By second first: what was overwritten meanwhile is known only at the end.
        let mut seconds = Bins::<u64>::new(Grid { from, to: to.max(from + 1), step: 1 });
        let mut complete = true;
        let after = hub.scan(from * NS_PER_S, to * NS_PER_S, |record| {
            let second = record.done_ns / NS_PER_S;
            let Some(step) = seconds.grid.at(second).filter(|_| self.wants(record)) else {
                // It may be of the requested client.
                complete &= !self.by_client || record.client != OTHER_CLIENT;
                return;
            };
            let cell = Cell::of(record);
            let value = if self.bytes { cell.bytes } else { cell.count } as f64;
            let value = value * self.part_of(record);
            seconds.total[step] += value;
            let Some(breakdown) = self.breakdown else { return };
            if breakdown == Field::Phase {
                return self.add_phases(&mut seconds, step, (record, value));
            }
            let mut element = breakdown.value(record);
            if !matches!(breakdown, Field::Named(_) | Field::Protocol) {
                element = element.map(|v| buckets::index(v) as u64);
            }
            if breakdown == Field::Named(Dimension::Client) && element.is_none() {
                complete = false;
                seconds.error[step] += value;
            }
            if value > 0.0 {
                seconds.add(step, element, value);
            }
        });
        let since = from.max(since(after.since_ns));
        let mut found = ScanResult { bins: Bins::new(grid), since, complete, paused: false };
        self.fold(hub, &seconds, to, &mut found);
        found.complete &= !seconds.folded && !found.bins.folded;
        found
    }

    /// Which part of a record counts: that of the phase that is a filter.
    fn part_of(&self, record: &OpRecord) -> f64 {
        match self.part {
            None => 1.0,
            Some(None) => 0.0,
            Some(Some(phase)) => record.phases.part(phase) as f64 / PARTS as f64,
        }
    }

    /// Divides the value of a record among its phases.
    fn add_phases(&self, seconds: &mut Bins<u64>, step: usize, (record, value): (&OpRecord, f64)) {
        let is_one = |phase| self.part.is_none_or(|part| part == Some(phase));
        if value <= 0.0 {
            return;
        }
        let all = Phase::ALL.into_iter().zip(record.phases.parts());
        let ns = record.phases.ns(record.latency_ns);
        for (phase, parts) in all.filter(|(phase, parts)| *parts > 0 && is_one(*phase)) {
            let value = match self.part {
                None => value * parts as f64 / PARTS as f64,
                Some(_) => value,
            };
            seconds.add(step, Some(phase as u64), value);
            seconds.add_time(step, phase, ns[phase as usize] as f64);
        }
    }

    /// From seconds to the steps of the answer, leaving out what is not complete.
    fn fold(&self, hub: &Hub, seconds: &Bins<u64>, to: u64, found: &mut ScanResult) {
        let (from, bins) = (seconds.grid.from, &mut found.bins);
        let mut kept = vec![None; seconds.grid.len()];
        for second in found.since..to {
            if hub.paused_within(second * NS_PER_S, (second + 1) * NS_PER_S) {
                found.paused = true;
            } else if let Some(step) = bins.grid.at(second) {
                kept[(second - from) as usize] = Some(step);
                bins.covered[step] += 1;
                bins.total[step] += seconds.total[(second - from) as usize];
                bins.error[step] += seconds.error[(second - from) as usize];
                if self.breakdown == Some(Field::Phase) {
                    let at = (second - from) as usize;
                    let times = Phase::ALL.map(|phase| (phase, seconds.time_ns(at, phase)));
                    times.into_iter().for_each(|(phase, ns)| bins.add_time(step, phase, ns));
                }
            }
        }
        let (elements, other) = seconds.by_step();
        for (element, cells) in elements {
            let key = self.key(*element);
            for (second, value) in cells {
                if let Some(step) = kept[*second as usize] {
                    bins.add(step, Some(key.clone()), *value);
                }
            }
        }
        for (second, value) in other.iter().enumerate() {
            if let Some(step) = kept[second] {
                bins.add(step, None, *value);
            }
        }
    }

    fn key(&self, element: u64) -> Key {
        match self.breakdown {
            Some(Field::Named(dimension)) => Key::Name(self.name(dimension, element)),
            Some(Field::Phase) => Key::Name(self.name(Dimension::Phase, element)),
            Some(Field::Protocol) => {
                let protocol = Protocol::from_u8(element as u8);
                protocol.map_or(Key::Other, |p| Key::Name(group_name(p.id())))
            }
            _ => Key::Bucket(element as u8),
        }
    }
}

/// Whether the recorder could answer this at all.
pub(super) fn is_recorded(stat: &StatId) -> bool {
    let found = schema().statistic(&stat.group, &stat.metric);
    found.is_some_and(|s| s.source == probe::schema::Source::Operations)
}
