//! What SMB keeps of leases in addition to the one table of opens and locks: which file each key
//! of a client is for, and how a break gets to the connection of its holder.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use engine::exec::CompletionQueue;
use vfs::locks::{Break, ByOwners, Caching, FileKey, LeaseView, Owner, Recall, Using};
use wire::smb::create::FileId;
use wire::smb::lease::LeaseKey;

/// ClientGuid.
pub type ClientGuid = [u8; 16];

/// ClientGuid, and the user.
pub(crate) type MailClient = (ClientGuid, Arc<str>);

/// The keys of all clients: a client uses one for one file only (MS-SMB2 §3.3.5.9.8).
#[derive(Debug, Default)]
pub(crate) struct LeaseKeys {
    of: Mutex<HashMap<(ClientGuid, LeaseKey), Named>>,
}

#[derive(Debug)]
struct Named {
    file: FileKey,
    lease: Owner,
    has_epoch: bool,
    opens: usize,
}

/// A key is in use as long as this lives.
#[derive(Debug)]
pub(crate) struct KeyInUse {
    keys: Arc<LeaseKeys>,
    /// ClientGuid, and the key.
    pub key: (ClientGuid, LeaseKey),
    /// Whether the lease is one of version 2: as its first open has asked for it.
    pub has_epoch: bool,
}

impl LeaseKeys {
    fn of(&self) -> MutexGuard<'_, HashMap<(ClientGuid, LeaseKey), Named>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of a key, and by what the table of locks knows the lease.
    pub fn find(&self, key: (ClientGuid, LeaseKey)) -> Option<(FileKey, Owner)> {
        self.of().get(&key).map(|named| (named.file, named.lease.clone()))
    }

    /// Uses a key for a file. `None` if it is another file's.
    pub fn take(
        self: &Arc<Self>,
        key: (ClientGuid, LeaseKey),
        file: FileKey,
        (lease, has_epoch): (&Owner, bool),
    ) -> Option<KeyInUse> {
        let mut of = self.of();
        let named = of.entry(key).or_insert_with(|| {
            let lease = lease.clone();
            Named { file, lease, has_epoch, opens: 0 }
        });
        if named.file != file {
            return None;
        }
        named.opens += 1;
        Some(KeyInUse { keys: Arc::clone(self), key, has_epoch: named.has_epoch })
    }
}

impl Drop for KeyInUse {
    fn drop(&mut self) {
        let mut of = self.keys.of();
        if let Some(named) = of.get_mut(&self.key) {
            named.opens -= 1;
            if named.opens == 0 {
                of.remove(&self.key);
            }
        }
    }
}

/// The lease that an open has.
pub(crate) struct OpenLease {
    /// By what the table of locks knows it.
    pub owner: Owner,
    /// What it comes to.
    pub view: LeaseView,
    /// Its key; an oplock has none.
    pub key: Option<KeyInUse>,
    /// How the holder is notified.
    pub route: SharedRoute,
}

/// How a write by an open meets leases.
#[derive(Debug, Clone)]
pub(crate) enum Writes {
    /// All are in its way.
    Plain,
    /// There is no other.
    Exclusive,
    /// Its own is not.
    With(Owner),
}

/// A thread writes so as long as this lives.
pub(crate) struct Writing {
    _exclusive: Option<Using>,
    _own: Option<ByOwners>,
}

impl Writes {
    /// How a write meets leases that is done by an open with this lease.
    pub fn by(lease: Option<&OpenLease>) -> Self {
        match lease {
            None => Self::Plain,
            Some(lease) if lease.view.caching().has(Caching::WRITE) => Self::Exclusive,
            Some(lease) => Self::With(lease.owner.clone()),
        }
    }

    /// This thread writes so from now on.
    pub fn begin(&self) -> Writing {
        let (exclusive, own) = match self {
            Self::Plain => (None, None),
            Self::Exclusive => (Some(Using::exclusive()), None),
            Self::With(owner) => (None, Some(ByOwners::acting(std::slice::from_ref(owner)))),
        };
        Writing { _exclusive: exclusive, _own: own }
    }
}

