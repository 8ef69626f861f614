//! An open: a file, a directory or a pipe, with the rights that were granted.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use vfs::fs::Retained;
use vfs::locks::{FileKey, LinkId, Location, LockTable, Owner};
use wire::smb::durable::CreateGuid;
use wire::smb::status::NtStatus;

use super::instances::InstanceOpen;
use super::leases::{ClientGuid, OpenLease, Writes};
use super::listings::Listed;
use super::notices::NoticedDir;
use super::open_files::CountsOpens;
use super::parked::DurableId;
use super::pipes::Pipe;
use super::replays::{Created, LockSequences, Numbered, Sequence};
use super::seats::OpenReservation;
use super::times::UserTimes;

use crate::handles::PersistentHandle;
use crate::handles::record::Record;
use files::{Caller, Node, VPath};

/// The entry of an open in the one table of opens and locks. With it end its locks and what waits
/// for one: a request that is dropped with its connection cancels nothing itself.
pub(crate) struct Entry {
    /// The table.
    pub locks: Arc<LockTable>,
    /// The file.
    pub key: FileKey,
    /// The open: one that looks at attributes only is not listed there.
    pub owner: Owner,
    /// The name by which it was found; `None` for the root of a share.
    pub link: Cell<Option<LinkId>>,
    /// What counts the open, until it ends.
    counted: Cell<Option<Weak<dyn CountsOpens>>>,
}

impl Entry {
    /// The entry of an open without a known name yet.
    pub const fn new(locks: Arc<LockTable>, key: FileKey, owner: Owner) -> Self {
        Self { locks, key, owner, link: Cell::new(None), counted: Cell::new(None) }
    }

    /// Has the open be counted. It is before its name is known: with the last open that is counted
    /// goes what is kept of the file.
    pub fn count<C: CountsOpens + 'static>(&self, by: &Arc<C>) {
        by.opened(self.key);
        self.counted.set(Some(Arc::<C>::downgrade(by)));
    }

    /// Where the file is that is open.
    pub fn location(&self) -> Option<Location> {
        self.locks.location(self.key, self.link.get()?)
    }

    /// Whether its name is to be removed.
    pub fn is_marked(&self) -> bool {
        self.link.get().is_some_and(|link| self.locks.is_marked(self.key, link))
    }

    /// Its name has one open less: after the last one, where what is to be removed is. The
    /// caller counts the end of the open.
    pub fn close(&self) -> Option<(LinkId, Location)> {
        drop(self.counted.take());
        let link = self.link.take()?;
        self.locks.close_link(self.key, link, &self.owner).map(|at| (link, at))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // Of a CREATE that has failed, or was dropped with its connection.
        let link = self.link.take();
        let removed = link.and_then(|link| {
            self.locks.abandon_link(self.key, link, &self.owner).map(|at| (link, at))
        });
        self.locks.release(self.key, &self.owner);
        if let Some(by) = self.counted.take().and_then(|by| by.upgrade()) {
            by.abandoned(self.key, removed);
        }
    }
}

/// An open file or directory.
pub(crate) struct OpenFile {
    /// What is open.
    pub node: Node,
    /// Its path, from the list of shares on.
    pub path: RefCell<VPath>,
    /// Its entry in the table of locks.
    pub entry: Entry,
    /// It was made since the grace period began that was on when it was opened: no client can
    /// reclaim it.
    pub is_new: bool,
    /// It is usable although its name is removed.
    pub _retained: Option<Retained>,
    /// Its close removes the file.
    pub delete_on_close: Cell<bool>,
    /// Options that remain with it: FileModeInformation.
    pub mode: Cell<u32>,
    /// Times that what is done with this open does not change.
    pub user_times: Cell<UserTimes>,
    /// The current byte offset (FilePositionInformation).
    pub position: Cell<u64>,
    /// Locks of no bytes before the first one, which nothing is in the way of.
    pub locks_of_nothing: Cell<u32>,
    /// Ranges that it has locked.
    pub ranges: Cell<usize>,
    /// LOCKs that its client may send again.
    pub lock_sequences: LockSequences,
    /// Its lease or oplock.
    pub lease: Option<OpenLease>,
    /// What the CREATE has come to, by its number, as long as it may be sent again: until the first
    /// request with the open (Open.IsReplayEligible).
    pub number: Cell<Option<Numbered>>,
    /// CreateAction of that.
    pub action: u32,
    /// Bytes that the client has reserved, as reported to it: they are allocated when written.
    pub reserved: Cell<u64>,
    /// The write time that was shown last, as FILETIME.
    pub write_time: Cell<u64>,
    /// Until when what is written is not shown in the write time ([`super::times`]), as
    /// nanoseconds of a monotonic clock.
    pub write_time_until_ns: Cell<u64>,
    /// Its record, if it is a persistent handle.
    pub persistent: RefCell<Option<PersistentHandle>>,
    /// The application that has it: known as long as anything of it is in the way, so the last
    /// field.
    pub instance: Option<InstanceOpen>,
}

