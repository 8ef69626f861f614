//! Uploads: the data of a file that a client sends.
//!
//! An upload is atomic: the data is written to a temporary file in the same directory, flushed to
//! disk at the end, and renamed. An upload that continues an existing file, or without the right to
//! create files in the directory, writes into the file directly.
//!
//! Temporary files left by a killed server are recognised by their name, which contains the number
//! of their server, and removed by the next listing of the directory. Those of other servers may
//! still be in use: they are removed after days. The file that is replaced passes its metadata to
//! the new one: owner, mode, access control list and extended attributes, as far as the caller has
//! the right to set them.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use base::limits::UPLOAD_FOREIGN_AGE;
use base::random::{Random, SystemRandom};
use vfs::acl::AclKind;
use vfs::attr::{FileType, SetAttr, Time, Wcc};
use vfs::fs::{
    Change, Changed, Context, CreateHow, Entry, Failed, FileSystem, Flush, Result, SetXattr,
    Stable, access,
};
use vfs::handle::Handle;
use vfs::locks::{ByOwners, FileKey};
use vfs::status::Status;

use super::caller::{Caller, Reached};
use super::core::Core;
use super::node::{Node, Spot};
use super::opened::Opened;
use super::serial::{Condition, always, rename_if};

/// Begins the names of files that are being uploaded.
const PREFIX: &[u8] = b".plimsoll-upload-";

/// Numbers of uploads, each given once in this process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Numbers of the uploads in progress.
static LIVE: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

fn live() -> MutexGuard<'static, BTreeSet<u64>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Identifies the uploads of this server, across restarts.
static OWNER: OnceLock<String> = OnceLock::new();

/// Names uploads as those of a server with this number, which at most one process has at a time. To
/// be called before the first of them; without it the process has a random number.
pub fn set_owner(number: u64) {
    // Set already if uploads were named before this call.
    let _ = OWNER.set(format!("{number:016x}"));
}

fn owner() -> &'static str {
    OWNER.get_or_init(random_name)
}

/// Identifies the uploads of this run of the server.
fn life() -> &'static str {
    static LIFE: OnceLock<String> = OnceLock::new();
    LIFE.get_or_init(random_name)
}

fn random_name() -> String {
    format!("{:016x}", SystemRandom.next_u64())
}

/// A unique name that no listing shows during the upload. A file left under it afterwards is
/// removed by a later listing.
#[derive(Debug)]
pub struct Temporary {
    number: u64,
    /// The name.
    pub name: Vec<u8>,
}

impl Temporary {
    /// A name of its own.
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        live().insert(number);
        Self {
            number,
            name: [PREFIX, format!("{}-{}-{number}", owner(), life()).as_bytes()].concat(),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        live().remove(&self.number);
    }
}

/// Whether it is the name of a file that is being uploaded.
pub fn is_one(name: &[u8]) -> bool {
    name.starts_with(PREFIX)
}

/// Whether it is the name of an abandoned upload: one of an earlier run of this server, one of a
/// connection that broke while the file was created, or one of another server that is too old to be
/// in progress. `changed` is the modification time of the file, if known.
pub(super) fn is_left(name: &[u8], changed: Option<Time>, now: Time) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else { return false };
    let after = |rest: &[u8], part: &str| {
        Some(rest.strip_prefix(part.as_bytes())?.strip_prefix(b"-")?.to_vec())
    };
    let Some(ours) = after(rest, owner()) else {
        // Another process may share the directory: one for each connection of sshd's subsystem,
        // or a server with another state directory.
        let days = UPLOAD_FOREIGN_AGE.as_secs() as i64;
        return changed.is_some_and(|changed| now.sec.saturating_sub(changed.sec) > days);
    };
    let number = after(&ours, life());
    let number = number.and_then(|n| std::str::from_utf8(&n).ok()?.parse().ok());
    !number.is_some_and(|number| live().contains(&number))
}

