//! All actions of the running server: the start and end of their runs, and their handler in the
//! tree.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use base::clock::{Clock, NS_PER_S};
use base::limits::{
    REPLICATION_AHEAD_MAX, REPLICATION_LOOK, REPLICATION_RUNS_MAX, REPLICATION_SHOWN,
};
use base::node::{Path, Value};
use serde_json::{Value as Json, json};

use super::history::History;
use super::plan::{Plan, Secrets};
use super::record::{Outcome, Record};
use super::run::{Environment, Run};
use super::served::Served;
use super::tell;
use crate::tree::store::Folder;
use crate::tree::{Actor, Apply, Document, Operational, Problem, Subtree, Transition, Tree};
use crate::zone;

/// Where the branch is.
const PREFIX: [&str; 2] = ["configuration", "replication"];
/// The starter of a run that is due.
const SCHEDULE: &str = "schedule";

fn prefix() -> Path {
    Path::of(&PREFIX)
}

/// All actions.
pub struct Replication {
    kit: Environment,
    clock: Arc<dyn Clock>,
    pub(super) history: History,
    served: OnceLock<Served>,
    inner: Mutex<Inner>,
    /// Something has changed that the schedule depends on.
    pub(super) changed: Condvar,
}

#[derive(Default)]
pub(super) struct Inner {
    actions: BTreeMap<String, Action>,
    /// Runs in progress, those of removed actions included.
    running: usize,
    ending: bool,
    /// Why results cannot be recorded.
    problem: Option<String>,
    threads: Vec<JoinHandle<()>>,
}

struct Action {
    plan: Arc<Plan>,
    secrets: Secrets,
    /// Up to this second all that was due has been seen to.
    looked: u64,
    run: Option<Arc<Run>>,
}

impl Action {
    fn is_due(&self, now: u64) -> bool {
        self.plan.enabled && self.plan.schedule.is_due(self.looked, now, &zone::offset)
    }

    fn next(&self) -> Option<u64> {
        self.plan.schedule.next(self.looked, &zone::offset).filter(|_| self.plan.enabled)
    }
}

impl Replication {
    /// Reads the history, and removes what a server that was killed has left. `program` is this
    /// one.
    ///
    /// # Errors
    /// The state directory cannot be used.
    pub fn open(state: PathBuf, program: PathBuf, clock: Arc<dyn Clock>) -> io::Result<Arc<Self>> {
        let history = History::open(Arc::new(Folder::new(&state)))?;
        let kit = Environment { program, state };
        // What is left there does not prevent the start of the server.
        if let Err(e) = kit.prepare() {
            base::warning!("replication", "files left by runs cannot be removed: {e}");
        }
        let (served, inner, changed) = (OnceLock::new(), Mutex::default(), Condvar::new());
        Ok(Arc::new(Self { kit, clock, history, served, inner, changed }))
    }

