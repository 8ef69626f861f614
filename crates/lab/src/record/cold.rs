//! What a step's record has of the page cache before it: how the data was dropped, what was
//! counted afterwards, and the judgement.

use crate::verdict::cold::{ColdEvidence, doubts, proof};
use host::observe::cache::Dropped;
use serde::{Deserialize, Serialize};

/// Test files that were taken out of the page cache, as an observer did and counted it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CacheDropped {
    /// Files and pages.
    pub pages: Dropped,
    /// Block device of their file system.
    pub device: Option<String>,
}

/// How cached data was dropped before a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DropReport {
    /// What the server itself did, as it reports it (`drop_cache` of its API).
    pub server: Option<serde_json::Value>,
    /// What an observer on its host did, and counted afterwards.
    pub observer: Option<CacheDropped>,
    /// What could not be done, in sentences.
    pub failed: Vec<String>,
}

/// A step that was to read from the disk.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ColdStep {
    /// How cached data was dropped before it.
    pub dropped: DropReport,
    /// What was seen.
    pub evidence: ColdEvidence,
    /// Whether there is no doubt.
    pub uncached: bool,
    /// Why it is not proved to come from the disk.
    pub doubts: Vec<String>,
}

impl ColdStep {
    /// Judges the evidence. `observe` is the command that would show what was not seen.
    pub fn of(dropped: DropReport, evidence: ColdEvidence, observe: &str) -> Self {
        let mut doubts = doubts(&evidence);
        let uncached = doubts.is_empty();
        if !uncached {
            doubts.extend(dropped.failed.iter().cloned());
            if evidence.resident.is_none() || evidence.device.is_none() {
                doubts.push(format!("`{observe}` on the server's host shows it"));
            }
        }
        Self { dropped, evidence, uncached, doubts }
    }

    /// In one sentence.
    pub fn sentence(&self) -> String {
        match self.uncached {
            true => format!("uncached: {}", proof(&self.evidence)),
            false => format!("not proved to be uncached: {}", self.doubts.join("; ")),
        }
    }
}
