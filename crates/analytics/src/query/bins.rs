//! Values by element and time while an answer is put together.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use base::limits::ANSWER_BYTES_MAX;
use probe::phases::Phase;

use crate::model::{Key, Name};

/// The times of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    pub from: u64,
    pub to: u64,
    pub step: u64,
}

impl Grid {
    /// How many steps.
    pub fn len(&self) -> usize {
        (self.to - self.from).div_ceil(self.step) as usize
    }

    /// The step that `time` lies in.
    pub fn at(&self, time: u64) -> Option<usize> {
        (self.from..self.to).contains(&time).then(|| ((time - self.from) / self.step) as usize)
    }

    /// Start of each step.
    pub fn times(&self) -> Vec<u64> {
        (0..self.len() as u64).map(|n| self.from + n * self.step).collect()
    }
}

/// Step and value of each element.
type Cells<K> = HashMap<K, Vec<(u32, f64)>>;

/// Memory of an element in addition to its cells, in bytes: its slot, its name, the minimum
/// capacity for cells.
const ELEMENT_BYTES: usize = 256;
/// What a cell takes.
const CELL_BYTES: usize = size_of::<(u32, f64)>();

/// Sums by element and step, within [`ANSWER_BYTES_MAX`].
pub(super) struct Bins<K> {
    pub grid: Grid,
    /// Seconds with data in each step.
    pub covered: Vec<u64>,
    pub total: Vec<f64>,
    pub dropped: Vec<u64>,
    pub error: Vec<f64>,
    /// Only steps in which an element occurs, in ascending order mostly.
    cells: Cells<K>,
    /// What belongs to no element.
    other: Vec<f64>,
    /// What the cells take.
    bytes: usize,
    bytes_max: usize,
    /// Whether elements were merged into `other` because the memory limit was reached.
    pub folded: bool,
    /// Nanoseconds of each phase in each step; empty unless these are queried.
    times_ns: Vec<[f64; Phase::ALL.len()]>,
}

/// One element of the answer.
pub(super) struct Line<K> {
    pub key: K,
    pub average: f64,
    pub values: Vec<Option<f64>>,
}

impl<K: Clone + Eq + Hash + Ord> Bins<K> {
    pub fn new(grid: Grid) -> Self {
        let len = grid.len();
        Self {
            grid,
            covered: vec![0; len],
            total: vec![0.0; len],
            dropped: vec![0; len],
            error: vec![0.0; len],
            cells: HashMap::new(),
            other: vec![0.0; len],
            bytes: 0,
            bytes_max: ANSWER_BYTES_MAX,
            folded: false,
            times_ns: Vec::new(),
        }
    }

