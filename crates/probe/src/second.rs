//! What one core counts in one second: bounded whatever the load, and enough to derive every single
//! breakdown and the declared pairs from.
//!
//! - combinations of (operation, client, user, share, status), exact up to [`COMBINATIONS_MAX`];
//! - latencies for each (operation, client, share); sizes, offsets and phases for each operation;
//! - the busiest (file, operation) pairs.
//!
//! What does not fit is counted as `other` (`None` below), so that every breakdown of a second sums
//! to the same total.

use std::collections::HashMap;

use base::buckets;
use base::limits::{COMBINATIONS_MAX, LATENCY_GROUPS_MAX};

use crate::cell::{Cell, FileRow};
use crate::files::Files;
use crate::op::{OpRecord, flag};
use crate::phases::{PARTS, Phase};

/// A combination that occurred, `None` standing for `other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Combination {
    /// [`crate::op::Protocol`] as a number.
    pub protocol: u8,
    /// Answered from the duplicate-request cache: counted apart from operations.
    pub replay: bool,
    /// The protocol's operation.
    pub op: Option<u8>,
    /// Client number.
    pub client: Option<u32>,
    /// User number.
    pub user: Option<u32>,
    /// Share number.
    pub share: Option<u16>,
    /// The protocol's status.
    pub status: Option<u16>,
    /// Whether the call came by RDMA.
    pub rdma: Option<bool>,
}

/// Latencies of one (operation, client, share).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyGroup {
    /// [`crate::op::Protocol`] as a number.
    pub protocol: u8,
    /// The protocol's operation.
    pub op: u8,
    /// Client number.
    pub client: Option<u32>,
    /// Share number.
    pub share: Option<u16>,
    /// Bucket of [`base::buckets`] in ns, and what fell into it.
    pub buckets: Vec<(u8, Cell)>,
}

/// Sizes and offsets of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeGroup {
    /// [`crate::op::Protocol`] as a number.
    pub protocol: u8,
    /// The protocol's operation.
    pub op: u8,
    /// Bucket in bytes asked for.
    pub sizes: Vec<(u8, Cell)>,
    /// Bucket in bytes from the start of the file.
    pub offsets: Vec<(u8, Cell)>,
}

/// Where the time of one operation went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseGroup {
    /// [`crate::op::Protocol`] as a number.
    pub protocol: u8,
    /// The protocol's operation.
    pub op: u8,
    /// By [`Phase`]; the parts together are [`PARTS`] for each operation.
    pub cells: [PhaseCell; Phase::ALL.len()],
}

/// What a phase has of some operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhaseCell {
    /// Parts of their latencies ([`PARTS`] each).
    pub parts: u64,
    /// Nanoseconds of their latencies.
    pub ns: u64,
}

/// A finished second of one core.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoreSecond {
    /// Seconds since the epoch.
    pub second: u64,
    /// Every operation is in exactly one of these.
    pub combinations: Vec<(Combination, Cell)>,
    /// Latencies.
    pub latencies: Vec<LatencyGroup>,
    /// Sizes and offsets.
    pub ranges: Vec<RangeGroup>,
    /// Where time went.
    pub phases: Vec<PhaseGroup>,
    /// The busiest files, busiest first.
    pub files: Vec<FileRow>,
    /// By how much a file, over all of its operations, may be too low in `files`.
    pub file_error: Cell,
    /// Operations counted with client and user `other` because the table was full.
    pub folded: u64,
    /// Records overwritten before they were aggregated.
    pub dropped: u64,
}

impl CoreSecond {
    /// How many operations it has.
    pub fn operations(&self) -> u64 {
        self.combinations.iter().map(|(_, cell)| cell.count).sum()
    }
}

const NONE: u32 = u32::MAX;
/// Slots of the index over the combinations: twice the entries.
const SLOTS: usize = 2 * COMBINATIONS_MAX;
const _: () = assert!(SLOTS.is_power_of_two() && COMBINATIONS_MAX < u16::MAX as usize / 2);

