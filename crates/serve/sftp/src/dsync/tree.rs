//! A directory of a share as a tree, with the rights of a caller. Files are reached by handle from
//! directory to directory, and no link is followed below the top, so nothing leads out.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use base::clock::{Deadline, stamp};
use probe::op::FileId;
use sync::memory::{Reserved, RunMemory};
use sync::tree::{Keep, Names, ScannedEntry, Tree};
use sync::{Options, Role, SyncError};
use vfs::attr::{Attr, FileType, SetAttr};
use vfs::fs::{
    Change, Context, CreateHow, DirEntry, FileSystem, Flush, Result, Seek, Special, Stable,
};
use vfs::handle::Handle;
use vfs::locks::FileKey;
use vfs::locks::leases::take_blocked;
use vfs::share::Share;
use vfs::status::Status;
use wire::dsync::{FileId as Named, Kind, Meta};

use super::count::{Op, Range, Tally};
use super::meta::{Step, error, keeps, seen, special, steps};
use super::{Busy, ExclusiveDirectory, Request};
use crate::Owners;
use engine::exec::Engine;
use files::caller::Reached;
use files::opened::Opened;
use files::walk::{self, Within};
use files::{Caller, Files, Links, VPath, grace, recall, upload};

/// Mode of an incomplete file: no other user may read it.
const PRIVATE: u32 = 0o600;
/// Mode of an incomplete directory.
const PRIVATE_DIR: u32 = 0o700;
/// Permission bits of a new directory, before the umask of the settings.
const NEW_DIR: u32 = 0o777;

/// Runs something of a run.
///
/// # Errors
/// [`Status::Fault`] if it panics, which is counted: it has failed then, and the run continues.
pub(super) fn contained<T>(engine: &Engine, run: impl FnOnce() -> T) -> Result<T> {
    engine.attempt(run)
}

/// What is needed for a tree, once it is known which.
pub(super) struct TreeRequest {
    pub(super) files: Arc<Files>,
    pub(super) tally: Tally,
    pub(super) busy: Arc<Busy>,
    /// The client has closed its connection.
    pub(super) gone: Arc<AtomicBool>,
    pub(super) memory: Arc<RunMemory>,
    pub(super) request: Request,
}

/// A directory of a share, with all that is below it.
pub struct ShareTree {
    files: Arc<Files>,
    who: Caller,
    reached: Reached,
    tally: Tally,
    /// Nothing where it is not there.
    top: Option<Handle>,
    is_new: bool,
    /// Whether each change is flushed separately.
    each: bool,
    owners: Arc<dyn Owners>,
    held: Mutex<Option<ExclusiveDirectory>>,
    /// The client has closed its connection.
    gone: Arc<AtomicBool>,
    memory: Arc<RunMemory>,
}

/// A file that was opened.
pub struct ShareFile {
    handle: Handle,
    id: FileId,
    /// Its place among the opens of all protocols.
    _opened: Option<Opened>,
}

impl TreeRequest {
    /// The tree for a part of a run.
    ///
    /// # Errors
    /// Runs are refused to the caller; the directory is missing or not permitted; another run
    /// writes to it.
    pub(super) fn tree(
        self,
        role: Role,
        place: &[u8],
        options: &Options,
    ) -> std::result::Result<ShareTree, SyncError> {
        let shown = String::from_utf8_lossy(place).into_owned();
        let at = |status: Status| SyncError::Place { place: shown.clone(), source: error(status) };
        if let Some(why) = self.request.refused {
            return Err(SyncError::Place { place: shown, source: io::Error::other(why) });
        }
        let seen = VPath::parse(place).map_err(|e| at(e.into()))?;
        let who = self.request.who;
        let path = who.root.below(seen.parts());
        let Some((share, within)) = Within::of(&who, &path).map_err(at)? else {
            let source = io::Error::other("it is the list of shares; use /SHARE/DIRECTORY");
            return Err(SyncError::Place { place: shown, source });
        };
        let reached = self.files.reach(&who, share).map_err(at)?;
        let writes = role == Role::DESTINATION && !options.dry_run;
        if writes {
            reached.for_change().map_err(at)?;
        }
        let mut tally = self.tally;
        tally.on(reached.share.id);
        let (files, owners, gone, memory) =
            (self.files, self.request.owners, self.gone, self.memory);
        let held = Mutex::default();
        let (each, is_new) = (reached.share.fs.whole().is_none(), true);
        let top = None;
        let tree =
            ShareTree { files, who, reached, tally, top, is_new, each, owners, held, gone, memory };
        let missing = (role == Role::DESTINATION).then_some(self.request.umask);
        let tree = tree.find(&within, missing, options.dry_run).map_err(at)?;
        match writes {
            true => tree.hold(&self.busy).map_err(at)?.ok_or(SyncError::Busy(shown)),
            false => Ok(tree),
        }
    }
}

