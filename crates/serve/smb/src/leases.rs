//! Leases and oplocks (MS-SMB2 §3.3.4.6, §3.3.4.7, §3.3.5.9.8, §3.3.5.9.11, §3.3.5.22): what an
//! open is granted, notifications of breaks, acknowledgements. Conflicts are decided by the one
//! table of all protocols ([`vfs::locks::leases`]).
//!
//! A break is posted to the mail of the holder's connection from whatever thread, and sent behind
//! the answers that are there and before those of requests that are taken later. It never overtakes
//! the answer to the CREATE that has granted the lease.

use std::rc::Rc;
use std::sync::{Arc, Mutex};

use base::clock::Deadline;
use base::limits::SMB_LEASE_TRIES;
use vfs::locks::{
    AckRefused, ByOwners, Caching, ClientKey, FileKey, Granted, LeaseRequest, Owner, Protocol,
    Trigger,
};
use wire::smb::create::FileId;
use wire::smb::lease::{
    Ack, Lease, LeaseAck, LeaseBreak, LeaseKey, LeaseV2, Notice as Words, OplockBreak, lease_flags,
    level,
};
use wire::smb::negotiate::{Dialect, capabilities};
use wire::smb::status::NtStatus;

use super::connection::Connection;
use super::dispatch::{Handled, Reply, Request};
use super::state::leases::{ClientGuid, Form, Mail, MailClient, Notice, OpenLease, Route};
use super::state::opens::{Entry, OpenFile};
use super::state::session::Session;
use super::{reply, status};
use files::{Node, recall};

/// The caching that a CREATE requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CachingRequest {
    /// Nothing.
    Nothing,
    /// An oplock.
    Oplock(Caching),
    /// A lease.
    Lease(Lease, ClientGuid),
}

impl CachingRequest {
    /// What is asked for by an oplock level and a context. A lease of version 2 there is from 3.0
    /// on, and none without the context.
    pub fn of(conn: &Connection, oplock: u8, lease: Option<Lease>) -> Result<Self, NtStatus> {
        let agreed = conn.agreed()?;
        let leases = agreed.capabilities & capabilities::LEASING != 0;
        Ok(match (oplock, lease) {
            (level::II, _) => Self::Oplock(Caching::READ),
            (level::EXCLUSIVE, _) => Self::Oplock(Caching::READ_WRITE),
            (level::BATCH, _) => Self::Oplock(Caching::ALL),
            (level::LEASE, Some(lease)) if leases => match lease.v2 {
                Some(_) if agreed.dialect == Dialect::SMB210 => Self::Nothing,
                _ => Self::Lease(lease, agreed.client.0),
            },
            _ => Self::Nothing,
        })
    }

    fn key(&self) -> Option<(ClientGuid, LeaseKey)> {
        match self {
            Self::Lease(lease, guid) => Some((*guid, lease.key)),
            _ => None,
        }
    }

    /// By what the table of locks knows the lease: the client and its key, whatever session.
    pub fn owner(&self, request: &Request) -> Option<Owner> {
        let (guid, key) = self.key()?;
        let (number, _) = guid.split_first_chunk()?;
        let client = ClientKey { protocol: Protocol::Smb, id: u64::from_le_bytes(*number) };
        let owner = Owner::new(client, &[guid, key].concat())?;
        Some(owner.at(request.conn.peer.0.ip()))
    }

    /// That the key is not in use for another file than this one, or a new one.
    ///
    /// # Errors
    /// STATUS_INVALID_PARAMETER.
    pub fn check(&self, request: &Request, file: Option<FileKey>) -> Result<(), NtStatus> {
        let Some(key) = self.key() else { return Ok(()) };
        match request.conn.server.lease_keys.find(key) {
            Some((other, _)) if Some(other) != file => Err(NtStatus::INVALID_PARAMETER),
            _ => Ok(()),
        }
    }
}

/// What a CREATE is answered.
#[derive(Default)]
pub(super) struct GrantedLease {
    /// OplockLevel.
    pub level: u8,
    /// The context.
    pub context: Option<Lease>,
    /// What the open has.
    pub held: Option<OpenLease>,
}

impl GrantedLease {
    /// The lease that is not to be broken before its answer has left.
    pub fn granted(&self) -> Option<Owner> {
        self.held.as_ref().map(|held| held.owner.clone())
    }
}

