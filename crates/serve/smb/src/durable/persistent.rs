//! Persistent handles (MS-SMB2 §3.3.5.9.10, §3.3.5.9.12): durable ones of a share with `continuous`
//! that outlive a restart of the server, with what they deny to others and their locks. Each is on
//! disk before its client is answered ([`crate::handles`]).
//!
//! What waits for its client is ended by nothing but its time, its user and an administrator.
//! Leases are not recorded: after a restart their clients are answered that they may cache nothing.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use base::clock::monotonic_ns;
use vfs::fs::{Context, Retained, retain_if_possible};
use vfs::locks::{ClientKey, FileKey, Location, LockTable, Owner, Protocol, Share};
use vfs::status::Status;
use wire::smb::create::action;
use wire::smb::durable::CreateGuid;
use wire::smb::lease::Lease;
use wire::smb::status::NtStatus;

use super::Claimed;
use crate::dispatch::Request;
use crate::handles::record::Record;
use crate::server::Server;
use crate::state::location;
use crate::state::opens::{Durability, Entry, Open, OpenFile, OpenOf, ParkedOpen, Restored};
use crate::state::parked::ParkedKey;
use crate::state::removals::Removal;
use crate::state::replays::{Created, LockSequences};
use crate::{facts, leases, names, status};
use files::caller::Reached;
use files::{Links, Node, VPath};

/// A bit of the numbers of clients in the table of locks that no signed-in user has.
const RESTORED: u64 = 1 << 63;

/// What a CREATE names of the handle that it continues.
pub(super) struct Named {
    /// Its number.
    pub number: u64,
    /// CreateGuid.
    pub guid: Option<CreateGuid>,
    /// ClientGuid of the connection.
    pub client: [u8; 16],
    /// The lease.
    pub lease: Option<Lease>,
}

/// Whether a share, in the version that was agreed on, grants persistent handles of a file.
pub(super) fn is_offered(request: &Request, file: &OpenFile) -> bool {
    let server = &request.conn.server;
    file.node.is_file() && file.node.reached.share.is_continuous() && server.handles.get().is_some()
}

/// Records a new handle.
///
/// # Errors
/// STATUS_INSUFFICIENT_RESOURCES: it is none.
pub(super) async fn record_new(
    request: &Request,
    durable: &Durability,
    (file, access): (&OpenFile, u32),
) -> Result<(), NtStatus> {
    let none = NtStatus::INSUFFICIENT_RESOURCES;
    let store = request.conn.server.handles.get().ok_or(none)?;
    let client = (request.conn.peer.0.ip(), durable.client);
    let user = &request.session.who.person.name;
    let handle = store.hold(durable.id.number, user, client).ok_or(none)?;
    *file.persistent.borrow_mut() = Some(handle);
    let recorded = put(durable, file, access).await;
    if recorded.is_err() {
        drop(file.persistent.take());
    }
    recorded
}

/// Records what has changed of a handle, if it is a persistent one.
///
/// # Errors
/// STATUS_INSUFFICIENT_RESOURCES if that is not on disk.
pub(super) async fn update(open: &Open) -> Result<(), NtStatus> {
    let (Some(durable), OpenOf::File(file)) = (&open.durable, &open.of) else { return Ok(()) };
    put(durable, file, open.access).await
}

/// Records a handle as it is now.
async fn put(durable: &Durability, file: &OpenFile, access: u32) -> Result<(), NtStatus> {
    let done = match &*file.persistent.borrow() {
        None => return Ok(()),
        Some(handle) => {
            let (client, entry) = (handle.client, &file.entry);
            let lease = file.lease.as_ref().and_then(|lease| lease.key.as_ref());
            handle.put(&Record {
                user: handle.user.to_string(),
                share: file.node.reached.share.name.clone(),
                path: file.path.borrow().to_bytes(),
                handle: file.node.handle,
                file: entry.key,
                address: handle.address,
                client,
                guid: durable.guid.unwrap_or_default(),
                timeout_ms: u32::try_from(durable.timeout.as_millis()).unwrap_or(u32::MAX),
                access,
                mode: entry.locks.share_of(entry.key, &entry.owner).unwrap_or_default(),
                options: file.mode.get(),
                delete_on_close: file.delete_on_close.get(),
                is_marked: entry.is_marked(),
                lease: lease.map(|key| (key.key.1, key.has_epoch)),
                sequences: file.lock_sequences.numbers(),
                ranges: entry.locks.ranges_of(entry.key, &entry.owner),
            })
        }
    };
    done.await.map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)
}

