//! Files that come: written beside, and given their name when they are whole.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use base::limits::{DSYNC_DELTA_MIN, DSYNC_PIECE, DSYNC_THREADS};
use wire::dsync::{About, Begin, Copy, End, Kept, Kind, Message, Meta, Outcome};

use super::files::{Aside, Writing};
use super::plan::{Failed, broken, check_meta};
use super::tracker::Job;
use super::{Shared, why};
use crate::link::lock;
use crate::tree::aside::{aside_name, aside_of};
use crate::tree::{Tree, split};

/// One of the threads that take what the control stream says of files.
pub struct Writer<T: Tree> {
    shared: Arc<Shared<T>>,
    /// Files that have begun and not ended.
    begun: HashSet<u64>,
    piece: Vec<u8>,
}

impl<T: Tree> Writer<T> {
    /// Nothing has come.
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Self { shared, begun: HashSet::new(), piece: Vec::new() }
    }

    /// Takes what came of a file.
    pub(super) fn take(&mut self, message: Message<'_>) -> Result<(), Failed> {
        match message {
            Message::Begin(begin) => self.begin(begin),
            Message::Data(data) => self.shared.data(&data),
            Message::Copy(copy) => self.copy(&copy),
            Message::Kept(kept) => self.kept(&kept),
            Message::End(end) => self.end(end),
            _ => broken("what is about no file"),
        }
    }

    fn begin(&mut self, begin: Begin) -> Result<(), Failed> {
        let Begin { id, meta } = begin;
        check_meta(&meta)?;
        if meta.kind != Kind::FILE {
            return broken("the content of what is no file");
        }
        let shared = &self.shared;
        let wanted = shared.wanted(meta);
        if self.begun.contains(&id)
            && let Some(file) = shared.files.get(id)
        {
            // It has changed while it was read, and comes anew.
            let mut writing = lock(&file);
            writing.restart(wanted);
            let size = writing.wanted.size;
            shared.try_aside(&mut writing, |aside| shared.tree.set_size(&aside.file, size));
            drop(writing);
            shared.files.turn(id);
            return Ok(());
        }
        if self.begun.len() >= DSYNC_THREADS {
            return broken("more files at once than it has threads");
        }
        let Some(job) = shared.tracker.take(id) else { return broken("a file unasked") };
        job.node.touch();
        job.fate.set_new();
        if !job.noted {
            shared.note(About::UPDATE, &job.path, "");
        }
        self.begun.insert(id);
        shared.files.insert(id, Writing::new(job, wanted))
    }

    fn copy(&mut self, copy: &Copy) -> Result<(), Failed> {
        let (shared, piece) = (&self.shared, &mut self.piece);
        let Some(file) = shared.files.get(copy.id) else { return broken("a copy of no file") };
        let length = copy.length as usize;
        if length > DSYNC_PIECE {
            return broken("a copy that is longer than a piece");
        }
        let mut writing = lock(&file);
        writing.cover(copy.hole, copy.offset, u64::from(copy.length))?;
        piece.resize(length, 0);
        let Writing { old, digest, job, .. } = &mut *writing;
        let read = job.as_ref().map_or(Ok(()), |job| shared.read_old(old, job, copy.from, piece));
        digest.piece(copy.offset, piece);
        shared.try_aside(&mut writing, |aside| {
            read?;
            shared.tree.write(&aside.file, piece, copy.offset)
        });
        shared.tracker.count(|counts| counts.bytes_done += u64::from(copy.length));
        shared.end_if_whole(copy.id, &mut writing)
    }

    /// A piece is at its place already: it is hashed as it lies there.
    fn kept(&mut self, kept: &Kept) -> Result<(), Failed> {
        let (shared, piece) = (&self.shared, &mut self.piece);
        let Some(file) = shared.files.get(kept.id) else {
            return broken("what is kept of no file");
        };
        let length = kept.length as usize;
        let mut writing = lock(&file);
        writing.cover(kept.hole, kept.offset, u64::from(kept.length))?;
        let had = writing.job.as_ref().map_or(0, |job| job.kept);
        if length > DSYNC_PIECE || kept.offset + u64::from(kept.length) > had {
            return broken("a piece as kept that it was not told of");
        }
        piece.resize(length, 0);
        shared.try_aside(&mut writing, |aside| {
            let whole = read_all(&shared.tree, &aside.file, piece, kept.offset);
            whole.map_err(|_| io::Error::other("what was kept of it is gone"))
        });
        writing.digest.piece(kept.offset, piece);
        shared.tracker.count(|counts| counts.bytes_done += u64::from(kept.length));
        shared.end_if_whole(kept.id, &mut writing)
    }

    fn end(&mut self, end: End) -> Result<(), Failed> {
        let (id, shared) = (end.id, &self.shared);
        if self.begun.remove(&id) {
            let Some(file) = shared.files.get(id) else { return broken("the end of no file") };
            if !matches!(end.outcome, Outcome::WHOLE | Outcome::FAILED) {
                return broken("an end that does not fit its file");
            }
            let mut writing = lock(&file);
            writing.ended = Some(end);
            return shared.end_if_whole(id, &mut writing);
        }
        let Some(job) = shared.tracker.take(id) else { return broken("the end of no file") };
        let failed = match (end.outcome, &end.meta) {
            (Outcome::FAILED, _) => Some(at_source(&end)),
            (Outcome::SAME, Some(meta)) if job.own.is_some() => {
                check_meta(meta)?;
                shared.same(&job, meta.clone())
            }
            (Outcome::OTHER, _) if shared.options.dry_run => {
                shared.note(About::UPDATE, &job.path, "");
                job.fate.set_new();
                None
            }
            _ => return broken("an end that does not fit its file"),
        };
        shared.conclude(id, &job, failed);
        Ok(())
    }
}

