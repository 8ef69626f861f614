//! A second (or minute, or hour) as the collector makes it, the store keeps it, and queries read
//! it.
//!
//! Every table has rows with two keys and two figures. One table by client and operation answers
//! `[client]`, `[op]`, `[client=…][op]` and `[op=…][client]`. Figures add up, so a minute is the
//! sum of its seconds, and a mean is that sum over the seconds covered.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base::limits::{SUM_KEYS_FACTOR, SUM_ROWS_MAX};

mod figures;
mod pairs;

pub use figures::{Figures, SAMPLE_SCALE};
pub(crate) use figures::{hundredths, of_sample};
pub use pairs::PAIRS;
pub(crate) use pairs::rows_max;

use figures::{Sort, add};

/// Something with a name: what a filter is compared with, and what people read.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// Stable: an address, a uid, a share's name, a file's number.
    pub key: String,
    /// For people: a user's name, a file's path. Often the key.
    pub label: String,
}

impl Name {
    /// A name that is its own label.
    pub fn plain(key: &str) -> Arc<Self> {
        Arc::new(Self { key: key.to_owned(), label: key.to_owned() })
    }

    /// Whether a filter with `value` means this.
    pub fn matches(&self, value: &str) -> bool {
        self.key == value || self.label == value
    }
}

/// One key of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// What fell outside of the rows, or has no value in this dimension.
    Other,
    /// A bucket of [`base::buckets`].
    Bucket(u8),
    /// An element.
    Name(Arc<Name>),
}

/// The rows of one statistic by two dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// `nfs3.ops`, `cpu.utilization`; bytes are the second figure of `ops`.
    pub stat: Arc<str>,
    /// The dimensions of the two keys; empty when there is none.
    pub dimensions: [Arc<str>; 2],
    /// The statistic as a whole.
    pub total: Figures,
    /// By how much the figures of a first key may be too low, summed over its second keys. They are
    /// never too high: what a row lacks is in a row with the first key `Other`.
    pub error: Figures,
    /// Sorted by keys, each pair once.
    pub rows: Vec<(Key, Key, Figures)>,
}

/// All tables of an interval.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// Start, in seconds since the epoch.
    pub time: u64,
    /// Length in seconds.
    pub span: u32,
    /// How many of its seconds there are data for.
    pub covered: u32,
    /// Operations that were not aggregated.
    pub dropped: u64,
    /// The tables.
    pub tables: Vec<Table>,
}

impl Table {
    /// A table of these rows, sorted and each pair of keys once; the total is their sum.
    pub fn from_rows(
        stat: Arc<str>,
        dimensions: [Arc<str>; 2],
        rows: Rows,
        error: Figures,
    ) -> Self {
        let mut rows: Vec<_> = rows.into_iter().map(|((a, b), f)| (a, b, f)).collect();
        rows.sort_unstable_by(|x, y| (&x.0, &x.1).cmp(&(&y.0, &y.1)));
        let mut total = [0; 2];
        rows.iter().for_each(|(_, _, figures)| add(&mut total, *figures));
        let mut table = Self { stat, dimensions, total, error, rows };
        table.tighten();
        table
    }

    /// What a row lacks is in `Other`, so it lacks no more than that.
    fn tighten(&mut self) {
        if self.error == [0; 2] {
            return;
        }
        let mut other = [0; 2];
        let others = self.rows.iter().filter(|(a, ..)| *a == Key::Other);
        others.for_each(|(_, _, figures)| add(&mut other, *figures));
        self.error = Sort::of(&self.stat).least(self.error, other);
    }