impl Record {
    /// Its entry in the table of locks, as before the restart; `None` if something is in the way.
    fn entry(&self, number: u64, locks: &Arc<LockTable>) -> Option<Entry> {
        let client = ClientKey { protocol: Protocol::Smb, id: number | RESTORED };
        let owner = Owner::new(client, &number.to_be_bytes())?.at(self.address);
        let entry = Entry::new(Arc::clone(locks), self.file, owner);
        if self.mode != Share::default() {
            locks.reopen(self.file, &entry.owner, self.mode).ok()?;
        }
        for (range, kind) in &self.ranges {
            locks.relock(self.file, &entry.owner, *range, *kind).ok()?;
        }
        Some(entry)
    }

    /// That it is this client's.
    fn check(&self, request: &Request, reached: &Reached, named: &Named) -> Result<(), NtStatus> {
        let is_its = self.share == reached.share.name
            && self.user == request.session.who.person.name
            && self.client == named.client
            && named.guid == Some(self.guid)
            && self.lease.map(|(key, _)| key) == named.lease.map(|lease| lease.key);
        if is_its { Ok(()) } else { Err(NtStatus::OBJECT_NAME_NOT_FOUND) }
    }
}

impl Server {
    /// Has handles of before the start bind again, and wait for their clients. Those that cannot
    /// are forgotten.
    pub fn restore(&self, locks: &Arc<LockTable>) {
        let Some(store) = self.handles.get() else { return };
        for (number, record) in store.left() {
            if self.restored.has(number) {
                continue;
            }
            let Some(handle) = store.hold(number, &record.user, (record.address, record.client))
            else {
                store.discard(number);
                continue;
            };
            handle.was_put(&record);
            let Some(entry) = record.entry(number, locks) else { continue };
            let timeout = Duration::from_millis(record.timeout_ms.into());
            let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
            let until_ns = monotonic_ns().saturating_add(timeout_ns);
            let (address, client) = (record.address, record.client);
            let key = ParkedKey { address, client, lease: None, until_ns };
            let created = self.replays.begin(client, record.guid).ok();
            if let Some(created) = &created {
                created.set(Created::Parked(number));
            }
            let (id, record) = (self.parked.known_id(number), Arc::new(record));
            let one = Restored { record, entry, handle, id, number: created };
            drop(self.restored.park(number, key, one));
        }
    }
}

/// The file of a handle, as it is found again.
struct ReopenedFile {
    node: Node,
    retained: Option<Retained>,
    path: VPath,
    at: Option<Location>,
}

impl ReopenedFile {
    /// Looks for it by its handle, and where it is.
    async fn of(request: &Request, reached: &Reached, record: &Record) -> Result<Self, NtStatus> {
        let (core, who) = (&request.conn.core, &request.session.who);
        let (fs, handle) = (Arc::clone(&reached.share.fs), record.handle);
        let look = move |cx: Context<'_>| {
            Ok((retain_if_possible(&*fs, cx, &handle)?, fs.getattr(cx, &handle)?))
        };
        let (retained, attr) = match core.look(who, &reached.cred, look).await {
            Err(Status::Stale | Status::NotFound) => return Err(NtStatus::OBJECT_NAME_NOT_FOUND),
            found => found.map_err(status::of)?,
        };
        let node = Node { reached: reached.clone(), handle, attr };
        if !node.key().is_same_file(&record.file) {
            return Err(NtStatus::OBJECT_NAME_NOT_FOUND);
        }
        let path = VPath::parse(&record.path).map_err(|_| NtStatus::OBJECT_NAME_NOT_FOUND)?;
        let at = place(request, &path, record.file).await;
        Ok(Self { node, retained, path, at })
    }
}