impl ShareTree {
    /// With its top, which is made where it may be missing and the run is no dry one.
    fn find(mut self, within: &Within, missing: Option<u32>, dry: bool) -> Result<Self> {
        let share: Arc<Share> = Arc::clone(&self.reached.share);
        let found = walk::find(&share, self.cx(), within, Links::Follow);
        match (found, missing) {
            (Ok((top, attr)), _) if attr.kind == FileType::Directory => {
                (self.top, self.is_new) = (Some(top), false);
            }
            (Ok(_), _) => return Err(Status::NotDirectory),
            (Err(Status::NotFound), Some(_)) if dry => {}
            (Err(Status::NotFound), Some(umask)) => {
                let at = walk::place(&share, self.cx(), within, Links::Follow)?;
                let set = SetAttr { mode: Some(NEW_DIR & !umask), ..SetAttr::default() };
                let make =
                    |fs: &dyn FileSystem, cx: Context<'_>| fs.mkdir(cx, &at.dir, &at.name, &set);
                self.top = Some(self.changed(Op::Mkdir, 0, make)?.handle);
            }
            (Err(status), _) => return Err(status),
        }
        Ok(self)
    }

    /// Held against other runs; `None` if one has it.
    fn hold(self, busy: &Arc<Busy>) -> Result<Option<Self>> {
        let top = self.top.ok_or(Status::NotFound)?;
        let key = FileKey::from(&self.fs().getattr(self.cx(), &top)?);
        let Some(held) = ExclusiveDirectory::take(busy, key) else { return Ok(None) };
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(Some(self))
    }

    fn fs(&self) -> &dyn FileSystem {
        &*self.reached.share.fs
    }

