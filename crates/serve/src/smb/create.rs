//! CREATE (MS-SMB2 §3.3.5.9): opens what is there, or makes it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::clock::Deadline;
use base::limits::{RECALL_LOOK, TRANSFER_OPEN_TRIES};
use tokio::sync::Notify;
use vfs::attr::SetAttr;
use vfs::fs::{Context, CreateHow, FileSystem, retain_if_possible};
use vfs::locks::{FileKey, Owner, Refused, SHARE_DELETE, SHARE_READ, SHARE_WRITE, Share};
use vfs::status::Status;
use wire::smb::contexts;
use wire::smb::create::{Disposition, Response, access, action, options, share_access};
use wire::smb::status::NtStatus;

use super::dispatch::{About, Outcome, Reply, Request};
use super::set_info::Removal;
use super::state::opens::{Entry, Open, OpenFile, OpenOf, Place};
use super::state::session::TreeOf;
use super::{facts, names, pipe, status};
use crate::files::{Links, Node, Spot, VPath};

/// Numbers of opens, each given once in this process.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// Rights to data, which share modes are about.
const READS: u32 = access::READ_DATA | access::EXECUTE;
const WRITES: u32 = access::WRITE_DATA | access::APPEND_DATA;
/// Permission bits of what is made, before the mask.
const FILE_MODE: u32 = 0o666;
const DIR_MODE: u32 = 0o777;

/// What is asked, looked through.
struct Asked<'a> {
    request: &'a Request<'a>,
    create: wire::smb::create::Request<'a>,
    disposition: Disposition,
    path: VPath,
}

/// What was found or made.
struct Got {
    node: Node,
    place: Option<Place>,
    action: u32,
}

/// CREATE.
pub(super) async fn run(request: &Request<'_>) -> Outcome {
    let create = wire::smb::create::Request::decode(request.message).map_err(status::of_wire)?;
    request.session.has_room()?;
    let reached = match &request.tree()?.of {
        TreeOf::Pipes => return pipe::open(request, &create),
        TreeOf::Share { reached } => reached.clone(),
    };
    let disposition = Disposition::of(create.disposition).map_err(status::of_wire)?;
    check(&create)?;
    let path = names::path(&reached.share, create.name)?;
    let asked = Asked { request, create, disposition, path };
    for _ in 1..TRANSFER_OPEN_TRIES {
        match asked.attempt().await {
            // It came or went between two looks.
            Err(Tried::Again) => {}
            Err(Tried::Refused(status)) => return Err(status),
            Ok(reply) => return Ok(reply),
        }
    }
    Err(NtStatus::SHARING_VIOLATION)
}

/// Combinations that make no sense.
fn check(create: &wire::smb::create::Request<'_>) -> Result<(), NtStatus> {
    let has = |option: u32| create.options & option != 0;
    if has(options::DIRECTORY) && has(options::NON_DIRECTORY) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if has(options::OPEN_BY_FILE_ID) {
        return Err(NtStatus::NOT_SUPPORTED);
    }
    let known = share_access::READ | share_access::WRITE | share_access::DELETE;
    if create.share & !known != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let mask = access::specific(create.access);
    if mask == 0 {
        return Err(NtStatus::ACCESS_DENIED);
    }
    if has(options::DELETE_ON_CLOSE) && mask & (access::DELETE | access::MAXIMUM_ALLOWED) == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    for context in contexts::decode(create.contexts).map_err(status::of_wire)? {
        match context.name {
            contexts::EXTENDED_ATTRIBUTES => return Err(NtStatus::EAS_NOT_SUPPORTED),
            contexts::SNAPSHOT => return Err(NtStatus::OBJECT_NAME_NOT_FOUND),
            _ => {}
        }
    }
    Ok(())
}

/// Why an attempt has not succeeded.
enum Tried {
    Again,
    Refused(NtStatus),
}

impl From<NtStatus> for Tried {
    fn from(status: NtStatus) -> Self {
        Self::Refused(status)
    }
}

