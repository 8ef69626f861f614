//! The job of a comparison, as TOML with `workload = "transfer"`.

use crate::client::FileSet;
use crate::job::{JobError, settled};
use base::limits::{LAB_ROUNDS_MAX, LAB_SLOTS_MAX};
use serde::{Deserialize, Serialize};

/// Comparisons that come with the program: name and text.
pub const BUILT_IN: &[(&str, &str)] =
    &[("secure-protocols", include_str!("../../../../jobs/secure-protocols.toml"))];

/// The only workload of a comparison: whole files put and got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Whole files, uploaded and downloaded.
    Transfer,
}

/// What is compared, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Short name; the file's.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What it answers.
    pub answers: String,
    /// What to expect.
    pub expect: String,
    /// [`Workload::Transfer`].
    pub workload: Workload,
    /// Files put and got each time.
    pub files: u32,
    /// Bytes of each.
    pub file_size: u64,
    /// Connections at once; the files are dealt out among them.
    pub streams: u32,
    /// How often each target has its turn.
    pub rounds: u32,
    /// Seed of the content and of the order.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Of what is downloaded one block of 4 KiB in this many is checked; 1 checks all, 0 nothing.
    #[serde(default = "default_check")]
    pub check_one_in: u32,
}

fn default_seed() -> u64 {
    2009
}
fn default_check() -> u32 {
    16
}

impl Plan {
    /// A comparison that comes with the program or that is in a file, settings applied; `None`
    /// when `name` is a job of another kind.
    ///
    /// # Errors
    /// A [`JobError`] that names the job or the setting, and the reason.
    pub fn load(name: &str, settings: &[String]) -> Result<Option<Self>, JobError> {
        let text = match BUILT_IN.iter().find(|j| j.0 == name) {
            Some((_, text)) => (*text).to_owned(),
            // Loading it as another kind of job reports what is wrong with it.
            None => std::fs::read_to_string(name).unwrap_or_default(),
        };
        let kind = text.parse::<toml::Table>().ok().and_then(|t| t.get("workload").cloned());
        if kind.as_ref().and_then(toml::Value::as_str) != Some("transfer") {
            return Ok(None);
        }
        Self::parse(name, &text, settings).map(Some)
    }

    /// A comparison from its text.
    ///
    /// # Errors
    /// A [`JobError`] that names the job or the setting, and the reason.
    pub fn parse(name: &str, text: &str, settings: &[String]) -> Result<Self, JobError> {
        let form = |e| JobError::form(name, None, &e);
        let plan: Self = settled(name, text, settings)?.try_into().map_err(form)?;
        let wrong = |why| Err(JobError::Sense(name.to_owned(), why));
        if plan.files == 0 || plan.streams == 0 || plan.streams > LAB_SLOTS_MAX {
            return wrong("it needs at least one file and one stream");
        }
        if plan.streams > plan.files {
            return wrong("it has more streams than files: each file uses one connection");
        }
        if plan.rounds == 0 || plan.rounds > LAB_ROUNDS_MAX {
            return wrong("it needs 1 to 1000 rounds");
        }
        if u64::from(plan.files).checked_mul(plan.file_size).is_none() {
            return wrong("its files are too large");
        }
        Ok(plan)
    }

    /// Bytes of one transfer.
    pub fn bytes(&self) -> u64 {
        u64::from(self.files) * self.file_size
    }

    /// The files; all targets get the same.
    pub fn set(&self) -> FileSet {
        FileSet { client: 0, files: self.files, size: self.file_size }
    }
}
