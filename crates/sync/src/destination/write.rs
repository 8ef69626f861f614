//! Files that come: written beside, and given their name when they are whole.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use base::limits::{DSYNC_PIECE, DSYNC_THREADS};
use wire::dsync::{About, Begin, Copy, Data, End, Kind, Message, Meta, Outcome};

use super::plan::{Failed, broken, check_meta};
use super::tracker::Job;
use super::{Shared, why};
use crate::digest::Digest;
use crate::tree::aside::aside_name;
use crate::tree::{Tree, split};

/// A file that is being written.
struct Writing<T: Tree> {
    job: Job,
    wanted: Meta,
    /// Where it is written.
    aside: Option<Aside<T>>,
    /// Why it cannot be.
    failed: Option<String>,
    /// What it replaces, once something is taken of that.
    old: Option<T::File>,
    digest: Digest,
    /// Where the last piece ended.
    at: u64,
}

struct Aside<T: Tree> {
    dir: T::Dir,
    name: Vec<u8>,
    file: T::File,
}

/// One of the threads that write.
pub struct Writer<T: Tree> {
    shared: Arc<Shared<T>>,
    open: HashMap<u64, Writing<T>>,
    piece: Vec<u8>,
}

impl<T: Tree> Writer<T> {
    /// Nothing has come.
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Self { shared, open: HashMap::new(), piece: Vec::new() }
    }

    /// Takes what came of a file.
    pub(super) fn take(&mut self, message: Message<'_>) -> Result<(), Failed> {
        match message {
            Message::Begin(begin) => self.begin(begin),
            Message::Data(data) => self.data(&data),
            Message::Copy(copy) => self.copy(&copy),
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
        let wanted = self.shared.wanted(meta);
        if let Some(writing) = self.open.get_mut(&id) {
            // It has changed while it was read, and comes anew.
            (writing.digest, writing.at) = (Digest::default(), 0);
            writing.try_aside(|aside| self.shared.tree.set_size(&aside.file, wanted.size));
            writing.wanted = wanted;
            return Ok(());
        }
        if self.open.len() >= DSYNC_THREADS {
            return broken("more files at once than it has threads");
        }
        let Some(job) = self.shared.tracker.take(id) else { return broken("a file unasked") };
        job.node.touch();
        job.fate.set_new();
        if !job.noted {
            self.shared.note(About::UPDATE, &job.path, "");
        }
        let (aside, failed) = match self.shared.create(&job, wanted.size) {
            Ok(aside) => (Some(aside), None),
            Err(e) => (None, Some(why(&e))),
        };
        let digest = Digest::default();
        self.open.insert(id, Writing { job, wanted, aside, failed, old: None, digest, at: 0 });
        Ok(())
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), Failed> {
        let shared = &self.shared;
        let Some(writing) = self.open.get_mut(&data.id) else { return broken("data of no file") };
        writing.advance(data.offset, data.bytes.len())?;
        writing.digest.data(data);
        writing.try_aside(|aside| shared.tree.write(&aside.file, data.bytes, data.offset));
        let bytes = data.bytes.len() as u64;
        shared.tracker.count(|counts| {
            counts.bytes_received += bytes;
            counts.bytes_done += bytes;
        });
        Ok(())
    }

    fn copy(&mut self, copy: &Copy) -> Result<(), Failed> {
        let (shared, piece) = (&self.shared, &mut self.piece);
        let Some(writing) = self.open.get_mut(&copy.id) else { return broken("a copy of no file") };
        let length = copy.length as usize;
        if length > DSYNC_PIECE {
            return broken("a copy that is longer than a piece");
        }
        writing.advance(copy.offset, length)?;
        piece.resize(length, 0);
        let Writing { old, digest, job, .. } = writing;
        let read = shared.read_old(old, job, copy.from, piece);
        digest.piece(copy.offset, piece);
        writing.try_aside(|aside| {
            read?;
            shared.tree.write(&aside.file, piece, copy.offset)
        });
        shared.tracker.count(|counts| counts.bytes_done += u64::from(copy.length));
        Ok(())
    }

    fn end(&mut self, end: End) -> Result<(), Failed> {
        let at_source = String::from_utf8_lossy(&end.why.0).into_owned();
        let at_source = format!("at the source: {at_source}");
        let (job, failed) = match self.open.remove(&end.id) {
            Some(writing) => match end.outcome {
                Outcome::WHOLE => self.shared.complete(writing, end.hash),
                Outcome::FAILED => (self.shared.give_up(writing), Some(at_source)),
                _ => {
                    self.shared.give_up(writing);
                    return broken("an end that does not fit its file");
                }
            },
            None => {
                let Some(job) = self.shared.tracker.take(end.id) else {
                    return broken("the end of no file");
                };
                let failed = match (end.outcome, end.meta) {
                    (Outcome::FAILED, _) => Some(at_source),
                    (Outcome::SAME, Some(meta)) if job.own.is_some() => {
                        check_meta(&meta)?;
                        self.shared.same(&job, meta)
                    }
                    (Outcome::OTHER, _) if self.shared.options.dry_run => {
                        self.shared.note(About::UPDATE, &job.path, "");
                        job.fate.set_new();
                        None
                    }
                    _ => return broken("an end that does not fit its file"),
                };
                (job, failed)
            }
        };
        match failed {
            Some(text) => {
                job.fate.set_failed();
                self.shared.fail(&job.path, &text);
            }
            None => self.shared.tracker.count(|counts| counts.files_done += 1),
        }
        self.shared.release(&job.node);
        self.shared.tracker.leave(job.sums);
        Ok(())
    }
}