/// Where a file is, if it still has that path.
async fn place(request: &Request, path: &VPath, file: FileKey) -> Option<Location> {
    let core = &request.conn.core;
    let spot = core.spot(&request.caller(), path, Links::Follow).await.ok()?;
    let is_it = |entry: &vfs::fs::Entry| FileKey::from(&entry.attr).is_same_file(&file);
    spot.entry.as_ref().filter(|entry| is_it(entry))?;
    let mut at = location::of(&spot);
    let (fs, dir) = (Arc::clone(&spot.reached.share.fs), at.dir);
    let look = move |cx: Context<'_>| fs.file_key(cx, &dir);
    at.dir_key = core.look(&request.session.who, &spot.reached.cred, look).await.ok()?;
    Some(at)
}

/// The open of a handle of before the start, and what its file is like; nothing if there is none of
/// this number.
///
/// # Errors
/// STATUS_OBJECT_NAME_NOT_FOUND if it is another client's, or its file is gone.
pub(super) async fn claim(
    request: &Request,
    reached: &Reached,
    named: &Named,
) -> Result<Option<Claimed>, NtStatus> {
    let (restored, number) = (&request.conn.server.restored, named.number);
    let look = |one: &Restored| {
        one.record.check(request, reached, named).map(|()| Arc::clone(&one.record))
    };
    let Some(record) = restored.get(number, look).transpose()? else { return Ok(None) };
    let found = ReopenedFile::of(request, reached, &record).await?;
    let looked = facts::look(&request.conn, &request.session.who, &found.node).await?;
    request.session.tree(request.header.tree_id())?;
    let seat = request.reserve_open(names::held(&found.path))?;
    // From here on nothing waits: a request that is dropped with its connection would end it.
    let one = restored.take_any(number).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    let Restored { record, entry, handle, id, number } = one;
    link(request, &record, &entry, &found);
    let durable = Durability {
        id,
        timeout: Duration::from_millis(record.timeout_ms.into()),
        is_persistent: true,
        guid: Some(record.guid),
        client: record.client,
    };
    let written = facts::of(&found.node.attr, None).written;
    let lease = named.lease.and_then(|lease| {
        leases::of_nothing(request, (&found.node, &entry), (record.client, lease))
    });
    let file = OpenFile {
        node: found.node,
        path: RefCell::new(found.path),
        entry,
        is_new: false,
        _retained: found.retained,
        delete_on_close: Cell::new(record.delete_on_close),
        mode: Cell::new(record.options),
        user_times: Cell::default(),
        position: Cell::new(0),
        locks_of_nothing: Cell::new(0),
        ranges: Cell::new(record.ranges.len()),
        lock_sequences: LockSequences::of(record.sequences.clone()),
        lease,
        number: Cell::new(number),
        action: action::OPENED,
        reserved: Cell::new(0),
        write_time: Cell::new(written),
        write_time_until_ns: Cell::new(0),
        persistent: RefCell::new(Some(handle)),
        instance: None,
    };
    let who = Arc::new(request.session.who.clone());
    let (session, access, file) = (request.session.id, record.access, Box::new(file));
    Ok(Some((ParkedOpen { who, session, access, file, seat, durable }, looked)))
}

/// Notes by which name the file is open, and whether that is to be removed.
fn link(request: &Request, record: &Record, entry: &Entry, found: &ReopenedFile) {
    let (files, removes) = (&request.conn.server.open_files, record.delete_on_close);
    entry.count(&request.conn.server);
    let Some(at) = found.at.clone() else { return };
    // What has been marked meanwhile is open by no name.
    let Ok(link) = entry.locks.open_link(entry.key, at, &entry.owner, removes) else { return };
    entry.link.set(Some(link));
    if record.is_marked && entry.locks.mark_link(entry.key, link, &entry.owner).is_ok() {
        let removal = Removal { who: request.session.who.clone(), node: found.node.clone() };
        files.set_removal(entry.key, link, Some(removal));
    }
}
