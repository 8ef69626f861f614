//! SET_INFO: times and attributes, sizes, names, and whether a file is removed at its last close.

use std::rc::Rc;
use std::sync::Arc;

use base::clock::wall_ns;
use base::limits::TRANSFER_OPEN_TRIES;
use vfs::attr::{Attr, FileType, SetAttr, SetTime, Time};
use vfs::fold::fold;
use vfs::fs::{Context, FileSystem};
use vfs::handle::Handle;
use vfs::locks::{FileKey, GraceRequest, LockTable, SHARE_DELETE, SHARE_WRITE, Share};
use vfs::status::Status;
use wire::smb::class::{Basic, NewName, attributes, file_class, mode};
use wire::smb::codec::{Reader, SmbError};
use wire::smb::create::access;
use wire::smb::info::{SetRequest, info_type, put_set};
use wire::smb::status::NtStatus;

use super::dispatch::{Handled, Reply, Request};
use super::state::location::Location;
use super::state::opens::{Entry, Open, OpenFile};
use super::state::removals::Removal;
use super::state::times::{AskedTime, Times, UserTimes};
use super::{durable, facts, grace, in_use, leases, names, security, status};
use files::set_aside::SetAside;
use files::{Caller, Links, Node, Spot, VPath};

/// FileDispositionInformationEx: remove it, also if it is read-only.
const DISPOSITION_DELETE: u32 = 1;
const DISPOSITION_IGNORE_READ_ONLY: u32 = 0x10;
/// Sizes that clients reserve are rounded up to this.
const ALLOCATION_UNIT: u64 = 4096;
/// FileRenameInformationEx: what is there is replaced, also if it is read-only.
const RENAME_REPLACE: u32 = 1;
/// What is there is replaced, also if it is open: it stays open without a name.
const RENAME_POSIX: u32 = 2;
const RENAME_IGNORE_READ_ONLY: u32 = 0x40;

/// SET_INFO.
pub(super) async fn run(request: Rc<Request>) -> Handled {
    let asked = SetRequest::decode(request.message()).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let file = open.file()?;
    match asked.info_type {
        info_type::FILE => of_file(&request, &open, file, &asked).await?,
        info_type::SECURITY => security::set(&request, &open, file, &asked).await?,
        _ => return Err(NtStatus::NOT_SUPPORTED),
    }
    if asked.info_type == info_type::FILE && is_recorded(asked.class) {
        durable::record(&open).await?;
    }
    let mut out = request.reply();
    put_set(out.vec());
    request.done(Reply { file: Some(request.file_id(asked.file)), ..Reply::new(out) })
}

/// Whether what it sets is in the record of a persistent handle.
const fn is_recorded(class: u8) -> bool {
    matches!(
        class,
        file_class::MODE
            | file_class::DISPOSITION
            | file_class::DISPOSITION_EX
            | file_class::RENAME
            | file_class::RENAME_EX
    )
}