/// Why the source could not send a file.
fn at_source(end: &End) -> String {
    format!("at the source: {}", String::from_utf8_lossy(&end.why.0))
}

/// Reads what must be there.
fn read_all<T: Tree>(tree: &T, file: &T::File, piece: &mut [u8], from: u64) -> io::Result<()> {
    let mut done = 0;
    while done < piece.len() {
        let at = from.checked_add(done as u64).ok_or(io::ErrorKind::InvalidInput)?;
        match tree.read(file, &mut piece[done..], at)? {
            0 => return Err(io::Error::other("what is here was changed meanwhile")),
            n => done += n,
        }
    }
    Ok(())
}

impl<T: Tree> Shared<T> {
    /// The name beside its place under which a file of this size can be taken up again, if that is
    /// of use: a smaller one is sent as quickly, and between directories of one machine so is any.
    pub(super) fn aside_for(&self, name: &[u8], size: u64) -> Option<Vec<u8>> {
        (self.delta && size >= DSYNC_DELTA_MIN).then(|| aside_of(name))
    }

    /// Makes a file beside its place, or takes up what was left of it.
    pub(super) fn create(&self, job: &Job, size: u64) -> io::Result<Aside<T>> {
        let (dir, fixed) =
            (self.tree.dir(&job.node.path)?, self.aside_for(split(&job.path).1, size));
        let name = fixed.clone().unwrap_or_else(aside_name);
        if job.kept > 0 && fixed.is_some() {
            let file = self.tree.take_up(&dir, &name)?;
            self.tree.cut(&file, job.kept, size)?;
            return Ok(Aside { dir, name, file });
        }
        if fixed.is_some() {
            // What was left under this name could not be taken up; mostly there is nothing.
            let _none = self.tree.remove(&dir, &name, Kind::FILE);
        }
        let file = self.tree.create(&dir, &name)?;
        let aside = Aside { dir, name, file };
        match self.tree.set_size(&aside.file, size) {
            Ok(()) => Ok(aside),
            Err(e) => {
                self.sweep_aside(&aside);
                Err(e)
            }
        }
    }

    fn sweep_aside(&self, aside: &Aside<T>) {
        // The next run sweeps what cannot be taken away now.
        let _swept = self.tree.remove(&aside.dir, &aside.name, Kind::FILE);
    }

    /// Takes away what was written.
    pub(super) fn give_up(&self, writing: &mut Writing<T>) {
        if let Some(aside) = writing.aside.take() {
            self.sweep_aside(&aside);
        }
    }

    /// A file that was asked for has ended, well or not.
    pub(super) fn conclude(&self, id: u64, job: &Job, failed: Option<String>) {
        match failed {
            Some(text) => {
                job.fate.set_failed();
                self.fail(&job.path, &text);
            }
            None => self.tracker.count(|counts| counts.files_done += 1),
        }
        self.release(&job.node);
        self.tracker.leave(id, job.sums);
    }

    /// Reads from what a file replaces.
    fn read_old(
        &self,
        old: &mut Option<T::File>,
        job: &Job,
        from: u64,
        piece: &mut [u8],
    ) -> io::Result<()> {
        let (dir, name) = split(&job.path);
        let file = match old.take() {
            Some(file) => file,
            None => self.tree.open(&self.tree.dir(dir)?, name)?,
        };
        read_all(&self.tree, &file, piece, from)?;
        *old = Some(file);
        Ok(())
    }

    /// Gives a file its name, if it is what was sent; why not, if not.
    pub(super) fn complete(&self, writing: &mut Writing<T>, end: &End) -> Option<String> {
        if end.outcome != Outcome::WHOLE {
            self.give_up(writing);
            return Some(at_source(end));
        }
        // What is nothing but a hole has not been made yet.
        self.try_aside(writing, |_| Ok(()));
        if writing.failed.is_some() {
            self.give_up(writing);
            return writing.failed.clone();
        }
        let (aside, job) = (writing.aside.take()?, writing.job.as_ref()?);
        if writing.digest.finish() != end.hash {
            self.sweep_aside(&aside);
            return Some("what arrived is not what was sent".to_owned());
        }
        if let Err(e) = self.tree.set_open(&aside.file, &writing.wanted, self.keep) {
            self.fail(&job.path, &format!("its metadata: {}", why(&e)));
        }
        let (_, name) = split(&job.path);
        self.tree.rename(&aside.dir, &aside.name, name).err().map(|e| {
            self.sweep_aside(&aside);
            why(&e)
        })
    }

    /// The content is the same: what is left is the metadata.
    fn same(&self, job: &Job, meta: Meta) -> Option<String> {
        let wanted = self.wanted(meta);
        let own = job.own.as_ref()?;
        if self.is_same(&own.meta, &wanted) {
            return None;
        }
        self.note(About::METADATA, &job.path, "");
        if self.options.dry_run {
            return None;
        }
        let (_, name) = split(&job.path);
        let set = self
            .tree
            .dir(&job.node.path)
            .and_then(|dir| self.tree.set(&dir, name, &wanted, self.keep));
        set.err().map(|e| format!("its metadata: {}", why(&e)))
    }
}
