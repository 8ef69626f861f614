//! A session of a connection: its user, keys, trees and opens.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use base::limits::{SMB_OPENS_MAX, SMB_TREES_MAX};
use tokio::sync::Notify;
use vfs::share::Service;
use vfs::share::rules::Transport;
use wire::smb::create::FileId;
use wire::smb::crypto::Keys;
use wire::smb::status::NtStatus;

use super::leases::{Mailbox, Route, route};
use super::opens::{Open, OpenOf};
use super::replays::LostCreates;
use super::sessions::Listed;
use files::Caller;
use files::caller::Reached;

/// What a tree is of.
pub(crate) enum TreeOf {
    /// A share.
    Share {
        /// What it grants.
        reached: Reached,
    },
    /// Named pipes.
    Pipes,
}

/// A share that was connected to.
pub(crate) struct Tree {
    /// What it is of.
    pub of: TreeOf,
    /// Whether its share requires encryption, by the rules of this number.
    encrypts: Cell<(u64, bool)>,
}

impl Tree {
    /// A tree.
    pub fn new(of: TreeOf) -> Self {
        Self { of, encrypts: Cell::default() }
    }

    /// Whether its share requires that requests are encrypted, as it is set now.
    pub fn encrypts(&self) -> bool {
        let TreeOf::Share { reached } = &self.of else { return false };
        let rules = reached.share.rules_for(Service::Smb);
        let (known, encrypts) = self.encrypts.get();
        let now = rules.generation();
        if known == now {
            return encrypts;
        }
        let encrypts = rules.get().transport() > Transport::Plain;
        self.encrypts.set((now, encrypts));
        encrypts
    }
}

thread_local! {
    /// Sessions of this core, for connections that are bound to them.
    static SESSIONS: RefCell<HashMap<u64, Weak<Session>>> = RefCell::default();
}

/// A session of this core.
pub(crate) fn find(id: u64) -> Option<Rc<Session>> {
    SESSIONS.with_borrow(|all| all.get(&id).and_then(Weak::upgrade))
}

/// A session.
pub(crate) struct Session {
    /// Its number.
    pub id: u64,
    /// The user of the session.
    pub who: Caller,
    /// Its keys.
    pub keys: Keys,
    /// Whether requests must be signed, unless they are encrypted.
    pub signs: bool,
    /// Whether everything must be encrypted.
    pub encrypts: bool,
    /// Messages that were encrypted so far.
    pub nonce: Cell<u64>,
    /// It is listed.
    pub listed: Listed,
    /// It has signed in as anonymous, or has done so since, which grants nothing.
    pub is_anonymous: Cell<bool>,
    /// It has never been of a user: every client can compute its keys, so its first answer is not
    /// signed.
    pub is_null: bool,
    /// Its client has named another one that it has lost.
    pub has_previous: bool,
    /// Requests of it that are carried out now.
    running: Cell<usize>,
    /// Those of them that wait for the end of the others.
    closing: Cell<usize>,
    /// One of them has ended, and is waited for.
    ended: Notify,
    /// The end of one may be waited for.
    is_awaited: Cell<bool>,
    /// The mail of each of its connections.
    channels: RefCell<Vec<Arc<Mailbox>>>,
    /// CREATEs that waited for a lease of a file when their connection was lost.
    pub lost: LostCreates,
    trees: RefCell<HashMap<u32, Rc<Tree>>>,
    opens: RefCell<HashMap<u64, Rc<Open>>>,
    next: Cell<u64>,
}

impl Session {
    /// A session without trees and opens.
    pub fn new(
        (id, who, listed): (u64, Caller, Listed),
        keys: Keys,
        (signs, encrypts): (bool, bool),
    ) -> Self {
        let (trees, opens, nonce) = (RefCell::default(), RefCell::default(), Cell::new(0));
        let (running, closing, ended) = (Cell::new(0), Cell::new(0), Notify::new());
        let is_awaited = Cell::new(false);
        Self {
            id,
            who,
            keys,
            signs,
            encrypts,
            nonce,
            listed,
            has_previous: false,
            is_anonymous: Cell::new(false),
            is_null: false,
            running,
            closing,
            ended,
            is_awaited,
            channels: RefCell::default(),
            lost: LostCreates::default(),
            trees,
            opens,
            next: Cell::new(1),
        }
    }

    /// Makes it known on this core, with its first connection.
    pub fn begin(self, mailbox: &Arc<Mailbox>) -> Rc<Self> {
        let session = Rc::new(self);
        session.add_channel(mailbox);
        SESSIONS.with_borrow_mut(|all| all.insert(session.id, Rc::downgrade(&session)));
        session
    }

    /// Another connection of it.
    pub fn add_channel(&self, mailbox: &Arc<Mailbox>) {
        self.channels.borrow_mut().push(Arc::clone(mailbox));
    }

    /// Whether it has more connections than one.
    pub fn has_channels(&self) -> bool {
        self.channels.borrow().len() > 1
    }