/// How much of a combination is `other`; also keeps replays apart.
mod kind {
    pub(super) const REPLAY: u8 = 1;
    /// Client and user.
    pub(super) const FOLDED: u8 = 2;
    /// Share and status as well.
    pub(super) const BARE: u8 = 4;
    /// Everything but the protocol: collection was off.
    pub(super) const OFF: u8 = 8;
}

/// A combination packed for comparison: protocol, op, kind, transport, share, status; client, user.
type Key = (u64, u64);

type Histogram = Box<[Cell; buckets::COUNT]>;

struct Entry {
    key: Key,
    cell: Cell,
    /// Into `Aggregate::latencies`, or `NONE`.
    latency: u32,
    /// Into `Aggregate::ranges`.
    range: u32,
}

struct Latency {
    of: (u8, u8, Option<u32>, Option<u16>),
    cells: Histogram,
}

struct Range {
    of: (u8, u8),
    sizes: Histogram,
    offsets: Histogram,
    phases: PhaseSums,
}

/// Latencies and their parts, added up.
#[derive(Default)]
struct PhaseSums {
    count: u64,
    latency_ns: u64,
    /// Of the phases behind the first.
    parts: [u64; Phase::ALL.len() - 1],
    /// The same, each times its latency.
    weighted: [u64; Phase::ALL.len() - 1],
}

impl PhaseSums {
    #[inline]
    fn add(&mut self, r: &OpRecord) {
        self.count += 1;
        self.latency_ns = self.latency_ns.saturating_add(r.latency_ns);
        for (n, parts) in r.phases.kept().into_iter().enumerate() {
            self.parts[n] += parts;
            // A second's worth of operations that took 50 days together.
            self.weighted[n] = self.weighted[n].saturating_add(parts.saturating_mul(r.latency_ns));
        }
    }

    fn cells(&self) -> [PhaseCell; Phase::ALL.len()] {
        let mut rest = PhaseCell { parts: self.count * PARTS, ns: self.latency_ns };
        let mut cells = [PhaseCell::default(); Phase::ALL.len()];
        for (n, cell) in cells.iter_mut().enumerate().skip(1) {
            let ns = (self.weighted[n - 1] / PARTS).min(rest.ns);
            *cell = PhaseCell { parts: self.parts[n - 1].min(rest.parts), ns };
            rest = PhaseCell { parts: rest.parts - cell.parts, ns: rest.ns - ns };
        }
        cells[0] = rest;
        cells
    }
}

/// A second that is being counted.
pub(crate) struct Aggregate {
    pub(crate) second: u64,
    pub(crate) dropped: u64,
    index: Box<[u16]>,
    entries: Vec<Entry>,
    last: (Key, usize),
    latency_index: HashMap<(u8, u8, Option<u32>, Option<u16>), u32>,
    latencies: Vec<Latency>,
    ranges: Vec<Range>,
    files: Files,
    folded: u64,
    /// Zeroed histograms for the next second.
    spare: Vec<Histogram>,
}

impl Aggregate {
    pub(crate) fn new(second: u64) -> Self {
        Self {
            second,
            dropped: 0,
            index: vec![0; SLOTS].into_boxed_slice(),
            entries: Vec::with_capacity(64),
            last: ((0, 0), usize::MAX),
            latency_index: HashMap::new(),
            latencies: Vec::new(),
            ranges: Vec::new(),
            files: Files::new(),
            folded: 0,
            spare: Vec::new(),
        }
    }