    /// Keeps the `max` busiest first keys, by operations and bytes alike, and makes one `other` of
    /// the rest. The largest of those raises the error: it is what a key may lack now.
    pub fn trim(&mut self, max: usize) {
        let (mut sums, mut all) = (HashMap::<&Key, Figures>::new(), [0; 2]);
        for (a, _, figures) in self.rows.iter().filter(|(a, ..)| *a != Key::Other) {
            add(sums.entry(a).or_default(), *figures);
            add(&mut all, *figures);
        }
        if sums.len() <= max {
            return;
        }
        let sort = Sort::of(&self.stat);
        let mut ranked: Vec<(Figures, &Key)> =
            sums.into_iter().map(|(key, figures)| (figures, key)).collect();
        ranked.sort_unstable_by_key(|(figures, key)| (Reverse(sort.share(*figures, all)), *key));
        let mut error = self.error;
        let cut = ranked[max..].iter().fold([0; 2], |cut, (figures, _)| sort.most(cut, *figures));
        add(&mut error, cut);
        let keep: HashSet<Key> = ranked[..max].iter().map(|(_, key)| (*key).clone()).collect();
        let mut rows = Rows::default();
        for (a, b, figures) in self.rows.drain(..) {
            let a = if keep.contains(&a) { a } else { Key::Other };
            rows.add(a, b, figures);
        }
        let (stat, dimensions) = (self.stat.clone(), self.dimensions.clone());
        let total = self.total;
        *self = Self::from_rows(stat, dimensions, rows, error);
        self.total = total;
    }
}

/// Rows while they are being added up.
#[derive(Debug, Clone, Default)]
pub struct Rows(HashMap<(Key, Key), Figures>);

impl Rows {
    /// Adds to the row of these keys.
    pub fn add(&mut self, a: Key, b: Key, figures: Figures) {
        add(self.0.entry((a, b)).or_default(), figures);
    }

    /// What was added so far.
    pub fn sum(&self) -> Figures {
        let mut total = [0; 2];
        self.0.values().for_each(|figures| add(&mut total, *figures));
        total
    }
}

impl IntoIterator for Rows {
    type Item = ((Key, Key), Figures);
    type IntoIter = std::collections::hash_map::IntoIter<(Key, Key), Figures>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Adds frames up to a longer one.
#[derive(Debug, Default)]
pub struct Sum {
    time: u64,
    span: u32,
    covered: u32,
    dropped: u64,
    tables: Vec<(Table, Rows)>,
}

impl Sum {
    /// An empty sum for `span` seconds from `time`.
    pub fn new(time: u64, span: u32) -> Self {
        Self { time, span, ..Self::default() }
    }

    /// Its start.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.covered == 0
    }

    /// Adds a frame that lies within it.
    pub fn add(&mut self, frame: &Frame) {
        self.covered += frame.covered;
        self.dropped += frame.dropped;
        for table in &frame.tables {
            let same =
                |(t, _): &(Table, Rows)| t.stat == table.stat && t.dimensions == table.dimensions;
            let at = self.tables.iter().position(same).unwrap_or_else(|| {
                let empty =
                    Table { rows: Vec::new(), total: [0; 2], error: [0; 2], ..table.clone() };
                self.tables.push((empty, Rows::default()));
                self.tables.len() - 1
            });
            let (sum, rows) = &mut self.tables[at];
            add(&mut sum.total, table.total);
            add(&mut sum.error, table.error);
            for (a, b, figures) in &table.rows {
                rows.add(a.clone(), b.clone(), *figures);
            }
            if rows.0.len() > SUM_ROWS_MAX {
                shorten(sum, rows);
            }
        }
    }

    /// The sum, with the busiest rows only.
    pub fn finish(self) -> Frame {
        let finish = |(sum, rows): (Table, Rows)| {
            let mut table = Table::from_rows(sum.stat, sum.dimensions, rows, sum.error);
            table.total = sum.total;
            table.trim(rows_max(&table));
            table
        };
        Frame {
            time: self.time,
            span: self.span,
            covered: self.covered,
            dropped: self.dropped,
            tables: self.tables.into_iter().map(finish).collect(),
        }
    }
}

/// Retains the busiest rows of an incomplete sum, a multiple of the number that remains at its end.
fn shorten(sum: &mut Table, rows: &mut Rows) {
    let (stat, dimensions) = (sum.stat.clone(), sum.dimensions.clone());
    let mut table = Table::from_rows(stat, dimensions, std::mem::take(rows), sum.error);
    table.trim(SUM_KEYS_FACTOR * rows_max(&table));
    sum.error = table.error;
    *rows = Rows(table.rows.into_iter().map(|(a, b, figures)| ((a, b), figures)).collect());
}

#[cfg(test)]
mod tests;