/// Removes abandoned uploads from a directory. Errors (no permission, already removed) are ignored:
/// the next listing tries again.
pub(super) async fn clear(core: &Core, who: &Caller, dir: &Node, names: Vec<Vec<u8>>) {
    let (fs, dir, cred) = (Arc::clone(&dir.reached.share.fs), dir.handle, &dir.reached.cred);
    let clear = move |cx: Context<'_>| {
        for name in &names {
            let _ = fs.remove(cx, &dir, name);
        }
    };
    let _ = core.pooled(who, cred, clear).await;
}

/// How an upload begins.
#[derive(Debug, Clone, Copy)]
pub enum How {
    /// Complete or not at all, with these attributes if the file is new.
    Atomic(SetAttr),
    /// Into the existing file, or a new one with these attributes; truncated to their size if they
    /// have one.
    InPlace(SetAttr),
    /// Into a new file with these attributes: [`Status::Exists`] if there is one.
    New(SetAttr),
}

/// The result of an upload that is on disk.
pub enum Finished {
    /// It has its final name.
    Named(Box<Node>),
    /// The condition did not hold: it has its temporary name. Dropped, it is removed.
    Withheld(Box<Upload>),
}

impl Finished {
    /// The file.
    ///
    /// # Errors
    /// [`Status::Fault`] if the name was withheld.
    fn named(self) -> Result<Node> {
        match self {
            Self::Named(node) => Ok(*node),
            Self::Withheld(_) => Err(Status::Fault),
        }
    }
}

/// Another name, until the end.
struct Aside {
    spot: Spot,
    temporary: Temporary,
    /// Whether the file is to be removed. Its creation may still run on the pool when the upload is
    /// dropped: the operation then removes what it has created.
    abandoned: Arc<AtomicBool>,
}

/// Removes the temporary file if it is dropped while there is one.
struct Removal {
    core: Rc<Core>,
    who: Caller,
    aside: Option<Aside>,
}

impl Removal {
    fn new(core: &Rc<Core>, who: &Caller, spot: &Spot) -> Self {
        let (temporary, abandoned) = (Temporary::new(), Arc::default());
        let aside = Some(Aside { spot: spot.clone(), temporary, abandoned });
        Self { core: Rc::clone(core), who: who.clone(), aside }
    }

    /// There is none: the file is written in place.
    fn none(core: &Rc<Core>, who: &Caller) -> Self {
        Self { core: Rc::clone(core), who: who.clone(), aside: None }
    }

    /// The temporary file, for an operation on the pool.
    fn making(&self) -> Option<Making> {
        let aside = self.aside.as_ref()?;
        let (spot, name) = (aside.spot.clone(), aside.temporary.name.clone());
        Some(Making { spot, name, abandoned: Arc::clone(&aside.abandoned) })
    }
}

/// A temporary file as an operation on the pool knows it.
struct Making {
    spot: Spot,
    name: Vec<u8>,
    abandoned: Arc<AtomicBool>,
}

impl Making {
    /// Removes the file if the upload was abandoned. Called after the file was created: abandoning
    /// sets the mark first and removes the file then, so that one of the two finds it.
    fn if_abandoned(&self, fs: &dyn FileSystem, cx: Context<'_>) {
        if self.abandoned.load(Ordering::SeqCst) {
            let _ = fs.remove(cx, &self.spot.dir, &self.name);
        }
    }
}

/// A file opened for writing. Dropped before [`Upload::finish`], a whole upload leaves nothing, one
/// in place what was written.
pub struct Upload {
    core: Rc<Core>,
    who: Caller,
    node: Node,
    removal: Removal,
    /// Why a write failed: afterwards missing data cannot be distinguished from a hole.
    failed: Option<Status>,
    _opened: Vec<Opened>,
}

/// Makes the file, and gives it the mode of the one that it will replace.
fn make_aside(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    spot: &Spot,
    name: &[u8],
    mut set: SetAttr,
) -> Change<Entry> {
    if let Some(there) = spot.entry {
        set.mode = Some(there.attr.mode & 0o777);
        set.umask = None;
    }
    let made = fs.create(cx, &spot.dir, name, CreateHow::Guarded(set))?;
    // It is flushed when its data is, and its name when it has the final one.
    Ok(Changed { flush: Flush::NONE, ..made })
}

