//! CREATE (MS-SMB2 §3.3.5.9): opens what is there, or makes it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::clock::Deadline;
use base::limits::TRANSFER_OPEN_TRIES;
use tokio::sync::Notify;
use vfs::attr::{FileType, SetAttr};
use vfs::dos::{self, Dos};
use vfs::fs::{Context, CreateHow, FileSystem, Retained, retain_if_possible};
use vfs::locks::{
    FileKey, GraceRequest, LinkRefused, OpenOptions, Refused, SHARE_DELETE, SHARE_READ,
    SHARE_WRITE, Share,
};
use vfs::status::Status;
use wire::smb::class::{self, attributes};
use wire::smb::contexts;
use wire::smb::create::{
    Disposition, Facts, FileId, Response, access, action, options, share_access,
};
use wire::smb::header::flags;
use wire::smb::lease::{Lease, level};
use wire::smb::negotiate::Dialect;
use wire::smb::status::NtStatus;

use super::dispatch::{Handled, Outcome, Reply, Request};
use super::durable::{self, DurableRequest};
use super::leases::{self, GrantedLease};
use super::set_info;
use super::state::location::{self, Location};
use super::state::opens::{Entry, Open, OpenFile, OpenOf, ParkedOpen};
use super::state::parked::DurableId;
use super::state::replays::{Created, LockSequences, Numbered, Sequence};
use super::state::seats::OpenReservation;
use super::state::session::{Session, TreeOf};
use super::{close, facts, grace, names, pipe, security, snapshots, status};
use files::walk::Link;
use files::{Caller, Links, Node, Spot, VPath};

mod check;

use check::Contexts;

/// Numbers of opens, each given once in this process.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// Rights to data, which share modes are about.
const READS: u32 = access::READ_DATA | access::EXECUTE;
const WRITES: u32 = access::WRITE_DATA | access::APPEND_DATA;
/// Rights that do not disturb what others cache.
const LOOKS: u32 = access::SYNCHRONIZE | access::READ_ATTRIBUTES | access::WRITE_ATTRIBUTES;
/// Permission bits of what is made, before the mask.
const FILE_MODE: u32 = 0o666;
const DIR_MODE: u32 = 0o777;

/// What is asked, looked through.
struct CreateRequest<'a> {
    request: &'a Request,
    create: wire::smb::create::Request<'a>,
    contexts: Contexts<'a>,
    disposition: Disposition,
    path: VPath,
    /// What is asked to cache.
    caching: leases::CachingRequest,
    /// It has waited for a lease.
    again: Cell<bool>,
    /// What the open takes, until there is one.
    seat: Cell<Option<OpenReservation>>,
    /// Its number, by which it may be sent again.
    number: Cell<Option<Numbered>>,
}