/// How a notification is worded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A lease of this key, with an epoch or without.
    Lease(LeaseKey, bool),
    /// The oplock of this open.
    Oplock(FileId),
}

/// A break that the holder is to be notified of.
#[derive(Debug, Clone)]
pub(crate) struct Mail {
    /// The lease.
    pub lease: Owner,
    /// The session of the open.
    pub session: u64,
    /// How it is worded.
    pub form: Form,
    /// What is broken.
    pub what: Break,
    /// The client, if it comes from another connection of it.
    pub passed_on: Option<MailClient>,
}

/// Breaks for the holders of leases at one connection. Any thread posts.
#[derive(Default)]
pub(crate) struct Mailbox {
    queue: CompletionQueue<Mail>,
    /// Whether there is anything: looked at without a lock.
    is_rung: AtomicBool,
}

impl Mailbox {
    /// Puts something in.
    pub fn post(&self, mail: Mail) {
        self.is_rung.store(true, Ordering::Release);
        self.queue.push(mail);
    }

    /// What has come.
    pub fn take(&self) -> Vec<Mail> {
        let mut mail = Vec::new();
        // Looked at first: it is asked for each frame.
        if self.is_rung.load(Ordering::Acquire) && self.is_rung.swap(false, Ordering::AcqRel) {
            self.queue.drain(&mut mail);
        }
        mail
    }

    /// What has come for one session.
    pub fn take_of(&self, session: u64) -> Vec<Mail> {
        self.take_if(|mail| mail.session == session && mail.passed_on.is_none())
    }

    /// What has come from other connections.
    pub fn take_passed_on(&self) -> Vec<Mail> {
        self.take_if(|mail| mail.passed_on.is_some())
    }

    fn take_if(&self, which: impl Fn(&Mail) -> bool) -> Vec<Mail> {
        let (some, others): (Vec<_>, Vec<_>) = self.take().into_iter().partition(which);
        others.into_iter().for_each(|mail| self.post(mail));
        some
    }

    /// Waits until there is something.
    pub async fn rung(&self) {
        std::future::poll_fn(|cx| self.queue.poll(cx, true).map(drop)).await;
        self.is_rung.store(true, Ordering::Release);
    }
}

/// How the holder of a lease is notified through one of its opens.
pub(crate) enum Route {
    /// By a connection.
    Mail {
        /// Its mail.
        mailbox: Arc<Mailbox>,
        /// The session.
        session: u64,
        /// How it is worded.
        form: Form,
    },
    /// Not at all: the open waits for its client, and ends.
    Parked(Weak<dyn EndsParked>),
}

/// Ends opens that wait for their client.
pub(crate) trait EndsParked: Send + Sync {
    /// Another client needs what this lease has: what waits with it ends.
    fn break_parked(&self, lease: &Owner);
}

/// The route of an open, which changes with its connection.
pub(crate) type SharedRoute = Arc<Mutex<Route>>;

/// Notifies the holder of a lease by the route of an open.
pub(crate) struct Notice(pub SharedRoute);

/// The route as it is now.
pub(crate) fn route(of: &SharedRoute) -> MutexGuard<'_, Route> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recall for Notice {
    fn recall(&self, _: FileKey, owner: &Owner, what: Break) {
        let server = match &*route(&self.0) {
            Route::Mail { mailbox, session, form } => {
                let (session, form) = (*session, *form);
                let (lease, passed_on) = (owner.clone(), None);
                return mailbox.post(Mail { lease, session, form, what, passed_on });
            }
            Route::Parked(server) => server.upgrade(),
        };
        if let Some(server) = server {
            server.break_parked(owner);
        }
    }

    fn is_reachable(&self) -> bool {
        matches!(&*route(&self.0), Route::Mail { .. })
    }
}

#[cfg(test)]
mod tests;