    fn cx(&self) -> Context<'_> {
        Context { cred: &self.reached.cred, may_block: true }
    }

    /// Runs an operation on the file system; if it panics it has failed, and the run continues.
    fn contained<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        contained(&self.files.engine, run).and_then(|done| done)
    }

    /// Something that changes nothing.
    fn looked<T>(
        &self,
        op: Op,
        file: FileId,
        look: impl FnOnce(&dyn FileSystem, Context<'_>) -> Result<T>,
    ) -> Result<T> {
        let since = stamp();
        let still = self.files.still_reach(&self.who, &self.reached, false);
        let done = still.and_then(|()| self.contained(|| look(self.fs(), self.cx())));
        self.tally.note(op, since, (file, None), &done);
        done
    }

    /// Runs a change. While the recall of a delegation is pending it is repeated. The change is on
    /// disk after [`Tree::flush`], or at once where the file system can only do that.
    fn changed<T>(
        &self,
        op: Op,
        file: FileId,
        change: impl Fn(&dyn FileSystem, Context<'_>) -> Change<T>,
    ) -> Result<T> {
        let since = stamp();
        let done = self.change_with_retry(change);
        self.tally.note(op, since, (file, None), &done);
        done
    }

    fn change_with_retry<T>(
        &self,
        change: impl Fn(&dyn FileSystem, Context<'_>) -> Change<T>,
    ) -> Result<T> {
        self.reached.for_change()?;
        self.files.still_reach(&self.who, &self.reached, true)?;
        let until = Deadline::after(self.files.locks.recall_patience());
        let step = || match change(self.fs(), self.cx()) {
            Ok(changed) if self.each => (Ok(changed.value), changed.flush),
            Ok(changed) => (Ok(changed.value), Flush::NONE),
            Err(failed) => (Err(failed.status), Flush::NONE),
        };
        loop {
            match self.files.engine.run_here(step)? {
                Err(Status::Busy) if self.files.locks.in_grace() => {
                    if !grace::ended_blocking(&self.files.locks, || self.continues()) {
                        return Err(Status::InUse);
                    }
                }
                Err(Status::Busy) if !until.passed() => {
                    recall::released_blocking(&self.files.locks, take_blocked(), until);
                }
                done => return done,
            }
        }
    }

    /// Whether the run is to continue: its client is connected, and may still reach the share.
    fn continues(&self) -> bool {
        let reaches = || self.files.still_reach(&self.who, &self.reached, true).is_ok();
        !self.gone.load(Relaxed) && reaches()
    }

    fn id(&self, file: &Handle) -> FileId {
        self.fs().file_id(file)
    }

    /// An entry of a directory, or the directory itself.
    fn entry(&self, dir: &Handle, name: &[u8]) -> Result<(Handle, Attr)> {
        if name.is_empty() {
            return Ok((*dir, self.contained(|| self.fs().getattr(self.cx(), dir))?));
        }
        if name == b"." || name == b".." {
            return Err(Status::Invalid);
        }
        self.contained(|| {
            let found = self.fs().lookup(self.cx(), dir, name);
            found.map(|(entry, _)| (entry.handle, entry.attr)).map_err(|failed| failed.status)
        })
    }

    fn opened(&self, (file, attr): (&Handle, &Attr), write: bool) -> Result<Opened> {
        let locks = &self.files.locks;
        // Only GETATTR gives the time of birth, by which new files are known.
        let known =
            if write && locks.in_grace() { self.fs().getattr(self.cx(), file)? } else { *attr };
        let opened = Opened::wait(locks, &self.who, (&known, write), || self.continues())?;
        opened.and_retain((self.fs(), self.cx()), file)
    }

    /// Gives a file the metadata `wanted`: what can be given is, also when something cannot.
    fn give(&self, (file, attr): (&Handle, &Attr), wanted: &Meta, keep: Keep) -> Result<()> {
        let now = self.contained(|| seen(self.fs(), self.cx(), (file, attr)))?.meta;
        let (mut done, id) = (Ok(()), self.id(file));
        for mut step in steps(&now, wanted, keep, self.may_own())? {
            if let Step::Times(Some(mode), _) = &mut step
                && done.is_err()
            {
                // Meant for another owner.
                *mode &= !0o6000;
            }
            let op = if step.is_xattr() { Op::SetXattr } else { Op::SetAttr };
            done = done.and(self.changed(op, id, |fs, cx| step.take(fs, cx, file)));
        }
        done
    }

    fn directory(&self, path: &[u8]) -> Result<Handle> {
        let mut here = self.top.ok_or(Status::NotFound)?;
        for name in path.split(|b| *b == b'/').filter(|name| !name.is_empty()) {
            let (next, attr) = self.entry(&here, name)?;
            if attr.kind != FileType::Directory {
                return Err(Status::NotDirectory);
            }
            here = next;
        }
        Ok(here)
    }

    fn list(&self, dir: &Handle) -> Result<io::Result<(Vec<Vec<u8>>, Reserved)>> {
        let (mut names, mut full) = (Names::new(&self.memory), Ok(()));
        let (mut cookie, mut verifier) = (0, [0; 8]);
        loop {
            let from = cookie;
            let mut each = |entry: DirEntry<'_>| {
                cookie = entry.cookie;
                // Skip uploads in progress.
                if !matches!(entry.name, b"." | b"..") && !upload::is_one(entry.name) {
                    full = names.push(entry.name);
                }
                full.is_ok()
            };
            let done = self.fs().list(self.cx(), dir, from, verifier, false, &mut each)?;
            verifier = done.verifier;
            if let Err(full) = full {
                return Ok(Err(full));
            }
            if done.eof {
                return Ok(Ok(names.sorted()));
            }
        }
    }

    fn data_from(&self, file: &Handle, offset: u64) -> Result<Option<(u64, u64)>> {
        let (fs, cx) = (self.fs(), self.cx());
        if !fs.features().sparse {
            let size = fs.getattr(cx, file)?.size;
            return Ok((offset < size).then_some((offset, size)));
        }
        match fs.seek(cx, file, offset, Seek::Data) {
            Ok(Some(start)) => {
                let end = fs.seek(cx, file, start, Seek::Hole)?;
                Ok(end.filter(|end| *end > start).map(|end| (start, end)))
            }
            Ok(None) | Err(Status::TooLarge) => Ok(None),
            Err(status) => Err(status),
        }
    }

    fn write_all(&self, file: &ShareFile, mut bytes: &[u8], mut offset: u64) -> Result<()> {
        while !bytes.is_empty() {
            let write = |fs: &dyn FileSystem, cx: Context<'_>| {
                fs.write(cx, &file.handle, offset, bytes, Stable::Unstable)
            };
            let count = self.change_with_retry(write)?;
            bytes = bytes.get(count..).filter(|_| count > 0).ok_or(Status::Io)?;
            offset += count as u64;
        }
        Ok(())
    }

    fn resize(&self, file: &ShareFile, size: u64) -> Result<()> {
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        self.changed(Op::SetAttr, file.id, |fs, cx| fs.setattr(cx, &file.handle, &set, None))
    }

    fn file(&self, handle: Handle, opened: Option<Opened>) -> ShareFile {
        ShareFile { handle, id: self.id(&handle), _opened: opened }
    }

    /// Renames a file over another, if no open of that one denies it.
    fn replace(&self, dir: &Handle, from: &[u8], to: &[u8]) -> Result<()> {
        let _opened = match self.entry(dir, to) {
            Ok((file, attr)) if attr.kind == FileType::Regular => {
                Some(self.opened((&file, &attr), true)?)
            }
            _ => None,
        };
        self.changed(Op::Rename, 0, |fs, cx| fs.rename(cx, (dir, from), (dir, to))).map(drop)
    }

    fn whole(&self) -> Result<()> {
        self.fs().whole().map_or(Ok(()), |whole| whole.wait())
    }
}