    /// Takes what `tree` has now, and begins to look at the schedule.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(self: &Arc<Self>, tree: &Tree, served: Served) -> io::Result<()> {
        // Set once, here.
        let _ = self.served.set(served);
        let (document, secrets) = (tree.document(), tree.secrets());
        self.take(&document, &[], &|at, property| secrets.get(&document, at, property));
        let all = self.clone();
        let thread = std::thread::Builder::new().name("replication".into());
        let thread = thread.spawn(move || all.follow())?;
        self.inner().threads.push(thread);
        Ok(())
    }

    /// Ends all runs, and starts none any more.
    pub fn end(&self) {
        let mut inner = self.inner();
        inner.ending = true;
        for run in inner.actions.values().filter_map(|action| action.run.as_ref()) {
            run.stop("the server ended");
        }
        let threads = std::mem::take(&mut inner.threads);
        drop(inner);
        self.changed.notify_all();
        for thread in threads {
            // Its panic was reported by the hook.
            let _ = thread.join();
        }
    }

    /// Its branch of the tree.
    pub fn branch(self: &Arc<Self>) -> Subtree {
        Subtree::new(&PREFIX, Arc::new(ReplicationNode(self.clone())))
    }

    /// Which enabled action has failed when it ran last, and why: one sentence.
    pub fn problem(&self) -> Option<String> {
        let inner = self.inner();
        let enabled = inner.actions.iter().filter(|(_, action)| action.plan.enabled);
        let failed = |name: &String| {
            let last = self.history.last(name)?;
            let bad = matches!(last.outcome, Outcome::Failed | Outcome::Partial);
            bad.then(|| format!("replication action {name}: {}", last.reason))
        };
        enabled.into_iter().find_map(|(name, _)| failed(name))
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.clock.wall_ns() / NS_PER_S
    }

    /// Looks at the schedule until the server ends.
    fn follow(self: Arc<Self>) {
        let mut inner = self.inner();
        while !inner.ending {
            let now = self.now();
            self.turn(&mut inner, now);
            let next = inner.actions.values().filter_map(Action::next).min();
            let next = next.map_or(REPLICATION_LOOK, |next| {
                // One that is due and waits for room is called by the end of another run.
                Duration::from_secs(next.saturating_sub(now).max(1)).min(REPLICATION_LOOK)
            });
            let waited = self.changed.wait_timeout(inner, next);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Starts what is due.
    pub(super) fn turn(self: &Arc<Self>, inner: &mut Inner, now: u64) {
        // Those of runs that have ended.
        inner.threads.retain(|thread| !thread.is_finished());
        let latest = now.saturating_add(REPLICATION_AHEAD_MAX.as_secs());
        for action in inner.actions.values_mut().filter(|action| action.looked > latest) {
            // The clock was ahead, and was set back.
            action.looked = now;
        }
        let due = inner.actions.iter().filter(|(_, action)| action.is_due(now));
        let due: Vec<String> = due.map(|(name, _)| name.clone()).collect();
        for name in due {
            let Some(action) = inner.actions.get_mut(&name) else { continue };
            if let Some(run) = &action.run {
                run.skipped.fetch_add(1, Relaxed);
                action.looked = now;
            } else if inner.running < REPLICATION_RUNS_MAX {
                action.looked = now;
                if let Err(e) = self.begin(inner, &name, SCHEDULE) {
                    base::error!("replication", "{name} cannot be started: {e}");
                }
            }
        }
    }

    /// Starts a run of an action that has none in progress.
    fn begin(self: &Arc<Self>, inner: &mut Inner, name: &str, by: &str) -> io::Result<()> {
        let Some(action) = inner.actions.get_mut(name) else { return Ok(()) };
        let run = Arc::new(Run::new(by, self.now()));
        let (plan, secrets) = (action.plan.clone(), action.secrets.clone());
        let (all, its) = (self.clone(), run.clone());
        let thread = std::thread::Builder::new().name("replication-run".into());
        let thread = thread.spawn(move || all.run(&its, &plan, &secrets))?;
        action.run = Some(run);
        inner.running += 1;
        inner.threads.push(thread);
        base::info!("replication", "{by} starts {name}");
        Ok(())
    }

    /// A run, on its thread.
    fn run(&self, run: &Arc<Run>, plan: &Plan, secrets: &Secrets) {
        let (outcome, reason) = match self.served.get() {
            Some(served) => run.go(&self.kit, plan, secrets, served),
            None => (Outcome::Failed, "the server does not serve yet".to_owned()),
        };
        let mut inner = self.inner();
        inner.running -= 1;
        // By the name that it has now; one that was destroyed has no history.
        let is_its = |action: &Action| action.run.as_ref().is_some_and(|one| Arc::ptr_eq(one, run));
        let found = inner.actions.iter_mut().find(|(_, action)| is_its(action));
        if let Some((name, action)) = found {
            action.run = None;
            let record = record(name, run, outcome, reason, self.now());
            base::info!("replication", "{}", record.sentence());
            let kept = self.history.add(&record);
            self.keep(&mut inner, kept);
        }
        drop(inner);
        self.changed.notify_all();
    }

    /// Notes whether results can be recorded.
    fn keep(&self, inner: &mut Inner, kept: io::Result<()>) {
        inner.problem = kept.err().map(|e| {
            base::warning!("replication", "results cannot be recorded: {e}");
            e.to_string()
        });
    }

    /// Applies a configuration that was checked. Actions with an unchanged schedule retain their
    /// state.
    fn take(
        &self,
        document: &Document,
        renamed: &[(Path, Path)],
        secret: &dyn Fn(&Path, &str) -> Option<String>,
    ) {
        let mut inner = self.inner();
        let mut before = std::mem::take(&mut inner.actions);
        let is_ours = |(from, _): &&(Path, Path)| from.parent() == Some(prefix());
        let names = renamed.iter().filter(is_ours);
        let names: Vec<(&str, &str)> =
            names.filter_map(|(from, to)| Some((from.name()?, to.name()?))).collect();
        let moved: Vec<_> =
            names.iter().map(|(from, to)| ((*to).to_owned(), before.remove(*from))).collect();
        before.extend(moved.into_iter().filter_map(|(to, action)| Some((to, action?))));
        let kept = self.history.rename(&names);
        self.keep(&mut inner, kept);
        let now = self.now();
        for name in document.items(&prefix()) {
            let at = prefix().join(&name);
            let Ok(plan) = Plan::read(document, &at) else { continue };
            let secrets = Secrets { password: secret(&at, "password"), key: secret(&at, "key") };
            let old = before.remove(&name);
            let same = old.as_ref().is_some_and(|old| {
                old.plan.schedule == plan.schedule && old.plan.enabled == plan.enabled
            });
            let looked = match &old {
                // A schedule that is new begins with its next time.
                Some(old) if same => old.looked,
                Some(_) => now,
                None => self.seen_to(&name).unwrap_or(now),
            };
            let (plan, run) = (Arc::new(plan), old.and_then(|old| old.run));
            inner.actions.insert(name, Action { plan, secrets, looked, run });
        }
        for run in before.values().filter_map(|gone| gone.run.as_ref()) {
            run.stop("its action was destroyed");
        }
        drop(inner);
        self.changed.notify_all();
    }

    /// Up to when all that was due had been seen to when the server ended, of an action that its
    /// schedule has started before.
    fn seen_to(&self, name: &str) -> Option<u64> {
        let results = self.history.of(name);
        results.iter().find(|one| one.by == SCHEDULE)?;
        results.first().map(|newest| newest.when)
    }

    /// Starts a run on behalf of a user.
    fn started(self: &Arc<Self>, path: &Path, name: &str, who: &Actor) -> Result<Json, Problem> {
        let mut inner = self.inner();
        let action = inner.actions.get(name).ok_or_else(|| gone(path))?;
        if action.run.is_some() {
            let hint = "wait until it ends, or stop it";
            return Err(Problem::conflict(path, "a run is in progress", hint));
        }
        if inner.ending || inner.running >= REPLICATION_RUNS_MAX {
            let sentence = format!("{} runs are in progress, the maximum", inner.running);
            return Err(Problem::conflict(path, &sentence, "wait until one ends"));
        }
        let begun = self.begin(&mut inner, name, &who.user);
        begun.map_err(|e| Problem::server(path, &e.to_string()))?;
        Ok(json!({ "note": format!("{name} has started") }))
    }

    fn stopped(&self, path: &Path, name: &str, who: &Actor) -> Result<Json, Problem> {
        let inner = self.inner();
        let action = inner.actions.get(name).ok_or_else(|| gone(path))?;
        let Some(run) = &action.run else {
            return Err(Problem::conflict(path, "no run in progress", ""));
        };
        run.stop(&format!("{} stopped it", who.user));
        Ok(Json::Null)
    }
}

fn gone(path: &Path) -> Problem {
    Problem::unknown(path, "this action does not exist any more", "list the actions")
}

fn record(name: &str, run: &Run, outcome: Outcome, reason: String, now: u64) -> Record {
    let progress = run.progress();
    Record {
        action: name.to_owned(),
        when: run.began,
        ended: now,
        by: run.by.clone(),
        outcome,
        reason,
        entries: progress.entries,
        changes: progress.changes,
        files: progress.files,
        bytes: progress.bytes,
        sent: progress.sent,
        devices_skipped: progress.devices_skipped,
        set_id_dropped: progress.set_id_dropped,
        failures: progress.failures,
        failed: progress.failed,
        skipped: run.skipped.load(Relaxed),
    }
}

/// What answers in the tree; a run that it starts needs all actions for as long as it takes.
struct ReplicationNode(Arc<Replication>);

impl Apply for ReplicationNode {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let names = transition.new.items(&prefix());
        let nodes = names.iter().map(|name| prefix().join(name));
        let problem = |at: Path| match Plan::read(transition.new, &at) {
            Ok(_) => transition.other_recipient(&at, "password", Plan::recipient),
            Err(problem) => Some(problem),
        };
        nodes.filter_map(problem).collect()
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        let (old, new) = (transition.old.items(&prefix()), transition.new.items(&prefix()));
        let arrives =
            |name: &String| transition.renamed.iter().any(|(_, to)| to.name() == Some(name));
        if !transition.back {
            self.0.history.settle();
            for name in new.difference(&old).filter(|name| !arrives(name)) {
                let kept = self.0.history.forget(name);
                self.0.keep(&mut self.0.inner(), kept);
            }
        }
        self.0.take(transition.new, transition.renamed, &|at, property| {
            transition.secret(at, property)
        });
        if transition.back {
            let kept = self.0.history.restore();
            self.0.keep(&mut self.0.inner(), kept);
        }
        Ok(())
    }
}