    /// One of its connections is lost: what breaks its leases comes to another one. False if there
    /// is none.
    pub fn remove_channel(&self, mailbox: &Arc<Mailbox>) -> bool {
        let mut channels = self.channels.borrow_mut();
        channels.retain(|other| !Arc::ptr_eq(other, mailbox));
        let Some(next) = channels.first() else { return false };
        for open in self.opens.borrow().values() {
            let OpenOf::File(file) = &open.of else { continue };
            let Some(lease) = &file.lease else { continue };
            if let Route::Mail { mailbox: of, .. } = &mut *route(&lease.route)
                && Arc::ptr_eq(of, mailbox)
            {
                *of = Arc::clone(next);
            }
        }
        for mail in mailbox.take_of(self.id) {
            next.post(mail);
        }
        true
    }

    /// A request of it is carried out as long as this lives.
    pub fn run(self: Rc<Self>) -> Running {
        self.running.set(self.running.get() + 1);
        Running(self)
    }

    /// A request of it waits for the end of all others; see [`Session::has_others`].
    pub fn waits_for_others(&self) {
        self.closing.set(self.closing.get() + 1);
    }

    /// Waits until one of its requests has ended; false if none is carried out but those that wait
    /// themselves.
    pub async fn has_others(&self) -> bool {
        if self.running.get() <= self.closing.get() {
            return false;
        }
        self.is_awaited.set(true);
        self.ended.notified().await;
        true
    }

    fn number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    /// Adds a tree; gives its number.
    ///
    /// # Errors
    /// STATUS_INSUFFICIENT_RESOURCES if there are too many.
    pub fn add_tree(&self, tree: Tree) -> Result<u32, NtStatus> {
        if self.trees.borrow().len() >= SMB_TREES_MAX {
            return Err(NtStatus::INSUFFICIENT_RESOURCES);
        }
        let id = u32::try_from(self.number()).map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
        self.trees.borrow_mut().insert(id, Rc::new(tree));
        Ok(id)
    }

    /// The tree of this number.
    ///
    /// # Errors
    /// STATUS_NETWORK_NAME_DELETED.
    pub fn tree(&self, id: u32) -> Result<Rc<Tree>, NtStatus> {
        self.trees.borrow().get(&id).cloned().ok_or(NtStatus::NETWORK_NAME_DELETED)
    }

    /// Forgets a tree; gives its opens.
    pub fn remove_tree(&self, id: u32) -> Vec<Rc<Open>> {
        self.trees.borrow_mut().remove(&id);
        self.take_opens(|open| open.tree == id)
    }

    /// Takes out opens.
    pub fn take_opens(&self, which: impl Fn(&Open) -> bool) -> Vec<Rc<Open>> {
        self.opens.borrow_mut().extract_if(|_, open| which(open)).map(|(_, open)| open).collect()
    }

    /// Whether another open may be added.
    ///
    /// # Errors
    /// STATUS_TOO_MANY_OPENED_FILES.
    pub fn has_room(&self) -> Result<(), NtStatus> {
        match self.opens.borrow().len() < SMB_OPENS_MAX {
            true => Ok(()),
            false => Err(NtStatus::TOO_MANY_OPENED_FILES),
        }
    }

    /// Whether something is open.
    pub fn has_opens(&self) -> bool {
        !self.opens.borrow().is_empty()
    }

    /// The number of another open.
    pub fn new_file_id(&self) -> FileId {
        let id = self.number();
        FileId { persistent: id, volatile: id }
    }

    /// Adds an open of this number.
    pub fn add_open(&self, file: FileId, open: Open) -> Rc<Open> {
        let open = Rc::new(open);
        self.opens.borrow_mut().insert(file.volatile, Rc::clone(&open));
        open
    }

    /// Has opens again that were taken out.
    pub fn put_back(&self, opens: Vec<Rc<Open>>) {
        let known = opens.into_iter().map(|open| (open.volatile, open));
        self.opens.borrow_mut().extend(known);
    }

    /// The open of this number, if it is of this tree.
    ///
    /// # Errors
    /// STATUS_FILE_CLOSED.
    pub fn open(&self, id: FileId, tree: u32) -> Result<Rc<Open>, NtStatus> {
        let opens = self.opens.borrow();
        let open = opens
            .get(&id.volatile)
            .filter(|open| id.persistent == open.persistent && open.tree == tree);
        open.cloned().ok_or(NtStatus::FILE_CLOSED)
    }

    /// The open of this number in the session.
    pub fn by_volatile(&self, volatile: u64) -> Option<Rc<Open>> {
        self.opens.borrow().get(&volatile).cloned()
    }

    /// The open of this number, whatever tree it is of.
    pub fn open_anywhere(&self, id: FileId) -> Option<Rc<Open>> {
        let open = self.opens.borrow().get(&id.volatile).cloned();
        open.filter(|open| id.persistent == open.persistent)
    }

    /// Takes out the open of this number.
    ///
    /// # Errors
    /// STATUS_FILE_CLOSED.
    pub fn close(&self, id: FileId, tree: u32) -> Result<Rc<Open>, NtStatus> {
        self.open(id, tree)?;
        self.opens.borrow_mut().remove(&id.volatile).ok_or(NtStatus::FILE_CLOSED)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The core may be ending.
        let _ = SESSIONS.try_with(|all| all.borrow_mut().remove(&self.id));
    }
}

/// A request of a session that is carried out.
pub(crate) struct Running(Rc<Session>);

impl Deref for Running {
    type Target = Rc<Session>;

    fn deref(&self) -> &Rc<Session> {
        &self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get().saturating_sub(1));
        if self.0.is_awaited.take() {
            self.0.ended.notify_waiters();
        }
    }
}
