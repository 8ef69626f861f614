//! `/maintenance/problems`: what is wrong with this machine, in one list, whichever part found it.
//!
//! A part feeds the list as a [`Source`]. A problem has its id from the part; the list remembers
//! since when it is there, over restarts of the server (`problems.json`).

pub mod node;

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use base::clock::{NS_PER_S, wall_ns};
use base::node::{Path, Value};
use control::state::files::{read_if_there, write_atomic};
use control::tree::{self, Actor, Problem};
use parking_lot::Mutex;

pub use host_hardware::faults::{Fault, Severity};

use node::PROBLEMS_MAX;

/// Where it is in the tree.
pub const PREFIX: [&str; 2] = ["maintenance", "problems"];
/// The file in the state directory.
pub const FILE: &str = "problems.json";
/// How long a list is good: a page reads each of its items.
const GOOD: Duration = Duration::from_secs(1);

/// A part of the server that finds problems.
pub trait Source: Send + Sync {
    /// Its name: `hardware`, `network`.
    fn name(&self) -> &'static str;

    /// What is wrong now. Called once a second at most while a page or an alert needs it; must not
    /// wait for a device.
    fn faults(&self) -> Vec<Fault>;

    /// Whether an administrator ends this problem by marking it; the others end with their causes.
    fn can_be_marked(&self, _id: &str) -> bool {
        false
    }

    /// An administrator has seen to a problem.
    ///
    /// # Errors
    /// One sentence: it ends only with its cause.
    fn mark_repaired(&self, _id: &str) -> Result<(), String> {
        Err("the problem ends when its cause ends; there is nothing to mark".to_owned())
    }
}

/// A problem of the list.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What is wrong.
    pub fault: Fault,
    /// Name of its source.
    pub source: &'static str,
    /// Seconds since the epoch.
    pub since: u64,
}

#[derive(Default)]
struct Cache {
    /// When the list was made, and the list.
    last: Option<(Instant, Vec<Entry>)>,
    /// Since when each is there.
    since: BTreeMap<String, u64>,
}

/// The list.
pub struct Problems {
    file: PathBuf,
    sources: Mutex<Vec<Weak<dyn Source>>>,
    cache: Mutex<Cache>,
}

impl Problems {
    /// For a server with this state directory.
    pub fn new(state: &FilePath) -> Arc<Self> {
        let file = state.join(FILE);
        let bytes = read_if_there(&file).ok().flatten().unwrap_or_default();
        let since = serde_json::from_slice(&bytes).unwrap_or_default();
        let cache = Mutex::new(Cache { since, last: None });
        Arc::new(Self { file, sources: Mutex::default(), cache })
    }

    /// Adds a part that finds problems.
    pub fn feed<T: Source + 'static>(&self, source: &Arc<T>) {
        let source: Weak<T> = Arc::downgrade(source);
        self.sources.lock().push(source);
    }

    /// What is wrong now, the most urgent first.
    pub fn list(&self) -> Vec<Entry> {
        let mut cache = self.cache.lock();
        if let Some((at, list)) = &cache.last
            && at.elapsed() < GOOD
        {
            return list.clone();
        }
        let now = wall_ns() / NS_PER_S;
        let sources: Vec<_> = self.sources.lock().iter().filter_map(Weak::upgrade).collect();
        let mut list = Vec::new();
        for source in sources {
            let entry = |fault: Fault| {
                let since = cache.since.get(&fault.id).copied().unwrap_or(now);
                Entry { fault, source: source.name(), since }
            };
            list.extend(source.faults().into_iter().map(entry));
        }
        list.sort_by(|a, b| (b.fault.severity, &a.fault.id).cmp(&(a.fault.severity, &b.fault.id)));
        list.truncate(PROBLEMS_MAX);
        let since: BTreeMap<String, u64> =
            list.iter().map(|one| (one.fault.id.clone(), one.since)).collect();
        if since != cache.since {
            self.note(&cache.since, &list);
            self.store(&since);
            cache.since = since;
        }
        cache.last = Some((Instant::now(), list.clone()));
        list
    }

    /// Logs what has begun and ended.
    fn note(&self, before: &BTreeMap<String, u64>, list: &[Entry]) {
        for one in list.iter().filter(|one| !before.contains_key(&one.fault.id)) {
            base::warning!("problems", "{}: {}", one.fault.id, one.fault.what);
        }
        let is_there = |id: &str| list.iter().any(|one| one.fault.id == id);
        for id in before.keys().filter(|id| !is_there(id)) {
            base::info!("problems", "{id}: ended");
        }
    }

    fn store(&self, since: &BTreeMap<String, u64>) {
        let bytes = serde_json::to_vec(since).unwrap_or_default();
        if let Err(e) = write_atomic(&self.file, &bytes, 0o600) {
            base::error!("problems", "{e}");
        }
    }

    /// Sentences of the problems of one source; none if there are none.
    pub fn sentence(&self, source: &str) -> Option<String> {
        let list = self.list();
        let of = list.iter().filter(|one| one.source == source);
        let sentences: Vec<&str> = of.map(|one| one.fault.what.as_str()).collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// The source of a problem of the list; `None` when the source has ended.
    fn source_of(&self, id: &str) -> Result<Option<Arc<dyn Source>>, String> {
        let name = self.list().into_iter().find(|one| one.fault.id == id).map(|one| one.source);
        let name = name.ok_or_else(|| format!("there is no problem {id}"))?;
        let sources: Vec<_> = self.sources.lock().iter().filter_map(Weak::upgrade).collect();
        Ok(sources.into_iter().find(|one| one.name() == name))
    }

    fn mark_repaired(&self, id: &str) -> Result<(), String> {
        let source = self.source_of(id)?;
        let done = source.map_or(Ok(()), |source| source.mark_repaired(id));
        self.cache.lock().last = None;
        done
    }
}

impl tree::Operational for Problems {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        let list = self.list();
        let Some(id) = path.segments().get(PREFIX.len()) else {
            return vec![("count", Value::number(list.len()))];
        };
        let Some(Entry { fault, source, since }) = list.into_iter().find(|one| one.fault.id == *id)
        else {
            return Vec::new();
        };
        let severity = match fault.severity {
            Severity::Minor => "minor",
            Severity::Major => "major",
            Severity::Critical => "critical",
        };
        vec![
            ("severity", Value::text(severity)),
            ("since", Value::number(since)),
            ("source", Value::text(source)),
            ("what", Value::Text(fault.what)),
            ("impact", Value::Text(fault.impact)),
            ("remedy", Value::Text(fault.remedy)),
        ]
    }

    fn items(&self, path: &Path) -> Vec<String> {
        if *path != Path::of(&PREFIX) {
            return Vec::new();
        }
        self.list().into_iter().map(|one| one.fault.id).collect()
    }

    fn offers(&self, path: &Path, _action: &str) -> bool {
        let Some(id) = path.segments().get(PREFIX.len()) else { return false };
        let source = self.source_of(id).ok().flatten();
        source.is_some_and(|source| source.can_be_marked(id))
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        _parameters: &BTreeMap<String, Value>,
        _who: &Actor,
    ) -> Result<serde_json::Value, Problem> {
        let (Some(id), "mark_repaired") = (path.segments().get(PREFIX.len()), action) else {
            return Err(Problem::unknown(path, &format!("unknown action {action}"), ""));
        };
        match self.mark_repaired(id) {
            Ok(()) => Ok(serde_json::Value::from("The problem is marked as repaired.")),
            Err(why) => Err(Problem::conflict(path, &why, "repair its cause")),
        }
    }
}
