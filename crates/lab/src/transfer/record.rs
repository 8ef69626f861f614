//! What is kept of a comparison: every transfer, and what is derived from them.

use super::plan::Plan;
use super::stats::Middle;
use crate::record::{RecordError, ServerInfo, read_kind, write_result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the format; a reader takes this and lower.
pub const VERSION: u32 = 1;

/// Which way files go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the server.
    Upload,
    /// From the server.
    Download,
}

impl Direction {
    /// Both, in the order in which they are done.
    pub const BOTH: [Self; 2] = [Self::Upload, Self::Download];

    /// Its name, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upload => "uploads",
            Self::Download => "downloads",
        }
    }
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What kind of result this is: `comparison`.
    pub kind: String,
    /// [`VERSION`].
    pub format: u32,
    /// Program and version that wrote this.
    pub program: String,
    /// Begin, seconds since the Unix epoch.
    pub started: f64,
    /// End, seconds since the Unix epoch.
    pub ended: f64,
    /// The job as it was run, settings applied.
    pub plan: Plan,
    /// The command that repeats it, without passwords.
    pub command: Vec<String>,
    /// The machine with the clients.
    pub client: serde_json::Value,
    /// The targets in the order in which they were given.
    pub lines: Vec<Line>,
    /// What comes of it, in sentences ([`super::findings`]).
    #[serde(default)]
    pub findings: Vec<String>,
    /// Why the comparison is degraded; empty when it is not.
    pub degraded: Vec<String>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

/// One target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its URL, without a password.
    pub target: String,
    /// Name of the protocol for people.
    pub protocol: String,
    /// Whether the transfer is protected from eavesdropping.
    pub secure: bool,
    /// Number of the line of the plain protocol of the same family, if that is compared as well.
    pub plain: Option<usize>,
    /// What was agreed on: version and cipher. `None` without protection.
    pub cipher: Option<String>,
    /// How the server's identity was checked: `authority`, `pin`, `insecure`, or `none`.
    pub identity: String,
    /// What is known of the server.
    pub server: ServerInfo,
    /// Every transfer.
    pub samples: Vec<Sample>,
    /// What comes of them: uploads, downloads.
    pub ways: Vec<Figures>,
    /// Why it was abandoned.
    pub failed: Option<String>,
}

/// One transfer of all files.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The round, from 0.
    pub round: u32,
    /// Which way.
    pub way: Direction,
    /// From the first file's begin to the last one's end, seconds.
    pub seconds: f64,
    /// Bytes of files.
    pub bytes: u64,
    /// What connecting and signing in took before, seconds; not in `seconds`.
    pub sign_in_s: f64,
    /// CPU of the clients' threads, seconds.
    pub client_cpu_s: f64,
    /// CPU of the server, its processes for connections included, seconds; `None` if unseen.
    pub server_cpu_s: Option<f64>,
}

/// Figures of one way over one target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Which way.
    pub way: Direction,
    /// Bytes per second.
    pub bytes_s: Middle,
    /// Files per second.
    pub files_s: f64,
    /// CPU of the clients, seconds per 10^9 bytes.
    pub client_cpu_s_gb: Middle,
    /// CPU of the server, seconds per 10^9 bytes; `None` if unseen.
    pub server_cpu_s_gb: Option<Middle>,
    /// Throughput ÷ that of the plain protocol of the family in the same round.
    pub to_plain: Option<Middle>,
}

impl Comparison {
    /// Derives all figures from the samples.
    pub(super) fn derive_figures(&mut self) {
        let files = f64::from(self.plan.files);
        let derived: Vec<Vec<Figures>> = self
            .lines
            .iter()
            .map(|line| {
                let plain = line.plain.and_then(|n| self.lines.get(n));
                Direction::BOTH.iter().filter_map(|way| figures(line, plain, *way, files)).collect()
            })
            .collect();
        for (line, ways) in self.lines.iter_mut().zip(derived) {
            line.ways = ways;
        }
    }

    /// Writes `result.json` into `dir`, replacing an older one in one move.
    ///
    /// # Errors
    /// When the directory cannot be made or written.
    pub fn write(&self, dir: &Path) -> Result<(), RecordError> {
        write_result(self, "the comparison", dir)
    }

    /// Reads a comparison: a file, or a directory with `result.json` in it. `None` when that is
    /// the result of another kind of job.
    ///
    /// # Errors
    /// When it cannot be read or is of a later version.
    pub fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        read_kind(path, "comparison", VERSION)
    }
}

impl Line {
    /// The figures of one way.
    pub fn figures(&self, way: Direction) -> Option<&Figures> {
        self.ways.iter().find(|f| f.way == way)
    }

    /// Throughput ÷ that of another line in the same round.
    pub fn to_other(&self, other: &Self, way: Direction) -> Option<Middle> {
        let ratio = |mine: &Sample| {
            let theirs = other.of(way).find(|s| s.round == mine.round)?;
            Some(rate(mine) / rate(theirs))
        };
        Middle::of(&self.of(way).filter_map(ratio).collect::<Vec<f64>>())
    }

    fn of(&self, way: Direction) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |s| s.way == way)
    }
}

fn rate(sample: &Sample) -> f64 {
    sample.bytes as f64 / sample.seconds.max(1e-9)
}

fn figures(line: &Line, plain: Option<&Line>, way: Direction, files: f64) -> Option<Figures> {
    let rates: Vec<f64> = line.of(way).map(rate).collect();
    let per_gb = |seconds: f64, sample: &Sample| seconds / (sample.bytes.max(1) as f64 / 1e9);
    let client: Vec<f64> = line.of(way).map(|s| per_gb(s.client_cpu_s, s)).collect();
    let server = line.of(way).filter_map(|s| Some(per_gb(s.server_cpu_s?, s)));
    let server: Vec<f64> = server.collect();
    let seconds: Vec<f64> = line.of(way).map(|s| s.seconds).collect();
    Some(Figures {
        way,
        bytes_s: Middle::of(&rates)?,
        files_s: files / Middle::of(&seconds)?.median.max(1e-9),
        client_cpu_s_gb: Middle::of(&client)?,
        server_cpu_s_gb: Middle::of(&server),
        to_plain: plain.and_then(|plain| line.to_other(plain, way)),
    })
}