async fn of_file(
    request: &Request,
    open: &Open,
    file: &OpenFile,
    asked: &SetRequest<'_>,
) -> Result<(), NtStatus> {
    let mut r = Reader::new(asked.data, "SET_INFO");
    match asked.class {
        file_class::BASIC => {
            open.may(access::WRITE_ATTRIBUTES)?;
            basic(request, file, &r.get().map_err(too_short)?).await?;
        }
        file_class::END_OF_FILE => {
            open.may(access::WRITE_DATA)?;
            may_write(request, open, file).await?;
            resize(request, file, r.get().map_err(too_short)?).await?;
        }
        file_class::ALLOCATION => {
            open.may(access::WRITE_DATA)?;
            may_write(request, open, file).await?;
            allocate(request, file, r.get().map_err(too_short)?).await?;
        }
        file_class::POSITION => {
            let position: u64 = r.get().map_err(too_short)?;
            file.position.set(size_of(position)?);
        }
        file_class::MODE => set_mode(file, r.get().map_err(too_short)?)?,
        file_class::DISPOSITION => {
            let delete: u8 = r.get().map_err(too_short)?;
            dispose(request, open, file, u32::from(delete != 0)).await?;
        }
        file_class::DISPOSITION_EX => {
            let flags: u32 = r.get().map_err(too_short)?;
            dispose(request, open, file, flags).await?;
        }
        // The rights to names are those of the user.
        file_class::RENAME | file_class::RENAME_EX | file_class::LINK
            if request.session.is_anonymous.get() =>
        {
            return Err(NtStatus::ACCESS_DENIED);
        }
        file_class::RENAME => {
            let new = new_name(asked.data)?;
            rename(request, open, file, (&new, 0)).await?;
        }
        file_class::RENAME_EX => {
            let flags: u32 = r.get().map_err(too_short)?;
            let new = NewName { replace: flags & RENAME_REPLACE != 0, ..new_name(asked.data)? };
            rename(request, open, file, (&new, flags)).await?;
        }
        file_class::LINK => link(request, file, &new_name(asked.data)?).await?,
        file_class::FULL_EA => return Err(NtStatus::EAS_NOT_SUPPORTED),
        _ => return Err(NtStatus::INVALID_INFO_CLASS),
    }
    Ok(())
}

/// A buffer that is shorter than its class (MS-FSA §2.1.5.15).
fn too_short(why: SmbError) -> NtStatus {
    match why {
        SmbError::Short(_) => NtStatus::INFO_LENGTH_MISMATCH,
        why => status::of_wire(why),
    }
}

/// A size or a place in a file, which are signed: there is none below 0.
const fn size_of(field: u64) -> Result<u64, NtStatus> {
    if field > i64::MAX as u64 { Err(NtStatus::INVALID_PARAMETER) } else { Ok(field) }
}

/// FileRenameInformation and FileLinkInformation (MS-FSA §2.1.5.15.7, §2.1.5.15.12).
fn new_name(data: &[u8]) -> Result<NewName<'_>, NtStatus> {
    if data.len() < NewName::NAME_AT {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let new = NewName::decode(data).map_err(status::of_wire)?;
    if new.name.is_empty() { Err(NtStatus::INVALID_PARAMETER) } else { Ok(new) }
}

/// FileModeInformation: what remains with the open (MS-FSA §2.1.5.15.9).
fn set_mode(file: &OpenFile, new: u32) -> Result<(), NtStatus> {
    if new & !mode::ALL != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    file.mode.set(new & mode::OF_OPEN);
    Ok(())
}

/// Attributes that a client sets: those that are stored separately, and the mode if it changes.
fn new_attributes(attr: &Attr, bits: u32, new: u32) -> (u32, Option<u32>) {
    let named = new & attributes::SETTABLE & !attributes::READ_ONLY;
    let (mut bits, is_dir) = (named | bits & attributes::SPARSE, attr.kind == FileType::Directory);
    let (is_read_only, wanted) = (attr.mode & 0o222 == 0, new & attributes::READ_ONLY != 0);
    if !is_dir && wanted != is_read_only {
        return (bits, Some(if wanted { attr.mode & !0o222 } else { attr.mode | 0o200 }));
    }
    if is_dir && wanted {
        // Of a directory it forbids nothing: Windows marks with it what has a look of its own.
        bits |= attributes::READ_ONLY;
    }
    (bits, None)
}

