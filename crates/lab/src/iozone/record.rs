//! The result of IOzone's tests: `result.json`, docs/formats/result.md, and its text.

use super::children::Outcome;
use super::flags::Block;
use crate::conduct::watch::Watched;
use crate::record::provenance::Provenance;
use crate::record::{RecordError, ServerInfo, read_kind};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;

/// Version of the format.
pub const VERSION: u32 = 1;
/// Its kind, which distinguishes it from a run of a job.
pub const KIND: &str = "iozone";
/// Bytes of a kB, as IOzone has it.
const KB: f64 = 1024.0;

/// One child in a block.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChildResult {
    /// Bytes that it moved until it ended.
    pub bytes: u64,
    /// Records.
    pub records: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// When it ended, seconds after the common start.
    pub end_s: f64,
    /// Whether it has done all of its records.
    pub finished: bool,
    /// Why it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A block of six lines.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BlockResult {
    /// Number of the test, as of `-i`.
    pub test: u8,
    /// What IOzone names its children there.
    pub title: String,
    /// The block that has the same calls, which were not made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// The children.
    pub children: Vec<ChildResult>,
    /// Seconds from the start of the first to the end of the last.
    pub parent_s: f64,
    /// Sum of the children's rates, kB/s.
    pub children_kb_s: f64,
    /// All bytes in the time of the parent, kB/s.
    pub parent_kb_s: f64,
    /// Least rate of a child, kB/s.
    pub min_kb_s: f64,
    /// Largest, kB/s.
    pub max_kb_s: f64,
    /// Mean, kB/s.
    pub avg_kb_s: f64,
    /// Least that a child moved, kB.
    pub min_xfer_kb: f64,
    /// Child that ended first, and last.
    pub first: usize,
    /// The last one.
    pub last: usize,
    /// The server during the test, and what limited.
    #[serde(flatten)]
    pub watched: Watched,
}

/// The result of all tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IozoneResult {
    /// Of [`KIND`] and [`VERSION`].
    #[serde(flatten)]
    pub provenance: Provenance,
    /// The target, without its password.
    pub target: String,
    /// The seed.
    pub seed: u64,
    /// Children.
    pub threads: u32,
    /// Bytes of each file.
    pub size: u64,
    /// Bytes of each record.
    pub record: u64,
    /// Whether children end with the first one.
    pub stonewall: bool,
    /// Whether the time includes a flush, the close.
    pub flush: bool,
    /// The close.
    pub close: bool,
    /// Whether each write is stable.
    pub sync: bool,
    /// What is known of the server.
    #[serde(default)]
    pub server: ServerInfo,
    /// The blocks in their order.
    pub blocks: Vec<BlockResult>,
    /// Why the result has a reservation.
    pub degraded: Vec<String>,
    /// Why the run failed, if it did.
    pub failed: Option<String>,
}

impl BlockResult {
    /// The block that an outcome makes.
    pub fn new(block: &Block, outcome: &Outcome) -> Self {
        let children = outcome.children.iter().map(|child| ChildResult {
            bytes: child.bytes,
            records: child.records,
            seconds: child.ns as f64 / 1e9,
            end_s: child.end_ns as f64 / 1e9,
            finished: child.finished,
            fault: child.fault.clone(),
        });
        let children: Vec<ChildResult> = children.collect();
        let rates: Vec<f64> = children.iter().map(ChildResult::kb_s).collect();
        let parent_s = outcome.parent_ns as f64 / 1e9;
        let bytes: u64 = children.iter().map(|child| child.bytes).sum();
        let sum: f64 = rates.iter().sum();
        let ends = || children.iter().enumerate();
        let by_end =
            |a: &(usize, &ChildResult), b: &(usize, &ChildResult)| a.1.end_s.total_cmp(&b.1.end_s);
        let (first, last) = (ends().min_by(by_end), ends().max_by(by_end));
        let (first, last) = (first.map_or(0, |(n, _)| n), last.map_or(0, |(n, _)| n));
        let min_xfer = children.iter().map(|child| child.bytes).min().unwrap_or(0);
        Self {
            test: block.number,
            title: block.title.to_owned(),
            same_as: None,
            parent_s,
            children_kb_s: sum,
            parent_kb_s: bytes as f64 / KB / parent_s,
            min_kb_s: rates.iter().copied().fold(f64::INFINITY, f64::min),
            max_kb_s: rates.iter().copied().fold(0.0, f64::max),
            avg_kb_s: sum / rates.len().max(1) as f64,
            min_xfer_kb: min_xfer as f64 / KB,
            first,
            last,
            watched: Watched::default(),
            children,
        }
    }

