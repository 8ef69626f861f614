//! Runs that a server makes for its users: queued, one at a time, each in a process of its own, and
//! kept.
//!
//! - [`run`]: what is known of one; [`store`]: where it is kept; [`child`]: its process.
//!
//! The process is this program with other arguments, so that the load is made and measured outside
//! of the server. It ends when its standard input does, which is with the server at the latest.
//! What a run leaves on its target when it is cut off is removed afterwards, after a restart too.

mod child;
pub mod run;
mod store;

use crate::ab::Rule;
use crate::archive::request::{IozoneRequest, Kind, WmlRequest};
use crate::client::Target;
use crate::job::Job;
use crate::record::RunResult;
use crate::report::{self, Comparison, Figures};
use crate::suite::record::SUITE;
use crate::suite::request::SuiteRequest;
use base::limits::{LAB_CLEAN_MAX, LAB_QUEUE_MAX};
use child::{Child, News};
use run::{Run, RunOutcome, RunTarget, State};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::Store;

/// Why a run that was in progress at a restart has no result.
const RESTARTED: &str = "the server restarted";
/// Runs that went which a listener may not know of yet.
const GONE_KEPT: usize = 256;
/// How soon a process that was requested to end is looked at again.
const LOOK: Duration = Duration::from_millis(200);

/// Why something cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum RunQueueError {
    /// There is no such run.
    #[error("the run {0:?} does not exist")]
    Unknown(String),
    /// The run's state does not allow it.
    #[error("the run {0} {1}")]
    State(String, &'static str),
    /// Too many wait.
    #[error("{0} runs are already queued")]
    Full(usize),
    /// The server ends.
    #[error("the server is stopping")]
    Ending,
    /// It cannot be kept.
    #[error("the run cannot be stored")]
    Keep(#[source] std::io::Error),
}

/// What is wanted of a run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// What is made: one job, a summary, a comparison, a program, a suite, a network profile.
    pub kind: Kind,
    /// The job, parameters applied; the rows of a summary or comparison.
    pub jobs: Vec<Job>,
    /// The user that wants it.
    pub by: String,
    /// From where.
    pub from: String,
    /// The target; the columns of a summary, the sides of a comparison.
    pub targets: Vec<RunTarget>,
    /// The share of this server that it is, if it is one.
    pub share: Option<String>,
    /// The folder of the share in which it works.
    pub folder: String,
    /// Client processes.
    pub clients: u32,
    /// Whether a summary takes less than four minutes.
    pub quick: bool,
    /// Whether the limiters of a summary are proved.
    pub prove: bool,
    /// When a comparison ends.
    pub rule: Rule,
    /// A program, and its text.
    pub wml: Option<(WmlRequest, String)>,
    /// Tests of IOzone.
    pub iozone: Option<IozoneRequest>,
    /// A suite.
    pub suite: Option<SuiteRequest>,
    /// The network profile.
    pub profile: Option<ProfileRequest>,
}

/// A built-in network profile, both ends of it on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRequest {
    /// Its name.
    pub name: String,
    /// Values of its variables, NAME=VALUE.
    pub settings: Vec<String>,
}

/// A file of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum File {
    /// `result.json`.
    Result,
    /// `report.html`.
    Report,
}

impl File {
    /// Its name, of a run of this kind.
    pub fn name(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Self::Result, Kind::Limits) => "summary.json",
            (Self::Result, Kind::Suite) => SUITE,
            (Self::Result, _) => "result.json",
            (Self::Report, Kind::Limits | Kind::Suite) => "index.html",
            (Self::Report, _) => "report.html",
        }
    }
}

/// News of runs, for listeners.
#[derive(Debug, Clone)]
pub enum Change {
    /// How a run is now.
    Run(Box<Run>),
    /// It was destroyed.
    Gone(String),
}

/// All runs of a server.
pub struct RunQueue {
    store: Store,
    /// This program, up to its first argument.
    program: PathBuf,
    /// The server's local socket.
    socket: PathBuf,
    /// Where this server serves NFS, once it does.
    here: OnceLock<SocketAddr>,
    inner: Mutex<Inner>,
    /// Held while a change is made and stored, and while files are removed, so that files change
    /// in the order of the runs; taken before `inner`.
    storing: Mutex<()>,
    wake: Condvar,
}

