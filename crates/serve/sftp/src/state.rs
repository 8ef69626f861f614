//! What a channel has: its open handles, and where its paths begin.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use base::limits::{SFTP_FLIGHT_BYTES, SFTP_HANDLES_MAX, SFTP_PACKET_MAX};
use vfs::locks::FileKey;
use vfs::status::Status;
use wire::sftp::HandleBytes;

use super::Settings;
use super::order::FileUse;
use super::status::{Refusal, Result};
use engine::transport::buffers::ReplyBuf;
use files::held::ReadAhead;
use files::list::{Listed, Listing};
use files::reader::Reader;
use files::transfer::Outcome;
use files::upload::Upload;
use files::{Caller, Core, Node, Transfer, VPath};

/// An open file.
pub(super) struct OpenFile {
    /// Where it was found, or where it has been moved since.
    pub path: RefCell<Rc<VPath>>,
    /// The file.
    pub node: Node,
    /// If it may be read.
    pub reader: Option<Reader>,
    /// If it may be written; taken out while its file is given its name, and when it is closed.
    pub upload: RefCell<Option<Upload>>,
    /// Whether it may be written.
    pub writes: bool,
    /// Whether each write goes to the end.
    pub append: bool,
    /// The transfer log entry of reading.
    pub down: Transfer,
    /// The transfer log entry of writing.
    pub up: Transfer,
    /// Whether it was read to its end.
    pub read_up: Cell<bool>,
    /// Whether it is being closed: no later request may use it.
    pub closing: Cell<bool>,
    /// Why something could not be written or flushed. Clients need not check each reply to a WRITE,
    /// and some do not: CLOSE reports it again.
    pub failed: Cell<Option<Status>>,
}

impl OpenFile {
    /// A request concerns bytes of it.
    pub fn part(&self, start: u64, len: u64, write: bool) -> FileUse {
        let (path, end) = (Rc::clone(&self.path.borrow()), start.saturating_add(len));
        FileUse { file: self.node.key(), path, start, end, write }
    }

    /// A request concerns all of it.
    pub fn whole_file(&self, write: bool) -> FileUse {
        self.part(0, u64::MAX, write)
    }

    /// So much was read at `offset`, or why nothing was.
    pub fn note_read(&self, offset: u64, read: &Result<(ReplyBuf, usize)>) {
        let size = self.node.attr.size;
        match read {
            Ok((_, count)) => self.down.moved(offset, *count),
            Err(why) if *why == Refusal::EOF => self.down.moved(offset.min(size), 0),
            Err(why) => return self.down.ends(Outcome::Failed, why.message.clone()),
        }
        let end = read.as_ref().map_or(u64::MAX, |(_, count)| offset.saturating_add(*count as u64));
        if end >= size {
            self.read_up.set(true);
        }
    }

    /// Passes on the outcome of a change to its data; the first failure is what CLOSE answers.
    pub fn changed<T>(&self, outcome: vfs::fs::Result<T>) -> vfs::fs::Result<T> {
        outcome.inspect_err(|status| self.failed.set(self.failed.get().or(Some(*status))))
    }

    /// Notes that `count` bytes were written at this offset, or why none were.
    pub fn note_written(&self, written: &Result<u64>, count: usize) {
        match written {
            Ok(at) => self.up.moved(*at, count),
            Err(why) => self.up.ends(Outcome::Failed, why.message.clone()),
        }
    }

    /// It is closed; what was written is on disk, or this is why not.
    pub fn note_closed(&self, finished: &Result<()>) {
        match finished {
            Ok(()) => self.up.completes(),
            Err(why) => self.up.ends(Outcome::Failed, why.message.clone()),
        }
        match self.read_up.get() {
            true => self.down.completes(),
            false => self.down.ends(Outcome::Partial, "closed before the end was read"),
        }
    }

    /// Whether nothing of it is at its path yet, but will be: not if something of it could not be
    /// written.
    pub fn is_aside(&self) -> bool {
        let whole = self.failed.get().is_none();
        whole && self.upload.borrow().as_ref().is_some_and(Upload::is_aside)
    }
}

/// A directory that is being listed.
pub(super) struct OpenDir {
    /// Its path.
    pub path: Rc<VPath>,
    /// Distinguishes it from other handles.
    pub key: FileKey,
    /// Where names come from; `None` for the list of shares.
    pub listing: RefCell<Option<Listing>>,
    /// Names that come before those of the directory.
    pub first: RefCell<VecDeque<Listed>>,
    /// Names behind them that did not fit into the last answer; they may be dropped between two
    /// requests, and are read again then.
    pub ahead: ReadAhead<Listed>,
    /// Whether there are no more.
    pub done: Cell<bool>,
}