/// Copies the metadata of the replaced file to the new one. What the caller has no right to set, or
/// the file system cannot store, is omitted.
fn inherit(fs: &dyn FileSystem, cx: Context<'_>, old: &Entry, new: &Handle) -> Flush {
    let mut flush = Flush::NONE;
    let mut done = |change: Change<()>| {
        flush.targets.extend(change.map(|changed| changed.flush.targets).unwrap_or_default());
    };
    let owner = SetAttr { uid: Some(old.attr.uid), gid: Some(old.attr.gid), ..SetAttr::default() };
    if fs.getattr(cx, new).is_ok_and(|a| (a.uid, a.gid) != (old.attr.uid, old.attr.gid)) {
        done(fs.setattr(cx, new, &owner, None));
    }
    let features = fs.features();
    if features.acls
        && let Ok(Some(acl)) = fs.get_acl(cx, &old.handle, AclKind::Access)
    {
        done(fs.set_acl(cx, new, AclKind::Access, Some(&acl)));
    }
    if features.xattrs {
        let mut names = Vec::new();
        let mut each = |name: &[u8], _| {
            names.push(name.to_vec());
            true
        };
        // None, if they cannot be listed.
        let _ = fs.list_xattrs(cx, &old.handle, 0, &mut each);
        for name in names {
            if let Ok(value) = fs.get_xattr(cx, &old.handle, &name) {
                done(fs.set_xattr(cx, new, &name, &value, SetXattr::Either));
            }
        }
    }
    flush
}

/// As [`inherit`], as a change.
fn given(fs: &dyn FileSystem, cx: Context<'_>, old: &Entry, new: &Handle) -> Changed<()> {
    Changed { value: (), wcc: Wcc::default(), flush: inherit(fs, cx, old, new) }
}

/// Gives a file that was written under `name` its final one if the condition holds; whether it did.
/// With nothing to flush before, that is a part of the same trip to the pool.
fn take_final(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    (spot, name): (&Spot, &[u8]),
    condition: &Condition,
) -> Change<bool> {
    rename_if(fs, cx, (&spot.dir, name), (&spot.dir, &spot.name), &**condition)
}

/// Attributes for a file that is truncated and rewritten in place.
fn cut(set: SetAttr) -> SetAttr {
    SetAttr { size: Some(0), ..set }
}

fn refused(status: Status) -> Failed {
    Failed::from(status)
}

impl Core {
    /// Opens a place for writing.
    ///
    /// # Errors
    /// [`Status::IsDirectory`], [`Status::Invalid`] for what is no regular file,
    /// [`Status::Access`]; as of CREATE; as for [`Core::open`].
    pub async fn upload(self: &Rc<Self>, who: &Caller, spot: &Spot, how: How) -> Result<Upload> {
        spot.reached.for_change()?;
        let mut spot = spot.clone();
        let mut opened: Vec<_> = self.claim(who, &mut spot).await?.into_iter().collect();
        let spot = &spot;
        let in_place = || Removal::none(self, who);
        let how = match how {
            How::Atomic(set) if !self.may_replace(who, spot).await? => How::InPlace(cut(set)),
            how => how,
        };
        if matches!(how, How::Atomic(_)) {
            self.may_take_name(who, spot)?;
        }
        let (entry, removal) = match how {
            How::Atomic(set) => match self.begin_aside(who, spot, set).await {
                Err(Status::Access) if spot.entry.is_some() => {
                    let cut = CreateHow::Unchecked(cut(set));
                    (self.begin_in_place(who, spot, cut).await?, in_place())
                }
                begun => begun?,
            },
            How::InPlace(set) => {
                (self.begin_in_place(who, spot, CreateHow::Unchecked(set)).await?, in_place())
            }
            How::New(set) => {
                (self.begin_in_place(who, spot, CreateHow::Guarded(set)).await?, in_place())
            }
        };
        let node = Node { reached: spot.reached.clone(), handle: entry.handle, attr: entry.attr };
        opened.push(match removal.aside {
            // No other client knows its name.
            Some(_) => self.open_made(who, node.key()).await?,
            None if spot.entry.is_none() => self.open_made_retained(who, &node).await?,
            None => self.open_retained(who, &node, true).await?,
        });
        let core = Rc::clone(self);
        Ok(Upload { core, who: who.clone(), node, removal, failed: None, _opened: opened })
    }