    /// The six lines, and with `each` one for each child; in operations with a record's size.
    fn text(&self, out: &mut String, each: bool, record: Option<f64>) {
        let (unit, xfer) = if record.is_some() { ("ops", "ops") } else { ("kB", "kB") };
        let of = |kb: f64| record.map_or(kb, |record| kb * KB / record);
        let all = self.children.len();
        let title = &self.title;
        let mut line = |name: String, value: f64, unit: &str| {
            let _ = writeln!(out, "\t{name:<46} = {:>10.2} {unit}", of(value));
        };
        let rate = format!("{unit}/sec");
        line(format!("Children see throughput for {all:>2} {title}"), self.children_kb_s, &rate);
        line(format!("Parent sees throughput for {all:>2} {title}"), self.parent_kb_s, &rate);
        line("Min throughput per process".into(), self.min_kb_s, &rate);
        line("Max throughput per process".into(), self.max_kb_s, &rate);
        line("Avg throughput per process".into(), self.avg_kb_s, &rate);
        line("Min xfer".into(), self.min_xfer_kb, xfer);
        if each {
            for (number, child) in self.children.iter().enumerate() {
                let (bytes, rate_of) = (of(child.bytes as f64 / KB), of(child.kb_s()));
                let _ = writeln!(
                    out,
                    "\tChild[{number}] xfer count = {bytes:>10.2} {xfer}, Throughput = \
                     {rate_of:>10.2} {rate}"
                );
            }
        }
        let end = |n: usize| self.children.get(n).map_or(0.0, |child| child.end_s);
        let (first, last) = (self.first, self.last);
        let _ = writeln!(
            out,
            "\tFirst to end: child {first} after {:.3} s; last: child {last} after {:.3} s",
            end(first),
            end(last)
        );
        if let Some(other) = &self.same_as {
            let _ = writeln!(out, "\tThe same calls as of {other}, which were not made again");
        }
        out.push('\n');
    }
}

impl ChildResult {
    /// Its rate.
    pub fn kb_s(&self) -> f64 {
        self.bytes as f64 / KB / self.seconds.max(1e-9)
    }
}

impl IozoneResult {
    /// Reads the result in a file, or in `result.json` of a directory; `None` if that is another
    /// kind.
    ///
    /// # Errors
    /// It cannot be read, or is of a later version.
    pub fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        read_kind(path, KIND, VERSION)
    }

    /// As IOzone prints it; with a line for each child, in operations.
    pub fn text(&self, each: bool, operations: bool) -> String {
        let mut out = String::new();
        let (size, record) = (self.size as f64 / KB, self.record as f64 / KB);
        let _ = writeln!(out, "\tRecord Size {record} kB\n\tFile size set to {size} kB");
        let _ = writeln!(out, "\tCommand line used: {}", self.provenance.command.join(" "));
        let _ = writeln!(out, "\tThroughput test with {} processes", self.threads);
        let _ = writeln!(out, "\tEach process writes a {size} kB file in {record} kB records");
        let _ = writeln!(out, "\tTarget {}\n", self.target);
        for block in &self.blocks {
            block.text(&mut out, each, operations.then_some(self.record as f64));
        }
        out
    }
}

#[cfg(test)]
mod tests;
