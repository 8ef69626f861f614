//! The answer to a question, as the API gives it (`docs/protocols/api.md`, "A data object").

use serde::{Deserialize, Serialize};

/// Values of one element over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What a filter takes.
    pub key: String,
    /// What people read.
    pub label: String,
    /// Mean over the interval, of the seconds that there are data for.
    pub average: f64,
    /// One for each time; `None` where there are no data.
    pub values: Vec<Option<f64>>,
    /// What a phase has of the latency; only of the breakdown by phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<PhaseTime>,
}

/// A phase of operations over an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseTime {
    /// Mean time of an operation in it, in nanoseconds; those of all phases together are the mean
    /// latency.
    pub average_ns: f64,
    /// Its share of the mean latency, from 0 to 1.
    pub share: f64,
    /// The mean time in each step; `None` where there are no operations.
    pub values_ns: Vec<Option<f64>>,
}

/// Values of one range over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Smallest value in it.
    pub low: u64,
    /// Smallest value above it.
    pub high: u64,
    /// Mean over the interval.
    pub average: f64,
    /// One for each time.
    pub values: Vec<Option<f64>>,
}

/// What fell outside of the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Other {
    /// Mean over the interval.
    pub average: f64,
    /// One for each time.
    pub values: Vec<Option<f64>>,
}

/// Where an answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Frames in memory and on disk.
    Store,
    /// Operation records.
    Recorder,
}

/// A graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// The statistic id.
    pub stat: String,
    /// The same as a sentence.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// Start, in seconds since the epoch.
    pub from: u64,
    /// End, not included.
    pub to: u64,
    /// Seconds between values; may be longer than requested.
    pub step: u64,
    /// Start of each step.
    pub times: Vec<u64>,
    /// All elements together, per second (counters) or the level (gauges).
    pub total: Vec<Option<f64>>,
    /// The elements, the greatest first; not for range breakdowns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Vec<Row>>,
    /// What fell outside of the rows or has no value in this dimension.
    pub other: Option<Other>,
    /// The ranges ever used, lowest first; only for range breakdowns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buckets: Option<Vec<Bucket>>,
    /// Operations not aggregated in each step.
    pub dropped: Vec<u64>,
    /// Where it came from.
    pub source: Source,
    /// Whether every row is complete: the error bound is 0.
    pub exact: bool,
    /// By how much a row, or one that is missing, may be too low, in the unit of the values;
    /// proven, and never too high. What rows lack is in `other`, but for what was `dropped`.
    pub error_bound: f64,
    /// What the reader should know.
    pub note: Option<String>,
}

impl Data {
    /// The elements; none of a range breakdown.
    pub fn rows(&self) -> &[Row] {
        self.rows.as_deref().unwrap_or_default()
    }

    /// The ranges; none of other breakdowns.
    pub fn buckets(&self) -> &[Bucket] {
        self.buckets.as_deref().unwrap_or_default()
    }

    /// One line per point of time, below a `head` line if that is wanted; a value that is not there
    /// is an empty field (RFC 4180).
    pub fn csv(&self, head: bool) -> String {
        let mut columns: Vec<(String, &[Option<f64>])> = vec![("total".into(), &self.total)];
        columns.extend(self.rows().iter().map(|r| (r.label.clone(), r.values.as_slice())));
        let range = |b: &Bucket| format!("{}-{}", b.low, b.high);
        columns.extend(self.buckets().iter().map(|b| (range(b), b.values.as_slice())));
        columns.extend(self.other.iter().map(|o| ("other".into(), o.values.as_slice())));
        let mut text = String::new();
        if head {
            let names: Vec<String> = columns.iter().map(|(name, _)| quote(name)).collect();
            text += &format!("time,{}\r\n", names.join(","));
        }
        for (at, time) in self.times.iter().enumerate() {
            text += &time.to_string();
            for (_, values) in &columns {
                text.push(',');
                if let Some(value) = values.get(at).copied().flatten() {
                    text += &value.to_string();
                }
            }
            text += "\r\n";
        }
        text
    }
}

fn quote(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field.to_owned()
}

/// A breakdown that a statistic has.
#[derive(Debug, Clone, Serialize)]
pub struct BreakdownInfo {
    /// `op`
    pub id: String,
    /// `type of operation`
    pub sentence: String,
    /// `discrete` or `range`
    pub kind: &'static str,
    /// Unit of a range.
    pub unit: Option<String>,
}

/// A statistic that can be queried.
#[derive(Debug, Clone, Serialize)]
pub struct StatisticInfo {
    /// `nfs3.ops`
    pub id: String,
    /// `nfs3`
    pub group: String,
    /// `NFSv3`, the title of its group.
    pub group_name: String,
    /// `ops`
    pub metric: String,
    /// `Protocol: NFSv3 operations per second`
    pub sentence: String,
    /// Unit of its values.
    pub unit: String,
    /// `counter` or `gauge`
    pub kind: &'static str,
    /// What it can be broken down by.
    pub breakdowns: Vec<BreakdownInfo>,
}

/// The flight recorder at a glance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecorderInfo {
    /// Memory.
    pub bytes: usize,
    /// Operations held.
    pub records: u64,
    /// Everything since then is held, in seconds since the epoch.
    pub oldest: f64,
    /// Records overwritten before they were aggregated, ever.
    pub dropped: u64,
}

/// A budget of the server and how much of it is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// `server.connections`
    pub id: String,
    /// What it limits.
    pub sentence: String,
    /// Used now.
    pub used: u64,
    /// At most.
    pub limit: u64,
}