impl<T: Tree> Drop for Writer<T> {
    fn drop(&mut self) {
        for (_, writing) in self.open.drain() {
            self.shared.give_up(writing);
        }
    }
}

impl<T: Tree> Writing<T> {
    /// A piece must lie behind the last one, and within the file.
    fn advance(&mut self, offset: u64, length: usize) -> Result<(), Failed> {
        match offset.checked_add(length as u64) {
            Some(end) if offset >= self.at && end <= self.wanted.size => {
                self.at = end;
                Ok(())
            }
            _ => broken("a piece that lies beside its file"),
        }
    }

    /// Does something with what is written, as long as nothing failed.
    fn try_aside(&mut self, work: impl FnOnce(&Aside<T>) -> io::Result<()>) {
        if self.failed.is_none()
            && let Some(aside) = &self.aside
        {
            self.failed = work(aside).err().map(|e| why(&e));
        }
    }
}

impl<T: Tree> Shared<T> {
    fn create(&self, job: &Job, size: u64) -> io::Result<Aside<T>> {
        let (dir, name) = (self.tree.dir(&job.node.path)?, aside_name());
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

    fn give_up(&self, writing: Writing<T>) -> Job {
        if let Some(aside) = &writing.aside {
            self.sweep_aside(aside);
        }
        writing.job
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
        let mut done = 0;
        while done < piece.len() {
            let at = from.checked_add(done as u64).ok_or(io::ErrorKind::InvalidInput)?;
            match self.tree.read(&file, &mut piece[done..], at)? {
                0 => return Err(io::Error::other("what is here was changed meanwhile")),
                n => done += n,
            }
        }
        *old = Some(file);
        Ok(())
    }

    /// Gives a file its name, if it is what was sent.
    fn complete(&self, writing: Writing<T>, hash: [u8; 32]) -> (Job, Option<String>) {
        if writing.failed.is_some() {
            let failed = writing.failed.clone();
            return (self.give_up(writing), failed);
        }
        let Writing { job, wanted, aside, digest, .. } = writing;
        let Some(aside) = aside else { return (job, None) };
        if digest.finish() != hash {
            self.sweep_aside(&aside);
            return (job, Some("what arrived is not what was sent".to_owned()));
        }
        if let Err(e) = self.tree.set_open(&aside.file, &wanted, self.keep) {
            self.fail(&job.path, &format!("its metadata: {}", why(&e)));
        }
        let (_, name) = split(&job.path);
        match self.tree.rename(&aside.dir, &aside.name, name) {
            Ok(()) => (job, None),
            Err(e) => {
                self.sweep_aside(&aside);
                (job, Some(why(&e)))
            }
        }
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
