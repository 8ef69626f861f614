//! Durable handles (MS-SMB2 §3.3.5.9.6, §3.3.5.9.7, §3.3.5.9.10, §3.3.5.9.12, §3.3.7.1): opens with
//! a lease of handles or a batch oplock, which outlive their connection for a time that is agreed
//! on. What another client needs of them meanwhile ends them: their client cannot be notified.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::{
    SMB_DURABLE_V1, SMB_DURABLE_V2, SMB_DURABLE_V2_MAX, SMB_PREVIOUS_WAIT, SMB_RECONNECT_WAIT,
};
use base::refusals::Limit;
use vfs::attr::Attr;
use vfs::dos::Dos;
use vfs::locks::{Caching, Owner};
use wire::smb::codec::Field as _;
use wire::smb::contexts::{self, Context};
use wire::smb::create::{FileId, Request as Create, Response, action};
use wire::smb::durable::{CreateGuid, DurableV2, DurableV2Answer, PERSISTENT, put_v1_answer};
use wire::smb::lease::{Lease, lease_flags, level};
use wire::smb::negotiate::Dialect;
use wire::smb::status::NtStatus;

use super::connection::Connection;
use super::dispatch::{Outcome, Reply, Request};
use super::leases;
use super::state::instances::InstanceOpen;
use super::state::leases::{EndsParked as _, Form, Mail, Route, route};
use super::state::opens::{Durability, Open, OpenFile, OpenOf, ParkedOpen};
use super::state::parked::{DurableId, ParkedKey};
use super::state::replays::Created;
use super::state::session::Session;
use super::{facts, names};
use files::caller::Reached;
use files::{Node, VPath};

mod persistent;

/// The durable handle that a CREATE requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum DurableRequest {
    /// Nothing.
    #[default]
    Nothing,
    /// A durable handle.
    V1,
    /// One with a time and a number of the request.
    V2(DurableV2),
    /// To continue one, of version 2 with the number of the request that has made it.
    Reconnect(FileId, Option<CreateGuid>),
}

impl DurableRequest {
    /// How long it is to outlive its connection, if it is asked for in this version of SMB.
    fn timeout(self, dialect: Dialect) -> Option<Duration> {
        match self {
            Self::V1 => Some(SMB_DURABLE_V1),
            Self::V2(_) if dialect < Dialect::SMB300 => None,
            Self::V2(DurableV2 { timeout_ms: 0, .. }) => Some(SMB_DURABLE_V2),
            Self::V2(DurableV2 { timeout_ms, .. }) => {
                Some(Duration::from_millis(timeout_ms.into()).min(SMB_DURABLE_V2_MAX))
            }
            _ => None,
        }
    }

    /// The number of the request.
    pub const fn guid(self) -> Option<CreateGuid> {
        match self {
            Self::V2(asked) => Some(asked.guid),
            _ => None,
        }
    }

    /// Whether it is to outlive a restart of the server.
    const fn is_persistent(self) -> bool {
        matches!(self, Self::V2(asked) if asked.flags & PERSISTENT != 0)
    }

    /// Appends the context of the answer to an open that was granted.
    pub fn put_answer(self, granted: Option<&Durability>, out: &mut Vec<u8>) -> &'static [u8] {
        match (self, granted) {
            (Self::V2(_), Some(granted)) => {
                let timeout_ms = u32::try_from(granted.timeout.as_millis()).unwrap_or(u32::MAX);
                let flags = if granted.is_persistent { PERSISTENT } else { 0 };
                DurableV2Answer { timeout_ms, flags }.put(out);
                contexts::DURABLE_V2
            }
            _ => {
                put_v1_answer(out);
                contexts::DURABLE
            }
        }
    }
}

/// The number of an open that may become a durable handle: oplocks are broken by it.
pub(super) fn number(
    request: &Request,
    asked: DurableRequest,
) -> Result<Option<DurableId<ParkedOpen>>, NtStatus> {
    let asks = asked.timeout(request.conn.agreed()?.dialect).is_some();
    Ok(asks.then(|| request.conn.server.parked.new_id()))
}

