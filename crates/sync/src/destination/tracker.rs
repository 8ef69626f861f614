//! Jobs in progress, and the reports about them.

use std::collections::HashMap;
use std::sync::Arc;

use base::clock::monotonic_ns;
use base::limits::{DSYNC_BLOCKS_MAX, DSYNC_NEEDS_MAX, DSYNC_PROGRESS_NS, PATH_MAX};
use wire::dsync::{About, Bytes, Counts, Note};

use super::link_table::LinkOutcome;
use super::node::Node;
use crate::error::Why;
use crate::events::{Event, Report};
use crate::link::sentence;
use crate::stop::{Stop, Watched};
use crate::tree::ScannedEntry;

/// A file that was asked for.
pub struct Job {
    /// The way to it.
    pub path: Vec<u8>,
    /// Its directory.
    pub node: Arc<Node>,
    /// What has its name here now.
    pub own: Option<ScannedEntry>,
    /// Sums that were sent for it.
    pub sums: usize,
    /// Bytes of a block of what it replaces, if those were sums of that.
    pub block: usize,
    /// Bytes of what a broken run has left of it that were among them.
    pub kept: u64,
    /// Whether it is written where it lies.
    pub in_place: bool,
    /// Whether the plan has noted it already.
    pub noted: bool,
    /// What becomes of the file, for its other names.
    pub fate: LinkOutcome,
}

/// Jobs in progress.
pub struct Tracker {
    state: Arc<Watched<State>>,
    report: Report,
    show: Show,
}

/// Shows how far it is.
pub type Show = Box<dyn Fn(Counts) + Send + Sync>;

struct State {
    /// Jobs that were not finished; writers take them out of their places.
    jobs: HashMap<u64, Option<Job>>,
    sums: usize,
    next: u64,
    counts: Counts,
    told_ns: u64,
}

impl Tracker {
    /// Nothing is.
    pub fn new(stop: &Arc<Stop>, report: &Report, show: Show) -> Self {
        let state = State {
            jobs: HashMap::new(),
            sums: 0,
            next: 0,
            counts: nothing(),
            told_ns: monotonic_ns(),
        };
        Self { state: Watched::new(state, stop), report: Arc::clone(report), show }
    }

    /// Waits for room for a file with this many sums, and enters it.
    pub fn enter(&self, job: Job) -> Result<u64, Why> {
        let mut job = Some(job);
        self.state.wait(|state| {
            let sums = job.as_ref().map_or(0, |job| job.sums);
            if state.jobs.len() >= DSYNC_NEEDS_MAX || state.sums + sums > DSYNC_BLOCKS_MAX {
                return None;
            }
            let job = job.take()?;
            state.sums += sums;
            state.next += 1;
            state.jobs.insert(state.next, Some(job));
            Some(state.next)
        })
    }

    /// Takes a job out of the table; it is still counted as in progress.
    pub fn take(&self, id: u64) -> Option<Job> {
        self.state.look(|state| state.jobs.get_mut(&id).and_then(Option::take))
    }

    /// Whether a job is in progress.
    pub fn knows(&self, id: u64) -> bool {
        self.state.look(|state| state.jobs.contains_key(&id))
    }

    /// A job that was taken has ended.
    pub fn leave(&self, id: u64, sums: usize) {
        let left = self.state.look(|state| {
            state.jobs.remove(&id);
            state.sums -= sums;
            state.jobs.len()
        });
        // Threads that wait for room are woken for a good part of it, and not for each small file.
        if sums > 0 || left.is_multiple_of(DSYNC_NEEDS_MAX / 4) {
            self.state.wake();
        }
    }

    /// Waits until no job is in progress.
    pub fn idle(&self) -> Result<(), Why> {
        self.state.wait(|state| state.jobs.is_empty().then_some(()))
    }

    /// Counts.
    pub fn count(&self, count: impl FnOnce(&mut Counts)) {
        let now = monotonic_ns();
        let progress = self.state.look(|state| {
            count(&mut state.counts);
            let due = now.saturating_sub(state.told_ns) >= DSYNC_PROGRESS_NS;
            due.then(|| {
                state.told_ns = now;
                state.counts.clone()
            })
        });
        if let Some(counts) = progress {
            (self.show)(counts);
        }
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        self.state.look(|state| state.counts.clone())
    }

    /// Reports something, and counts it.
    pub fn note(&self, about: About, path: &[u8], text: &str) {
        self.count(|counts| match about {
            About::FAILURE => counts.failures += 1,
            About::NOTICE => {}
            _ => counts.changes += 1,
        });
        let path = Bytes(path[..path.len().min(PATH_MAX)].to_vec());
        (self.report)(Event::Note(Note { about, path, text: sentence(text) }));
    }
}

fn nothing() -> Counts {
    Counts {
        entries: 0,
        changes: 0,
        files: 0,
        bytes: 0,
        files_done: 0,
        bytes_done: 0,
        bytes_received: 0,
        bytes_cloned: 0,
        bytes_copied: 0,
        devices_skipped: 0,
        set_id_dropped: 0,
        failures: 0,
        scanned: false,
    }
}
