//! Files that come: written to a temporary file, and renamed when they are complete.

use std::io;
use std::sync::Arc;

use base::limits::{DSYNC_DELTA_MIN, DSYNC_PIECE};
use wire::dsync::{About, Borrowed, Copy, End, Kept, Kind, Lent, Message, Meta, Outcome};

use super::aside::Aside;
use super::failed::{Failed, broken};
use super::files::Writing;
use super::plan::check_meta;
use super::tracker::Job;
use super::{Shared, why};
use crate::digest::{Digest, strong};
use crate::lends::How;
use crate::stop::lock;
use crate::tree::aside::{aside_name, aside_of};
use crate::tree::{Tree, fill, split};

/// One of the threads that process the messages of the control stream about files.
pub struct Writer<T: Tree> {
    shared: Arc<Shared<T>>,
    piece: Vec<u8>,
}

impl<T: Tree> Writer<T> {
    /// Nothing has come.
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Self { shared, piece: Vec::new() }
    }

    /// Takes a message of a file.
    pub(super) fn take(&mut self, message: Message<'_>) -> Result<(), Failed> {
        match message {
            Message::Data(data) => self.shared.data(&data),
            Message::Whole(whole) => self.shared.whole(whole),
            Message::Copy(copy) => self.copy(copy),
            Message::Kept(kept) => self.kept(&kept),
            Message::Lent(lent) => self.shared.borrow(&lent),
            Message::End(end) => self.end(end),
            _ => broken("a message about no file"),
        }
    }

    /// Reads and hashes while others write to the file.
    fn copy(&mut self, copy: Copy) -> Result<(), Failed> {
        let (shared, piece) = (&self.shared, &mut self.piece);
        let Some(file) = shared.files.get(copy.id) else { return broken("a copy of no file") };
        let length = copy.length as usize;
        if length > DSYNC_PIECE {
            return broken("a copy that is longer than a piece");
        }
        piece.resize(length, 0);
        let mut writing = lock(&file);
        let block = writing.job.as_ref().map_or(0, |job| job.block);
        if block == 0 {
            return broken("a copy of a block without checksum");
        }
        if copy.turn != writing.turn {
            // It was restarted since.
            writing.count()?;
            shared.tracker.count(|counts| counts.bytes_done += u64::from(copy.length));
            return shared.end_if_whole(copy.id, &mut writing);
        }
        writing.within(copy.hole, copy.offset, u64::from(copy.length))?;
        if let Some((digest, cloned)) = writing.laid.as_ref().and_then(|laid| laid.has(&copy)) {
            writing.cover(copy.hole, copy.offset, u64::from(copy.length))?;
            shared.clear(&mut writing, (copy.offset - copy.hole, copy.offset));
            writing.digest.add(digest.finish());
            shared.tracker.count(|counts| {
                counts.bytes_done += u64::from(copy.length);
                counts.bytes_cloned += cloned;
            });
            return shared.end_if_whole(copy.id, &mut writing);
        }
        let is_shared = shared.share_old(&mut writing, &copy, piece);
        let old = if is_shared { None } else { Some(shared.old(&mut writing)) };
        drop(writing);
        let read = match old {
            None => Ok(()),
            Some(old) => old.and_then(|old| read_all(&shared.tree, &old, piece, copy.from)),
        };
        let mut digest = Digest::default();
        for (at, block) in (copy.offset..).step_by(block).zip(piece.chunks(block)) {
            digest.block(at, &strong(block));
        }
        let mut writing = lock(&file);
        // It may have been restarted meanwhile.
        if copy.turn == writing.turn {
            writing.cover(copy.hole, copy.offset, u64::from(copy.length))?;
            shared.clear(&mut writing, (copy.offset - copy.hole, copy.offset));
            writing.digest.add(digest.finish());
            shared.try_aside(&mut writing, |aside| match is_shared {
                true => Ok(()),
                false => read.and_then(|()| shared.tree.write(&aside.file, piece, copy.offset)),
            });
        } else {
            writing.count()?;
        }
        shared.tracker.count(|counts| counts.bytes_done += u64::from(copy.length));
        shared.end_if_whole(copy.id, &mut writing)
    }

    /// A piece is at its place already: it is hashed as it lies there.
    fn kept(&mut self, kept: &Kept) -> Result<(), Failed> {
        let (shared, piece) = (&self.shared, &mut self.piece);
        let Some(file) = shared.files.get(kept.id) else {
            return broken("a present block of no file");
        };
        let length = kept.length as usize;
        let mut writing = lock(&file);
        if writing.turn > 0 {
            // It was restarted since, and then nothing of it is retained.
            writing.count()?;
            return shared.end_if_whole(kept.id, &mut writing);
        }
        writing.cover(kept.hole, kept.offset, u64::from(kept.length))?;
        let had = writing.job.as_ref().map_or(0, |job| job.kept);
        if length > DSYNC_PIECE || kept.offset + u64::from(kept.length) > had {
            return broken("an unannounced block reported as present");
        }
        shared.clear(&mut writing, (kept.offset - kept.hole, kept.offset));
        piece.resize(length, 0);
        shared.try_aside(&mut writing, |aside| {
            let whole = read_all(&shared.tree, &aside.file, piece, kept.offset);
            whole.map_err(|_| io::Error::other("the reused block is gone"))
        });
        writing.digest.block(kept.offset, &strong(piece));
        shared.tracker.count(|counts| counts.bytes_done += u64::from(kept.length));
        shared.end_if_whole(kept.id, &mut writing)
    }

    fn end(&mut self, end: End) -> Result<(), Failed> {
        let (id, shared) = (end.id, &self.shared);
        if let Some(file) = shared.files.get(id) {
            if !matches!(end.outcome, Outcome::WHOLE | Outcome::FAILED) {
                return broken("an end that does not fit its file");
            }
            let mut writing = lock(&file);
            if writing.ended.replace(end).is_some() {
                return broken("a second end of a file");
            }
            return shared.end_if_whole(id, &mut writing);
        }
        let Some(job) = shared.tracker.take(id) else { return broken("the end of no file") };
        let failed = match (end.outcome, &end.meta) {
            (Outcome::FAILED, _) => Some(at_source(&end)),
            (Outcome::SAME, Some(meta)) if job.own.is_some() => {
                check_meta(meta)?;
                shared.same(&job, meta.clone())
            }
            (Outcome::OTHER, Some(meta)) if shared.options.dry_run => {
                check_meta(meta)?;
                shared.note_other(&job, &shared.wanted(meta.clone()));
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
    let (read, ended) = fill(tree, file, piece, from);
    ended?;
    match read == piece.len() {
        true => Ok(()),
        false => Err(io::Error::other("the destination file was changed meanwhile")),
    }
}

impl<T: Tree> Shared<T> {
    /// What a file that comes is to be here.
    pub(super) fn wanted_file(&self, meta: Meta) -> Result<Meta, Failed> {
        check_meta(&meta)?;
        match meta.kind {
            Kind::FILE => Ok(self.wanted(meta)),
            _ => broken("the content of a non-file"),
        }
    }

    /// A file that was asked for begins.
    pub(super) fn begun(&self, id: u64, wanted: &Meta) -> Result<Job, Failed> {
        let Some(job) = self.tracker.take(id) else { return broken("a file unasked") };
        job.node.touch();
        job.fate.set_new();
        if !job.noted {
            self.note_other(&job, wanted);
        }
        Ok(job)
    }

    /// The name of the temporary file with which a file of this size can be resumed, if that is of
    /// use: a smaller one is sent as quickly, and between directories of one machine so is any.
    pub(super) fn aside_for(&self, name: &[u8], size: u64) -> Option<Vec<u8>> {
        (self.delta && size >= DSYNC_DELTA_MIN).then(|| aside_of(name))
    }

    /// Makes a temporary file, or opens the one to be resumed.
    pub(super) fn create(&self, job: &Job, wanted: &Meta) -> io::Result<Aside<T>> {
        let (dir, size) = (self.tree.dir(&job.node.path)?, wanted.size);
        if job.in_place {
            return self.at_its_place(dir, job, wanted);
        }
        match self.aside_for(split(&job.path).1, size) {
            Some(name) if job.kept > 0 => {
                let file = self.tree.take_up(&dir, &name)?;
                self.tree.cut(&file, job.kept, size)?;
                Ok(Aside { dir, name, file, in_place: false })
            }
            Some(name) => self.new_aside(dir, name, size),
            None => self.empty_aside(dir, aside_name(), size),
        }
    }

    /// Makes a temporary file that can be resumed.
    pub(super) fn new_aside(&self, dir: T::Dir, name: Vec<u8>, size: u64) -> io::Result<Aside<T>> {
        // What was left under this name could not be taken up; mostly there is nothing.
        let _none = self.tree.remove(&dir, &name, Kind::FILE);
        self.empty_aside(dir, name, size)
    }

    fn empty_aside(&self, dir: T::Dir, name: Vec<u8>, size: u64) -> io::Result<Aside<T>> {
        let file = self.tree.create(&dir, &name)?;
        let aside = Aside { dir, name, file, in_place: false };
        match self.tree.set_size(&aside.file, size) {
            Ok(()) => Ok(aside),
            Err(e) => {
                self.sweep_aside(&aside);
                Err(e)
            }
        }
    }

    /// The file itself, with what it has of whole blocks.
    fn at_its_place(&self, dir: T::Dir, job: &Job, wanted: &Meta) -> io::Result<Aside<T>> {
        let name = split(&job.path).1.to_vec();
        let id = job.own.as_ref().and_then(|own| own.meta.link.as_ref());
        let file = self.tree.open_in_place(&dir, &name, id.ok_or(io::ErrorKind::NotFound)?)?;
        self.tree.restrict(&file, wanted.mode)?;
        self.tree.cut(&file, job.kept, wanted.size)?;
        Ok(Aside { dir, name, file, in_place: true })
    }

    /// Removes a temporary file.
    pub(super) fn sweep_aside(&self, aside: &Aside<T>) {
        if aside.in_place {
            return;
        }
        // The next run sweeps what cannot be removed now.
        let _swept = self.tree.remove(&aside.dir, &aside.name, Kind::FILE);
    }

    /// Removes what was written.
    pub(super) fn give_up(&self, writing: &mut Writing<T>) {
        if let Some(laid) = writing.laid.take() {
            laid.give_up();
        }
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
        if let Some(laid) = self.lays.take(id) {
            self.sweep_laid(&laid);
        }
        self.release(&job.node);
        self.tracker.leave(id, job.sums);
        self.files.remove(id);
    }

    /// What a file replaces, opened once.
    fn old(&self, writing: &mut Writing<T>) -> io::Result<Arc<T::File>> {
        let Writing { old, job, .. } = writing;
        let Some(job) = job else { return Err(io::ErrorKind::NotFound.into()) };
        if let Some(file) = old {
            return Ok(Arc::clone(file));
        }
        let (dir, name) = split(&job.path);
        let file = Arc::new(self.tree.open(&self.tree.dir(dir)?, name)?);
        Ok(Arc::clone(old.insert(file)))
    }

    /// Lets a piece share its place with what a file replaces, if the file system can; then `piece`
    /// is what is there.
    fn share_old(&self, writing: &mut Writing<T>, copy: &Copy, piece: &mut [u8]) -> bool {
        let Ok(file) = self.old(writing) else { return false };
        let (length, mut shared) = (u64::from(copy.length), false);
        self.try_aside(writing, |aside| {
            shared = self.tree.share((&file, copy.from), (&aside.file, copy.offset), length);
            if shared { read_all(&self.tree, &aside.file, piece, copy.offset) } else { Ok(()) }
        });
        if shared {
            self.tracker.count(|counts| counts.bytes_cloned += length);
        }
        shared
    }

    /// Takes a piece over from the file that the source lends, and answers whether that is done.
    fn borrow(&self, lent: &Lent) -> Result<(), Failed> {
        let file = self.lends.as_ref().and_then(|lends| lends.get(lent.id));
        let (Some(from), Some(file)) = (file, self.files.get(lent.id)) else {
            return broken("a loan of no file");
        };
        let mut writing = lock(&file);
        writing.within(lent.hole, lent.offset, lent.length)?;
        let mut how = None;
        self.try_aside(&mut writing, |aside| {
            how = self.tree.borrow(&from, &aside.file, lent.offset, lent.length)?;
            Ok(())
        });
        // What failed is not sent in another way.
        let taken = how.is_some() || writing.failed.is_some();
        if taken {
            writing.cover(lent.hole, lent.offset, lent.length)?;
        }
        self.tracker.count(|counts| match how {
            Some(How::Cloned) => {
                counts.bytes_cloned += lent.length;
                counts.bytes_done += lent.length;
            }
            Some(How::Copied) => {
                counts.bytes_copied += lent.length;
                counts.bytes_done += lent.length;
            }
            None => {}
        });
        self.out.send(&Message::Borrowed(Borrowed { id: lent.id, taken }))?;
        self.end_if_whole(lent.id, &mut writing)
    }

    /// Gives a file its name, if it is what was sent; why not, if not.
    pub(super) fn complete(&self, writing: &mut Writing<T>, end: &End) -> Option<String> {
        let in_place = writing.aside.as_ref().is_some_and(|aside| aside.in_place);
        let failed = self.finish(writing, end);
        let mixed = |text: String| format!("{text}; the file is now a mixture of old and new data");
        if in_place { failed.map(mixed) } else { failed }
    }

    fn finish(&self, writing: &mut Writing<T>, end: &End) -> Option<String> {
        if end.outcome != Outcome::WHOLE {
            self.give_up(writing);
            return Some(at_source(end));
        }
        // What is nothing but a hole has not been made yet.
        self.try_aside(writing, |_| Ok(()));
        let gaps = if writing.had() > 0 { writing.gaps() } else { Vec::new() };
        gaps.into_iter().for_each(|gap| self.clear(writing, gap));
        if writing.failed.is_some() {
            self.give_up(writing);
            return writing.failed.clone();
        }
        let (aside, job) = (writing.aside.take()?, writing.job.as_ref()?);
        if writing.digest.finish() != end.hash {
            self.sweep_aside(&aside);
            return Some("the received data does not match its checksum".to_owned());
        }
        if let Err(e) = self.tree.set_open(&aside.file, &writing.wanted, self.keep) {
            self.fail(&job.path, &format!("its metadata: {}", why(&e)));
        }
        if aside.in_place {
            return None;
        }
        let (_, name) = split(&job.path);
        self.tree.rename(&aside.dir, &aside.name, name).err().map(|e| {
            self.sweep_aside(&aside);
            why(&e)
        })
    }

    /// Notes that a file turned out to have another content.
    fn note_other(&self, job: &Job, wanted: &Meta) {
        self.note(About::UPDATE, &job.path, "");
        if let Some(own) = &job.own {
            self.note_others(&job.path, own, Some(wanted));
        }
    }

    /// The content is the same: what is left is the metadata.
    fn same(&self, job: &Job, meta: Meta) -> Option<String> {
        let wanted = self.wanted(meta);
        let own = job.own.as_ref()?;
        let dir = self.tree.dir(&job.node.path);
        if self.is_same(dir.as_ref().ok(), own, &wanted) {
            return None;
        }
        self.note(About::METADATA, &job.path, "");
        if self.options.dry_run {
            return None;
        }
        let (_, name) = split(&job.path);
        let set = dir.and_then(|dir| self.tree.set(&dir, name, &wanted, self.keep));
        set.err().map(|e| format!("its metadata: {}", why(&e)))
    }
}