/// What makes an open a durable handle, if it is asked for and its client keeps it open, or a
/// persistent one.
pub(super) async fn grant(
    request: &Request,
    (asked, number): (DurableRequest, Option<DurableId<ParkedOpen>>),
    (file, access): (&OpenFile, u32),
) -> Result<Option<Durability>, NtStatus> {
    let agreed = request.conn.agreed()?;
    let is_persistent = asked.is_persistent() && persistent::is_offered(request, file);
    let timeout = asked.timeout(agreed.dialect).filter(|_| is_persistent || is_kept_open(file));
    let (guid, client) = (asked.guid(), agreed.client.0);
    let Some((timeout, id)) = timeout.zip(number) else { return Ok(None) };
    let mut durable = Durability { id, timeout, is_persistent, guid, client };
    if is_persistent && persistent::record_new(request, &durable, (file, access)).await.is_err() {
        durable.is_persistent = false;
        return Ok(Some(durable).filter(|_| is_kept_open(file)));
    }
    Ok(Some(durable))
}

/// Records what has changed of a persistent handle: locks, its name, whether it is to be removed.
///
/// # Errors
/// STATUS_INSUFFICIENT_RESOURCES if that is not on disk.
pub(super) async fn record(open: &Open) -> Result<(), NtStatus> {
    persistent::update(open).await
}

/// Whether the client of an open may keep it open when its programs have closed it.
fn is_kept_open(file: &OpenFile) -> bool {
    let Some(lease) = file.lease.as_ref().filter(|_| file.node.is_file()) else { return false };
    let caching = lease.view.caching();
    match lease.key {
        Some(_) => caching.has(Caching::HANDLE),
        None => caching == Caching::ALL,
    }
}

/// Has opens of a session wait for their client that are durable; gives back the others, which are
/// to be closed, and durable ones with which a request is carried out.
pub(super) fn park(
    conn: &Connection,
    session: &Session,
    opens: Vec<Rc<Open>>,
) -> (Vec<Rc<Open>>, Vec<Rc<Open>>) {
    let (server, mut busy) = (&conn.server, Vec::new());
    let park = |open: Rc<Open>| {
        let is_kept = |open: &Open| match &open.of {
            OpenOf::File(file) => file.is_persistent() || is_kept_open(file),
            OpenOf::Pipe(_) => false,
        };
        if open.durable.is_none() || !is_kept(&open) {
            return Some(open);
        }
        open.closed.notify_waiters();
        let open = match Rc::try_unwrap(open) {
            Ok(open) => open,
            Err(open) => {
                busy.push(open);
                return None;
            }
        };
        let volatile = open.volatile;
        let parked = match ParkedOpen::of(open, (session.id, &session.who)) {
            Ok(parked) => parked,
            Err(open) => return Some(Rc::new(open)),
        };
        let from = conn.peer.0.ip();
        let back = server.park(parked, from).err()?;
        Some(Rc::new(back.open((volatile, 0), 0)))
    };
    let others = opens.into_iter().filter_map(park).collect();
    (others, busy)
}