/// OplockLevel, and the contexts of a lease and of a durable handle.
type Leased = (u8, Option<Lease>, Option<(&'static [u8], Vec<u8>)>);

/// What was found or made.
struct Got {
    node: Node,
    place: Option<Location>,
    action: u32,
}

/// CREATE.
pub(super) async fn run(request: Rc<Request>) -> Handled {
    request.done(open(&request).await?)
}

/// Opens the file of the request.
async fn open(request: &Request) -> Outcome {
    let create = wire::smb::create::Request::decode(request.message()).map_err(status::of_wire)?;
    request.session.has_room()?;
    let reached = match &request.tree()?.of {
        TreeOf::Pipes => return pipe::open(request, &create),
        TreeOf::Share { reached } => reached.clone(),
    };
    let contexts = check::contexts(&create)?;
    if let Contexts { durable: DurableRequest::Reconnect(file, guid), lease, .. } = contexts {
        return durable::reconnect(request, &reached, &create, ((file, guid), lease)).await;
    }
    let disposition = Disposition::of(create.disposition).map_err(status::of_wire)?;
    check::check(&create, disposition)?;
    let path = names::path(&reached.share, create.name)?;
    let by = (&*request.conn.core, &request.caller());
    let path = snapshots::placed(by, &reached, path, contexts.snapshot).await?;
    let seat = Cell::new(Some(request.reserve_open(names::held(&path))?));
    let caching = leases::CachingRequest::of(&request.conn, create.oplock, contexts.lease)?;
    let again = Cell::new(false);
    let number = Cell::default();
    let asked = CreateRequest {
        request,
        create,
        contexts,
        disposition,
        path,
        caching,
        again,
        seat,
        number,
    };
    if let Some(reply) = asked.number().await? {
        return Ok(reply);
    }
    let until = Deadline::after(request.conn.core.files.locks.recall_patience());
    let mut tries = 1;
    while tries < TRANSFER_OPEN_TRIES {
        match asked.attempt().await {
            // It came or went between two looks.
            Err(Tried::Again) => tries += 1,
            Err(Tried::Leased(_)) if until.passed() => break,
            Err(Tried::Leased(file)) => {
                let (session, number) = (&request.session, &asked.number);
                let mut waiting = Waiting { session, number, file, has_ended: false };
                let released = leases::released(request, file, until).await;
                waiting.has_ended = true;
                released?;
                asked.again.set(true);
            }
            Err(Tried::Refused(status)) => return Err(status),
            Ok(reply) => return Ok(reply),
        }
    }
    Err(NtStatus::SHARING_VIOLATION)
}

/// Why an attempt has not succeeded.
enum Tried {
    Again,
    /// Another client's lease of this file is in the way.
    Leased(FileKey),
    Refused(NtStatus),
}

/// A CREATE waits for another client, as long as this lives.
struct Waiting<'a> {
    session: &'a Session,
    number: &'a Cell<Option<Numbered>>,
    file: FileKey,
    has_ended: bool,
}

impl Drop for Waiting<'_> {
    /// If its connection is lost, and its session is not: a CREATE that is sent again does not wait
    /// in its place.
    fn drop(&mut self) {
        match self.number.take() {
            Some(number) if !self.has_ended && self.session.has_channels() => {
                self.session.lost.add(number, self.file);
            }
            number => self.number.set(number),
        }
    }
}

impl From<NtStatus> for Tried {
    fn from(status: NtStatus) -> Self {
        Self::Refused(status)
    }
}