    /// Whether a file may be put at a place, as far as that is known before any of its data is.
    ///
    /// # Errors
    /// As for [`Core::upload`].
    pub async fn may_upload(&self, who: &Caller, spot: &Spot) -> Result<()> {
        spot.reached.for_change()?;
        if let Some(there) = spot.entry
            && self.may_write(who, spot, &there).await?
        {
            return Ok(());
        }
        let (fs, dir) = (Arc::clone(&spot.reached.share.fs), spot.dir);
        let look = move |cx: Context<'_>| fs.access(cx, &dir, access::EXTEND);
        let (granted, _) = self.look(who, &spot.reached.cred, look).await?;
        if granted & access::EXTEND == 0 { Err(Status::Access) } else { Ok(()) }
    }

    /// Opens what is at a place, which the caller must be permitted to write, for being replaced or
    /// written into. What was removed since it was found is none.
    async fn claim(&self, who: &Caller, spot: &mut Spot) -> Result<Option<Opened>> {
        let Some(there) = spot.entry else { return Ok(None) };
        if self.may_write(who, spot, &there).await? {
            return self.open(who, FileKey::from(&there.attr), true).await.map(Some);
        }
        spot.entry = None;
        Ok(None)
    }

    /// Whether a file is still there, which the caller must be permitted to write.
    async fn may_write(&self, who: &Caller, spot: &Spot, there: &Entry) -> Result<bool> {
        match there.attr.kind {
            FileType::Regular => {}
            FileType::Directory => return Err(Status::IsDirectory),
            _ => return Err(Status::Invalid),
        }
        match self.access(who, &spot.node()?, access::MODIFY).await {
            Ok(granted) if granted & access::MODIFY == 0 => Err(Status::Access),
            // It was removed or replaced during the upload.
            Err(Status::Stale | Status::NotFound) => Ok(false),
            granted => granted.map(|_| true),
        }
    }

    /// Checks that no open or lock of another client prevents replacing, removing or renaming the
    /// file at a place: an error here comes before any data is received.
    ///
    /// # Errors
    /// [`Status::InUse`].
    pub fn may_take_name(&self, who: &Caller, spot: &Spot) -> Result<()> {
        let Some(there) = spot.entry else { return Ok(()) };
        let _acting = ByOwners::acting(&who.lent);
        let free = self.files.locks.may_rename(FileKey::from(&there.attr));
        if free { Ok(()) } else { Err(Status::InUse) }
    }

    /// Whether a file that is made in the directory of a place may take the name of what is there.
    /// In a sticky directory only owners may replace it; other users with write access write in
    /// place.
    ///
    /// # Errors
    /// As of GETATTR.
    pub async fn may_replace(&self, who: &Caller, spot: &Spot) -> Result<bool> {
        let Some(there) = spot.entry else { return Ok(true) };
        let (fs, dir) = (Arc::clone(&spot.reached.share.fs), spot.dir);
        let look = move |cx: Context<'_>| fs.sticky_permits(cx, &dir, &there.attr);
        self.look(who, &spot.reached.cred, look).await
    }

