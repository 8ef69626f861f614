//! Recorded datasets: statistics with filters that only the flight recorder can evaluate, written
//! into the frame of each second while the dataset is recorded. There are few, and each has an end;
//! the recorded values are stored as long as the seconds, minutes and hours that contain them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::{ALERT_TEXT_MAX, KEPT_DATASETS_MAX, KEPT_FOR_MAX_S};
use probe::schema::{Source, Statistic, schema};
use probe::stat::{StatError, StatId};
use serde::{Deserialize, Serialize};

use crate::query::is_in_frames;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// What it is called: `d` and a number.
    pub name: String,
    /// What is kept.
    pub stat: StatId,
    /// The user or the alert that requested it.
    pub by: String,
    /// The first second, since the epoch.
    pub since: u64,
    /// The end, not included.
    pub until: u64,
}

impl Dataset {
    /// Whether a second belongs to it.
    pub fn holds(&self, second: u64) -> bool {
        (self.since..self.until).contains(&second)
    }
}

/// Why something is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeepError {
    /// The statistic does not exist: the asker's fault.
    #[error(transparent)]
    Stat(#[from] StatError),
    /// It is recorded without a request.
    #[error("{0} is always recorded")]
    Anyway(String),
    /// No operations are recorded of it.
    #[error("{0} is not a statistic of operations and cannot be recorded as a dataset")]
    NoOperations(String),
    /// Its id is too long to be stored.
    #[error("the statistic id has {0} bytes; the maximum is {ALERT_TEXT_MAX}")]
    Long(usize),
    /// There are too many already, and none has ended.
    #[error("{KEPT_DATASETS_MAX} datasets are being recorded, the maximum")]
    Full,
}

impl KeepError {
    /// What to do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Stat(_) => "see GET /api/v1/analytics/statistics",
            Self::Anyway(_) | Self::NoOperations(_) => {
                "add a filter, as nfs3.ops[op=read][share=data][file]"
            }
            Self::Long(_) => "use fewer or shorter filters",
            Self::Full => "stop one of analytics/datasets, or wait until one ends",
        }
    }
}

/// Whether a statistic can be kept, and is not anyway.
///
/// # Errors
/// Why not.
pub fn check(stat: &StatId) -> Result<(), KeepError> {
    let statistic = schema().check(stat)?;
    let id = stat.to_string();
    if id.len() > ALERT_TEXT_MAX {
        return Err(KeepError::Long(id.len()));
    }
    match is_in_frames(stat, statistic) {
        true => Err(KeepError::Anyway(id)),
        false if !is_of_operations(statistic) => Err(KeepError::NoOperations(id)),
        false => Ok(()),
    }
}

/// Whether a statistic counts operations, which are recorded.
fn is_of_operations(statistic: &Statistic) -> bool {
    statistic.source == Source::Operations
}

/// All of them.
#[derive(Debug, Default)]
pub struct DatasetTable(Mutex<Vec<Dataset>>);

impl DatasetTable {
    fn all(&self) -> MutexGuard<'_, Vec<Dataset>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All, in the order of the requests.
    pub fn list(&self) -> Vec<Dataset> {
        self.all().clone()
    }

    /// One of them by its name.
    pub fn named(&self, name: &str) -> Option<Dataset> {
        self.all().iter().find(|dataset| dataset.name == name).cloned()
    }

    /// Those that a statistic was kept in, the newest last.
    pub fn of(&self, stat: &StatId) -> Vec<Dataset> {
        self.all().iter().filter(|dataset| dataset.stat == *stat).cloned().collect()
    }

    /// Whether a statistic is kept, or was.
    pub fn has(&self, stat: &StatId) -> bool {
        self.all().iter().any(|dataset| dataset.stat == *stat)
    }

    /// The statistics that are recorded in a second.
    pub fn at(&self, second: u64) -> Vec<StatId> {
        let all = self.all();
        let mut stats: Vec<StatId> =
            all.iter().filter(|one| one.holds(second)).map(|one| one.stat.clone()).collect();
        stats.sort();
        stats.dedup();
        stats
    }