    /// Counts one record.
    #[inline]
    pub(crate) fn add(&mut self, r: &OpRecord) {
        let cell = Cell::of(r);
        let key = key_of(r);
        let at = if key == self.last.0 { self.last.1 } else { self.find(key, r) };
        let Some(entry) = self.entries.get_mut(at) else { return };
        entry.cell.merge(cell);
        if entry.latency == NONE {
            return;
        }
        self.latencies[entry.latency as usize].cells[buckets::index(r.latency_ns)].merge(cell);
        let range = &mut self.ranges[entry.range as usize];
        if r.flags & flag::PIECE == 0 {
            range.phases.add(r);
        }
        if r.flags & flag::HAS_RANGE != 0 {
            range.sizes[buckets::index(u64::from(r.size))].merge(cell);
            range.offsets[buckets::index(r.offset)].merge(cell);
        }
        if r.flags & flag::HAS_FILE != 0 {
            self.files.add(r.file, r.protocol, r.op, cell);
        }
    }

    /// Counts one record in the total of its protocol only.
    pub(crate) fn add_off(&mut self, r: &OpRecord) {
        let replay = r.flags & flag::REPLAY;
        let key = (pack(r.protocol, 0, kind::OFF | replay, 0, 0), 0);
        let at = if key == self.last.0 { self.last.1 } else { self.find(key, r) };
        self.entries[at].cell.merge(Cell::of(r));
    }

    fn find(&mut self, exact: Key, r: &OpRecord) -> usize {
        let mut key = exact;
        loop {
            let mut slot = slot_of(key);
            while self.index[slot] != 0 {
                let at = usize::from(self.index[slot]) - 1;
                if self.entries[at].key == key {
                    if key == exact {
                        self.last = (exact, at);
                    } else {
                        self.folded += 1;
                    }
                    return at;
                }
                slot = (slot + 1) & (SLOTS - 1);
            }
            match folded(key, self.entries.len()) {
                Some(coarser) => key = coarser,
                None => {
                    self.folded += u64::from(key != exact);
                    return self.insert(slot, key, r);
                }
            }
        }
    }

    fn insert(&mut self, slot: usize, key: Key, r: &OpRecord) -> usize {
        let combination = combination_of(key);
        let (mut latency, mut range) = (NONE, NONE);
        if let (false, Some(op)) = (combination.replay, combination.op) {
            latency = self.latency_group(r.protocol, op, combination.client, combination.share);
            range = self.range_group(r.protocol, op);
        }
        self.entries.push(Entry { key, cell: Cell::default(), latency, range });
        self.index[slot] = self.entries.len() as u16;
        self.entries.len() - 1
    }

    fn latency_group(&mut self, proto: u8, op: u8, client: Option<u32>, share: Option<u16>) -> u32 {
        let mut of = (proto, op, client, share);
        if self.latencies.len() >= LATENCY_GROUPS_MAX && !self.latency_index.contains_key(&of) {
            of = (proto, op, None, None);
        }
        if let Some(at) = self.latency_index.get(&of) {
            return *at;
        }
        let cells = self.histogram();
        self.latencies.push(Latency { of, cells });
        let at = self.latencies.len() as u32 - 1;
        self.latency_index.insert(of, at);
        at
    }

    fn range_group(&mut self, protocol: u8, op: u8) -> u32 {
        let of = (protocol, op);
        if let Some(at) = self.ranges.iter().position(|r| r.of == of) {
            return at as u32;
        }
        let (sizes, offsets) = (self.histogram(), self.histogram());
        self.ranges.push(Range { of, sizes, offsets, phases: PhaseSums::default() });
        self.ranges.len() as u32 - 1
    }

    fn histogram(&mut self) -> Histogram {
        self.spare.pop().unwrap_or_else(|| Box::new([Cell::default(); buckets::COUNT]))
    }