    /// Gives a file, which is to take a name, what the one that has it now leaves to it.
    ///
    /// # Errors
    /// That it is not on disk. What the caller may not give stays behind.
    pub async fn inherit(&self, who: &Caller, node: &Node, name: &Spot) -> Result<()> {
        let (file, dir, name) = (node.handle, name.dir, name.name.clone());
        let give = move |fs: &dyn FileSystem, cx: Context<'_>| {
            let old = fs.lookup(cx, &dir, &name).ok().map(|(old, _)| old);
            let Some(old) = old.filter(|old| old.attr.kind == FileType::Regular) else {
                return Ok(Changed { value: (), wcc: Wcc::default(), flush: Flush::NONE });
            };
            // Before the owner: after a change of owner the caller has no right to set the mode.
            let mode = SetAttr { mode: Some(old.attr.mode & 0o777), ..SetAttr::default() };
            let mode = fs.setattr(cx, &file, &mode, None).map_or(Flush::NONE, |set| set.flush);
            let mut changed = given(fs, cx, &old, &file);
            changed.flush.targets.extend(mode.targets);
            Ok(changed)
        };
        self.alter(who, &node.reached, give).await
    }

    async fn begin_aside(
        self: &Rc<Self>,
        who: &Caller,
        spot: &Spot,
        set: SetAttr,
    ) -> Result<(Entry, Removal)> {
        let mut removal = Removal::new(self, who, spot);
        let making = removal.making().ok_or(Status::Fault)?;
        let make = move |fs: &dyn FileSystem, cx: Context<'_>| {
            let made = make_aside(fs, cx, &making.spot, &making.name, set)?;
            making.if_abandoned(fs, cx);
            Ok(made)
        };
        match self.alter(who, &spot.reached, make).await {
            Ok(entry) => Ok((entry, removal)),
            // It may be there.
            Err(Status::Fault) => Err(Status::Fault),
            Err(status) => {
                removal.aside = None;
                Err(status)
            }
        }
    }

    async fn begin_in_place(&self, who: &Caller, spot: &Spot, how: CreateHow) -> Result<Entry> {
        let (dir, name) = (spot.dir, spot.name.clone());
        let make = move |fs: &dyn FileSystem, cx: Context<'_>| fs.create(cx, &dir, &name, how);
        self.alter(who, &spot.reached, make).await
    }

    /// Stores a small file of which all data is present: as [`Core::upload`], in two steps, or in
    /// one where there is nothing to flush.
    ///
    /// # Errors
    /// As for [`Core::upload`] and [`Upload::finish`].
    pub async fn put(
        self: &Rc<Self>,
        who: &Caller,
        spot: &Spot,
        data: (Vec<u8>, SetAttr),
    ) -> Result<Node> {
        self.put_if(who, spot, data, &always()).await?.named()
    }

    /// As [`Core::put`]; the file takes its name if the condition holds then.
    ///
    /// # Errors
    /// The same.
    pub async fn put_if(
        self: &Rc<Self>,
        who: &Caller,
        spot: &Spot,
        (data, set): (Vec<u8>, SetAttr),
        condition: &Condition,
    ) -> Result<Finished> {
        spot.reached.for_change()?;
        let mut spot = spot.clone();
        let opened = self.claim(who, &mut spot).await?;
        let spot = &spot;
        if !self.may_replace(who, spot).await? {
            drop(opened);
            return self.put_in_place(who, spot, (data, set), condition).await;
        }
        let mut removal = Removal::new(self, who, spot);
        let making = removal.making().ok_or(Status::Fault)?;
        let (data, holds) = (Arc::new(data), Arc::clone(condition));
        let shared = Arc::clone(&data);
        let make = move |fs: &dyn FileSystem, cx: Context<'_>| {
            let made = put_aside(fs, cx, (&making, set), &shared, &holds);
            making.if_abandoned(fs, cx);
            made
        };
        let (entry, named) = match self.alter(who, &spot.reached, make).await {
            Err(Status::Access) if spot.entry.is_some() => {
                drop(opened);
                removal.aside = None;
                return self.put_in_place(who, spot, (data.to_vec(), set), condition).await;
            }
            made => made?,
        };
        if named {
            removal.aside = None;
        }
        let node = Node { reached: spot.reached.clone(), handle: entry.handle, attr: entry.attr };
        let (core, opened) = (Rc::clone(self), opened.into_iter().collect());
        let failed = None;
        let upload = Upload { core, who: who.clone(), node, removal, failed, _opened: opened };
        upload.name_if(condition).await
    }

    async fn put_in_place(
        self: &Rc<Self>,
        who: &Caller,
        spot: &Spot,
        (data, set): (Vec<u8>, SetAttr),
        condition: &Condition,
    ) -> Result<Finished> {
        let mut upload = self.upload(who, spot, How::InPlace(cut(set))).await?;
        upload.write(0, data).await?;
        upload.finish_if(SetAttr::default(), condition).await
    }
}

