//! Runs that drop cached data: each on a separate thread, so that storage that does not respond
//! delays nothing else; one for each share or unit at a time. A run that takes longer than its
//! caller waits continues; the same action returns its result later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::clock::Deadline;
use base::node::{Path, Value};
use base::units::bytes;
use control::tree::Problem;
use parking_lot::{Condvar, Mutex};
use serde_json::{Value as Json, json};
use vfs::cache_drop::CacheDrop;

/// Runs of shares at the same time, and as many of units: each may hold a thread that waits for
/// storage.
const RUNS_MAX: usize = 4;
/// Longest run. What is left then is reported as left.
const RUN_TIME_MAX: Duration = Duration::from_secs(3_600);
/// Default time that a caller waits: less than the timeout of the command line.
const WAIT: u64 = 20;

/// How a run ended.
type End = Result<bool, String>;

/// One run.
struct Run {
    /// What it is about, beyond its path.
    what: String,
    stop: AtomicBool,
    state: Mutex<(CacheDrop, Option<End>)>,
    ended: Condvar,
}

/// The runs, the last one of each path.
#[derive(Default)]
pub struct CacheDrops {
    runs: Mutex<BTreeMap<Path, Arc<Run>>>,
}

/// Called by a run before each file, with the progress so far; `false` ends the run.
pub type ShouldContinue<'a> = &'a mut dyn FnMut(&CacheDrop) -> bool;

impl Run {
    fn is_over(&self) -> bool {
        self.state.lock().1.is_some()
    }

    /// The work, until it ends or is stopped. A panic in it ends the run, too.
    fn work(&self, work: impl FnOnce(ShouldContinue<'_>) -> Result<(CacheDrop, bool), String>) {
        let deadline = Deadline::after(RUN_TIME_MAX);
        let _ended = Ended(self);
        let done = work(&mut |found| {
            self.state.lock().0.clone_from(found);
            !self.stop.load(Ordering::Relaxed) && !deadline.passed()
        });
        let mut state = self.state.lock();
        let end = done.map(|(found, whole)| {
            state.0 = found;
            whole
        });
        state.1 = Some(end);
    }

    /// Waits for its end; its result, or how far it is.
    fn result(&self, wait: Duration) -> Result<Json, String> {
        let deadline = Deadline::after(wait);
        let mut state = self.state.lock();
        while let (None, Some(left)) = (&state.1, deadline.left()) {
            self.ended.wait_for(&mut state, left);
        }
        let (found, end) = &*state;
        let complete = end.clone().transpose()?;
        Ok(json!({
            "complete": complete == Some(true), "running": complete.is_none(),
            "files": found.files, "bytes": found.bytes,
            "resident_before": found.before, "resident_after": found.after,
            "dirty": found.dirty, "kept": found.kept, "sending": found.sending,
            "uncounted": found.uncounted, "failed": found.failed, "failures": found.failures,
        }))
    }

    /// In a line.
    fn line(&self) -> String {
        let state = self.state.lock();
        let (found, end) = &*state;
        let how = match end {
            None => "running".to_owned(),
            Some(Ok(true)) => "complete".to_owned(),
            Some(Ok(false)) => "stopped".to_owned(),
            Some(Err(why)) => return format!("failed: {why}"),
        };
        let size = |n: u64| bytes(n as f64);
        let (files, all) = (found.files, size(found.bytes));
        let (before, after) = (size(found.before), size(found.after));
        format!("{how}: {files} files, {all}; {before} cached before, {after} after")
    }
}

/// Ends a run whatever became of its work.
struct Ended<'a>(&'a Run);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.state.lock().1.get_or_insert_with(|| Err("it ended by a fault".to_owned()));
        self.0.ended.notify_all();
    }
}

impl CacheDrops {
    /// Starts a run at a node, or joins the one that is running, and waits for its result.
    ///
    /// # Errors
    /// Another one is running there, or too many elsewhere; or it failed.
    pub fn run(
        &self,
        path: &Path,
        parameters: &BTreeMap<String, Value>,
        work: impl FnOnce(ShouldContinue<'_>) -> Result<(CacheDrop, bool), String> + Send + 'static,
    ) -> Result<Json, Problem> {
        let text = |name| parameters.get(name).and_then(Value::as_text).unwrap_or_default();
        let seconds = parameters.get("seconds").and_then(Value::as_integer);
        let seconds = seconds.and_then(|n| u64::try_from(n).ok()).unwrap_or(WAIT);
        let run = self.begin(path, text("directory"), work)?;
        run.result(Duration::from_secs(seconds)).map_err(|why| Problem::conflict(path, &why, ""))
    }

    fn begin(
        &self,
        path: &Path,
        what: &str,
        work: impl FnOnce(ShouldContinue<'_>) -> Result<(CacheDrop, bool), String> + Send + 'static,
    ) -> Result<Arc<Run>, Problem> {
        let mut runs = self.runs.lock();
        if let Some(run) = runs.get(path).filter(|run| !run.is_over()) {
            if run.what == what {
                return Ok(Arc::clone(run));
            }
            let hint = "wait for it, or use stop_drop_cache";
            return Err(Problem::conflict(path, "cached data of it is being dropped", hint));
        }
        if runs.values().filter(|run| !run.is_over()).count() >= RUNS_MAX {
            let sentence = format!("{RUNS_MAX} runs that drop cached data are in progress");
            return Err(Problem::conflict(path, &sentence, "try again when one of them has ended"));
        }
        let run = Arc::new(Run {
            what: what.to_owned(),
            stop: AtomicBool::new(false),
            state: Mutex::default(),
            ended: Condvar::new(),
        });
        let own = Arc::clone(&run);
        let thread = std::thread::Builder::new().name("drop-cache".to_owned());
        thread
            .spawn(move || own.work(work))
            .map_err(|e| Problem::server(path, &format!("no thread could be started: {e}")))?;
        runs.insert(path.clone(), Arc::clone(&run));
        Ok(run)
    }

    /// Ends the run at a node after its current file.
    ///
    /// # Errors
    /// There is none.
    pub fn stop(&self, path: &Path) -> Result<Json, Problem> {
        let runs = self.runs.lock();
        let run = runs.get(path).filter(|run| !run.is_over());
        let run = run
            .ok_or_else(|| Problem::conflict(path, "no cached data of it is being dropped", ""))?;
        run.stop.store(true, Ordering::Relaxed);
        Ok(Json::Null)
    }

    /// The last run at a node, in a line.
    pub fn line(&self, path: &Path) -> Option<String> {
        self.runs.lock().get(path).map(|run| run.line())
    }

    /// Forgets the runs of nodes that are not there any more.
    pub fn retain(&self, is_there: impl Fn(&Path) -> bool) {
        self.runs.lock().retain(|path, run| is_there(path) || !run.is_over());
    }
}

#[cfg(test)]
mod tests;