impl Operational for ReplicationNode {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        let inner = self.0.inner();
        if *path == prefix() {
            let under_way = |(name, action): (&String, &Action)| {
                let progress = action.run.as_ref()?.progress();
                Some(format!("{name}: {}", progress.sentence()))
            };
            let running = inner.actions.iter().filter_map(under_way);
            let problem = inner.problem.clone().unwrap_or_default();
            return vec![("running", Value::texts(running)), ("problem", Value::Text(problem))];
        }
        let Some((name, action)) = named(&inner, path) else { return Vec::new() };
        let waiting = action.is_due(self.0.now());
        let mut properties = tell::standing(action.run.as_deref(), waiting, action.next());
        properties.extend(tell::results(&self.0.history.of(name)));
        properties
    }

    fn facts(&self, path: &Path) -> Vec<String> {
        let inner = self.0.inner();
        let run = named(&inner, path).and_then(|(_, action)| action.run.as_ref());
        run.map(|_| "its current run will be stopped".to_owned()).into_iter().collect()
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        parameters: &BTreeMap<String, Value>,
        who: &Actor,
    ) -> Result<Json, Problem> {
        let name = path.name().filter(|_| path.parent() == Some(prefix()));
        match (name, action) {
            (Some(name), "start") => self.0.started(path, name, who),
            (Some(name), "stop") => self.0.stopped(path, name, who),
            (Some(name), "runs") => {
                let limit = parameters.get("limit").and_then(Value::as_integer);
                let limit = limit.and_then(|n| usize::try_from(n).ok());
                let mut rows = self.0.history.of(name);
                rows.truncate(limit.unwrap_or(REPLICATION_SHOWN));
                Ok(json!({ "rows": rows, "columns": COLUMNS }))
            }
            _ => Err(Problem::unknown(path, &format!("unknown action {action}"), "")),
        }
    }
}

/// What people read of a result, in this order.
const COLUMNS: [&str; 8] =
    ["when", "outcome", "by", "changes", "files", "bytes", "failures", "reason"];

fn named<'a>(inner: &'a Inner, path: &'a Path) -> Option<(&'a str, &'a Action)> {
    let name = path.name().filter(|_| path.parent() == Some(prefix()))?;
    inner.actions.get(name).map(|action| (name, action))
}