#[derive(Default)]
struct Inner {
    runs: BTreeMap<u64, Run>,
    /// When each run changed last, as counted by `changes`.
    changed: BTreeMap<u64, u64>,
    changes: u64,
    gone: VecDeque<(u64, u64)>,
    queue: VecDeque<u64>,
    /// Runs of an earlier server that have left something on their target.
    left: Vec<u64>,
    current: Option<(u64, Child)>,
    /// Why the current run is to end.
    stop: Option<String>,
    next: u64,
    ending: bool,
}

/// The thread that makes the runs.
pub struct Worker {
    desk: Arc<RunQueue>,
    thread: Option<JoinHandle<()>>,
}

impl RunQueue {
    /// Takes what is stored in `dir`. Runs that were in progress are aborted.
    ///
    /// # Errors
    /// The directory cannot be made or read.
    pub fn open(dir: PathBuf, program: PathBuf, socket: PathBuf) -> std::io::Result<Arc<Self>> {
        let store = Store::open(dir)?;
        let mut inner = Inner { next: 1, ..Inner::default() };
        for mut run in store.load()? {
            let Some(number) = run.number() else { continue };
            if !run.state.is_final() {
                run.finish(State::Aborted, RESTARTED);
                store.write(&run)?;
            }
            if !run.cleaned {
                inner.left.push(number);
            }
            inner.next = inner.next.max(number + 1);
            inner.put(run);
        }
        let (inner, storing) = (Mutex::new(inner), Mutex::new(()));
        let (here, wake) = (OnceLock::new(), Condvar::new());
        Ok(Arc::new(Self { store, program, socket, here, inner, storing, wake }))
    }

    /// Begins to make runs: when the server answers, for NFS at `here`.
    pub fn start(self: &Arc<Self>, here: SocketAddr) -> Worker {
        // Once: a second worker would be of the same server.
        let _ = self.here.set(here);
        let desk = self.clone();
        let thread = std::thread::Builder::new().name("lab".into()).spawn(move || desk.work());
        Worker { desk: self.clone(), thread: thread.ok() }
    }

    /// Queues a run.
    ///
    /// # Errors
    /// Too many wait, or it cannot be kept.
    pub fn queue(&self, wanted: &RunRequest) -> Result<Run, RunQueueError> {
        let mut inner = self.lock();
        if inner.ending {
            return Err(RunQueueError::Ending);
        }
        if inner.queue.len() >= LAB_QUEUE_MAX {
            return Err(RunQueueError::Full(inner.queue.len()));
        }
        let number = inner.next;
        let run = Run::new(number, wanted);
        let text = wanted.wml.as_ref().map(|(_, text)| text.as_str());
        self.store.create(&run, &wanted.jobs, text).map_err(RunQueueError::Keep)?;
        inner.next += 1;
        inner.put(run.clone());
        inner.queue.push_back(number);
        drop(inner);
        self.wake.notify_all();
        Ok(run)
    }

    /// Ends a run that waits or is in progress.
    ///
    /// # Errors
    /// There is none, or it has ended.
    pub fn abort(&self, id: &str, by: &str) -> Result<(), RunQueueError> {
        let _storing = self.storing();
        let mut inner = self.lock();
        let number = inner.find(id)?;
        if let Some(at) = inner.queue.iter().position(|waiting| *waiting == number) {
            inner.queue.remove(at);
            let run = inner.edit(number, |run| {
                run.cleaned = true;
                run.finish(State::Aborted, &format!("aborted by {by} before the start"));
            });
            return run.map_or(Ok(()), |run| self.store.write(&run)).map_err(RunQueueError::Keep);
        }
        let ended = inner.runs.get(&number).is_none_or(|run| run.state.is_final());
        if ended || inner.stop.is_some() {
            return Err(RunQueueError::State(id.to_owned(), "has already ended or is ending"));
        }
        inner.stop(&format!("aborted by {by}"));
        Ok(())
    }

    /// Forgets a run that has ended, with its files.
    ///
    /// # Errors
    /// There is none, it has not ended, or its files cannot be removed.
    pub fn destroy(&self, id: &str) -> Result<(), RunQueueError> {
        let _storing = self.storing();
        let mut inner = self.lock();
        let number = inner.find(id)?;
        let run = inner.runs.get(&number);
        if !run.is_some_and(|run| run.state.is_final()) || inner.left.contains(&number) {
            return Err(RunQueueError::State(id.to_owned(), "is still running: abort it first"));
        }
        self.store.remove(id).map_err(RunQueueError::Keep)?;
        inner.forget(number);
        Ok(())
    }

