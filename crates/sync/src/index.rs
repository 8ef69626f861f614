//! What is kept from one run to the next at the side that starts them: of each entry of the trees
//! that are here, by what a change of it is seen, and the sum of its content if that was computed.
//!
//! It saves reading, and nothing else depends on it: a sum counts only for a file that has the
//! size, the times and the number which it had when it was read, and a file for which that is not
//! certain is read.
//!
//! - [`record`]: the bytes, and their order.
//! - [`file`]: what was kept, and what becomes the next.
//! - [`sums`]: the sum of a file's content, kept or read.
//! - [`gather`]: a walk that finds what is kept for the next run.
//! - [`show`]: an index as text.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base::clock::Clock;
use wire::dsync::{About, Bytes, Kind, Meta, Note, Role, Time};

use crate::error::SyncError;
use crate::events::{Event, Report};
use crate::link::sentence;
use crate::stop::lock;
use crate::tree::entry::ScannedEntry;

mod file;
mod gather;
mod record;
mod show;
mod sums;

use file::{Draft, SavedIndex, Spool, at};
pub use gather::keep;
pub use record::{IndexedTrees, Part, Record, State, Unfit, scan};
pub use show::{inspect, is_index};
pub use sums::content;

/// The index of a run.
pub struct Index {
    path: PathBuf,
    places: IndexedTrees,
    kept: Option<SavedIndex>,
    /// Why what is there is not used.
    unfit: Option<Unfit>,
    /// What this run computes, of each side; nothing in a dry run.
    spools: [Mutex<Option<Spool>>; 2],
    /// What becomes the next.
    drafts: [Mutex<Option<Draft>>; 2],
    /// What failed of it.
    failed: Mutex<Option<io::Error>>,
    clock: Arc<dyn Clock>,
}

impl Index {
    /// Opens an index for a run. An existing one that cannot be used is ignored, which is reported.
    ///
    /// # Errors
    /// The next one could not be written where it is.
    pub fn open(
        path: &Path,
        places: IndexedTrees,
        dry_run: bool,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, SyncError> {
        let (kept, unfit) = match SavedIndex::open(path, &places) {
            Ok(kept) => (kept, None),
            Err(unfit) => (None, Some(unfit)),
        };
        let spool = || match dry_run {
            true => Ok(Mutex::default()),
            false => match Spool::new(path) {
                Ok(spool) => Ok(Mutex::new(Some(spool))),
                Err(source) => {
                    let place = path.display().to_string();
                    Err(SyncError::Place { place, source })
                }
            },
        };
        let spools = [spool()?, spool()?];
        let (drafts, failed) = (Default::default(), Mutex::default());
        let path = path.to_owned();
        Ok(Arc::new(Self { path, places, kept, unfit, spools, drafts, failed, clock }))
    }

    /// What of it is for a tree.
    pub fn side(self: &Arc<Self>, role: Role) -> Side {
        Side { index: Arc::clone(self), role }
    }

    /// Says if what was kept is not used.
    pub(crate) fn begin(&self, report: &Report) {
        if let Some(unfit) = &self.unfit {
            let cause = std::error::Error::source(unfit).map(|e| format!(": {e}"));
            let cause = cause.unwrap_or_default();
            self.report_notice(report, &format!("is not used, because {unfit}{cause}"));
        }
    }

    /// Writes the next one, after a run that came to its end.
    pub(crate) fn end(&self, report: &Report) {
        let sides = [0, 1].map(|side| lock(&self.drafts[side]).take());
        let failed = lock(&self.failed).take();
        if sides.iter().all(Option::is_none) && failed.is_none() {
            return;
        }
        let done = failed.map_or_else(|| file::write(&self.path, &self.places, sides), Err);
        if let Err(e) = done {
            self.report_notice(report, &format!("could not be written: {e}"));
        }
    }

    fn report_notice(&self, report: &Report, what: &str) {
        let text = sentence(&format!("the index {} {what}", self.path.display()));
        report(Event::Note(Note { about: About::NOTICE, path: Bytes(Vec::new()), text }));
    }

    /// Remembers what failed first; without a sum, a file is read again.
    fn fail<R>(&self, done: io::Result<R>) -> Option<R> {
        match done {
            Ok(done) => Some(done),
            Err(e) => {
                lock(&self.failed).get_or_insert(e);
                None
            }
        }
    }
}

/// What of an index is for a tree.
#[derive(Clone)]
pub struct Side {
    index: Arc<Index>,
    role: Role,
}

/// Where an entry of the destination was changed since the last run, as far as that is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// At the destination.
    Destination,
    /// At the destination and at the source.
    Both,
}

impl Side {
    /// Makes room for the sum of a file that will be asked for, in the order of the walk.
    pub fn enter(&self, path: &[u8]) -> Option<u64> {
        let mut spool = lock(&self.index.spools[at(self.role)]);
        let entered = spool.as_mut()?.enter(path);
        self.index.fail(entered).flatten()
    }

    /// The sum of a file that is as it was.
    fn known(&self, path: &[u8], seen: &ScannedEntry) -> Option<[u8; 32]> {
        let record = self.index.kept.as_ref()?.find(self.role, path)?;
        record.sum.filter(|_| State::of(seen) == Some(record.state))
    }

    fn fill(&self, slot: u64, state: &State, sum: &[u8; 32]) {
        if let Some(spool) = &*lock(&self.index.spools[at(self.role)]) {
            let filled = spool.fill(slot, state, sum);
            self.index.fail(filled);
        }
    }

    /// Whether what is at the destination, and is to be replaced by `wanted` or deleted, was
    /// changed by another program. Directories are changed by all that is in them.
    pub fn others(&self, path: &[u8], own: &ScannedEntry, wanted: Option<&Meta>) -> Option<Others> {
        let kept = self.index.kept.as_ref()?;
        let of = |meta: &Meta| (meta.kind, meta.size, meta.mtime.clone());
        if own.meta.kind == Kind::DIRECTORY {
            return None;
        }
        // What is not known may have been left out by the rules of that run.
        let Record { state, .. } = kept.find(self.role, path)?;
        let was = (state.kind, state.size, state.mtime);
        if of(&own.meta) == was {
            return None;
        }
        // What was at the destination was what the source had.
        let both = wanted.is_some_and(|wanted| {
            let time = |wanted: &Time| is_kept_time(&was.2, wanted);
            (wanted.kind, wanted.size) != (was.0, was.1) || !time(&wanted.mtime)
        });
        Some(if both { Others::Both } else { Others::Destination })
    }
}

/// Whether a time of a destination may be what became of one of the source, where whole seconds are
/// kept.
fn is_kept_time(kept: &Time, wanted: &Time) -> bool {
    let coarse = kept.nanoseconds == 0 && (0..2).contains(&(wanted.seconds - kept.seconds));
    kept == wanted || coarse
}

#[cfg(test)]
mod tests;