async fn basic(request: &Request, file: &OpenFile, new: &Basic) -> Result<(), NtStatus> {
    let (conn, who) = (&request.conn, &request.session.who);
    let wrong = match file.node.is_dir() {
        true => attributes::TEMPORARY,
        false => attributes::DIRECTORY,
    };
    if new.attributes & wrong != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let [created, accessed, written, changed] =
        [new.created, new.accessed, new.written, new.changed].map(facts::asked_time);
    let (created, accessed, written, changed) = (created?, accessed?, written?, changed?);
    let (attr, dos) = facts::look(conn, who, &file.node).await?;
    // A change time that was set before stays, whatever is set now.
    let held = conn.server.open_files.times(file.entry.key, |times| times.change_at(attr.ctime));
    let held = held.flatten();
    let set_time = |asked| match asked {
        AskedTime::Set(time) => SetTime::At(facts::unix_time(time)),
        _ => SetTime::Keep,
    };
    let (atime, mtime) = (set_time(accessed), set_time(written));
    let mut set = SetAttr { atime, mtime, ..SetAttr::default() };
    let (mut kept, shown) = (dos.unwrap_or_default(), facts::kept(&attr, dos.as_ref()));
    let mut bits = shown;
    if new.attributes != 0 {
        (bits, set.mode) = new_attributes(&attr, shown, new.attributes);
    }
    kept.attributes = Some(bits);
    if let AskedTime::Set(time) = created {
        kept.created = Some(time);
    }
    // What nothing is kept of, and shows what is set all the same, has nothing to keep: sockets,
    // pipes and links take no extended attributes.
    let is_shown = dos.is_none() && kept.created.is_none() && bits == shown;
    let is_asked = matches!(created, AskedTime::Set(_)) || new.attributes != 0;
    if is_asked && dos != Some(kept) && !is_shown {
        facts::keep(conn, who, &file.node, kept).await?;
    }
    if facts::settle(conn, file) && set.mtime == SetTime::Keep {
        // What was written counts as written now: within a tick the file system's own time may not
        // have moved.
        set.mtime = SetTime::At(Time::from_ns(wall_ns()));
    }
    if set != SetAttr::default() {
        conn.core.set_attr(who, &file.node, set).await.map_err(status::of)?;
    }
    let (after, _) = facts::look(conn, who, &file.node).await?;
    let user = file.user_times.get();
    let shown = held.unwrap_or_else(|| facts::of(&attr, None).changed);
    file.user_times.set(UserTimes {
        written: written.holds(user.written, after.mtime, facts::unix_time),
        changed: changed.holds(user.changed, shown, |time| time),
    });
    let change = match changed {
        AskedTime::Set(time) => Some(time),
        AskedTime::Leave => Some(shown),
        AskedTime::Nothing => file.user_times.get().changed.or(held),
        AskedTime::Follow => held,
    };
    if let Some(change) = change {
        let set = |times: &mut Times| times.set_change(change, after.ctime);
        conn.server.open_files.times(file.entry.key, set);
    }
    Ok(())
}

/// Waits until nothing of what is written can be reclaimed.
async fn may_write(request: &Request, open: &Open, file: &OpenFile) -> Result<(), NtStatus> {
    let refused = NtStatus::FILE_LOCK_CONFLICT;
    grace::wait_with(request, (open, file), GraceRequest::Write, refused).await
}

async fn resize(request: &Request, file: &OpenFile, size: u64) -> Result<(), NtStatus> {
    let size = size_of(size)?;
    if file.node.is_dir() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let set = SetAttr { size: Some(size), ..SetAttr::default() };
    let core = &request.conn.core;
    core.set_attr(&acting(request, file), &file.node, set).await.map_err(status::of)?;
    facts::settle(&request.conn, file);
    facts::leave_times(&request.conn, &request.session.who, file).await
}

/// A smaller allocation cuts the file; a larger one is taken when it is written to.
async fn allocate(request: &Request, file: &OpenFile, size: u64) -> Result<(), NtStatus> {
    let size = size_of(size)?;
    if file.node.is_dir() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let (core, who) = (&request.conn.core, &request.session.who);
    let now = core.attr(who, &file.node).await.map_err(status::of)?;
    if size > now.used.max(now.size) {
        let space = core.space(who, &file.node.reached).await.map_err(status::of)?;
        if size - now.used.max(now.size) > space.avail_bytes {
            return Err(NtStatus::DISK_FULL);
        }
    }
    file.reserved.set(size.next_multiple_of(ALLOCATION_UNIT));
    leases::has_written(file);
    if size < now.size { resize(request, file, size).await } else { Ok(()) }
}

