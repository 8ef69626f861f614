//! Values by element and time while an answer is put together.

use std::collections::HashMap;
use std::hash::Hash;

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

/// Sums by element and step.
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
        }
    }

    /// How many elements.
    pub fn elements(&self) -> usize {
        self.cells.len()
    }

    pub fn has(&self, key: &K) -> bool {
        self.cells.contains_key(key)
    }

    /// Adds to an element, or to what belongs to none.
    pub fn add(&mut self, step: usize, key: Option<K>, value: f64) {
        let Some(key) = key else {
            self.other[step] += value;
            return;
        };
        // Mostly the step of the last value; records of several cores come core by core.
        let cells = self.cells.entry(key).or_default();
        match cells.last_mut() {
            Some((last, sum)) if *last == step as u32 => *sum += value,
            _ => cells.push((step as u32, value)),
        }
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
        let sum = |cells: &[(u32, f64)]| cells.iter().map(|(_, v)| v).sum::<f64>();
        let mut all: Vec<(f64, &K)> = self.cells.iter().map(|(k, c)| (sum(c), k)).collect();
        all.sort_by(|x, y| y.0.total_cmp(&x.0).then_with(|| x.1.cmp(y.1)));
        let mut other = self.other.clone();
        for (_, key) in all.iter().skip(top) {
            self.cells[*key].iter().for_each(|(step, value)| other[*step as usize] += value);
        }
        let lines = all.iter().take(top).map(|(_, k)| self.line((*k).clone(), &self.cells[*k]));
        (lines.collect(), self.rest(&other))
    }

    /// All elements in their own order, and what belongs to none.
    pub fn ordered(&self) -> (Vec<Line<K>>, Option<Line<()>>) {
        let mut all: Vec<&K> = self.cells.keys().collect();
        all.sort();
        let lines = all.iter().map(|k| self.line((*k).clone(), &self.cells[*k]));
        (lines.collect(), self.rest(&self.other))
    }

    fn rest(&self, sums: &[f64]) -> Option<Line<()>> {
        let sum: f64 = sums.iter().sum();
        let values = self.means(sums);
        (sum > 0.0).then(|| Line { key: (), average: sum / self.seconds(), values })
    }
}