impl Asked<'_> {
    fn wants_dir(&self) -> bool {
        self.create.options & options::DIRECTORY != 0
    }

    async fn attempt(&self) -> Result<Reply, Tried> {
        let core = &self.request.conn.core;
        let who = &self.request.session.who;
        let got = if self.path.parts().len() == 1 {
            // The root of the share is in no directory of it.
            let found = core.find(who, &self.path, Links::Follow).await;
            let node = found.and_then(crate::files::Found::node).map_err(status::of)?;
            Got { node, place: None, action: action::OPENED }
        } else {
            let spot = core.spot(who, &self.path, Links::Follow).await;
            let spot = spot.map_err(status::of_path)?;
            match spot.entry {
                Some(_) => self.there(&spot)?,
                None => self.make(&spot).await?,
            }
        };
        self.check_kind(&got)?;
        self.open(got).await
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
        let place = Some(Place { dir: spot.dir, name: spot.name.clone() });
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
        if !is_dir && !got.node.is_file() {
            return Err(NtStatus::ACCESS_DENIED);
        }
        Ok(())
    }

    /// It is not there: makes it.
    async fn make(&self, spot: &Spot) -> Result<Got, Tried> {
        if matches!(self.disposition, Disposition::Open | Disposition::Overwrite) {
            return Err(NtStatus::OBJECT_NAME_NOT_FOUND.into());
        }
        let (core, who) = (&self.request.conn.core, &self.request.session.who);
        let umask = self.request.conn.settings.umask;
        let set = |mode| SetAttr { mode: Some(mode), umask: Some(umask), ..SetAttr::default() };
        let made = if self.wants_dir() {
            core.make_dir(who, spot, set(DIR_MODE)).await
        } else {
            let (dir, name) = (spot.dir, spot.name.clone());
            let how = CreateHow::Guarded(set(FILE_MODE));
            let make = move |fs: &dyn FileSystem, cx: Context<'_>| fs.create(cx, &dir, &name, how);
            let made = core.alter(who, &spot.reached, make).await;
            let reached = spot.reached.clone();
            made.map(|made| Node { reached, handle: made.handle, attr: made.attr })
        };
        let node = made.map_err(|why| match why {
            Status::Exists if self.disposition != Disposition::Create => Tried::Again,
            why => Tried::Refused(status::of(why)),
        })?;
        let place = Some(Place { dir: spot.dir, name: spot.name.clone() });
        Ok(Got { node, place, action: action::CREATED })
    }

    /// Rights of the user, and those that the open gets.
    async fn rights(&self, got: &Got) -> Result<(u32, u32), NtStatus> {
        let (core, who) = (&self.request.conn.core, &self.request.session.who);
        let node = &got.node;
        let granted = core.access(who, node, facts::ALL_UNIX).await.map_err(status::of)?;
        let cred = &node.reached.cred;
        let owns = node.reached.writable && (cred.uid == 0 || cred.uid == node.attr.uid);
        let may_delete = match (&got.place, node.reached.writable) {
            (Some(place), true) => self.may_delete(node, place).await?,
            _ => false,
        };
        let maximal = facts::rights(granted, &node.attr, (owns, may_delete));
        let mask = access::specific(self.create.access);
        let asked = mask & !(access::MAXIMUM_ALLOWED | access::SYSTEM_SECURITY);
        // Who has made it has what he has asked for, whatever its mode.
        if got.action != action::CREATED && asked & !maximal != 0 {
            return Err(NtStatus::ACCESS_DENIED);
        }
        let rights = match mask & access::MAXIMUM_ALLOWED {
            0 => asked,
            _ => maximal | asked,
        };
        Ok((maximal, rights))
    }

    async fn may_delete(&self, node: &Node, place: &Place) -> Result<bool, NtStatus> {
        let (core, who) = (&self.request.conn.core, &self.request.session.who);
        let (fs, dir, attr) = (Arc::clone(&node.reached.share.fs), place.dir, node.attr);
        let look = move |cx: Context<'_>| {
            let want = vfs::fs::access::DELETE;
            let (granted, _) = fs.access(cx, &dir, want)?;
            Ok(granted & want != 0 && fs.sticky_permits(cx, &dir, &attr)?)
        };
        core.look(who, &node.reached.cred, look).await.map_err(status::of)
    }

    /// Its entry in the table of opens.
    async fn enter(&self, key: FileKey, rights: u32) -> Result<Entry, NtStatus> {
        let (core, who) = (&self.request.conn.core, &self.request.session.who);
        let id = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let owner = Owner::new(who.client_key(), &id).ok_or(NtStatus::INTERNAL_ERROR)?;
        let locks = Arc::clone(&core.files.locks);
        let share = share_of(rights, self.create.share);
        if share.access == 0 {
            return Ok(Entry { locks, key, owner, shares: false });
        }
        let until = Deadline::after(locks.recall_patience());
        loop {
            match locks.open(key, &owner, share) {
                Ok(_) => return Ok(Entry { locks, key, owner, shares: true }),
                Err(Refused::Recalling) if !until.passed() => {
                    tokio::time::sleep(RECALL_LOOK).await;
                }
                Err(Refused::Shared(_) | Refused::Recalling) => {
                    return Err(NtStatus::SHARING_VIOLATION);
                }
                Err(_) => return Err(NtStatus::INSUFFICIENT_RESOURCES),
            }
        }
    }

    async fn open(&self, mut got: Got) -> Result<Reply, Tried> {
        let request = self.request;
        let (core, who) = (&request.conn.core, &request.session.who);
        let (maximal, rights) = self.rights(&got).await?;
        let overwrites = matches!(got.action, action::SUPERSEDED | action::OVERWRITTEN);
        let needs = if overwrites { rights | access::WRITE_DATA } else { rights };
        if overwrites && maximal & access::WRITE_DATA == 0 {
            return Err(NtStatus::ACCESS_DENIED.into());
        }
        let delete_on_close = self.create.options & options::DELETE_ON_CLOSE != 0;
        if delete_on_close && got.node.is_dir() {
            super::set_info::is_empty(request, &got.node).await?;
        }
        let key = got.node.key();
        let entry = self.enter(key, needs).await?;
        let (fs, handle) = (Arc::clone(&got.node.reached.share.fs), got.node.handle);
        let retain = move |cx: Context<'_>| {
            // The time of birth is known to those who ask for it only.
            Ok((retain_if_possible(&*fs, cx, &handle)?, fs.getattr(cx, &handle)?))
        };
        if overwrites {
            let set = SetAttr { size: Some(0), ..SetAttr::default() };
            core.set_attr(who, &got.node, set).await.map_err(status::of)?;
        }
        let looked = core.look(who, &got.node.reached.cred, retain).await;
        let (retained, attr) = match looked {
            Err(Status::Stale) => return Err(Tried::Again),
            looked => looked.map_err(status::of)?,
        };
        got.node.attr = attr;
        if !request.conn.server.open_files.open(key) {
            return Err(NtStatus::DELETE_PENDING.into());
        }
        let file = OpenFile {
            node: got.node.clone(),
            path: RefCell::new(self.path.clone()),
            place: RefCell::new(got.place),
            entry,
            _retained: retained,
            delete_on_close: Cell::new(delete_on_close),
            write_through: self.create.options & options::WRITE_THROUGH != 0,
            position: Cell::new(0),
            ranges: RefCell::default(),
            listing: tokio::sync::Mutex::default(),
        };
        let open = Open {
            tree: request.header.tree_id(),
            access: rights,
            of: OpenOf::File(Box::new(file)),
            closed: Notify::new(),
        };
        Ok(self.answer(open, &got.node, (got.action, maximal)))
    }

    fn answer(&self, open: Open, node: &Node, (action, maximal): (u32, u32)) -> Reply {
        let file = self.request.session.add_open(open);
        let asked = contexts::decode(self.create.contexts).unwrap_or_default();
        let has = |name: &[u8]| asked.iter().any(|context| context.name == name);
        let mut data = Vec::new();
        let mut rights = Vec::new();
        rights.extend_from_slice(&[0; 4]);
        rights.extend_from_slice(&maximal.to_le_bytes());
        let mut ids = Vec::new();
        ids.extend_from_slice(&node.attr.fileid.to_le_bytes());
        ids.extend_from_slice(&node.attr.fsid.to_le_bytes());
        ids.resize(32, 0);
        let mut list = Vec::new();
        for (name, content) in [(contexts::MAXIMAL_ACCESS, &rights), (contexts::ON_DISK_ID, &ids)] {
            if has(name) {
                list.push(contexts::Context { name, data: content });
            }
        }
        contexts::put(&list, &mut data);
        let facts = facts::of(&node.attr);
        let response = Response { oplock: 0, action, facts, file, contexts: &data };
        let mut out = self.request.reply();
        response.put(out.vec());
        Reply { file: Some(file), ..Reply::new(out).about(About::file(node)) }
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

/// What it takes to remove a file that is open.
pub(super) fn removal(request: &Request<'_>, file: &OpenFile) -> Option<Removal> {
    let place = file.place.borrow().clone()?;
    Some(Removal { who: request.session.who.clone(), node: file.node.clone(), place })
}