async fn dispose(
    request: &Request,
    open: &Open,
    file: &OpenFile,
    flags: u32,
) -> Result<(), NtStatus> {
    open.may(access::DELETE)?;
    let files = &request.conn.server.open_files;
    let Entry { locks, key, owner, .. } = &file.entry;
    let link = file.entry.link.get();
    if flags & DISPOSITION_DELETE == 0 {
        if let Some(link) = link {
            locks.unmark_link(*key, link, owner);
            files.set_removal(*key, link, None);
        }
        file.delete_on_close.set(false);
        return Ok(());
    }
    let refused = NtStatus::SHARING_VIOLATION;
    grace::wait_with(request, (open, file), GraceRequest::Name, refused).await?;
    let (_, facts) = facts::now(&request.conn, &request.session.who, file).await?;
    let ignored = match flags & DISPOSITION_IGNORE_READ_ONLY {
        0 => 0,
        _ => attributes::READ_ONLY,
    };
    let place = file.entry.location();
    let (link, place) = link.zip(place).ok_or(NtStatus::ACCESS_DENIED)?;
    may_remove(request, &file.node, Some(&place), facts.attributes & !ignored).await?;
    leases::may_rename(request, file).await?;
    // Another client's open may keep the name: the last close could not remove it.
    locks.mark_link(*key, link, owner).map_err(|_| refused)?;
    let removal = Removal { who: request.session.who.clone(), node: file.node.clone() };
    files.set_removal(*key, link, Some(removal));
    Ok(())
}

/// Whether what has a name may be removed when it is closed: whatever a link leads to stays, a
/// directory must be empty, and Windows removes no file that is read-only.
pub(super) async fn may_remove(
    request: &Request,
    node: &Node,
    place: Option<&Location>,
    bits: u32,
) -> Result<(), NtStatus> {
    if place.is_some_and(Location::is_link) {
        return Ok(());
    }
    if node.is_dir() {
        return is_empty(request, node).await;
    }
    if bits & attributes::READ_ONLY != 0 { Err(NtStatus::CANNOT_DELETE) } else { Ok(()) }
}

/// That nothing is in a directory.
async fn is_empty(request: &Request, dir: &Node) -> Result<(), NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let (fs, handle) = (Arc::clone(&dir.reached.share.fs), dir.handle);
    let look = move |cx: Context<'_>| {
        let mut empty = true;
        fs.list(cx, &handle, 0, [0; 8], false, &mut |entry| {
            empty = matches!(entry.name, b"." | b"..");
            empty
        })?;
        if empty { Ok(()) } else { Err(Status::NotEmpty) }
    };
    core.look(who, &dir.reached.cred, look).await.map_err(status::of)
}

/// Where a new name is, or may be.
async fn spot(
    request: &Request,
    file: &OpenFile,
    new: &NewName<'_>,
) -> Result<(Spot, VPath), NtStatus> {
    let name = new.name.strip_prefix(&[b'\\', 0]).unwrap_or(new.name);
    let path = names::path(&file.node.reached.share, name)?;
    if path.parts().len() < 2 {
        return Err(NtStatus::OBJECT_NAME_INVALID);
    }
    let (core, who) = (&request.conn.core, &request.caller());
    let spot = core.spot(who, &path, Links::Keep).await.map_err(status::of_path)?;
    Ok((spot, path))
}

/// The caller, with its own open and lease excluded from conflicts.
pub(super) fn acting(request: &Request, file: &OpenFile) -> Caller {
    let mut who = request.session.who.clone();
    who.lent.push(file.entry.owner.clone());
    who.lent.extend(file.lease.as_ref().map(|lease| lease.owner.clone()));
    who
}