impl OpenDir {
    /// A request takes names of it.
    pub fn part(&self) -> FileUse {
        let path = Rc::clone(&self.path);
        FileUse { file: self.key, path, start: 0, end: u64::MAX, write: true }
    }
}

/// What is behind a handle.
#[derive(Clone)]
pub(super) enum Open {
    /// A file.
    File(Rc<OpenFile>),
    /// A directory.
    Dir(Rc<OpenDir>),
}

/// Open handles. One is a place in the list and how often that was used before, so that one that
/// was closed is not taken for its successor.
#[derive(Default)]
struct Handles {
    places: Vec<(u16, Option<Open>)>,
    free: Vec<u16>,
}

impl Handles {
    fn add(&mut self, open: Open) -> Option<u32> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.places.len() < SFTP_HANDLES_MAX => {
                self.places.push((0, None));
                (self.places.len() - 1) as u16
            }
            None => return None,
        };
        let (uses, slot) = self.places.get_mut(usize::from(place))?;
        *slot = Some(open);
        Some(u32::from(place) << 16 | u32::from(*uses))
    }

    fn slot(&mut self, handle: u32) -> Option<&mut (u16, Option<Open>)> {
        let place = self.places.get_mut((handle >> 16) as usize)?;
        (u32::from(place.0) == handle & 0xffff).then_some(place)
    }

    fn remove(&mut self, handle: u32) -> Option<Open> {
        let (uses, slot) = self.slot(handle)?;
        let open = slot.take()?;
        *uses = uses.wrapping_add(1);
        self.free.push((handle >> 16) as u16);
        Some(open)
    }

    fn files(&self) -> impl Iterator<Item = &Rc<OpenFile>> {
        self.places.iter().filter_map(|(_, open)| match open {
            Some(Open::File(file)) => Some(file),
            _ => None,
        })
    }
}

/// One channel: its user and its open handles.
pub struct Session {
    /// The core that it lives on.
    pub(super) core: Rc<Core>,
    /// The user.
    pub(super) who: Caller,
    /// The settings of the channel.
    pub(super) settings: Arc<Settings>,
    /// Where relative paths begin, as the client sees it.
    home: VPath,
    handles: RefCell<Handles>,
    dirs: Cell<u64>,
    /// Bytes that its requests hold.
    held: Cell<usize>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.core.budget.give_bytes(self.held.get());
    }
}

/// The number in a handle of the client's.
pub(super) fn number(handle: HandleBytes<'_>) -> Result<u32> {
    let bytes: [u8; 4] = handle.0.try_into().map_err(|_| Refusal::HANDLE)?;
    Ok(u32::from_be_bytes(bytes))
}

impl Session {
    /// A channel of a user that has signed in.
    pub fn new(core: Rc<Core>, who: Caller, settings: Arc<Settings>) -> Rc<Self> {
        let home = who.person.home.as_deref().and_then(|home| VPath::parse(home).ok());
        let home = home.and_then(|home| below(&home, &settings.root)).unwrap_or_default();
        let (handles, dirs, held) = (RefCell::default(), Cell::new(0), Cell::new(0));
        let who = who.rooted(settings.root.clone());
        Rc::new(Self { core, who, settings, home, handles, dirs, held })
    }

    // --- memory -------------------------------------------------------------------------------

    /// Whether another request may be taken. One always may.
    pub(super) fn has_room(&self) -> bool {
        let held = self.held.get();
        held == 0 || (held < SFTP_FLIGHT_BYTES && self.core.budget.has_bytes(SFTP_PACKET_MAX))
    }

    /// A request holds this many bytes.
    pub(super) fn hold(&self, bytes: usize) {
        self.held.set(self.held.get() + bytes);
        self.core.budget.take_bytes(bytes);
    }