/// Grants what can be granted to an open.
///
/// # Errors
/// STATUS_INVALID_PARAMETER if the key is in use for another file.
pub(super) async fn grant(
    request: &Request,
    asked: &CachingRequest,
    (node, entry, file): (&Node, &Entry, FileId),
) -> Result<GrantedLease, NtStatus> {
    let nothing = match asked {
        CachingRequest::Lease(lease, _) => {
            let context = answer(lease, lease.v2.is_some(), (0, 0));
            GrantedLease { level: level::LEASE, context: Some(context), held: None }
        }
        _ => GrantedLease::default(),
    };
    if !node.is_file() || !node.reached.share.caches() {
        return Ok(GrantedLease::default());
    }
    let owner = asked.owner(request).unwrap_or_else(|| entry.owner.clone());
    let (keys, mut key) = (&request.conn.server.lease_keys, None);
    let (form, wanted, epoch) = match asked {
        CachingRequest::Nothing => return Ok(nothing),
        CachingRequest::Oplock(wanted) => (Form::Oplock(file), *wanted, 0),
        CachingRequest::Lease(lease, guid) => {
            let named = (&owner, lease.v2.is_some());
            let taken = keys.take((*guid, lease.key), entry.key, named);
            let taken = key.insert(taken.ok_or(NtStatus::INVALID_PARAMETER)?);
            let form = Form::Lease(lease.key, taken.has_epoch);
            (form, Caching::of_bits(lease.state), lease.v2.map_or(0, |v2| v2.epoch))
        }
    };
    let (mailbox, session) = (Arc::clone(&request.conn.mailbox), request.session.id);
    let route = Arc::new(Mutex::new(Route::Mail { mailbox, session, form }));
    let notice = Arc::new(Notice(Arc::clone(&route)));
    let wants = LeaseRequest {
        slot: node.reached.share.fs.change_slot(&node.handle),
        key: entry.key,
        lease: &owner,
        open: &entry.owner,
        is_oplock: key.is_none(),
        wanted,
        epoch,
        notice,
    };
    let Some(granted) = lease(&request.conn, entry, &wants).await else { return Ok(nothing) };
    let held = Some(OpenLease { owner: owner.clone(), view: granted.view, key, route });
    let given = match asked {
        CachingRequest::Lease(lease, _) => {
            let breaking = if granted.is_breaking { lease_flags::BREAK_IN_PROGRESS } else { 0 };
            let has_epoch = matches!(form, Form::Lease(_, true));
            let state = (granted.caching.bits(), granted.epoch);
            let mut context = answer(lease, has_epoch, state);
            context.flags |= breaking;
            GrantedLease { level: level::LEASE, context: Some(context), held }
        }
        _ if granted.caching.is_none() => {
            request.conn.granted(std::slice::from_ref(&owner));
            GrantedLease::default()
        }
        _ => GrantedLease { level: level_of(granted.caching), context: None, held },
    };
    Ok(given)
}

/// The lease of an open that is continued and may cache nothing; `None` while the file is being
/// changed, or if its key is in use for another one.
pub(super) fn of_nothing(
    request: &Request,
    (node, entry): (&Node, &Entry),
    (guid, lease): (ClientGuid, Lease),
) -> Option<OpenLease> {
    let has_epoch = lease.v2.is_some();
    let asked = CachingRequest::Lease(lease, guid);
    let owner = asked.owner(request)?;
    let keys = &request.conn.server.lease_keys;
    let key = keys.take((guid, lease.key), entry.key, (&owner, has_epoch))?;
    let form = Form::Lease(lease.key, key.has_epoch);
    let (mailbox, session) = (Arc::clone(&request.conn.mailbox), request.session.id);
    let route = Arc::new(Mutex::new(Route::Mail { mailbox, session, form }));
    let granted = entry.locks.lease(&LeaseRequest {
        slot: node.reached.share.fs.change_slot(&node.handle),
        key: entry.key,
        lease: &owner,
        open: &entry.owner,
        is_oplock: false,
        wanted: Caching::NONE,
        // Its client takes over what it has now by an epoch behind its own.
        epoch: lease.v2.map_or(0, |v2| v2.epoch.wrapping_add(1)),
        notice: Arc::new(Notice(Arc::clone(&route))),
    })?;
    Some(OpenLease { owner, view: granted.view, key: Some(key), route })
}

/// Grants a lease, of which breaks are sent only once it is answered. `None` while the file is
/// being changed.
async fn lease(conn: &Connection, entry: &Entry, wants: &LeaseRequest<'_>) -> Option<Granted> {
    // Others find it as soon as it is granted.
    conn.granting.borrow_mut().push(wants.lease.clone());
    let mut granted = entry.locks.lease(wants);
    for _ in 1..SMB_LEASE_TRIES {
        if granted.is_some() {
            break;
        }
        tokio::task::yield_now().await;
        granted = entry.locks.lease(wants);
    }
    if granted.is_none() {
        conn.granted(std::slice::from_ref(wants.lease));
    }
    granted
}

