//! Ordering of requests: those of a channel run at once unless they concern the same object and one
//! of them changes it; then the later one waits for the earlier. Pure.
//!
//! Objects are compared by path and by open file. Two paths that lead to one file by links are
//! different: requests to both without waiting for the first reply run in either order.

use std::rc::Rc;

use vfs::locks::FileKey;

use files::VPath;

/// A part of an open file that is read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileUse {
    /// The file.
    pub file: FileKey,
    /// By what path it was opened.
    pub path: Rc<VPath>,
    /// First byte.
    pub start: u64,
    /// Byte after the last one; [`u64::MAX`] is everything there can be.
    pub end: u64,
    /// Whether it is changed.
    pub write: bool,
}

/// A path that is looked at, or something at it or below it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathUse {
    /// The path.
    pub path: Rc<VPath>,
    /// Whether it is changed.
    pub change: bool,
}

/// What a request concerns: at most two files and two paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Footprint {
    pub files: [Option<FileUse>; 2],
    pub paths: [Option<PathUse>; 2],
    /// Whether open files may be at other paths after it: until it is done, it is unknown what
    /// later requests concern.
    pub moves: bool,
}

impl FileUse {
    fn meets(&self, other: &Self) -> bool {
        (self.write || other.write)
            && self.file == other.file
            && self.start < other.end
            && other.start < self.end
    }
}

impl PathUse {
    fn meets(&self, other: &Self) -> bool {
        (self.change || other.change)
            && (self.path.starts_with(&other.path) || other.path.starts_with(&self.path))
    }

    /// A change at a path may concern the file or a directory above it; a request that looks at a
    /// path sees what was written to its file before.
    fn meets_file(&self, file: &FileUse) -> bool {
        match self.change {
            true => file.path.starts_with(&self.path),
            false => file.write && file.path == self.path,
        }
    }
}

impl Footprint {
    /// It concerns an open file.
    pub fn file(file: FileUse) -> Self {
        Self { files: [Some(file), None], ..Self::default() }
    }

    /// It concerns a path.
    pub fn path(path: &Rc<VPath>, change: bool) -> Self {
        Self { paths: [Some(PathUse { path: Rc::clone(path), change }), None], ..Self::default() }
    }

    /// It moves what is at one path, or below it, to another.
    pub fn two_paths(one: &Rc<VPath>, other: &Rc<VPath>) -> Self {
        let change = |path: &Rc<VPath>| Some(PathUse { path: Rc::clone(path), change: true });
        Self { paths: [change(one), change(other)], moves: true, ..Self::default() }
    }

    /// Whether a later request with the other footprint has to wait for this one.
    fn meets(&self, later: &Self) -> bool {
        for mine in self.files.iter().flatten() {
            if later.files.iter().flatten().any(|other| mine.meets(other))
                || later.paths.iter().flatten().any(|path| path.meets_file(mine))
            {
                return true;
            }
        }
        self.paths.iter().flatten().any(|mine| {
            later.paths.iter().flatten().any(|other| mine.meets(other))
                || later.files.iter().flatten().any(|file| mine.meets_file(file))
        })
    }
}

/// A request's place among the others of its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

struct Entry<J> {
    ticket: Ticket,
    footprint: Footprint,
    /// How many earlier ones it waits for.
    before: usize,
    /// What is to be run, until it is.
    job: Option<J>,
}

/// The requests of a channel that are not done, in the order in which they came.
pub(super) struct Order<J> {
    entries: Vec<Entry<J>>,
    next: u64,
    /// How many of them move something.
    moving: usize,
}

impl<J> Default for Order<J> {
    fn default() -> Self {
        Self { entries: Vec::new(), next: 0, moving: 0 }
    }
}

impl<J> Order<J> {
    /// Requests that are not done.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether one of them moves something: no other may be added now.
    pub fn is_moving(&self) -> bool {
        self.moving > 0
    }

    /// Adds a request; gives its job back if it may run at once.
    pub fn enter(&mut self, footprint: Footprint, job: J) -> (Ticket, Option<J>) {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.moving += usize::from(footprint.moves);
        let before = self.entries.iter().filter(|e| e.footprint.meets(&footprint)).count();
        let (job, kept) = if before == 0 { (Some(job), None) } else { (None, Some(job)) };
        self.entries.push(Entry { ticket, footprint, before, job: kept });
        (ticket, job)
    }

    /// A request is done; gives those that may run now.
    pub fn leave(&mut self, ticket: Ticket) -> Vec<(Ticket, J)> {
        let Ok(at) = self.entries.binary_search_by_key(&ticket, |e| e.ticket) else {
            return Vec::new();
        };
        let done = self.entries.remove(at);
        self.moving -= usize::from(done.footprint.moves);
        debug_assert!(done.before == 0 && done.job.is_none(), "a waiting request is done");
        let mut ready = Vec::new();
        for entry in self.entries.iter_mut().skip(at) {
            if entry.before > 0 && done.footprint.meets(&entry.footprint) {
                entry.before -= 1;
                if entry.before == 0
                    && let Some(job) = entry.job.take()
                {
                    ready.push((entry.ticket, job));
                }
            }
        }
        ready
    }

    /// The job of the last request that came, if it waits: it may still be added to.
    pub fn last_waiting(&mut self) -> Option<&mut J> {
        self.entries.last_mut()?.job.as_mut()
    }
}

#[cfg(test)]
mod tests;