    /// All runs, the newest first.
    pub fn runs(&self) -> Vec<Run> {
        self.lock().runs.values().rev().cloned().collect()
    }

    /// One run.
    pub fn run(&self, id: &str) -> Option<Run> {
        let inner = self.lock();
        inner.find(id).ok().and_then(|number| inner.runs.get(&number).cloned())
    }

    /// What has changed since `seen`, in the order of runs, and what to give as `seen` next; 0 is
    /// the beginning.
    pub fn changes(&self, seen: u64) -> (Vec<Change>, u64) {
        let inner = self.lock();
        let gone = inner.gone.iter().filter(|(at, _)| *at > seen);
        let mut news: Vec<Change> = gone.map(|(_, n)| Change::Gone(run::id(*n))).collect();
        let changed = inner.changed.iter().filter(|(_, at)| **at > seen);
        let runs = changed.filter_map(|(number, _)| inner.runs.get(number));
        news.extend(runs.map(|run| Change::Run(Box::new(run.clone()))));
        (news, inner.changes)
    }

    /// A file of a run.
    ///
    /// # Errors
    /// There is no such run, or it has none.
    pub fn file(&self, id: &str, file: File) -> Result<Vec<u8>, RunQueueError> {
        let kind = self.run(id).ok_or_else(|| RunQueueError::Unknown(id.to_owned()))?.kind;
        self.store
            .read(id, file.name(kind))
            .map_err(|_| RunQueueError::State(id.to_owned(), "has no result"))
    }

    /// The figures of a run, with the files of its archive.
    ///
    /// # Errors
    /// There is no such run, or it has no result.
    pub fn figures(&self, id: &str) -> Result<Figures, RunQueueError> {
        let number = self.lock().find(id)?;
        Figures::read(&self.store.place(&run::id(number)))
            .map_err(|_| RunQueueError::State(id.to_owned(), "has no result"))
    }

    /// Lays the results of two runs side by side.
    ///
    /// # Errors
    /// One is not there, or has no result.
    pub fn compare(&self, a: &str, b: &str) -> Result<Comparison, RunQueueError> {
        let read = |id: &str| -> Result<RunResult, RunQueueError> {
            self.lock().find(id)?;
            RunResult::read(&self.store.place(id).join(File::Result.name(Kind::Run)))
                .map_err(|_| RunQueueError::State(id.to_owned(), "has no result"))
        };
        let (first, second) = ([read(a)?], [read(b)?]);
        report::compare(&first, &second)
            .ok_or_else(|| RunQueueError::State(a.to_owned(), "has no result"))
    }

    /// Makes one run after the other, until the server ends.
    fn work(&self) {
        loop {
            let mut inner = self.lock();
            let (number, fresh) = loop {
                if inner.ending {
                    return;
                }
                if let Some(number) = inner.left.first() {
                    break (*number, false);
                }
                if let Some(number) = inner.queue.pop_front() {
                    inner.stop = None;
                    inner.edit(number, Run::begin);
                    break (number, true);
                }
                inner = self.wake.wait(inner).unwrap_or_else(PoisonError::into_inner);
            };
            drop(inner);
            if fresh {
                self.make(number);
            }
            self.tidy(number);
            self.lock().left.retain(|left| *left != number);
            self.make_room();
        }
    }

    /// Makes a run, from its process to its verdict.
    fn make(&self, number: u64) {
        // Stored before anything is made on the target.
        let Some(run) = self.change(number, |_| {}) else { return };
        let (child, news) = match Child::start(&self.program, &self.socket, &self.store, &run) {
            Ok(started) => started,
            Err(error) => {
                let why = format!("its process cannot be started: {error}");
                self.change(number, |run| {
                    run.cleaned = true;
                    run.finish(State::Failed, &why);
                });
                return;
            }
        };
        let mut inner = self.lock();
        inner.current = Some((number, child));
        if let Some(why) = inner.stop.clone() {
            inner.stop(&why);
        }
        drop(inner);
        let mut words = String::new();
        while let Some(news) = news.next(LOOK) {
            match news {
                News::Progress(event) => drop(self.change(number, |run| run.apply(&event))),
                News::Words(said) => child::keep_words(&mut words, &said),
                News::Nothing => self.lock().kill_overdue(),
            }
        }
        let mut inner = self.lock();
        let code = inner.current.take().and_then(|(_, child)| child.end());
        let stopped = inner.stop.take();
        drop(inner);
        let result = RunOutcome::read(run.kind, &self.store.place(&run.id));
        self.change(number, |run| match stopped {
            Some(why) => run.finish(State::Aborted, &why),
            None => run.conclude(result, code, &words),
        });
    }