    /// Records `stat` for `seconds` from `now` on. A dataset that is being recorded is extended to
    /// that time; a dataset that has ended is removed if the table is full.
    ///
    /// # Errors
    /// It cannot be kept, or there are too many.
    pub fn keep(
        &self,
        stat: &StatId,
        by: &str,
        now: u64,
        seconds: u64,
    ) -> Result<Dataset, KeepError> {
        check(stat)?;
        let until = now.saturating_add(seconds.clamp(1, KEPT_FOR_MAX_S));
        let mut all = self.all();
        let going_on = |one: &&mut Dataset| one.stat == *stat && one.holds(now);
        if let Some(dataset) = all.iter_mut().find(going_on) {
            dataset.until = dataset.until.max(until);
            return Ok(dataset.clone());
        }
        if all.len() >= KEPT_DATASETS_MAX {
            let ended = all.iter().enumerate().filter(|(_, one)| one.until <= now);
            let (oldest, _) = ended.min_by_key(|(_, one)| one.until).ok_or(KeepError::Full)?;
            all.remove(oldest);
        }
        let numbers = all.iter().filter_map(|one| one.name.strip_prefix('d')?.parse::<u64>().ok());
        let name = format!("d{}", numbers.max().unwrap_or(0) + 1);
        let (stat, by) = (stat.clone(), by.to_owned());
        let dataset = Dataset { name, stat, by, since: now, until };
        all.push(dataset.clone());
        Ok(dataset)
    }

    /// Ends one now; what was kept stays. `false`: there is none, or it has ended.
    pub fn stop(&self, name: &str, now: u64) -> bool {
        let mut all = self.all();
        let found = all.iter_mut().find(|one| one.name == name && one.until > now);
        found.map(|one| one.until = now.max(one.since)).is_some()
    }

    /// Forgets one: what was kept of it is not found any more. `false`: there is none.
    pub fn forget(&self, name: &str) -> bool {
        let mut all = self.all();
        let before = all.len();
        all.retain(|one| one.name != name);
        all.len() < before
    }

    /// The stored form: JSON (`docs/formats/state.md`).
    pub fn to_text(&self) -> String {
        let record = |one: &Dataset| Record {
            name: one.name.clone(),
            statistic: one.stat.to_string(),
            by: one.by.clone(),
            since: one.since,
            until: one.until,
        };
        let list = List { format: FORMAT, datasets: self.all().iter().map(record).collect() };
        // Plain texts and numbers: there is nothing that could not be written.
        serde_json::to_string_pretty(&list).unwrap_or_default() + "\n"
    }

    /// Replaces all datasets by those of [`Self::to_text`].
    ///
    /// # Errors
    /// It was written by something else.
    pub fn take_text(&self, text: &str) -> Result<(), serde_json::Error> {
        let list: List = serde_json::from_str(text)?;
        // A statistic of another version is kept no more.
        let dataset = |one: Record| {
            let stat: StatId = one.statistic.parse().ok()?;
            check(&stat).ok()?;
            let Record { name, by, since, until, .. } = one;
            Some(Dataset { name, stat, by, since, until })
        };
        let all = list.datasets.into_iter().filter_map(dataset).take(KEPT_DATASETS_MAX);
        *self.all() = all.collect();
        Ok(())
    }
}

/// The version of the file.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct List {
    format: u32,
    datasets: Vec<Record>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    name: String,
    statistic: String,
    by: String,
    since: u64,
    until: u64,
}

/// The file as `plimsoll inspect` prints it; `None` if it has another format.
pub fn inspect(text: &str) -> Option<serde_json::Value> {
    let list: List = serde_json::from_str(text).ok()?;
    let datasets = serde_json::to_value(&list.datasets).ok()?;
    Some(serde_json::json!({ "format": "recorded datasets", "datasets": datasets }))
}

#[cfg(test)]
mod tests;