/// What is to be removed gets no other name (MS-FSA §2.1.5.15.6 and §2.1.5.15.11).
fn stays(file: &OpenFile) -> Result<(), NtStatus> {
    match file.entry.is_marked() {
        true => Err(NtStatus::ACCESS_DENIED),
        false => Ok(()),
    }
}

/// Where a rename puts its file.
struct Target {
    to: Spot,
    dir_key: FileKey,
    path: VPath,
    /// What is there.
    replaced: Replaced,
    /// What is there may be open.
    is_posix: bool,
}

async fn rename(
    request: &Request,
    open: &Open,
    file: &OpenFile,
    (new, flags): (&NewName<'_>, u32),
) -> Result<(), NtStatus> {
    open.may(access::DELETE)?;
    stays(file)?;
    leases::may_rename(request, file).await?;
    let refused = NtStatus::SHARING_VIOLATION;
    grace::wait_with(request, (open, file), GraceRequest::Name, refused).await?;
    for _ in 0..TRANSFER_OPEN_TRIES {
        stays(file)?;
        let from = file.entry.location().ok_or(NtStatus::ACCESS_DENIED)?;
        let target = target(request, file, &from, (new, flags)).await?;
        let done = match is_at(file, &from) {
            true => rename_to(request, open, file, (&from, target)).await,
            false => Err(NtStatus::OBJECT_NAME_NOT_FOUND),
        };
        match done {
            // It has another name since: others were waited for. The new one is that of the file
            // that is open (MS-FSA §2.1.5.15.11), not of what has its old name now.
            Err(NtStatus::OBJECT_NAME_NOT_FOUND) if !is_at(file, &from) => {}
            // Something else has the new name since, or what has it was opened.
            Err(NtStatus::OBJECT_NAME_COLLISION) => {}
            done => return done,
        }
    }
    Err(refused)
}

/// Whether an open file still has this name.
fn is_at(file: &OpenFile, at: &Location) -> bool {
    file.entry.location().is_some_and(|now| now.is_same(at))
}

/// Where a rename from `from` leads, once nothing is in its way.
async fn target(
    request: &Request,
    file: &OpenFile,
    from: &Location,
    (new, flags): (&NewName<'_>, u32),
) -> Result<Target, NtStatus> {
    let (mut to, path) = spot(request, file, new).await?;
    let replaced = replaced(request, file, from, &to).await?;
    match replaced {
        Replaced::Nothing => {}
        Replaced::Itself => to.name = path.name().unwrap_or_default().to_vec(),
        _ if !new.replace => return Err(NtStatus::OBJECT_NAME_COLLISION),
        Replaced::Directory => return Err(NtStatus::ACCESS_DENIED),
        Replaced::OtherName => {}
        Replaced::File => may_replace_open(request, file, (&to, flags)).await?,
    }
    let dir_key = may_enter(request, file, &to).await?;
    if file.node.is_dir() && !from.is_link() {
        in_use::holds_nothing_open(request, file).await?;
    }
    Ok(Target { to, dir_key, path, replaced, is_posix: flags & RENAME_POSIX != 0 })
}

/// Renames a file that has this name.
async fn rename_to(
    request: &Request,
    open: &Open,
    file: &OpenFile,
    (from, target): (&Location, Target),
) -> Result<(), NtStatus> {
    let Target { to, dir_key, path, replaced, is_posix } = target;
    let (dir, name) = (to.dir, to.name.clone());
    let (source, folds) = (from.clone(), Arc::clone(&request.conn.server.folds));
    let own = FileKey::from(from.attr(&file.node.attr));
    let found = to.entry.as_ref().map(|entry| FileKey::from(&entry.attr));
    let locks = (!is_posix).then(|| Arc::clone(&file.entry.locks));
    let rename = move |fs: &dyn FileSystem, cx: Context<'_>| {
        leads_to(fs, cx, (&source.dir, &source.name), &own)?;
        if replaced == Replaced::OtherName {
            // It is the one that is left.
            leads_to(fs, cx, (&dir, &name), &own)?;
            let done = fs.remove(cx, &source.dir, &source.name)?;
            folds.changed(&done.wcc, Some(&source.name), None);
            return Ok(done);
        }
        if matches!(replaced, Replaced::Nothing | Replaced::File) {
            is_as_found(fs, cx, (&dir, &name), (found, locks.as_deref()))?;
        }
        let done = fs.rename(cx, (&source.dir, &source.name), (&dir, &name))?;
        if source.dir == dir {
            folds.changed(&done.wcc, Some(&source.name), Some(&name));
        }
        Ok(vfs::fs::Changed { value: (), wcc: done.wcc, flush: done.flush })
    };
    let who = acting(request, file);
    let core = &request.conn.core;
    // The open keeps its path, which may be longer now.
    let before = open.seat.resize(names::held(&path)).ok_or(NtStatus::TOO_MANY_OPENED_FILES)?;
    if let Err(why) = core.alter(&who, &file.node.reached, rename).await {
        open.seat.change(before);
        return Err(status::of(why));
    }
    // Where the rename itself has noted it, others may have renamed the file again.
    if let Some(link) = file.entry.link.get().filter(|_| is_at(file, from)) {
        let place = Location { dir: to.dir, dir_key, name: to.name, link: from.link.clone() };
        file.entry.locks.move_link(file.entry.key, link, place);
    }
    *file.path.borrow_mut() = path;
    Ok(())
}

/// That a name leads to this file.
fn leads_to(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    (dir, name): (&Handle, &[u8]),
    file: &FileKey,
) -> vfs::fs::Result<()> {
    let (there, _) = fs.lookup(cx, dir, name).map_err(|failed| failed.status)?;
    match FileKey::from(&there.attr).is_same_file(file) {
        true => Ok(()),
        false => Err(Status::NotFound),
    }
}

/// That a name that is replaced leads to what was found there before others were waited for, or to
/// nothing, and that this is not open, where the table of locks is given.
fn is_as_found(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    (dir, name): (&Handle, &[u8]),
    (found, locks): (Option<FileKey>, Option<&LockTable>),
) -> vfs::fs::Result<()> {
    let there = match fs.lookup(cx, dir, name) {
        Ok((there, _)) => FileKey::from(&there.attr),
        Err(failed) if failed.status == Status::NotFound => return Ok(()),
        Err(failed) => return Err(failed.status),
    };
    let is_same = found.is_some_and(|found| found.is_same_file(&there));
    match is_same && !locks.is_some_and(|locks| locks.is_open_by_name(there)) {
        true => Ok(()),
        false => Err(Status::Exists),
    }
}

/// Whether what is there may be replaced: no file that is read-only (MS-FSA §2.1.5.15.7 and
/// §2.1.5.15.12).
fn may_replace(to: &Spot) -> Result<(), NtStatus> {
    let is_read_only = |entry: &vfs::fs::Entry| {
        entry.attr.kind == FileType::Regular && entry.attr.mode & 0o222 == 0
    };
    match to.entry.as_ref().is_some_and(is_read_only) {
        true => Err(NtStatus::ACCESS_DENIED),
        false => Ok(()),
    }
}

/// Whether a rename may replace what is there, by its flags.
async fn may_replace_open(
    request: &Request,
    file: &OpenFile,
    (to, flags): (&Spot, u32),
) -> Result<(), NtStatus> {
    if flags & RENAME_IGNORE_READ_ONLY == 0 {
        may_replace(to)?;
    }
    match &to.entry {
        Some(there) if flags & RENAME_POSIX == 0 => {
            in_use::is_replaceable(request, file, FileKey::from(&there.attr)).await
        }
        _ => Ok(()),
    }
}

/// What has a new name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replaced {
    Nothing,
    /// The name that is changed: only its case changes, or nothing.
    Itself,
    /// Another name of the same file. One is left, where rename(2) leaves both.
    OtherName,
    File,
    Directory,
}