/// The context of an answer, of the version of the lease.
pub(super) fn answer(asked: &Lease, has_epoch: bool, (state, epoch): (u32, u16)) -> Lease {
    let flags = asked.flags & lease_flags::PARENT_KEY_SET;
    let parent = asked.v2.filter(|_| flags != 0).map_or([0; 16], |v2| v2.parent);
    let v2 = has_epoch.then_some(LeaseV2 { parent, epoch, reserved: 0 });
    let flags = if v2.is_some() { flags } else { 0 };
    Lease { key: asked.key, state, flags, duration: 0, v2 }
}

/// The level of an oplock.
pub(super) const fn level_of(caching: Caching) -> u8 {
    match caching {
        Caching::ALL => level::BATCH,
        Caching::READ_WRITE => level::EXCLUSIVE,
        Caching::READ => level::II,
        _ => level::NONE,
    }
}

impl Connection {
    /// Leases are answered: what of them was broken meanwhile can be sent.
    pub fn granted(&self, leases: &[Owner]) {
        if leases.is_empty() {
            return;
        }
        let mut granting = self.granting.borrow_mut();
        for lease in leases {
            if let Some(at) = granting.iter().position(|other| other == lease) {
                granting.swap_remove(at);
            }
        }
        drop(granting);
        let held = std::mem::take(&mut *self.held_mail.borrow_mut());
        held.into_iter().for_each(|mail| self.deliver_one(mail));
    }

    /// Sends the breaks that have come.
    pub fn deliver(&self) {
        self.mailbox.take().into_iter().for_each(|mail| self.deliver_one(mail));
    }

    fn deliver_one(&self, mail: Mail) {
        if self.granting.borrow().contains(&mail.lease) {
            self.held_mail.borrow_mut().push(mail);
            return;
        }
        let Some((mail, seals)) = self.own_mail(mail) else { return };
        let what = mail.what;
        let words = match mail.form {
            Form::Lease(key, has_epoch) => Words::Lease(LeaseBreak {
                epoch: if has_epoch { what.epoch } else { 0 },
                flags: if what.must_acknowledge { lease_flags::ACK_REQUIRED } else { 0 },
                key,
                from: what.from.bits(),
                to: what.to.bits(),
                hints: [0; 12],
            }),
            Form::Oplock(file) => {
                let level = level_of(what.to);
                Words::Other(Ack::Oplock(OplockBreak { level, reserved: 0, reserved2: 0, file }))
            }
        };
        let mut out = reply::buffer(&self.core);
        words.put(out.vec());
        self.notify(out, seals.as_ref());
    }

    /// What is sent on this connection, with the session that encrypts it. Breaks of leases go to
    /// the first connection of the client (MS-SMB2 §3.3.4.7), but for those of sessions that
    /// encrypt, of which the keys are here, and of sessions with several connections: one of these
    /// is as good as another, and the open's was alive last.
    fn own_mail(&self, mail: Mail) -> Option<(Mail, Option<Rc<Session>>)> {
        if mail.passed_on.is_some() {
            return Some((mail, None));
        }
        // Without its session there is nothing that is open.
        let session = self.session(mail.session).ok()?;
        let is_lease = matches!(mail.form, Form::Lease(..));
        if !is_lease || session.encrypts || session.has_channels() {
            let seals = session.encrypts.then_some(session);
            return Some((mail, seals));
        }
        match self.mail_places.borrow().get(&session.id) {
            Some(place) => place.pass_on(mail).map(|mail| (mail, None)),
            None => Some((mail, None)),
        }
    }

    /// This connection is one more of the client of a session, for breaks of its leases.
    pub fn take_mail_place(&self, session: &Session) {
        let Ok(agreed) = self.agreed() else { return };
        // Before SMB 3 a break is sent on the connection of the open.
        if agreed.dialect >= Dialect::SMB300 {
            let client: MailClient = (agreed.client.0, session.who.person.name.as_str().into());
            let place = self.server.mail_order.enter(client, &self.mailbox);
            self.mail_places.borrow_mut().insert(session.id, place);
        }
    }

    /// It is one no longer for sessions that have left it: their client has lost it, perhaps, and
    /// the server does not know. What it was passed and has not sent goes to the next.
    pub fn leave_mail_places(&self) {
        let sessions = self.sessions.borrow();
        self.mail_places.borrow_mut().retain(|id, _| sessions.contains_key(id));
        drop(sessions);
        let mut passed_on = self.mailbox.take_passed_on();
        let mut held = self.held_mail.borrow_mut();
        passed_on.extend(held.extract_if(.., |mail| mail.passed_on.is_some()));
        drop(held);
        passed_on.into_iter().for_each(|mail| self.server.mail_order.post(mail));
    }
}

