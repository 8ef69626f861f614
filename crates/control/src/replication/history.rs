//! The results of the newest runs of each action, over restarts: `STATE/replication.log`.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::limits::REPLICATION_HISTORY_MAX;

use super::record::Record;
use crate::tree::store::{Disk, repair, write_whole};

/// Its name below the state directory.
pub const FILE: &str = "replication.log";

/// The history of all actions. A line is appended for each run; when the file has more than about
/// twice the lines that are retained, it is rewritten.
pub struct History {
    disk: Arc<dyn Disk>,
    kept: Mutex<Retained>,
}

#[derive(Default)]
struct Retained {
    /// The oldest first.
    of: BTreeMap<String, VecDeque<Record>>,
    /// Those that the last change of the configuration has removed: it may be rolled back.
    removed: BTreeMap<String, VecDeque<Record>>,
    /// Lines of the file.
    lines: usize,
    /// The file does not have all that is kept.
    behind: bool,
}

impl History {
    /// Reads it. A line that a power cut has torn is passed over.
    ///
    /// # Errors
    /// The file cannot be read, or not be written to.
    pub fn open(disk: Arc<dyn Disk>) -> io::Result<Self> {
        repair(&*disk, FILE)?;
        let mut kept = Retained::default();
        for record in records(&disk.read(FILE)?.unwrap_or_default()) {
            kept.lines += 1;
            kept.enter(record);
        }
        Ok(Self { disk, kept: Mutex::new(kept) })
    }

    /// Adds the result of a run; it is on disk when this returns.
    ///
    /// # Errors
    /// The disk refuses; it is tried again with the next one.
    pub fn add(&self, record: &Record) -> io::Result<()> {
        let mut kept = self.kept();
        kept.enter(record.clone());
        let whole = kept.behind || kept.lines >= 2 * kept.count() + REPLICATION_HISTORY_MAX;
        if whole {
            return self.write(&mut kept);
        }
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let added = self.disk.append(FILE, &line).and_then(|()| self.disk.flush(FILE));
        kept.behind = added.is_err();
        kept.lines += 1;
        added
    }

    /// Results of an action, the newest first.
    pub fn of(&self, action: &str) -> Vec<Record> {
        let kept = self.kept();
        kept.of.get(action).map(|all| all.iter().rev().cloned().collect()).unwrap_or_default()
    }

    /// The newest result of an action.
    pub fn last(&self, action: &str) -> Option<Record> {
        self.kept().of.get(action)?.back().cloned()
    }

    /// Actions have other names: from, to. Their results go with them.
    ///
    /// # Errors
    /// The disk refuses; it is tried again with the next result.
    pub fn rename(&self, names: &[(&str, &str)]) -> io::Result<()> {
        let mut kept = self.kept();
        // All leave before the first arrives: two may exchange their names.
        let left: Vec<_> = names.iter().map(|(from, to)| (*to, kept.of.remove(*from))).collect();
        let mut any = false;
        for (to, results) in left {
            // Of an action that was destroyed: its name was free.
            any |= kept.remove(to);
            let Some(mut results) = results else { continue };
            results.iter_mut().for_each(|one| to.clone_into(&mut one.action));
            kept.of.insert(to.to_owned(), results);
            any = true;
        }
        if any { self.write(&mut kept) } else { Ok(()) }
    }

    /// A new action of this name has nothing to do with one that was destroyed.
    ///
    /// # Errors
    /// The disk refuses; it is tried again with the next result.
    pub fn forget(&self, action: &str) -> io::Result<()> {
        let mut kept = self.kept();
        if kept.remove(action) { self.write(&mut kept) } else { Ok(()) }
    }

    /// The changes of the configuration before this one will not be rolled back.
    pub fn settle(&self) {
        self.kept().removed.clear();
    }

    /// Results that were removed since the last [`Self::settle`] are there again, where the action
    /// has none now.
    ///
    /// # Errors
    /// The disk refuses; it is tried again with the next result.
    pub fn restore(&self) -> io::Result<()> {
        let mut kept = self.kept();
        let removed = std::mem::take(&mut kept.removed);
        let any = !removed.is_empty();
        for (action, results) in removed {
            kept.of.entry(action).or_insert(results);
        }
        if any { self.write(&mut kept) } else { Ok(()) }
    }

    fn write(&self, kept: &mut Retained) -> io::Result<()> {
        let mut text = Vec::new();
        let mut lines = 0;
        for record in kept.of.values().flatten() {
            serde_json::to_writer(&mut text, record)?;
            text.push(b'\n');
            lines += 1;
        }
        let written = write_whole(&*self.disk, FILE, &text);
        kept.behind = written.is_err();
        if written.is_ok() {
            kept.lines = lines;
        }
        written
    }

    fn kept(&self) -> MutexGuard<'_, Retained> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Retained {
    fn enter(&mut self, record: Record) {
        let results = self.of.entry(record.action.clone()).or_default();
        if results.len() >= REPLICATION_HISTORY_MAX {
            results.pop_front();
        }
        results.push_back(record);
    }

    /// Removes the results of an action, as long as the change may be rolled back; whether there
    /// were any.
    fn remove(&mut self, action: &str) -> bool {
        let results = self.of.remove(action);
        let any = results.is_some();
        self.removed.extend(results.map(|results| (action.to_owned(), results)));
        any
    }

    fn count(&self) -> usize {
        self.of.values().map(VecDeque::len).sum()
    }
}

/// The records of a file; what is none is left out.
fn records(content: &[u8]) -> impl Iterator<Item = Record> {
    content.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}
