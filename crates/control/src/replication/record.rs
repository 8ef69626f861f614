//! The result of a run: one line of the history.

use base::units;
use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All was carried.
    Done,
    /// All but what is named as failed.
    Partial,
    /// It did not come to its end.
    Failed,
    /// A user stopped it, or the server ended.
    Stopped,
}

impl Outcome {
    /// All, in the order of menus, with a sentence for people.
    pub const CHOICES: &'static [(&'static str, &'static str)] = &[
        (Self::Done.name(), "everything was copied"),
        (Self::Partial.name(), "everything except the listed failures was copied"),
        (Self::Failed.name(), "it did not complete"),
        (Self::Stopped.name(), "stopped by an administrator or a server shutdown"),
    ];

    /// `done`, …
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// A run that has ended. `docs/formats/replication.md` has its form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The action, by the name that it had then.
    pub action: String,
    /// When it began, seconds since the Unix epoch.
    pub when: u64,
    /// When it ended.
    pub ended: u64,
    /// What started it: `schedule`, or a user.
    pub by: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it did not complete; the cause comes first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Entries that were looked at.
    pub entries: u64,
    /// Those that were changed.
    pub changes: u64,
    /// Files that were to be carried.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of content that were sent for them, before compression.
    pub sent: u64,
    /// Device nodes that were skipped, because the action does not permit them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub devices_skipped: u64,
    /// Files that were carried without set-id bits and capabilities, because the action does not
    /// permit these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub set_id_dropped: u64,
    /// Entries that could not be carried.
    pub failures: u64,
    /// The first of them, each with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// Times that the action was due while it ran.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Record {
    /// As a line for people.
    pub fn sentence(&self) -> String {
        let mut line = format!(
            "{}  {} {} by {}: {} entries, {} changed, {} files with {} in {} s",
            units::utc(self.when.cast_signed()),
            self.action,
            self.outcome.name(),
            self.by,
            self.entries,
            self.changes,
            self.files,
            units::bytes(self.bytes as f64),
            self.ended.saturating_sub(self.when),
        );
        if self.devices_skipped > 0 {
            line += &format!(", {} device nodes skipped", self.devices_skipped);
        }
        if self.set_id_dropped > 0 {
            line += &format!(", {} files without set-id bits", self.set_id_dropped);
        }
        if self.failures > 0 {
            line += &format!(", {} failed", self.failures);
        }
        if self.skipped > 0 {
            line += &format!(", {} scheduled runs skipped meanwhile", self.skipped);
        }
        if !self.reason.is_empty() {
            line += &format!(": {}", self.reason);
        }
        line
    }
}