    /// The same with other room than [`ANSWER_BYTES_MAX`].
    #[cfg(test)]
    pub fn within(grid: Grid, bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::new(grid) }
    }

    /// How many elements.
    pub fn elements(&self) -> usize {
        self.cells.len()
    }

    /// Adds to an element, or to what belongs to none.
    pub fn add(&mut self, step: usize, key: Option<K>, value: f64) {
        let Some(key) = key else {
            self.other[step] += value;
            return;
        };
        // Mostly the step of the last value; records of several cores come core by core.
        let elements = self.cells.len();
        let cells = self.cells.entry(key).or_default();
        match cells.last_mut() {
            Some((last, sum)) if *last == step as u32 => {
                *sum += value;
                return;
            }
            _ => cells.push((step as u32, value)),
        }
        self.bytes += CELL_BYTES + (self.cells.len() - elements) * ELEMENT_BYTES;
        if self.bytes > self.bytes_max {
            self.fold();
        }
    }

    /// Adds time of operations to a phase.
    pub fn add_time(&mut self, step: usize, phase: Phase, ns: f64) {
        if self.times_ns.is_empty() {
            self.times_ns = vec![Default::default(); self.grid.len()];
        }
        self.times_ns[step][phase as usize] += ns;
    }

    /// Nanoseconds of a phase in a step.
    pub fn time_ns(&self, step: usize, phase: Phase) -> f64 {
        self.times_ns.get(step).map_or(0.0, |times| times[phase as usize])
    }

    /// Nanoseconds of a phase in all steps.
    pub fn sum_ns(&self, phase: Phase) -> f64 {
        self.times_ns.iter().map(|times| times[phase as usize]).sum()
    }

    /// Keeps the greatest elements that have room in half of it; the rest becomes `other`. What one
    /// of them has lost, should it come again, is no more than the greatest of them had.
    fn fold(&mut self) {
        self.cells.values_mut().for_each(merge);
        let mut all: Vec<(f64, K)> =
            self.cells.iter().map(|(k, cells)| (sum(cells), k.clone())).collect();
        all.sort_by(|x, y| y.0.total_cmp(&x.0).then_with(|| x.1.cmp(&y.1)));
        let mut lost = vec![0.0f64; self.grid.len()];
        let (mut bytes, mut full) = (0, false);
        for (_, key) in all {
            let taken = self.cells.get(&key).map_or(0, |c| ELEMENT_BYTES + c.len() * CELL_BYTES);
            full |= bytes + taken > self.bytes_max / 2;
            if !full {
                bytes += taken;
                continue;
            }
            for (step, value) in self.cells.remove(&key).into_iter().flatten() {
                let step = step as usize;
                self.other[step] += value;
                lost[step] = lost[step].max(value);
            }
        }
        self.error.iter_mut().zip(lost).for_each(|(error, lost)| *error += lost);
        self.folded |= full;
        self.bytes = bytes;
    }

    /// The sums as they are: by element and step, and what belongs to none.
    pub fn by_step(&self) -> (&Cells<K>, &[f64]) {
        (&self.cells, &self.other)
    }

    fn seconds(&self) -> f64 {
        self.covered.iter().sum::<u64>().max(1) as f64
    }

    /// Means of sums; nothing where there are no data.
    pub fn means(&self, sums: &[f64]) -> Vec<Option<f64>> {
        let mean = |(sum, n): (&f64, &u64)| (*n > 0).then(|| sum / *n as f64);
        sums.iter().zip(&self.covered).map(mean).collect()
    }

    fn line(&self, key: K, cells: &[(u32, f64)]) -> Line<K> {
        let mut sums = vec![0.0; self.covered.len()];
        cells.iter().for_each(|(step, value)| sums[*step as usize] += value);
        let average = sums.iter().sum::<f64>() / self.seconds();
        Line { key, average, values: self.means(&sums) }
    }

    /// The `top` greatest elements, the greatest first, and the rest together.
    pub fn ranked(&self, top: usize) -> (Vec<Line<K>>, Option<Line<()>>) {
        let mut all: Vec<(f64, &K)> = self.cells.iter().map(|(k, c)| (sum(c), k)).collect();
        all.sort_by(|x, y| y.0.total_cmp(&x.0).then_with(|| x.1.cmp(y.1)));
        let mut other = self.other.clone();
        for (_, key) in all.iter().skip(top) {
            self.cells[*key].iter().for_each(|(step, value)| other[*step as usize] += value);
        }
        let lines = all.iter().take(top).map(|(_, k)| self.line((*k).clone(), &self.cells[*k]));
        (lines.collect(), self.rest(&other))
    }

    fn rest(&self, sums: &[f64]) -> Option<Line<()>> {
        let sum: f64 = sums.iter().sum();
        let values = self.means(sums);
        (sum > 0.0).then(|| Line { key: (), average: sum / self.seconds(), values })
    }
}

impl Bins<Key> {
    /// Makes one element of those with the same key of a name: what an element is called may change
    /// within the interval, as the path of a file does. It is shown with its latest label.
    pub fn unite(&mut self) {
        let mut same: HashMap<&str, Vec<&Arc<Name>>> = HashMap::new();
        for key in self.cells.keys() {
            if let Key::Name(name) = key {
                same.entry(&name.key).or_default().push(name);
            }
        }
        same.retain(|_, names| names.len() > 1);
        let renamed: Vec<Vec<Arc<Name>>> =
            same.into_values().map(|names| names.into_iter().cloned().collect()).collect();
        for names in renamed {
            let mut united = Vec::new();
            let mut latest: Option<(u32, bool, Arc<Name>)> = None;
            for name in names {
                let cells = self.cells.remove(&Key::Name(name.clone())).unwrap_or_default();
                let last = cells.iter().map(|(step, _)| *step).max().unwrap_or(0);
                united.extend(cells);
                // Within a step: rather a label than the bare key.
                let is_label = name.label != name.key;
                latest = latest.max(Some((last, is_label, name)));
            }
            merge(&mut united);
            if let Some((.., name)) = latest {
                self.cells.insert(Key::Name(name), united);
            }
        }
    }
}

fn sum(cells: &[(u32, f64)]) -> f64 {
    cells.iter().map(|(_, value)| value).sum()
}

/// Makes one cell of those of one step.
fn merge(cells: &mut Vec<(u32, f64)>) {
    cells.sort_unstable_by_key(|(step, _)| *step);
    cells.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0.0 };
        same
    });
    cells.shrink_to_fit();
}

#[cfg(test)]
mod tests;