impl CreateRequest<'_> {
    /// Notes its number, if it has one; the reply to one that was carried out before (MS-SMB2
    /// §3.3.5.9.10).
    async fn number(&self) -> Result<Option<Reply>, NtStatus> {
        let (request, agreed) = (self.request, self.request.conn.agreed()?);
        let guid = self.contexts.durable.guid().filter(|_| agreed.dialect >= Dialect::SMB300);
        let Some(guid) = guid else { return Ok(None) };
        let is_again = request.header.has(flags::REPLAY);
        match request.conn.server.replays.begin(agreed.client.0, guid) {
            Ok(number) => {
                self.number.set(Some(number));
                Ok(None)
            }
            Err(Created::Pending) => {
                let waits = |file| request.conn.core.files.locks.is_breaking(file);
                let lost = request.session.lost.take((agreed.client.0, guid), waits);
                self.number.set(Some(lost.ok_or(NtStatus::FILE_NOT_AVAILABLE)?));
                Ok(None)
            }
            Err(_) if !is_again => Err(NtStatus::DUPLICATE_OBJECTID),
            Err(Created::Parked(id)) => {
                let tree = request.tree()?;
                let TreeOf::Share { reached } = &tree.of else {
                    return Err(NtStatus::INTERNAL_ERROR);
                };
                let file = FileId { persistent: id, volatile: 0 };
                let asked = ((file, Some(guid)), self.contexts.lease);
                durable::reconnect(request, reached, &self.create, asked).await.map(Some)
            }
            Err(Created::Open(session, volatile)) => {
                // Numbers are chosen by clients: another user's may be the same.
                let open = Some(volatile).filter(|_| session == request.session.id);
                let open = open.and_then(|volatile| request.session.by_volatile(volatile));
                let open = open.ok_or(NtStatus::ACCESS_DENIED)?;
                self.replay(&open).await.map(Some)
            }
        }
    }

    /// The reply to a CREATE that has made this open.
    async fn replay(&self, open: &Rc<Open>) -> Outcome {
        let (request, file) = (self.request, open.file()?);
        let lease = file.lease.as_ref();
        let context = match self.contexts.lease {
            None => None,
            Some(asked) => {
                let key = lease.and_then(|lease| lease.key.as_ref());
                let is_same = key.is_some_and(|key| key.key.1 == asked.key);
                let held = lease.zip(key).filter(|_| is_same).ok_or(NtStatus::ACCESS_DENIED)?;
                let now = file.entry.locks.lease_now(file.entry.key, &held.0.owner);
                let now = now.map_or((0, 0), |now| (now.caching.bits(), now.epoch));
                Some(leases::answer(&asked, held.1.has_epoch, now))
            }
        };
        let asks = matches!(self.create.oplock, level::BATCH | level::LEASE);
        let durable = open.durable.as_ref().filter(|_| asks).map(|durable| {
            let mut data = Vec::new();
            (self.contexts.durable.put_answer(Some(durable), &mut data), data)
        });
        let id = FileId { persistent: open.persistent, volatile: open.volatile };
        let (_, facts) = facts::now(&request.conn, &request.session.who, file).await?;
        let leased = (self.create.oplock, context, durable);
        request.note_open(open);
        Ok(self.answer((id, leased), (&file.node, facts), (file.action, open.access)))
    }

    fn wants_dir(&self) -> bool {
        self.create.options & options::DIRECTORY != 0
    }

    async fn attempt(&self) -> Result<Reply, Tried> {
        let core = &self.request.conn.core;
        let who = &self.request.caller();
        let got = if self.path.parts().len() == 1 {
            // The root of the share is in no directory of it.
            let found = core.find(who, &self.path, Links::Follow).await;
            let node = found.and_then(files::PathTarget::node).map_err(status::of)?;
            Got { node, place: None, action: action::OPENED }
        } else {
            let spot = self.spot(who).await?;
            let found = spot.entry.as_ref().map(|entry| FileKey::from(&entry.attr));
            self.caching.check(self.request, found)?;
            match spot.entry {
                Some(_) => self.there(&spot)?,
                None => self.make(&spot).await?,
            }
        };
        self.check_kind(&got)?;
        self.open(got).await
    }

    /// Whether it is opened for its data, which only files and directories have.
    const fn wants_data(&self) -> bool {
        access::specific(self.create.access) & (READS | WRITES) != 0
    }

    /// Where the name is, or may be. A link that leads to nothing here is opened itself by requests
    /// that do not ask for data, so that whatever is listed can be renamed and removed: a dangling
    /// one, one in a circle, one out of the share.
    async fn spot(&self, who: &Caller) -> Result<Spot, NtStatus> {
        let core = &self.request.conn.core;
        let followed = core.spot(who, &self.path, Links::Follow).await;
        if self.disposition == Disposition::Create
            && let Ok(spot) = &followed
            && let Some(free) = self.composed_otherwise(spot)
        {
            return Ok(free);
        }
        // It leads to a directory, and to no name of it: `.`, `..`, or the root.
        if matches!(followed, Err(Status::NotOwner)) {
            return self.nameless(who).await.map_err(status::of_path);
        }
        let why = match &followed {
            Ok(spot) if spot.entry.is_some() || spot.link.is_none() => None,
            // What is written through a dangling link is made where it leads.
            Ok(_) => match self.disposition {
                Disposition::OpenIf | Disposition::OverwriteIf | Disposition::Supersede
                    if self.wants_data() =>
                {
                    None
                }
                _ => Some(Status::NotFound),
            },
            Err(Status::NotDirectory) => Some(Status::NotFound),
            Err(why @ (Status::NotFound | Status::Access | Status::Loop | Status::NameTooLong)) => {
                Some(*why)
            }
            Err(_) => None,
        };
        let Some(why) = why else { return followed.map_err(status::of_path) };
        let itself = core.spot(who, &self.path, Links::Keep).await;
        let is_link = |entry: &vfs::fs::Entry| entry.attr.kind == FileType::Symlink;
        match itself {
            Ok(itself) if !itself.entry.as_ref().is_some_and(is_link) => {
                followed.map_err(status::of_path)
            }
            Ok(_) if self.disposition == Disposition::Create => {
                Err(NtStatus::OBJECT_NAME_COLLISION)
            }
            Ok(_) if self.wants_data() => Err(status::of(why)),
            Ok(itself) => Ok(itself),
            Err(_) => followed.map_err(status::of_path),
        }
    }

    /// The place of a name that must be new, where only one that is composed otherwise is there: as
    /// on Windows, both may be. What opens a file finds either.
    fn composed_otherwise(&self, found: &Spot) -> Option<Spot> {
        let (dir, there) = match &found.link {
            Some(link) => (link.dir, &link.name),
            None => (found.dir, &found.name),
        };
        let asked = self.path.name().filter(|asked| !names::is_same_but_for_case(asked, there))?;
        let (reached, name) = (found.reached.clone(), asked.to_vec());
        Some(Spot { reached, dir, name, entry: None, link: None })
    }

    /// The directory that a link leads to by no name of it, at the place of the link.
    async fn nameless(&self, who: &Caller) -> vfs::fs::Result<Spot> {
        let core = &self.request.conn.core;
        let Node { handle, attr, .. } = core.find(who, &self.path, Links::Follow).await?.node()?;
        let mut spot = core.spot(who, &self.path, Links::Keep).await?;
        let link = spot.entry.replace(vfs::fs::Entry { handle, attr }).ok_or(Status::NotFound)?;
        spot.link = Some(Link { dir: spot.dir, name: spot.name.clone(), attr: link.attr });
        Ok(spot)
    }

    /// It is there: whether it may be.
    fn there(&self, spot: &Spot) -> Result<Got, NtStatus> {
        let node = spot.node().map_err(status::of)?;
        let action = match self.disposition {
            Disposition::Create => return Err(NtStatus::OBJECT_NAME_COLLISION),
            Disposition::Open | Disposition::OpenIf => action::OPENED,
            Disposition::Supersede => action::SUPERSEDED,
            Disposition::Overwrite | Disposition::OverwriteIf => action::OVERWRITTEN,
        };
        let place = Some(location::of(spot));
        Ok(Got { node, place, action })
    }

    fn check_kind(&self, got: &Got) -> Result<(), NtStatus> {
        let is_dir = got.node.is_dir();
        if self.wants_dir() && !is_dir {
            return Err(NtStatus::NOT_A_DIRECTORY);
        }
        if self.create.options & options::NON_DIRECTORY != 0 && is_dir {
            return Err(NtStatus::FILE_IS_A_DIRECTORY);
        }
        if is_dir && matches!(got.action, action::SUPERSEDED | action::OVERWRITTEN) {
            return Err(NtStatus::FILE_IS_A_DIRECTORY);
        }
        if !is_dir && names::is_of_dir(self.create.name) {
            return Err(NtStatus::OBJECT_NAME_INVALID);
        }
        // Sockets, pipes, devices and links that lead nowhere have a name, times and an owner, and
        // nothing to read or write: they are never opened in the file system.
        let is_special = !is_dir && !got.node.is_file();
        if is_special && (self.wants_data() || got.action != action::OPENED) {
            return Err(NtStatus::ACCESS_DENIED);
        }
        Ok(())
    }

    /// It is not there: makes it.
    async fn make(&self, spot: &Spot) -> Result<Got, Tried> {
        if matches!(self.disposition, Disposition::Open | Disposition::Overwrite) {
            return Err(NtStatus::OBJECT_NAME_NOT_FOUND.into());
        }
        if names::is_of_dir(self.create.name) && !self.wants_dir() {
            return Err(NtStatus::OBJECT_NAME_INVALID.into());
        }
        self.has_space(spot).await?;
        let (core, who) = (&self.request.conn.core, &self.request.session.who);
        let umask = self.request.conn.settings.umask;
        let is_read_only = self.create.attributes & attributes::READ_ONLY != 0;
        if is_read_only && self.deletes_on_close() {
            return Err(NtStatus::CANNOT_DELETE.into());
        }
        let set = |mode| SetAttr { mode: Some(mode), umask: Some(umask), ..SetAttr::default() };
        let (dir, name, is_dir) = (spot.dir, spot.name.clone(), self.wants_dir());
        let mode = match (is_dir, is_read_only) {
            (true, _) => DIR_MODE,
            (false, true) => FILE_MODE & !0o222,
            (false, false) => FILE_MODE,
        };
        let (set, folds) = (set(mode), Arc::clone(&self.request.conn.server.folds));
        let make = move |fs: &dyn FileSystem, cx: Context<'_>| {
            let made = match is_dir {
                true => fs.mkdir(cx, &dir, &name, &set),
                false => fs.create(cx, &dir, &name, CreateHow::Guarded(set)),
            }?;
            folds.changed(&made.wcc, None, Some(&name));
            Ok(made)
        };
        let made = core.alter(who, &spot.reached, make).await;
        let reached = spot.reached.clone();
        let made = made.map(|made| Node { reached, handle: made.handle, attr: made.attr });
        let node = made.map_err(|why| match why {
            Status::Exists if self.disposition != Disposition::Create => Tried::Again,
            why => Tried::Refused(status::of(why)),
        })?;
        let place = Some(location::of(spot));
        Ok(Got { node, place, action: action::CREATED })
    }

    /// Whether there is as much space as the client reserves.
    async fn has_space(&self, spot: &Spot) -> Result<(), NtStatus> {
        let Some(size) = self.contexts.reserve.filter(|size| *size > 0) else { return Ok(()) };
        let (core, who) = (&self.request.conn.core, &self.request.session.who);
        let space = core.space(who, &spot.reached).await.map_err(status::of)?;
        if size > space.avail_bytes { Err(NtStatus::DISK_FULL) } else { Ok(()) }
    }

    const fn deletes_on_close(&self) -> bool {
        self.create.options & options::DELETE_ON_CLOSE != 0
    }

    /// Rights of the user, and those that the open gets.
    async fn rights(&self, got: &Got, bits: u32) -> Result<(u32, u32), NtStatus> {
        let (core, who) = (&self.request.conn.core, &self.request.session.who);
        let node = &got.node;
        let granted = core.access(who, node, facts::ALL_UNIX).await.map_err(status::of)?;
        let cred = &node.reached.cred;
        let owns = node.reached.writable && (cred.uid == 0 || cred.uid == node.attr.uid);
        let may_delete = match (&got.place, node.reached.writable) {
            (Some(place), true) => self.may_delete(node, place).await?,
            _ => false,
        };
        let mut maximal = facts::rights(granted, &node.attr, (owns, may_delete));
        if bits & attributes::READ_ONLY != 0 && !node.is_dir() {
            maximal &= !(access::WRITE_DATA | access::APPEND_DATA);
        }
        if !node.is_dir() && !node.is_file() {
            maximal &= !(READS | WRITES);
        }
        let mask = access::specific(self.create.access);
        let asked = mask & !(access::MAXIMUM_ALLOWED | access::SYSTEM_SECURITY);
        // Its creator gets the requested access, whatever its mode.
        if got.action != action::CREATED && asked & !maximal != 0 {
            return Err(NtStatus::ACCESS_DENIED);
        }
        let rights = match mask & access::MAXIMUM_ALLOWED {
            0 => asked,
            _ => maximal | asked,
        };
        Ok((maximal, rights))
    }

    async fn may_delete(&self, node: &Node, place: &Location) -> Result<bool, NtStatus> {
        let (core, who) = (&self.request.conn.core, &self.request.session.who);
        let (fs, dir, attr) =
            (Arc::clone(&node.reached.share.fs), place.dir, *place.attr(&node.attr));
        let look = move |cx: Context<'_>| {
            let want = vfs::fs::access::DELETE;
            let (granted, _) = fs.access(cx, &dir, want)?;
            Ok(granted & want != 0 && fs.sticky_permits(cx, &dir, &attr)?)
        };
        core.look(who, &node.reached.cred, look).await.map_err(status::of)
    }

    /// Its entry in the table of opens; `is_new` if no client can reclaim anything of the file.
    async fn enter(&self, got: &Got, rights: u32, is_new: bool) -> Result<Entry, Tried> {
        let (core, who) = (&self.request.conn.core, &self.request.session.who);
        let id = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let owner = who.owner(&id).ok_or(NtStatus::INTERNAL_ERROR)?;
        let (locks, key) = (Arc::clone(&core.files.locks), got.node.key());
        if self.deletes_on_close() && !is_new {
            grace::wait(self.request, GraceRequest::Name, NtStatus::SHARING_VIOLATION).await?;
        }
        let mut share = share_of(rights, self.create.share);
        if share.access == 0 {
            if rights & !LOOKS == 0 {
                return Ok(Entry::new(locks, key, owner));
            }
            share = Share::default();
        }
        let lease = self.caching.owner(self.request);
        let opening = OpenOptions {
            lease: lease.as_ref(),
            overwrites: matches!(got.action, action::SUPERSEDED | action::OVERWRITTEN),
            removes: self.deletes_on_close(),
            again: self.again.get(),
            looks: rights & !LOOKS == access::READ_CONTROL,
        };
        loop {
            match locks.open_smb(key, &owner, share, (is_new, opening)) {
                Ok(_) => return Ok(Entry::new(locks, key, owner)),
                Err(Refused::Recalling) => return Err(Tried::Leased(key)),
                Err(Refused::Grace) => {
                    let wanted = GraceRequest::Open(share);
                    grace::wait(self.request, wanted, NtStatus::SHARING_VIOLATION).await?;
                }
                Err(Refused::Shared(_)) => return Err(NtStatus::SHARING_VIOLATION.into()),
                Err(_) => return Err(NtStatus::INSUFFICIENT_RESOURCES.into()),
            }
        }
    }

    /// The file as it is now, kept usable even if its name goes.
    async fn look(&self, got: &mut Got) -> Result<(Option<Retained>, Option<Dos>), Tried> {
        let (core, who) = (&self.request.conn.core, &self.request.session.who);
        let (fs, handle) = (Arc::clone(&got.node.reached.share.fs), got.node.handle);
        let dir = got.place.as_ref().map(|place| place.dir);
        let look = move |cx: Context<'_>| {
            let retained = retain_if_possible(&*fs, cx, &handle)?;
            let dir = dir.map(|dir| fs.file_key(cx, &dir)).transpose()?;
            // The time of birth is only in attributes that were requested with it.
            Ok((retained, fs.getattr(cx, &handle)?, dos::get(&*fs, cx, &handle)?, dir))
        };
        match core.look(who, &got.node.reached.cred, look).await {
            Err(Status::Stale) => Err(Tried::Again),
            Err(why) => Err(Tried::Refused(status::of(why))),
            Ok((retained, attr, dos, dir)) => {
                got.node.attr = attr;
                if let (Some(place), Some(dir)) = (&mut got.place, dir) {
                    place.dir_key = dir;
                }
                Ok((retained, dos))
            }
        }
    }

    async fn open(&self, mut got: Got) -> Result<Reply, Tried> {
        let request = self.request;
        let (retained, mut dos) = self.look(&mut got).await?;
        let bits = facts::attributes(&got.node.attr, dos.as_ref());
        let (maximal, rights) = self.rights(&got, bits).await?;
        let overwrites = matches!(got.action, action::SUPERSEDED | action::OVERWRITTEN);
        let needs = if overwrites { rights | access::WRITE_DATA } else { rights };
        if overwrites {
            self.may_overwrite(bits, maximal)?;
        }
        let application = self.contexts.application;
        if got.action != action::CREATED
            && application.take_over(request, &got.node, maximal).await?
        {
            return Err(Tried::Again);
        }
        // A request of MAXIMUM_ALLOWED may have got less.
        if self.deletes_on_close() && rights & access::DELETE == 0 {
            return Err(NtStatus::ACCESS_DENIED.into());
        }
        if self.deletes_on_close() && got.action != action::CREATED {
            set_info::may_remove(request, &got.node, got.place.as_ref(), bits).await?;
        }
        let locks = &request.conn.core.files.locks;
        if got.place.as_ref().is_some_and(|place| locks.is_marked_at(got.node.key(), place)) {
            return Err(NtStatus::DELETE_PENDING.into());
        }
        let is_made = got.action == action::CREATED || !locks.may_be_reclaimed(&got.node.attr);
        let is_new = locks.in_grace() && is_made;
        let entry = self.enter(&got, needs, is_new).await?;
        entry.count(&request.conn.server);
        self.name(&mut got, &entry)?;
        if got.action != action::OPENED {
            self.set_initial(&mut got, &entry, &mut dos).await?;
        }
        self.opened(&got, (entry, is_new), (retained, dos), (rights, maximal)).await
    }

    /// The open of a file that is entered in the table of opens.
    async fn opened(
        &self,
        got: &Got,
        (entry, is_new): (Entry, bool),
        (retained, dos): (Option<Retained>, Option<Dos>),
        (rights, maximal): (u32, u32),
    ) -> Result<Reply, Tried> {
        let request = self.request;
        let reserved = match self.contexts.reserve {
            Some(size) if got.action != action::OPENED && got.node.is_file() => size,
            _ => 0,
        };
        let mut facts = facts::of(&got.node.attr, dos.as_ref());
        facts::show_times(&request.conn, &got.node.attr, &mut facts);
        facts.allocation = facts.allocation.max(reserved);
        let (asked, id) = (self.contexts.durable, request.session.new_file_id());
        let number = durable::number(request, asked)?;
        let persistent = number.as_ref().map_or(id.persistent, |number| number.number);
        let id = FileId { persistent, ..id };
        let given = leases::grant(request, &self.caching, (&got.node, &entry, id)).await?;
        let (granted, GrantedLease { level, context, held }) = (given.granted(), given);
        // Breaks of the lease are not held for an answer that does not come.
        let gives_up = |_: &NtStatus| request.conn.granted(granted.as_slice());
        let file = OpenFile {
            node: got.node.clone(),
            path: RefCell::new(self.path.clone()),
            entry,
            is_new,
            _retained: retained,
            delete_on_close: Cell::new(self.deletes_on_close()),
            mode: Cell::new(self.create.options & class::mode::OF_OPEN),
            user_times: Cell::default(),
            position: Cell::new(0),
            locks_of_nothing: Cell::new(0),
            ranges: Cell::new(0),
            lock_sequences: LockSequences::default(),
            lease: held,
            number: Cell::new(self.number.take()),
            action: got.action,
            reserved: Cell::new(reserved),
            write_time: Cell::new(facts.written),
            write_time_until_ns: Cell::new(0),
            persistent: RefCell::default(),
            instance: self.contexts.application.add(request, &got.node).inspect_err(gives_up)?,
        };
        let open = self.add(id, file, (rights, number)).await.inspect_err(gives_up)?;
        request.note_open(&open);
        let mut text = Vec::new();
        let name = asked.put_answer(open.durable.as_ref(), &mut text);
        let durable_answer = open.durable.is_some().then_some((name, text));
        let answers = (id, (level, context, durable_answer));
        let reply = self.answer(answers, (&got.node, facts), (got.action, maximal));
        Ok(Reply { granted, ..reply })
    }

    /// Adds the open to its session. If its tree was disconnected meanwhile it ends at once:
    /// nothing else could close it.
    async fn add(
        &self,
        id: FileId,
        file: OpenFile,
        (rights, number): (u32, Option<DurableId<ParkedOpen>>),
    ) -> Result<Rc<Open>, NtStatus> {
        let (request, asked) = (self.request, self.contexts.durable);
        let (session, tree) = (&request.session, request.header.tree_id());
        let durable = durable::grant(request, (asked, number), (&file, rights)).await?;
        file.set_created(Created::Open(session.id, id.volatile));
        let open = Open {
            persistent: id.persistent,
            volatile: id.volatile,
            tree,
            durable,
            access: rights,
            of: OpenOf::File(Box::new(file)),
            listing: tokio::sync::Mutex::default(),
            noticed: RefCell::default(),
            sequence: Sequence::new(request.header.channel()),
            closed: Notify::new(),
            seat: self.seat.take().ok_or(NtStatus::INTERNAL_ERROR)?,
        };
        if let Err(gone) = session.tree(tree) {
            close::end(&request.conn, &session.who, vec![Rc::new(open)]).await;
            return Err(gone);
        }
        Ok(session.add_open(id, open))
    }

    /// Notes by which name it is open from now on.
    fn name(&self, got: &mut Got, entry: &Entry) -> Result<(), NtStatus> {
        let removes = self.deletes_on_close();
        let place = got.place.take();
        let link = place.map(|at| entry.locks.open_link(entry.key, at, &entry.owner, removes));
        entry.link.set(link.transpose().map_err(|refused| match refused {
            LinkRefused::DeletePending => NtStatus::DELETE_PENDING,
            LinkRefused::NameInUse(_) => NtStatus::SHARING_VIOLATION,
        })?);
        Ok(())
    }

    /// Whether a file with these attributes may be emptied: what is hidden or of the system is not
    /// by accident (MS-FSA §2.1.5.1.2.1).
    fn may_overwrite(&self, bits: u32, maximal: u32) -> Result<(), NtStatus> {
        let guarded = bits & (attributes::HIDDEN | attributes::SYSTEM);
        match maximal & access::WRITE_DATA != 0 && guarded & !self.create.attributes == 0 {
            true => Ok(()),
            false => Err(NtStatus::ACCESS_DENIED),
        }
    }

    /// A new file, or a truncated one, gets the attributes that the client names.
    async fn set_initial(
        &self,
        got: &mut Got,
        entry: &Entry,
        dos: &mut Option<Dos>,
    ) -> Result<(), NtStatus> {
        let (conn, who) = (&self.request.conn, &self.request.session.who);
        let is_new = got.action == action::CREATED;
        let named = self.create.attributes & attributes::SETTABLE;
        let (default, bits) = match got.node.is_dir() {
            true => (0, named & !attributes::ARCHIVE),
            false => (attributes::ARCHIVE, named | attributes::ARCHIVE),
        };
        if !is_new {
            let read_only = bits & attributes::READ_ONLY != 0;
            let mode = read_only.then_some(got.node.attr.mode & !0o222);
            let set = SetAttr { size: Some(0), mode, ..SetAttr::default() };
            // Neither the open nor the lease that it asks for is in its way (MS-FSA §2.1.4.12).
            let mut who = who.clone();
            who.lent.push(entry.owner.clone());
            who.lent.extend(self.caching.owner(self.request));
            conn.core.set_attr(&who, &got.node, set).await.map_err(status::of)?;
        }
        if let Some(descriptor) = self.contexts.security.filter(|_| is_new) {
            security::of_new(self.request, &got.node, descriptor).await?;
        }
        // The read-only bit is in the mode.
        let kept = bits & !attributes::READ_ONLY;
        if kept != default || dos.is_some_and(|dos| dos.attributes != Some(kept)) {
            let created = dos.and_then(|dos| dos.created);
            let new = Dos { attributes: Some(kept), created };
            facts::keep(conn, who, &got.node, new).await?;
        }
        if !is_new || self.contexts.security.is_some() || kept != default {
            (got.node.attr, *dos) = facts::look(conn, who, &got.node).await?;
        }
        Ok(())
    }

    fn answer(
        &self,
        (file, (oplock, lease, durable)): (FileId, Leased),
        (node, facts): (&Node, Facts),
        (action, maximal): (u32, u32),
    ) -> Reply {
        let mut leased = Vec::new();
        if let Some(lease) = &lease {
            lease.put(&mut leased);
        }
        let mut data = Vec::new();
        let mut rights = Vec::new();
        rights.extend_from_slice(&[0; 4]);
        rights.extend_from_slice(&maximal.to_le_bytes());
        let mut ids = Vec::new();
        ids.extend_from_slice(&node.attr.fileid.to_le_bytes());
        ids.extend_from_slice(&node.attr.fsid.to_le_bytes());
        ids.resize(32, 0);
        let mut list = Vec::new();
        let Contexts { maximal_access, on_disk_id, .. } = self.contexts;
        for (is_asked, name, content) in [
            (maximal_access, contexts::MAXIMAL_ACCESS, &rights),
            (on_disk_id, contexts::ON_DISK_ID, &ids),
            (oplock == level::LEASE, contexts::LEASE, &leased),
        ] {
            if is_asked {
                list.push(contexts::Context { name, data: content });
            }
        }
        if let Some((name, data)) = &durable {
            list.push(contexts::Context { name, data });
        }
        contexts::put(&list, &mut data);
        let response = Response { oplock, action, facts, file, contexts: &data };
        let mut out = self.request.reply();
        response.put(out.vec());
        Reply { file: Some(file), ..Reply::new(out) }
    }
}

/// What an open does, and what it denies to others.
fn share_of(rights: u32, permits: u32) -> Share {
    let mut share = Share::default();
    for (any, bit, permit) in [
        (READS, SHARE_READ, share_access::READ),
        (WRITES, SHARE_WRITE, share_access::WRITE),
        (access::DELETE, SHARE_DELETE, share_access::DELETE),
    ] {
        if rights & any != 0 {
            share.access |= bit;
        }
        if permits & permit == 0 {
            share.deny |= bit;
        }
    }
    share
}