    /// Removes what a run may have left on its target.
    fn tidy(&self, number: u64) {
        let inner = self.lock();
        let Some(run) = inner.runs.get(&number).cloned() else { return };
        // Another server may keep this one from ending; it can be cleaned after the start.
        let later = inner.ending && !run.own;
        drop(inner);
        if run.cleaned || later {
            return;
        }
        let clean = |target: RunTarget| {
            let target = self.reached(&target);
            let one = |name: &String| child::clean(&self.program, &target, name, LAB_CLEAN_MAX);
            run.folders().iter().try_for_each(one)
        };
        let done = run.all_targets().into_iter().try_for_each(clean);
        self.change(number, |run| match &done {
            Ok(()) => run.cleaned = true,
            // Repeated with the next start of the server; a target that is gone has nothing left.
            Err(why) => {
                let text = format!("the folder {} may not have been removed: {why}", run.scratch);
                run.degraded.push(text);
            }
        });
    }

    /// A run's target as it is reached now: since a restart this server may be at another address.
    fn reached(&self, target: &RunTarget) -> String {
        let here = self.here.get().filter(|_| target.own);
        match (here, Target::parse(&target.url)) {
            (Some(here), Ok(target)) => target.moved(*here).to_string(),
            _ => target.url.clone(),
        }
    }

    /// Forgets the oldest runs beyond what is kept.
    fn make_room(&self) {
        let _storing = self.storing();
        let mut inner = self.lock();
        let ended: Vec<u64> =
            inner.runs.iter().filter(|(_, run)| run.state.is_final()).map(|(n, _)| *n).collect();
        for number in self.store.surplus(&ended) {
            if self.store.remove(&run::id(number)).is_ok() {
                inner.forget(number);
            }
        }
    }

    /// Changes a run, and keeps it so.
    fn change(&self, number: u64, edit: impl FnOnce(&mut Run)) -> Option<Run> {
        let _storing = self.storing();
        let run = self.lock().edit(number, edit)?;
        if let Err(error) = self.store.write(&run) {
            base::info!("lab", "the run {} cannot be stored: {error}", run.id);
        }
        Some(run)
    }

    fn storing(&self) -> MutexGuard<'_, ()> {
        self.storing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn find(&self, id: &str) -> Result<u64, RunQueueError> {
        let found = self.runs.iter().find(|(_, run)| run.id == id).map(|(number, _)| *number);
        found.ok_or_else(|| RunQueueError::Unknown(id.to_owned()))
    }

    fn put(&mut self, run: Run) {
        let Some(number) = run.number() else { return };
        self.changes += 1;
        self.changed.insert(number, self.changes);
        self.runs.insert(number, run);
    }

    fn edit(&mut self, number: u64, edit: impl FnOnce(&mut Run)) -> Option<Run> {
        let mut run = self.runs.get(&number)?.clone();
        edit(&mut run);
        self.put(run.clone());
        Some(run)
    }

    fn forget(&mut self, number: u64) {
        self.runs.remove(&number);
        self.changed.remove(&number);
        self.changes += 1;
        self.gone.push_back((self.changes, number));
        if self.gone.len() > GONE_KEPT {
            self.gone.pop_front();
        }
    }

    fn stop(&mut self, why: &str) {
        self.stop = Some(why.to_owned());
        if let Some((_, child)) = &mut self.current {
            child.stop();
        }
    }

    fn kill_overdue(&mut self) {
        if let Some((_, child)) = &mut self.current {
            child.kill_overdue();
        }
    }
}

impl Worker {
    /// Ends what runs and removes what it has left, as long as the server still answers. What waits
    /// is aborted at the next start.
    pub fn end(mut self) {
        let mut inner = self.desk.lock();
        inner.ending = true;
        if inner.stop.is_none() {
            inner.stop(RESTARTED);
        }
        drop(inner);
        self.desk.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
