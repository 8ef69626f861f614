//! What is asked of a suite beyond its target: the options of its command, which the API has too.

use super::rows::{self, FilebenchScale, RowPlan, SIZES, SOURCE_SECONDS, SeqreadScale, THREADS};
use crate::job::JobError;
use base::limits::IO_SIZE_MAX;
use base::units::bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// File of a thread of `seqread`, bytes: of a quick run, and else.
const FILE: [u64; 2] = [1 << 20, 8 << 20];
/// Set of a client of `filebench-suite`, bytes: of a quick run, and else.
const SET: [u64; 2] = [5 << 20, 160 << 20];

/// Which suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// Sequential reads.
    Seqread,
    /// The table of Filebench workloads.
    FilebenchSuite,
}

impl Name {
    /// Its command.
    pub fn text(self) -> &'static str {
        match self {
            Self::Seqread => "seqread",
            Self::FilebenchSuite => "filebench-suite",
        }
    }
}

/// A suite, with its options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteRequest {
    /// Which.
    pub name: Name,
    /// Whether it is quick.
    pub quick: bool,
    /// Block sizes of `seqread`, bytes; none: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u64>,
    /// Threads of each client of `seqread`; none: 1, 2, 3, 5.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<u32>,
    /// Bytes of a file of `seqread`, or of a set of each client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Rows of `filebench-suite`; none: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
    /// Seconds of rows that read, and of those that write.
    #[serde(default = "source_seconds")]
    pub seconds: [u32; 2],
    /// Values of the jobs that differ, KEY=VALUE.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
}

fn source_seconds() -> [u32; 2] {
    SOURCE_SECONDS
}

impl SuiteRequest {
    /// One without options.
    pub fn new(name: Name) -> Self {
        Self {
            name,
            quick: false,
            sizes: Vec::new(),
            threads: Vec::new(),
            size: None,
            rows: Vec::new(),
            seconds: SOURCE_SECONDS,
            settings: Vec::new(),
        }
    }

    /// Its rows for a number of clients, and its scale in a sentence.
    ///
    /// # Errors
    /// A value or a setting does not fit.
    pub fn rows(&self, clients: u32) -> Result<(Vec<RowPlan>, String), JobError> {
        let settings = self.settings.as_slice();
        let of = |sizes: [u64; 2]| self.size.unwrap_or(sizes[usize::from(!self.quick)]);
        if self.name == Name::FilebenchSuite {
            let (set, seconds, quick) = (of(SET), self.seconds, self.quick);
            let scale = FilebenchScale { clients, set, seconds, quick };
            return Ok((rows::filebench(&scale, &self.rows, settings)?, scale.sentence()));
        }
        if self.sizes.iter().any(|size| !(1..=u64::from(IO_SIZE_MAX)).contains(size)) {
            let why = "the sizes are from 1 to 1m".to_owned();
            return Err(JobError::Form(self.name.text().to_owned(), why));
        }
        let or = |given: &[u32]| if given.is_empty() { THREADS.to_vec() } else { given.to_vec() };
        let scale = SeqreadScale {
            sizes: if self.sizes.is_empty() { SIZES.to_vec() } else { self.sizes.clone() },
            threads: or(&self.threads),
            clients,
            file_size: of(FILE),
            quick: self.quick,
        };
        let sentence = format!(
            "scale: {clients} clients (source: 8), a file of {} for each thread; source: 56,378 \
             reads of 4 KB per second at 8 × 5 threads, over two subnets",
            bytes(scale.file_size as f64),
        );
        Ok((rows::seqread(&scale, settings)?, sentence))
    }

    /// Words of its command: the suite and its options.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![self.name.text().to_owned()];
        let mut option = |name: &str, values: Vec<String>| {
            if !values.is_empty() {
                words.extend([format!("--{name}"), values.join(",")]);
            }
        };
        let size = self.size.iter().map(ToString::to_string).collect();
        match self.name {
            Name::Seqread => {
                option("sizes", self.sizes.iter().map(ToString::to_string).collect());
                option("threads", self.threads.iter().map(ToString::to_string).collect());
                option("file-size", size);
            }
            Name::FilebenchSuite => {
                option("rows", self.rows.clone());
                option("set-size", size);
                option("seconds", vec![self.seconds[0].to_string()]);
                option("write-seconds", vec![self.seconds[1].to_string()]);
            }
        }
        words.extend(self.quick.then(|| "--quick".to_owned()));
        words.extend(self.settings.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
        words
    }
}

/// Bytes that all clients write before the rows: the largest set of each name.
pub fn space(rows: &[RowPlan]) -> u64 {
    let mut sets: BTreeMap<char, u64> = BTreeMap::new();
    for row in rows {
        let clients = row.job.schedule.iter().map(|step| u64::from(step.0)).max().unwrap_or(1);
        let each = u64::from(row.job.files).saturating_mul(row.job.file_size);
        let largest = sets.entry(row.set).or_default();
        *largest = each.saturating_mul(clients).max(*largest);
    }
    sets.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

#[cfg(test)]
mod tests;