/// OPLOCK_BREAK: the acknowledgement of a break.
pub(super) fn acknowledge(request: &Request) -> Handled {
    let answered = match Ack::decode(request.message()).map_err(status::of_wire)? {
        Ack::Oplock(ack) => Ack::Oplock(of_oplock(request, ack)?),
        Ack::Lease(ack) => Ack::Lease(of_lease(request, ack)?),
    };
    let mut out = request.reply();
    answered.put(out.vec());
    request.done(Reply::new(out))
}

fn of_oplock(request: &Request, ack: OplockBreak) -> Result<OplockBreak, NtStatus> {
    let open = request.open(ack.file)?;
    let Entry { locks, key, owner, .. } = &open.file()?.entry;
    let is_breaking = locks.lease_of(*key, owner).is_some_and(|(_, is_breaking)| is_breaking);
    if !is_breaking {
        return Err(NtStatus::INVALID_OPLOCK_PROTOCOL);
    }
    let keeps = match ack.level {
        level::NONE => Caching::NONE,
        level::II => Caching::READ,
        _ => return Err(NtStatus::INVALID_PARAMETER),
    };
    let kept = match locks.acknowledge(*key, owner, keeps) {
        // More than was offered: it gets what was.
        Err(AckRefused::TooMuch) => locks.acknowledge(*key, owner, Caching::NONE),
        kept => kept,
    };
    let kept = kept.map_err(|_| NtStatus::INVALID_OPLOCK_PROTOCOL)?;
    Ok(OplockBreak { level: level_of(kept), ..ack })
}

fn of_lease(request: &Request, ack: LeaseAck) -> Result<LeaseAck, NtStatus> {
    let (conn, guid) = (&request.conn, request.conn.agreed()?.client.0);
    let found = conn.server.lease_keys.find((guid, ack.key));
    let (file, owner) = found.ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    let keeps = Caching::of_bits(ack.state);
    let kept = conn.core.files.locks.acknowledge(file, &owner, keeps);
    let kept = kept.map_err(|why| match why {
        AckRefused::NoLease => NtStatus::OBJECT_NAME_NOT_FOUND,
        AckRefused::NotBreaking => NtStatus::UNSUCCESSFUL,
        AckRefused::TooMuch => NtStatus::REQUEST_NOT_ACCEPTED,
    })?;
    Ok(LeaseAck { reserved: 0, flags: 0, state: kept.bits(), duration: 0, ..ack })
}

/// Waits until a lease of a file has changed that is in the way, with STATUS_PENDING.
///
/// # Errors
/// STATUS_CANCELLED; STATUS_INSUFFICIENT_RESOURCES if too many requests of the connection wait.
pub(super) async fn released(
    request: &Request,
    key: FileKey,
    until: Deadline,
) -> Result<(), NtStatus> {
    let Some(_waits) = request.wait_permit() else { return Err(NtStatus::INSUFFICIENT_RESOURCES) };
    request.pend();
    tokio::select! {
        () = recall::released(&request.conn.core.files.locks, Some(key), until) => Ok(()),
        () = request.cancel().cancelled() => Err(NtStatus::CANCELLED),
    }
}

/// Breaks what a change of data or size takes from others, where it changes nothing on disk.
pub(super) fn has_written(file: &OpenFile) {
    let own = file.lease.as_ref().map(|lease| lease.owner.clone());
    let _own = ByOwners::acting(own.as_slice());
    // Those that it would wait for have ended when the file was opened for writing.
    let _ = file.entry.locks.may(file.entry.key, Trigger::Write);
}

/// Has others give up what a change of names takes, before a file is marked for removal.
///
/// # Errors
/// As of [`released`]; STATUS_SHARING_VIOLATION after too long.
pub(super) async fn may_rename(request: &Request, file: &OpenFile) -> Result<(), NtStatus> {
    let until = Deadline::after(file.entry.locks.recall_patience());
    give_up_names(request, (file, file.entry.key), until).await
}

/// The same for another file that is in the way of what is done with the open `file`.
///
/// # Errors
/// As of [`may_rename`].
pub(super) async fn give_up_names(
    request: &Request,
    (file, key): (&OpenFile, FileKey),
    until: Deadline,
) -> Result<(), NtStatus> {
    let locks = &file.entry.locks;
    loop {
        let own = file.lease.as_ref().map(|lease| lease.owner.clone());
        let may = {
            let _own = ByOwners::acting(own.as_slice());
            locks.may(key, Trigger::Name)
        };
        if may {
            return Ok(());
        }
        if until.passed() {
            return Err(NtStatus::SHARING_VIOLATION);
        }
        released(request, key, until).await?;
    }
}