async fn replaced(
    request: &Request,
    file: &OpenFile,
    from: &Location,
    to: &Spot,
) -> Result<Replaced, NtStatus> {
    let Some(there) = to.entry else { return Ok(Replaced::Nothing) };
    let is_dir = there.attr.kind == FileType::Directory;
    let own = FileKey::from(from.attr(&file.node.attr));
    if !FileKey::from(&there.attr).is_same_inode(&own) {
        return Ok(if is_dir { Replaced::Directory } else { Replaced::File });
    }
    // File systems may take names for one that we do not. A file has another only if it is linked.
    if is_dir || there.attr.nlink < 2 {
        return Ok(Replaced::Itself);
    }
    let (core, who) = (&request.conn.core, &request.session.who);
    let (fs, dirs) = (Arc::clone(&to.reached.share.fs), [from.dir, to.dir]);
    let look = move |cx: Context<'_>| {
        let [one, other] = &dirs;
        Ok(one == other || fs.file_key(cx, one)?.is_same_inode(&fs.file_key(cx, other)?))
    };
    let in_one = core.look(who, &to.reached.cred, look).await.map_err(status::of)?;
    let is_itself = in_one && fold(&from.name) == fold(&to.name);
    Ok(if is_itself { Replaced::Itself } else { Replaced::OtherName })
}