/// Makes a file of this data; whether it has its final name already.
fn put_aside(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    (making, set): (&Making, SetAttr),
    data: &[u8],
    condition: &Condition,
) -> Change<(Entry, bool)> {
    let Making { spot, name, .. } = making;
    let made = make_aside(fs, cx, spot, name, set)?;
    let handle = made.value.handle;
    let mut flush = made.flush;
    if let Some(old) = &spot.entry {
        flush.targets.extend(inherit(fs, cx, old, &handle).targets);
    }
    let named = write_all(fs, cx, &handle, (0, data), Stable::FileSync)
        .and_then(|written| {
            flush.targets.extend(written.flush.targets);
            // What has to be on disk before gets its name in a second step.
            if !flush.is_empty() {
                return Ok(false);
            }
            let named = take_final(fs, cx, (spot, name), condition)?;
            flush = named.flush;
            Ok(named.value)
        })
        .inspect_err(|_| drop(fs.remove(cx, &spot.dir, name)))?;
    Ok(Changed { value: (made.value, named), wcc: made.wcc, flush })
}

impl Core {
    /// Writes at `offset` of a file that the caller has an [`Upload`] of; the buffer comes back, to
    /// be filled again. It is not on disk before [`Upload::finish`].
    ///
    /// # Errors
    /// As of WRITE.
    pub async fn write_at(
        &self,
        who: &Caller,
        node: &Node,
        offset: u64,
        data: Vec<u8>,
    ) -> Result<Vec<u8>> {
        self.files.still_reach(who, &node.reached, true)?;
        let (fs, file, cred) =
            (Arc::clone(&node.reached.share.fs), node.handle, &node.reached.cred);
        let lent = who.lent.clone();
        let write = move |cx: Context<'_>, data: &[u8]| {
            let _acting = ByOwners::acting(&lent);
            let written = write_all(&*fs, cx, &file, (offset, data), Stable::Unstable);
            written.map(|_| ()).map_err(|failed| failed.status)
        };
        // A file in memory takes it at once, and what of it was taken before a wait it takes again.
        match self.inline(|| write(Context { cred, may_block: false }, &data)) {
            Err(Status::WouldBlock) => {}
            written => return written.map(|()| data),
        }
        let job = move |cx: Context<'_>| (write(cx, &data), data);
        let (written, data) = self.pooled(who, cred, job).await?;
        written.map(|()| data)
    }
}

/// Writes everything; a file system may take less at once.
///
/// # Errors
/// As of WRITE.
pub fn write_all(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    file: &Handle,
    (offset, data): (u64, &[u8]),
    stable: Stable,
) -> Change<()> {
    let mut at = 0;
    loop {
        let rest = data.get(at..).unwrap_or_default();
        let begin = offset.checked_add(at as u64).ok_or(refused(Status::TooLarge))?;
        let changed = fs.write(cx, file, begin, rest, stable)?;
        at += changed.value;
        if at >= data.len() {
            return Ok(Changed { value: (), wcc: changed.wcc, flush: changed.flush });
        }
        if changed.value == 0 {
            return Err(refused(Status::Io));
        }
    }
}

impl Upload {
    /// The file: under its final name, or as long as that takes, under another.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// What the share grants.
    pub fn reached(&self) -> &Reached {
        &self.node.reached
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.who
    }

    /// Whether nothing is at the final name yet, or what was before.
    pub fn is_aside(&self) -> bool {
        self.removal.aside.is_some()
    }

    /// Writes at `offset`; the buffer comes back, to be filled again. It is not on disk before
    /// [`Upload::finish`].
    ///
    /// # Errors
    /// As of WRITE.
    pub async fn write(&mut self, offset: u64, data: Vec<u8>) -> Result<Vec<u8>> {
        let written = self.core.write_at(&self.who, &self.node, offset, data).await;
        if let Err(status) = &written {
            self.fails(*status);
        }
        written
    }

    /// Something of it could not be written: a whole upload never takes its name then, and
    /// [`Upload::finish`] fails.
    pub fn fails(&mut self, why: Status) {
        self.failed.get_or_insert(why);
    }