    /// They are free again.
    pub(super) fn release(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_sub(bytes));
        self.core.budget.give_bytes(bytes);
    }

    // --- paths --------------------------------------------------------------------------------

    /// The home directory, as the client sees it.
    pub(super) fn home(&self) -> &VPath {
        &self.home
    }

    /// An absolute path as the client sees it.
    ///
    /// # Errors
    /// SSH_FX_BAD_MESSAGE.
    pub(super) fn seen(&self, path: &[u8]) -> Result<VPath> {
        Ok(self.home.join(path)?)
    }

    /// A path of the client's from the list of shares on.
    ///
    /// # Errors
    /// SSH_FX_BAD_MESSAGE.
    pub(super) fn path(&self, path: wire::sftp::PathBytes<'_>) -> Result<Rc<VPath>> {
        let seen = self.seen(path.0)?;
        Ok(Rc::new(self.who.root.below(seen.parts()).as_written(path.0)))
    }

    // --- handles ------------------------------------------------------------------------------

    /// A new handle.
    ///
    /// # Errors
    /// SSH_FX_FAILURE if there are too many.
    pub(super) fn add(&self, open: Open) -> Result<u32> {
        let added = self.handles.borrow_mut().add(open);
        added.ok_or(Refusal::failure("Too many open handles"))
    }

    /// What is behind a handle; nothing if it is being closed.
    ///
    /// # Errors
    /// SSH_FX_FAILURE.
    pub(super) fn open(&self, handle: HandleBytes<'_>) -> Result<Open> {
        let number = number(handle)?;
        let mut handles = self.handles.borrow_mut();
        match handles.slot(number) {
            Some((_, Some(Open::File(file)))) if file.closing.get() => Err(Refusal::HANDLE),
            Some((_, Some(open))) => Ok(open.clone()),
            _ => Err(Refusal::HANDLE),
        }
    }

    /// The file behind a handle.
    ///
    /// # Errors
    /// SSH_FX_FAILURE.
    pub(super) fn file(&self, handle: HandleBytes<'_>) -> Result<Rc<OpenFile>> {
        match self.open(handle)? {
            Open::File(file) => Ok(file),
            Open::Dir(_) => Err(Refusal::HANDLE),
        }
    }

    /// The directory behind a handle.
    ///
    /// # Errors
    /// SSH_FX_FAILURE.
    pub(super) fn dir(&self, handle: HandleBytes<'_>) -> Result<Rc<OpenDir>> {
        match self.open(handle)? {
            Open::Dir(dir) => Ok(dir),
            Open::File(_) => Err(Refusal::HANDLE),
        }
    }

    /// A handle is to be closed: requests that come after this one do not find it.
    ///
    /// # Errors
    /// SSH_FX_FAILURE.
    pub(super) fn closing(&self, handle: HandleBytes<'_>) -> Result<(u32, Open)> {
        let open = self.open(handle)?;
        if let Open::File(file) = &open {
            file.closing.set(true);
        }
        Ok((number(handle)?, open))
    }

    /// Ends a handle.
    pub(super) fn forget(&self, handle: u32) {
        self.handles.borrow_mut().remove(handle);
    }

    /// A number for a directory that is listed.
    pub(super) fn dir_key(&self) -> FileKey {
        let fileid = self.dirs.replace(self.dirs.get() + 1);
        FileKey { fsid: u64::MAX, fileid, generation: 0 }
    }

    /// An upload in progress to this path: no other client sees it there.
    pub(super) fn uploading(&self, path: &VPath) -> Option<Rc<OpenFile>> {
        let handles = self.handles.borrow();
        handles.files().find(|file| file.is_aside() && **file.path.borrow() == *path).cloned()
    }

    /// Files on their way to places at or below this path.
    pub(super) fn uploading_below(&self, path: &VPath) -> Vec<Rc<OpenFile>> {
        let handles = self.handles.borrow();
        let below = |file: &&Rc<OpenFile>| file.is_aside() && file.path.borrow().starts_with(path);
        handles.files().filter(below).cloned().collect()
    }

    /// Something was moved: open files are at other paths now.
    pub(super) fn moved(&self, from: &VPath, to: &VPath) {
        for file in self.handles.borrow().files() {
            let now = moved(&file.path.borrow(), from, to);
            if let Some(now) = now {
                *file.path.borrow_mut() = Rc::new(now);
            }
        }
    }
}

/// The part of a path below another, as a path of its own.
fn below(path: &VPath, top: &VPath) -> Option<VPath> {
    let rest = path.parts().strip_prefix(top.parts())?;
    Some(VPath::ROOT.below(rest))
}

fn moved(path: &VPath, from: &VPath, to: &VPath) -> Option<VPath> {
    let rest = path.parts().strip_prefix(from.parts())?;
    Some(to.below(rest))
}