impl Tree for ShareTree {
    type Dir = Handle;
    type File = ShareFile;

    fn waited_ns(&self) -> u64 {
        self.tally.waited_ns()
    }

    fn end(&self) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn memory(&self) -> &Arc<RunMemory> {
        &self.memory
    }

    fn time_step_ns(&self, _: &Handle) -> u64 {
        u64::from(self.fs().abilities().time_delta_ns)
    }

    fn dir(&self, path: &[u8]) -> io::Result<Handle> {
        self.directory(path).map_err(error)
    }

    fn names(&self, dir: &Handle) -> io::Result<(Vec<Vec<u8>>, Reserved)> {
        self.looked(Op::List, self.id(dir), |_, _| self.list(dir)).map_err(error)?
    }

    fn look(&self, dir: &Handle, name: &[u8]) -> io::Result<ScannedEntry> {
        let look = |fs: &dyn FileSystem, cx: Context<'_>| {
            let (file, attr) = self.entry(dir, name)?;
            seen(fs, cx, (&file, &attr))
        };
        self.looked(Op::Look, self.id(dir), look).map_err(error)
    }

    fn open(&self, dir: &Handle, name: &[u8]) -> io::Result<ShareFile> {
        let open = |_: &dyn FileSystem, _: Context<'_>| {
            let (file, attr) = self.entry(dir, name)?;
            match attr.kind {
                FileType::Regular => Ok(self.file(file, Some(self.opened((&file, &attr), false)?))),
                _ => Err(Status::Invalid),
            }
        };
        self.looked(Op::Open, self.id(dir), open).map_err(error)
    }

    fn look_open(&self, file: &ShareFile) -> io::Result<ScannedEntry> {
        let look = |fs: &dyn FileSystem, cx: Context<'_>| {
            let attr = fs.getattr(cx, &file.handle)?;
            seen(fs, cx, (&file.handle, &attr))
        };
        self.looked(Op::Look, file.id, look).map_err(error)
    }

    fn next_data(&self, file: &ShareFile, offset: u64) -> io::Result<Option<(u64, u64)>> {
        self.looked(Op::Seek, file.id, |_, _| self.data_from(&file.handle, offset)).map_err(error)
    }

    fn read(&self, file: &ShareFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let (since, asked) = (stamp(), bytes.len());
        let still = self.files.still_reach(&self.who, &self.reached, false);
        let read = || self.fs().read(self.cx(), &file.handle, offset, bytes);
        let done = still.and_then(|()| self.contained(read)).map(|done| done.count);
        let moved = done.unwrap_or(0);
        self.tally.note(Op::Read, since, (file.id, Some(Range { offset, asked, moved })), &done);
        done.map_err(error)
    }

    fn create(&self, dir: &Handle, name: &[u8]) -> io::Result<ShareFile> {
        let how = CreateHow::Guarded(SetAttr { mode: Some(PRIVATE), ..SetAttr::default() });
        let made = self.changed(Op::Create, self.id(dir), |fs, cx| fs.create(cx, dir, name, how));
        made.map(|entry| self.file(entry.handle, None)).map_err(error)
    }

    fn take_up(&self, dir: &Handle, name: &[u8]) -> io::Result<ShareFile> {
        let (file, attr) = self.entry(dir, name).map_err(error)?;
        let private = attr.mode == PRIVATE && attr.uid == self.reached.cred.uid;
        if attr.kind != FileType::Regular || !private || attr.nlink != 1 {
            return Err(io::Error::other("it is not a leftover of a run"));
        }
        Ok(self.file(file, None))
    }

    fn open_in_place(&self, dir: &Handle, name: &[u8], wanted: &Named) -> io::Result<ShareFile> {
        let (file, attr) = self.entry(dir, name).map_err(error)?;
        let same = (attr.fsid, attr.fileid) == (wanted.device, wanted.inode);
        if attr.kind != FileType::Regular || !same || attr.nlink != 1 {
            return Err(io::Error::other("the file was replaced"));
        }
        let open = |_: &dyn FileSystem, _: Context<'_>| self.opened((&file, &attr), true);
        let opened = self.looked(Op::Open, self.id(&file), open).map_err(error)?;
        Ok(self.file(file, Some(opened)))
    }

    fn restrict(&self, file: &ShareFile, mode: u32) -> io::Result<()> {
        let attr = self.contained(|| self.fs().getattr(self.cx(), &file.handle));
        let now = attr.map_err(error)?.mode;
        let step = Step::Mode(now & mode & 0o777);
        if now == now & mode & 0o777 {
            return Ok(());
        }
        let done = self.changed(Op::SetAttr, file.id, |fs, cx| step.take(fs, cx, &file.handle));
        done.map_err(error)
    }

    fn share(&self, from: (&ShareFile, u64), to: (&ShareFile, u64), length: u64) -> bool {
        let ((from, at), (file, offset)) = (from, to);
        let clone = |fs: &dyn FileSystem, cx: Context<'_>| {
            fs.clone_range(cx, (&from.handle, at), (&file.handle, offset), length)
        };
        self.fs().features().clone && self.changed(Op::Clone, file.id, clone).is_ok()
    }

    fn cut(&self, file: &ShareFile, kept: u64, size: u64) -> io::Result<()> {
        self.resize(file, kept.min(size)).and_then(|()| self.resize(file, size)).map_err(error)
    }

    fn room(&self, dir: &Handle) -> io::Result<u64> {
        let space = |fs: &dyn FileSystem, cx: Context<'_>| fs.space(cx);
        let space = self.looked(Op::Look, self.id(dir), space).map_err(error)?;
        Ok(space.avail_bytes)
    }

    fn punch(&self, file: &ShareFile, offset: u64, length: u64) -> io::Result<()> {
        let hole =
            |fs: &dyn FileSystem, cx: Context<'_>| fs.deallocate(cx, &file.handle, offset, length);
        self.changed(Op::SetAttr, file.id, hole).map_err(error)
    }

    fn write(&self, file: &ShareFile, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (since, asked) = (stamp(), bytes.len());
        let done = self.write_all(file, bytes, offset);
        let moved = if done.is_ok() { asked } else { 0 };
        self.tally.note(Op::Write, since, (file.id, Some(Range { offset, asked, moved })), &done);
        done.map_err(error)
    }

    fn set_open(&self, file: &ShareFile, wanted: &Meta, keep: Keep) -> io::Result<()> {
        let attr = self.contained(|| self.fs().getattr(self.cx(), &file.handle));
        let attr = attr.map_err(error)?;
        self.give((&file.handle, &attr), wanted, keep).map_err(error)
    }

    fn set(&self, dir: &Handle, name: &[u8], wanted: &Meta, keep: Keep) -> io::Result<()> {
        let (file, attr) = self.entry(dir, name).map_err(error)?;
        self.give((&file, &attr), wanted, keep).map_err(error)
    }

    fn enable(&self, dir: &Handle, name: &[u8]) -> io::Result<bool> {
        let (file, attr) = self.entry(dir, name).map_err(error)?;
        let lacks = attr.mode & PRIVATE_DIR != PRIVATE_DIR && attr.kind == FileType::Directory;
        let needed = lacks && !self.may_own() && attr.uid == self.reached.cred.uid;
        if needed {
            let step = Step::Mode(attr.mode | PRIVATE_DIR);
            let done = self.changed(Op::SetAttr, self.id(&file), |fs, cx| step.take(fs, cx, &file));
            done.map_err(error)?;
        }
        Ok(needed)
    }

    fn make_dir(&self, dir: &Handle, name: &[u8]) -> io::Result<()> {
        let set = SetAttr { mode: Some(PRIVATE_DIR), ..SetAttr::default() };
        let made = self.changed(Op::Mkdir, self.id(dir), |fs, cx| fs.mkdir(cx, dir, name, &set));
        made.map(drop).map_err(error)
    }

    fn make_node(&self, dir: &Handle, name: &[u8], meta: &Meta) -> io::Result<()> {
        let id = self.id(dir);
        if meta.kind == Kind::SYMLINK {
            let (target, set) = (&meta.target.0, SetAttr::default());
            let made =
                self.changed(Op::Symlink, id, |fs, cx| fs.symlink(cx, dir, name, target, &set));
            return made.map(drop).map_err(error);
        }
        let kind = special(meta.kind).map_err(error)?;
        let special = Special { kind, rdev: (meta.major, meta.minor) };
        let set = SetAttr { mode: Some(PRIVATE), ..SetAttr::default() };
        let made = self.changed(Op::Mknod, id, |fs, cx| fs.mknod(cx, dir, name, special, &set));
        made.map(drop).map_err(error)
    }

    fn link(&self, file: (&Handle, &[u8]), to: (&Handle, &[u8])) -> io::Result<()> {
        let (handle, _) = self.entry(file.0, file.1).map_err(error)?;
        let (id, (dir, name)) = (self.id(&handle), to);
        let done = self.changed(Op::Link, id, |fs, cx| fs.link(cx, &handle, dir, name));
        done.map(drop).map_err(error)
    }

    fn rename(&self, dir: &Handle, from: &[u8], to: &[u8]) -> io::Result<()> {
        self.replace(dir, from, to).map_err(error)
    }

    fn remove(&self, dir: &Handle, name: &[u8], kind: Kind) -> io::Result<()> {
        let remove = |fs: &dyn FileSystem, cx: Context<'_>| match kind {
            Kind::DIRECTORY => fs.rmdir(cx, dir, name),
            _ => fs.remove(cx, dir, name),
        };
        self.changed(Op::Remove, self.id(dir), remove).map_err(error)
    }

    fn flush(&self) -> io::Result<()> {
        self.looked(Op::Flush, 0, |_, _| self.whole()).map_err(error)
    }

    fn is_new(&self) -> bool {
        self.is_new
    }

    fn may_own(&self) -> bool {
        self.reached.cred.uid == 0
    }

    fn owner_name(&self, group: bool, number: u32) -> Option<Vec<u8>> {
        let owners = &self.owners;
        let name = if group { owners.group(number) } else { owners.user(number) };
        name.map(String::into_bytes)
    }

    fn owner_number(&self, group: bool, name: &[u8]) -> Option<u32> {
        let name = std::str::from_utf8(name).ok().filter(|_| !group)?;
        self.files.identity.person(name).map(|person| person.cred.uid)
    }

    fn prune(&self, meta: &mut Meta) {
        meta.xattrs.0.retain(|x| keeps(self.fs(), &x.name.0));
    }
}