impl super::server::Server {
    /// Has an open wait for its client; given back if it cannot.
    fn park(
        self: &Arc<Self>,
        parked: ParkedOpen,
        address: std::net::IpAddr,
    ) -> Result<(), ParkedOpen> {
        let id = parked.durable.id.number;
        let lease = parked.file.lease.as_ref().map(|lease| lease.owner.clone());
        let timeout_ns = u64::try_from(parked.durable.timeout.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = monotonic_ns().saturating_add(timeout_ns);
        let (client, of_key) = (parked.durable.client, lease.clone());
        let key = ParkedKey { address, client, lease: of_key, until_ns };
        parked.file.set_created(Created::Parked(id));
        let instance = parked.file.instance.as_ref().map(InstanceOpen::handle);
        // From now on a break ends it; one that has come before is seen below.
        if let Some(lease) = &parked.file.lease {
            *route(&lease.route) = Route::Parked(Arc::<Self>::downgrade(self));
        }
        let file = parked.file.entry.key;
        let locks = Arc::clone(&parked.file.entry.locks);
        if let Err(back) = self.parked.park(id, key, parked) {
            Limit::SmbParked.count();
            return Err(back);
        }
        // Again: it was not yet there before.
        if let Some(instance) = instance {
            instance.set(Created::Parked(id));
        }
        let is_breaking =
            |lease: &Owner| locks.lease_of(file, lease).is_none_or(|(_, is_breaking)| is_breaking);
        if let Some(lease) = lease.filter(is_breaking) {
            self.break_parked(&lease);
        }
        Ok(())
    }
}

/// What is compared with an open that waits.
struct Claim<'a> {
    request: &'a Request,
    reached: &'a Reached,
    guid: Option<CreateGuid>,
    lease: Option<Lease>,
    client: [u8; 16],
    path: Option<VPath>,
}

/// An open that waited, and what its file was like just before.
type Claimed = (ParkedOpen, (Attr, Option<Dos>));

impl Claim<'_> {
    /// Takes the open of this number out of those that wait.
    ///
    /// # Errors
    /// STATUS_OBJECT_NAME_NOT_FOUND if it is not there, or another client's. As of GETATTR: it
    /// still waits then, and its client may try again.
    async fn take(&self, number: u64) -> Result<Claimed, NtStatus> {
        let (request, otherwise) = (self.request, NtStatus::OBJECT_NAME_NOT_FOUND);
        let (session, parked) = (&request.session, &request.conn.server.parked);
        // The connection may be lost and not know it yet.
        let wait = if session.has_previous { SMB_PREVIOUS_WAIT } else { SMB_RECONNECT_WAIT };
        let _ = tokio::time::timeout(wait, parked.parked(number)).await;
        let node = |there: &ParkedOpen| self.check(there).map(|()| there.file.node.clone());
        let node = parked.get(number, node).ok_or(otherwise)??;
        let node = Node { reached: self.reached.clone(), ..node };
        let looked = facts::look(&request.conn, &session.who, &node).await?;
        // From here on nothing waits: what is taken comes into its tree.
        session.tree(request.header.tree_id())?;
        Ok((parked.take(number, |_, there| self.check(there), otherwise)?, looked))
    }

    /// That the open is this client's.
    fn check(&self, parked: &ParkedOpen) -> Result<(), NtStatus> {
        let (none, who) = (Err(NtStatus::OBJECT_NAME_NOT_FOUND), &self.request.session.who);
        let (file, durable) = (&parked.file, &parked.durable);
        let there = &file.node.reached;
        let is_share = there.share.id == self.reached.share.id && *there.cred == *self.reached.cred;
        let is_user = parked.who.person.name == who.person.name;
        // What was opened by version 2 may be continued by version 1, which has no such number.
        let is_others = file.is_persistent() && durable.client != self.client;
        if !is_share
            || !is_user
            || is_others
            || self.guid.is_some_and(|guid| durable.guid.unwrap_or_default() != guid)
        {
            return none;
        }
        let key = file.lease.as_ref().and_then(|lease| lease.key.as_ref());
        match (key, self.lease) {
            (None, None) => Ok(()),
            (Some(key), Some(asked)) if key.key == (self.client, asked.key) => {
                let is_path = |path: &VPath| is_same_path(path, &file.path.borrow());
                match self.path.as_ref().is_some_and(is_path) {
                    true => Ok(()),
                    false => Err(NtStatus::INVALID_PARAMETER),
                }
            }
            _ => none,
        }
    }
}