/// Whether the directory of a new name is open so that nothing may be put in, or is about to be
/// removed or renamed: a rename opens it for writing, and denies DELETE (MS-FSA §2.1.5.15.11).
/// Gives the directory's key.
async fn may_enter(request: &Request, file: &OpenFile, to: &Spot) -> Result<FileKey, NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let (fs, dir) = (Arc::clone(&to.reached.share.fs), to.dir);
    let key = core.look(who, &to.reached.cred, move |cx| fs.file_key(cx, &dir)).await;
    let key = key.map_err(status::of)?;
    let want = Share { access: SHARE_WRITE, deny: SHARE_DELETE };
    let locks = &file.entry.locks;
    match locks.open_denied(key, &file.entry.owner, want) {
        Some(_) => Err(NtStatus::SHARING_VIOLATION),
        None => Ok(key),
    }
}

async fn link(request: &Request, file: &OpenFile, new: &NewName<'_>) -> Result<(), NtStatus> {
    stays(file)?;
    if file.node.is_dir() {
        return Err(NtStatus::FILE_IS_A_DIRECTORY);
    }
    let (to, _) = spot(request, file, new).await?;
    let (who, core) = (acting(request, file), &request.conn.core);
    let Some(there) = to.entry else {
        return core.link(&who, &file.node, &to).await.map_err(status::of);
    };
    if !new.replace {
        return Err(NtStatus::OBJECT_NAME_COLLISION);
    }
    if there.attr.kind == FileType::Directory {
        return Err(NtStatus::ACCESS_DENIED);
    }
    if FileKey::from(&there.attr).is_same_inode(&file.entry.key) {
        return Ok(());
    }
    may_replace(&to)?;
    // The new name takes the place of the other file in one step: nothing is lost if it fails.
    let aside = SetAside::new();
    let (dir, name, other) = (to.dir, to.name.clone(), aside.name.clone());
    let made = Spot { name: other.clone(), entry: None, ..to.clone() };
    core.link(&who, &file.node, &made).await.map_err(status::of)?;
    let folds = Arc::clone(&request.conn.server.folds);
    let replace = move |fs: &dyn FileSystem, cx: Context<'_>| {
        let replaced = fs.rename(cx, (&dir, &other), (&dir, &name));
        let done = replaced.inspect_err(|_| drop(fs.remove(cx, &dir, &other)))?;
        folds.changed(&done.wcc, Some(&other), Some(&name));
        Ok(vfs::fs::Changed { value: (), wcc: done.wcc, flush: done.flush })
    };
    core.alter(&who, &to.reached, replace).await.map_err(status::of)
}