    /// Gives the file its final name before it is complete, because a client is to use it.
    ///
    /// # Errors
    /// As of RENAME.
    pub async fn publish(&mut self) -> Result<()> {
        self.failed.map_or(Ok(()), Err)?;
        if let Some(Aside { spot: Spot { entry: Some(old), .. }, .. }) = &self.removal.aside {
            let (old, file) = (*old, self.node.handle);
            let give = move |fs: &dyn FileSystem, cx: Context<'_>| Ok(given(fs, cx, &old, &file));
            self.core.alter(&self.who, &self.node.reached, give).await?;
        }
        self.take_name(&always()).await
    }

    /// Takes the final name if the condition holds.
    async fn take_name(&mut self, condition: &Condition) -> Result<()> {
        let Some(Making { spot, name, .. }) = self.removal.making() else { return Ok(()) };
        let holds = Arc::clone(condition);
        let rename =
            move |fs: &dyn FileSystem, cx: Context<'_>| take_final(fs, cx, (&spot, &name), &holds);
        if self.core.alter(&self.who, &self.node.reached, rename).await? {
            self.removal.aside = None;
        }
        Ok(())
    }

    /// Brings everything to disk, and the file to its name. `set` is applied before: times, a mode.
    ///
    /// # Errors
    /// That of a write before; as of COMMIT, SETATTR and RENAME. Nothing is left then of what was
    /// to be whole; in place there is what could be written.
    pub async fn finish(self, set: SetAttr) -> Result<Node> {
        self.finish_if(set, &always()).await?.named()
    }

    /// As [`Upload::finish`]; the file takes its name if the condition holds then.
    ///
    /// # Errors
    /// The same.
    pub async fn finish_if(mut self, set: SetAttr, condition: &Condition) -> Result<Finished> {
        let file = self.node.handle;
        if let Some(status) = self.failed
            && self.is_aside()
        {
            return Err(status);
        }
        let (aside, holds) = (self.removal.making(), Arc::clone(condition));
        let commit = move |fs: &dyn FileSystem, cx: Context<'_>| {
            let mut flush = Flush::NONE;
            if let Some(Making { spot: Spot { entry: Some(old), .. }, .. }) = &aside {
                flush.targets.extend(inherit(fs, cx, old, &file).targets);
            }
            if set != SetAttr::default() {
                flush.targets.extend(fs.setattr(cx, &file, &set, None)?.flush.targets);
            }
            let committed = fs.commit(cx, &file)?;
            flush.targets.extend(committed.flush.targets);
            let named = match &aside {
                Some(Making { spot, name, .. }) if flush.is_empty() => {
                    let named = take_final(fs, cx, (spot, name), &holds)?;
                    flush = named.flush;
                    named.value
                }
                _ => false,
            };
            Ok(Changed { value: named, wcc: committed.wcc, flush })
        };
        if self.core.alter(&self.who, &self.node.reached, commit).await? {
            self.removal.aside = None;
        }
        // What could be written in place is on disk, but it is not all.
        self.failed.map_or(Ok(()), Err)?;
        self.name_if(condition).await
    }

    /// Gives a file that is on disk its final name, if the condition holds then.
    ///
    /// # Errors
    /// As of RENAME.
    pub async fn name_if(mut self, condition: &Condition) -> Result<Finished> {
        self.take_name(condition).await?;
        if self.is_aside() {
            return Ok(Finished::Withheld(Box::new(self)));
        }
        let attr = match self.core.attr(&self.who, &self.node).await {
            // It had its name; the next one has it already.
            Err(Status::Stale | Status::NotFound) => self.node.attr,
            attr => attr?,
        };
        Ok(Finished::Named(Box::new(Node { attr, ..self.node.clone() })))
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        let Some(Aside { spot, temporary, abandoned }) = self.aside.take() else { return };
        abandoned.store(true, Ordering::SeqCst);
        let (fs, cred) = (Arc::clone(&spot.reached.share.fs), Arc::clone(&spot.reached.cred));
        let remove = move |cx: Context<'_>| drop(fs.remove(cx, &spot.dir, &temporary.name));
        // If it cannot be now, a listing does it.
        self.core.behind(&self.who, &cred, remove);
    }
}

#[cfg(test)]
mod tests;
