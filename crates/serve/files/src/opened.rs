//! The entry of a transfer in the one table of opens and locks, and what keeps its file usable when
//! the file's name is removed or given to another one: both end with the transfer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::clock::Deadline;
use vfs::attr::Attr;
use vfs::fs::{Context, FileSystem, Result, Retained, retain_if_possible};
use vfs::handle::Handle;
use vfs::locks::{ClientKey, FileKey, LockTable, Owner, Refused, SHARE_READ, SHARE_WRITE, Share};
use vfs::status::Status;

use super::caller::Caller;
use super::core::Core;
use super::grace;
use super::node::Node;
use super::recall;

/// Numbers of opens, each given once in this process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// An open file of a caller, until it is dropped.
pub struct Opened {
    locks: Arc<LockTable>,
    key: FileKey,
    /// `None` if an existing open is used that lasts longer: [`Caller::lent`].
    owner: Option<Owner>,
    /// `None` if the file is usable only as long as it has a name.
    retained: Option<Retained>,
}

/// A file that is to be opened, denying nothing to others.
struct OpenRequest {
    key: FileKey,
    owner: Owner,
    share: Share,
    /// The caller has just made it: nothing of it can be reclaimed.
    is_new: bool,
}

/// The status of a file that is not opened.
fn status(refused: &Refused) -> Status {
    match refused {
        Refused::Shared(_) | Refused::Grace => Status::InUse,
        _ => Status::Busy,
    }
}

impl OpenRequest {
    fn new(who: &Caller, key: FileKey, write: bool) -> Result<Self> {
        let access = if write { SHARE_READ | SHARE_WRITE } else { SHARE_READ };
        let id = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let owner = who.owner(&id).ok_or(Status::Fault)?;
        Ok(Self { key, owner, share: Share { access, deny: 0 }, is_new: false })
    }

    fn attempt(
        &self,
        locks: &Arc<LockTable>,
        who: &Caller,
    ) -> std::result::Result<Opened, Refused> {
        let (key, share) = (self.key, self.share);
        let covers = |lent: &Owner| locks.share_of(key, lent).is_some_and(|had| had.covers(share));
        let lent = who.lent.iter().any(covers);
        if !lent {
            match self.is_new {
                true => locks.reopen(key, &self.owner, share)?,
                false => locks.open(key, &self.owner, share)?,
            };
        }
        let owner = (!lent).then(|| self.owner.clone());
        Ok(Opened { locks: Arc::clone(locks), key, owner, retained: None })
    }
}

impl Opened {
    /// As [`Core::open`], on a thread that may wait, for the end of the grace period as long as it
    /// `continues`. `attr` is that of GETATTR.
    ///
    /// # Errors
    /// The same.
    pub fn wait(
        locks: &Arc<LockTable>,
        who: &Caller,
        (attr, write): (&Attr, bool),
        continues: impl Fn() -> bool,
    ) -> Result<Self> {
        let until = Deadline::after(locks.recall_patience());
        let is_new = !locks.may_be_reclaimed(attr);
        let wanted = OpenRequest { is_new, ..OpenRequest::new(who, FileKey::from(attr), write)? };
        loop {
            match wanted.attempt(locks, who) {
                Err(Refused::Recalling) if !until.passed() => {
                    recall::released_blocking(locks, Some(wanted.key), until);
                }
                Err(Refused::Grace) if grace::ended_blocking(locks, &continues) => {}
                done => return done.map_err(|refused| status(&refused)),
            }
        }
    }

    /// Retains the file as well, on a thread that may wait.
    ///
    /// # Errors
    /// [`Status::Stale`] if it is gone.
    pub fn and_retain(
        mut self,
        (fs, cx): (&dyn FileSystem, Context<'_>),
        file: &Handle,
    ) -> Result<Self> {
        self.retained = retain_if_possible(fs, cx, file)?;
        Ok(self)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(owner) = &self.owner {
            self.locks.close(self.key, owner);
        }
    }
}

impl Caller {
    /// The caller's key in the table of locks.
    pub fn client_key(&self) -> ClientKey {
        ClientKey { protocol: self.service.protocol(), id: self.number }
    }

    /// One of the caller's owners there; `None` if that is too long.
    pub fn owner(&self, id: &[u8]) -> Option<Owner> {
        Owner::new(self.client_key(), id).map(|owner| owner.at(self.peer.ip()))
    }
}

impl Core {
    /// Opens a file for reading or, with `write`, for writing, denying nothing to others. Share
    /// modes of other opens apply; conflicting delegations are recalled.
    ///
    /// # Errors
    /// [`Status::InUse`] if another client's open or lock is in the way, or clients may reclaim one
    /// for too long; [`Status::Busy`] if a delegation is, or there is no room for more.
    pub async fn open(&self, who: &Caller, key: FileKey, write: bool) -> Result<Opened> {
        self.enter(who, OpenRequest::new(who, key, write)?).await
    }

    /// As [`Core::open`] for writing, of a file that the caller has just made.
    ///
    /// # Errors
    /// The same.
    pub(super) async fn open_made(&self, who: &Caller, key: FileKey) -> Result<Opened> {
        self.enter(who, OpenRequest { is_new: true, ..OpenRequest::new(who, key, true)? }).await
    }

    async fn enter(&self, who: &Caller, wanted: OpenRequest) -> Result<Opened> {
        let locks = &self.files.locks;
        let until = Deadline::after(locks.recall_patience());
        let grace = grace::patience(locks);
        loop {
            match wanted.attempt(locks, who) {
                Err(Refused::Recalling) if !until.passed() => {
                    recall::released(locks, Some(wanted.key), until).await;
                }
                Err(Refused::Grace) if grace::ended(locks, grace).await => {}
                done => return done.map_err(|refused| status(&refused)),
            }
        }
    }

    /// As [`Core::open`], and retains the file: it is read and written to the end although its name
    /// is removed, or given to another file, meanwhile.
    ///
    /// # Errors
    /// The same; [`Status::Stale`] if it is gone.
    pub(super) async fn open_retained(
        &self,
        who: &Caller,
        node: &Node,
        write: bool,
    ) -> Result<Opened> {
        let retained = self.retain(who, node).await?;
        let mut opened = self.open(who, node.key(), write).await?;
        opened.retained = retained;
        Ok(opened)
    }

    /// As [`Core::open_made`], and retains the file.
    ///
    /// # Errors
    /// As of [`Core::open_retained`].
    pub(super) async fn open_made_retained(&self, who: &Caller, node: &Node) -> Result<Opened> {
        let retained = self.retain(who, node).await?;
        let mut opened = self.open_made(who, node.key()).await?;
        opened.retained = retained;
        Ok(opened)
    }

    async fn retain(&self, who: &Caller, node: &Node) -> Result<Option<Retained>> {
        let (fs, file) = (Arc::clone(&node.reached.share.fs), node.handle);
        let retain = move |cx: Context<'_>| retain_if_possible(&*fs, cx, &file);
        self.look(who, &node.reached.cred, retain).await
    }
}
