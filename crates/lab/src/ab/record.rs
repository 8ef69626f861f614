//! A comparison as it is kept: `result.json` of `plimsoll lab ab`, docs/formats/result.md.

use super::{NextRun, Outcome, RowRuns, Rule, Sample, Session, Side};
use crate::limit;
use crate::record::provenance::{self, Provenance};
use crate::record::{RecordError, RunResult, read_kind};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Version of the format.
pub const VERSION: u32 = 1;
/// Its kind, which distinguishes it from a run.
pub const KIND: &str = "ab";

/// A comparison of two targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AbResult {
    /// Of [`KIND`] and [`VERSION`].
    #[serde(flatten)]
    pub provenance: Provenance,
    /// A and B.
    pub targets: [String; 2],
    /// When it ended.
    pub rule: Rule,
    /// Every round that counts.
    pub rows: Vec<RowRuns>,
    /// What they say.
    pub outcome: Outcome,
    /// Rows that stayed disturbed, as sentences.
    pub degraded: Vec<String>,
    /// Why it ended early.
    pub failed: Option<String>,
}

impl AbResult {
    /// A comparison that has not begun.
    pub fn new(targets: [String; 2], rule: Rule, command: Vec<String>) -> Self {
        Self {
            provenance: Provenance::new(KIND, VERSION, provenance::now(), command),
            targets,
            rule,
            rows: Vec::new(),
            outcome: Outcome { rows: Vec::new() },
            degraded: Vec::new(),
            failed: None,
        }
    }

    /// Takes what a session has so far.
    pub fn take(&mut self, session: &Session) {
        self.rows = session.rows().to_vec();
        self.outcome = session.outcome();
        let disturbed = self.outcome.rows.iter().filter_map(|row| {
            let share = row.disturbed? * 100.0;
            Some(format!("{}: other processes used {share:.0} % of the processors", row.job))
        });
        self.degraded = disturbed.collect();
        self.provenance.ended = provenance::now();
    }

    /// `result.json` of its archive.
    ///
    /// # Errors
    /// It has no form in JSON.
    pub fn json(&self) -> Result<String, RecordError> {
        serde_json::to_string(self)
            .map_err(|e| RecordError::Form("the comparison".into(), e.to_string()))
    }

    /// Reads the one in `dir`.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn read(dir: &Path) -> Result<Self, RecordError> {
        let other = || RecordError::Form(dir.display().to_string(), "not a comparison".into());
        read_kind(dir, KIND, VERSION)?.ok_or_else(other)
    }

    /// As text.
    pub fn text(&self) -> String {
        let [a, b] = &self.targets;
        let mut out = format!("A: {a}\nB: {b}\n\n");
        for row in &self.outcome.rows {
            let rounds = row.rounds;
            out += &format!("{:<18} {rounds:>3} rounds  {}\n", row.job, row.sentence());
        }
        out
    }
}

/// Where a run of a comparison is kept, below its directory.
pub fn folder(job: &str, run: NextRun) -> PathBuf {
    let side = match run.side {
        Side::A => "a",
        Side::B => "b",
    };
    let repeat =
        if run.attempt > 0 { format!("-disturbed-{}", run.attempt) } else { String::new() };
    Path::new(job).join(side).join(format!("{:03}{repeat}", run.round))
}

/// The sample that a run is.
pub fn sample(result: &RunResult) -> Sample {
    let best = result.best_step();
    Sample {
        figure: best.map_or(0.0, |step| result.figure(step)),
        others: best.and_then(|step| limit::others(&step.evidence)).unwrap_or(0.0),
    }
}
