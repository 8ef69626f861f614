//! A session of a connection: its user, keys, trees and opens.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use base::limits::{SMB_OPENS_MAX, SMB_TREES_MAX};
use tokio::sync::Notify;
use vfs::share::Service;
use vfs::share::rules::Transport;
use wire::smb::create::FileId;
use wire::smb::crypto::Keys;
use wire::smb::status::NtStatus;

use super::opens::Open;
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
    /// Requests of it that are carried out now.
    running: Cell<usize>,
    /// Those of them that wait for the end of the others.
    closing: Cell<usize>,
    /// One of them has ended.
    ended: Notify,
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
        Self {
            id,
            who,
            keys,
            signs,
            encrypts,
            nonce,
            listed,
            running,
            closing,
            ended,
            trees,
            opens,
            next: Cell::new(1),
        }
    }

    /// A request of it is carried out as long as this lives.
    pub fn run(self: &Rc<Self>) -> Running {
        self.running.set(self.running.get() + 1);
        Running(Rc::clone(self))
    }

    /// A request of it waits for the end of all others, as [`Session::has_others`] says.
    pub fn waits_for_others(&self) {
        self.closing.set(self.closing.get() + 1);
    }

    /// Waits until one of its requests has ended; false if none is carried out but those that wait
    /// themselves.
    pub async fn has_others(&self) -> bool {
        if self.running.get() <= self.closing.get() {
            return false;
        }
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
    pub fn add_open(&self, file: FileId, open: Open) {
        self.opens.borrow_mut().insert(file.volatile, Rc::new(open));
    }

    /// The open of this number, if it is of this tree.
    ///
    /// # Errors
    /// STATUS_FILE_CLOSED.
    pub fn open(&self, id: FileId, tree: u32) -> Result<Rc<Open>, NtStatus> {
        let opens = self.opens.borrow();
        let open = opens
            .get(&id.volatile)
            .filter(|open| id.persistent == id.volatile && open.tree == tree);
        open.cloned().ok_or(NtStatus::FILE_CLOSED)
    }

    /// The open of this number, whatever tree it is of.
    pub fn open_anywhere(&self, id: FileId) -> Option<Rc<Open>> {
        let open = self.opens.borrow().get(&id.volatile).cloned();
        open.filter(|_| id.persistent == id.volatile)
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

/// A request of a session that is carried out.
pub(crate) struct Running(Rc<Session>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get().saturating_sub(1));
        self.0.ended.notify_waiters();
    }
}