/// Whether two paths differ in case at most.
fn is_same_path(one: &VPath, other: &VPath) -> bool {
    let (one, other) = (one.parts(), other.parts());
    let alike = |(one, other): (&Vec<u8>, &Vec<u8>)| {
        one == other || names::is_same_but_for_case(one, other)
    };
    one.len() == other.len() && one.iter().zip(other).all(alike)
}

/// Continues an open of a connection that was lost.
///
/// # Errors
/// STATUS_OBJECT_NAME_NOT_FOUND if it is not there, or another client's.
pub(super) async fn reconnect(
    request: &Request,
    reached: &Reached,
    create: &Create<'_>,
    (asked, lease): ((FileId, Option<CreateGuid>), Option<Lease>),
) -> Outcome {
    let (conn, session) = (&request.conn, &request.session);
    let (file, guid) = asked;
    let client = conn.agreed()?.client.0;
    let path = names::path(&reached.share, create.name).ok();
    let named = persistent::Named { number: file.persistent, guid, client, lease };
    let restored = persistent::claim(request, reached, &named).await?;
    let claim = Claim { request, reached, guid, lease, client, path };
    // Nothing fails behind it: the client has the open only if it is answered so.
    let (mut there, (attr, dos)) = match restored {
        Some(there) => there,
        None => claim.take(file.persistent).await?,
    };
    there.file.node.reached = reached.clone();
    let facts = facts::of_open(conn, &there.file, (&attr, dos.as_ref()));
    let id = FileId { persistent: file.persistent, ..session.new_file_id() };
    let (level, context, granted) = continue_lease(request, &there.file, id, lease);
    there.file.set_created(Created::Open(session.id, id.volatile));
    let place = (id.volatile, request.header.tree_id());
    let open = session.add_open(id, there.open(place, request.header.channel()));
    let (mut leased, mut data) = (Vec::new(), Vec::new());
    if let Some(lease) = context {
        lease.put(&mut leased);
        contexts::put(&[Context { name: contexts::LEASE, data: &leased }], &mut data);
    }
    let response =
        Response { oplock: level, action: action::OPENED, facts, file: id, contexts: &data };
    let mut out = request.reply();
    response.put(out.vec());
    request.note_open(&open);
    Ok(Reply { file: Some(id), granted, ..Reply::new(out) })
}

/// Has breaks of its lease come to this connection; what is answered of it.
fn continue_lease(
    request: &Request,
    file: &OpenFile,
    id: FileId,
    asked: Option<Lease>,
) -> (u8, Option<Lease>, Option<vfs::locks::Owner>) {
    let (conn, session) = (&request.conn, request.session.id);
    let Some(lease) = &file.lease else { return (level::NONE, None, None) };
    conn.granting.borrow_mut().push(lease.owner.clone());
    let form = match &lease.key {
        Some(key) => Form::Lease(key.key.1, key.has_epoch),
        None => Form::Oplock(id),
    };
    *route(&lease.route) = Route::Mail { mailbox: Arc::clone(&conn.mailbox), session, form };
    let (locks, key) = (&file.entry.locks, file.entry.key);
    // The client of a persistent handle could not be notified.
    let broken = locks.break_of(key, &lease.owner).filter(|_| file.is_persistent());
    if let Some(what) = broken {
        let (lease, passed_on) = (lease.owner.clone(), None);
        conn.mailbox.post(Mail { lease, session, form, what, passed_on });
    }
    let now = locks.lease_now(key, &lease.owner);
    let (caching, epoch) = now.map_or((Caching::NONE, 0), |now| (now.caching, now.epoch));
    let granted = Some(lease.owner.clone());
    match (&lease.key, asked) {
        (Some(key), Some(asked)) => {
            let mut context = leases::answer(&asked, key.has_epoch, (caching.bits(), epoch));
            if broken.is_some() {
                context.flags |= lease_flags::BREAK_IN_PROGRESS;
            }
            (level::LEASE, Some(context), granted)
        }
        _ => (leases::level_of(caching), None, granted),
    }
}
