//! Recorded datasets, which take effect at once and are stored so that they continue after a
//! restart. Users request them through the tree, alerts when they fire.

use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use analytics::query::Engine;
use analytics::recorded::{Dataset, KeepError};
use base::clock::{Clock, NS_PER_S};
use base::limits::KEPT_FILE_MAX;
use base::node::{Path, Value};
use probe::stat::StatId;
use serde_json::{Value as Json, json};

use super::datasets;
use crate::state::StateError;
use crate::state::files::write_atomic;
use crate::tree::Problem;

/// The file in the state directory.
const FILE: &str = "kept.json";

/// All of them.
pub struct Datasets {
    engine: Arc<Engine>,
    clock: Arc<dyn Clock>,
    /// Written by one at a time.
    file: Mutex<PathBuf>,
}

/// Why something is not kept.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// It cannot be.
    #[error(transparent)]
    Refused(#[from] KeepError),
    /// It is kept, and will not be after the next start.
    #[error("it is retained until the server restarts only")]
    Unwritten(#[source] StateError),
}

impl Datasets {
    /// Continues the datasets of a state directory. If the file cannot be read, there are none.
    pub fn open(engine: Arc<Engine>, state: &FilePath, clock: Arc<dyn Clock>) -> Arc<Self> {
        let file = state.join(FILE);
        if let Err(why) = read(&engine, &file) {
            base::info!("analytics", "{} is omitted: {why}", file.display());
        }
        Arc::new(Self { engine, clock, file: Mutex::new(file) })
    }

    /// Keeps a statistic from a second on.
    ///
    /// # Errors
    /// It cannot be recorded, or not stored.
    pub fn keep(
        &self,
        stat: &StatId,
        by: &str,
        now: u64,
        seconds: u64,
    ) -> Result<Dataset, DatasetError> {
        let dataset = self.engine.kept().keep(stat, by, now, seconds)?;
        self.write().map_err(DatasetError::Unwritten)?;
        Ok(dataset)
    }

    fn now(&self) -> u64 {
        self.clock.wall_ns() / NS_PER_S
    }

    fn write(&self) -> Result<(), StateError> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        write_atomic(&file, self.engine.kept().to_text().as_bytes(), 0o600)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.engine.kept().list().into_iter().map(|dataset| dataset.name).collect()
    }

    pub(super) fn state(&self, name: &str) -> Vec<(&'static str, Value)> {
        let Some(dataset) = self.engine.kept().named(name) else { return Vec::new() };
        let time = |second: u64| Value::Integer(second.cast_signed());
        let state = if dataset.until > self.now() { "keeping" } else { "ended" };
        vec![
            ("statistic", Value::Text(dataset.stat.to_string())),
            ("state", Value::text(state)),
            ("by", Value::Text(dataset.by)),
            ("since", time(dataset.since)),
            ("until", time(dataset.until)),
        ]
    }

    /// Records a dataset on request of a user.
    pub(super) fn asked(
        &self,
        path: &Path,
        stat: &str,
        seconds: u64,
        who: &str,
    ) -> Result<Json, Problem> {
        let wrong = |e: &KeepError| {
            let problem = match e {
                KeepError::Full => Problem::conflict(path, &e.to_string(), e.hint()),
                _ => Problem::new(path, &e.to_string(), e.hint()),
            };
            problem.property("statistic")
        };
        let stat: StatId = stat.parse().map_err(|e| wrong(&KeepError::Stat(e)))?;
        match self.keep(&stat, who, self.now(), seconds) {
            Ok(dataset) => Ok(json!({ "dataset": dataset.name })),
            Err(DatasetError::Refused(e)) => Err(wrong(&e)),
            Err(DatasetError::Unwritten(e)) => Err(Problem::server(path, &e.to_string())),
        }
    }

    /// Ends or forgets one.
    pub(super) fn end(&self, path: &Path, forget: bool) -> Result<Json, Problem> {
        let (name, kept) = (path.name().unwrap_or_default(), self.engine.kept());
        let done = if forget { kept.forget(name) } else { kept.stop(name, self.now()) };
        if !done {
            return Err(Problem::conflict(
                path,
                "it has ended already",
                "use destroy to delete it",
            ));
        }
        self.write().map_err(|e| Problem::server(path, &e.to_string()))?;
        Ok(Json::Null)
    }

    /// Whether a path is one of them.
    pub(super) fn is_one(path: &Path) -> bool {
        path.parent() == Some(datasets())
    }
}

fn read(engine: &Engine, file: &FilePath) -> Result<(), String> {
    match std::fs::metadata(file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e.to_string()),
        Ok(found) if found.len() > KEPT_FILE_MAX => return Err("it is too large".to_owned()),
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    engine.kept().take_text(&text).map_err(|e| e.to_string())
}