    /// The finished second; the tables are empty afterwards and count `next`.
    pub(crate) fn take(&mut self, next: u64) -> CoreSecond {
        let combination = |e: Entry| (combination_of(e.key), e.cell);
        let combinations = self.entries.drain(..).map(combination).collect();
        self.index.fill(0);
        self.last = ((0, 0), usize::MAX);
        self.latency_index.clear();
        let mut latencies = Vec::with_capacity(self.latencies.len());
        for Latency { of: (protocol, op, client, share), cells } in self.latencies.drain(..) {
            let buckets = empty(cells, &mut self.spare);
            latencies.push(LatencyGroup { protocol, op, client, share, buckets });
        }
        let (mut ranges, mut phases) = (Vec::new(), Vec::new());
        for Range { of: (protocol, op), sizes, offsets, phases: sums } in self.ranges.drain(..) {
            let (sizes, offsets) = (empty(sizes, &mut self.spare), empty(offsets, &mut self.spare));
            if !sizes.is_empty() {
                ranges.push(RangeGroup { protocol, op, sizes, offsets });
            }
            if sums.count > 0 {
                phases.push(PhaseGroup { protocol, op, cells: sums.cells() });
            }
        }
        let (files, file_error) = self.files.take();
        let second = std::mem::replace(&mut self.second, next);
        let folded = std::mem::take(&mut self.folded);
        let dropped = std::mem::take(&mut self.dropped);
        CoreSecond {
            second,
            combinations,
            latencies,
            ranges,
            phases,
            files,
            file_error,
            folded,
            dropped,
        }
    }
}

/// The used buckets of a histogram, which goes back to the spare ones, zeroed.
fn empty(mut cells: Histogram, spare: &mut Vec<Histogram>) -> Vec<(u8, Cell)> {
    let used = |(i, c): (usize, &Cell)| (c.count > 0 || c.bytes > 0).then_some((i as u8, *c));
    let buckets: Vec<_> = cells.iter().enumerate().filter_map(used).collect();
    cells.fill(Cell::default());
    spare.push(cells);
    buckets
}

#[inline]
fn pack(protocol: u8, op: u8, kind: u8, share: u16, status: u16) -> u64 {
    u64::from(u32::from_le_bytes([protocol, op, kind, 0]))
        | u64::from(share) << 32
        | u64::from(status) << 48
}

#[inline]
fn key_of(r: &OpRecord) -> Key {
    let facts = pack(r.protocol, r.op, r.flags & flag::REPLAY, r.share, r.status);
    let facts = facts | u64::from(r.flags & flag::RDMA) << 24;
    (facts, u64::from(r.client) | u64::from(r.user) << 32)
}

/// The coarser key to use when the table holds `used` entries and `key` is not among them.
fn folded(key: Key, used: usize) -> Option<Key> {
    let [protocol, op, kind, ..] = key.0.to_le_bytes();
    match kind & !kind::REPLAY {
        0 if used >= COMBINATIONS_MAX / 4 * 3 => Some((key.0 | u64::from(kind::FOLDED) << 16, 0)),
        kind::FOLDED if used >= COMBINATIONS_MAX / 8 * 7 => {
            Some((pack(protocol, op, kind & kind::REPLAY | kind::BARE, 0, 0), 0))
        }
        // As many as there are operations: the last eighth of the table has room for them.
        _ => None,
    }
}

fn combination_of(key: Key) -> Combination {
    let [protocol, op, kind, transport, ..] = key.0.to_le_bytes();
    let known = |unless: u8| kind & unless == 0;
    let people = known(kind::FOLDED | kind::BARE | kind::OFF);
    let facts = known(kind::BARE | kind::OFF);
    Combination {
        protocol,
        replay: kind & kind::REPLAY != 0,
        op: known(kind::OFF).then_some(op),
        client: people.then_some(key.1 as u32),
        user: people.then_some((key.1 >> 32) as u32),
        share: facts.then_some((key.0 >> 32) as u16),
        status: facts.then_some((key.0 >> 48) as u16),
        rdma: facts.then_some(transport != 0),
    }
}

const _: () = assert!(kind::REPLAY == flag::REPLAY);

#[inline]
fn slot_of(key: Key) -> usize {
    let mixed =
        key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key.1.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.trailing_zeros())) as usize
}