impl OpenFile {
    /// How what is written with it meets leases.
    pub fn writes(&self) -> Writes {
        Writes::by(self.lease.as_ref())
    }

    /// Whether it is a persistent handle.
    pub fn is_persistent(&self) -> bool {
        self.persistent.borrow().is_some()
    }

    /// Whether its record is to stay when it ends: the service ends.
    pub fn stays_recorded(&self) -> bool {
        self.persistent.borrow().as_ref().is_some_and(PersistentHandle::stays)
    }

    /// The CREATE has come to this, for one that is sent again.
    pub fn set_created(&self, created: Created) {
        let number = self.number.take();
        if let Some(number) = &number {
            number.set(created);
        }
        self.number.set(number);
        if let Some(instance) = &self.instance {
            instance.set(created);
        }
    }
}

/// What is open.
pub(crate) enum OpenOf {
    /// A file or directory.
    File(Box<OpenFile>),
    /// A pipe.
    Pipe(RefCell<Pipe>),
}

/// What makes an open a durable handle.
pub(crate) struct Durability {
    /// Its number for ever.
    pub id: DurableId<ParkedOpen>,
    /// How long it waits for its client.
    pub timeout: Duration,
    /// It outlives a restart of the server.
    pub is_persistent: bool,
    /// CreateGuid, of version 2.
    pub guid: Option<CreateGuid>,
    /// ClientGuid of the connection that has made it.
    pub client: ClientGuid,
}

/// An open of a connection that was lost.
pub(crate) struct ParkedOpen {
    /// The user of its session.
    pub who: Arc<Caller>,
    /// The session.
    pub session: u64,
    /// Rights that were granted.
    pub access: u32,
    /// The file.
    pub file: Box<OpenFile>,
    /// What it takes of all that may be open.
    pub seat: OpenReservation,
    /// What makes it one.
    pub durable: Durability,
}

impl ParkedOpen {
    /// What is open of a session, if it is durable; given back otherwise.
    pub fn of(open: Open, (session, who): (u64, &Caller)) -> Result<Self, Open> {
        match open {
            Open { access, of: OpenOf::File(file), seat, durable: Some(durable), .. } => {
                Ok(Self { who: Arc::new(who.clone()), session, access, file, seat, durable })
            }
            open => Err(open),
        }
    }

    /// The open of a tree that it is again.
    pub fn open(self, (volatile, tree): (u64, u32), channel: u16) -> Open {
        let Self { access, file, seat, durable, .. } = self;
        Open {
            persistent: durable.id.number,
            volatile,
            tree,
            durable: Some(durable),
            access,
            of: OpenOf::File(file),
            listing: tokio::sync::Mutex::default(),
            noticed: RefCell::default(),
            sequence: Sequence::new(channel),
            closed: Notify::new(),
            seat,
        }
    }
}

/// A persistent handle of before the start that no client has continued yet: it denies to others
/// what it did.
pub(crate) struct Restored {
    /// What is known of it.
    pub record: Arc<Record>,
    /// Its entry in the table of locks.
    pub entry: Entry,
    /// It is recorded.
    pub handle: PersistentHandle,
    /// Its number for ever.
    pub id: DurableId<ParkedOpen>,
    /// Its CREATE, which may be sent again.
    pub number: Option<Numbered>,
}

/// An open.
pub(crate) struct Open {
    /// Its number for ever, if it is durable; otherwise that in its session.
    pub persistent: u64,
    /// Its number in its session.
    pub volatile: u64,
    /// Its tree.
    pub tree: u32,
    /// It outlives its connection.
    pub durable: Option<Durability>,
    /// Rights that were granted.
    pub access: u32,
    /// What is open.
    pub of: OpenOf,
    /// The listing in progress.
    pub listing: tokio::sync::Mutex<Option<Listed>>,
    /// Changes of the directory that are noted for CHANGE_NOTIFY.
    pub noticed: RefCell<Option<Rc<NoticedDir>>>,
    /// Requests with it that a client may send again.
    pub sequence: Sequence,
    /// Notifies requests that wait for something of it that it is closed.
    pub closed: Notify,
    /// What it takes of all that may be open.
    pub seat: OpenReservation,
}

impl Open {
    /// The file or directory.
    ///
    /// # Errors
    /// STATUS_INVALID_DEVICE_REQUEST for a pipe.
    pub fn file(&self) -> Result<&OpenFile, NtStatus> {
        match &self.of {
            OpenOf::File(file) => Ok(file),
            OpenOf::Pipe(_) => Err(NtStatus::INVALID_DEVICE_REQUEST),
        }
    }

    /// A request is carried out with it: its CREATE is not sent again by a client that has got the
    /// answer.
    pub fn set_used(&self) {
        if let OpenOf::File(file) = &self.of {
            drop(file.number.take());
        }
    }

    /// That one of these rights was granted.
    ///
    /// # Errors
    /// STATUS_ACCESS_DENIED.
    pub const fn may(&self, any: u32) -> Result<(), NtStatus> {
        if self.access & any != 0 { Ok(()) } else { Err(NtStatus::ACCESS_DENIED) }
    }
}
