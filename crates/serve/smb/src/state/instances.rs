//! Opens of applications that may move to another client (AppInstanceId, MS-SMB2 §3.3.5.9.13): the
//! application opens there what it has open here, which is closed for that. Pure.
//!
//! An entry lives as long as its open: what limits opens limits these.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use vfs::locks::FileKey;

use super::leases::ClientGuid;
use super::replays::Created;

/// AppInstanceVersionHigh and AppInstanceVersionLow.
pub(crate) type AppVersion = (u64, u64);

/// What an application has open: its AppInstanceId, the share and the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Opened {
    /// AppInstanceId.
    pub instance: [u8; 16],
    /// The share.
    pub share: u16,
    /// The file.
    pub file: FileKey,
}

#[derive(Debug)]
struct One {
    number: u64,
    client: ClientGuid,
    version: Option<AppVersion>,
    created: Created,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    of: HashMap<Opened, Vec<One>>,
    /// Opens that their sessions are to close.
    closing: BTreeSet<(u64, u64)>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Instances {
    inner: Mutex<Inner>,
    /// How many opens sessions are to close: looked at in each turn, without a lock.
    closing: AtomicUsize,
    /// One of them has ended, or is elsewhere.
    changed: Notify,
}

/// An open of an application is known as long as this lives.
#[derive(Debug)]
pub(crate) struct InstanceOpen {
    all: Arc<Instances>,
    opened: Opened,
    number: u64,
}

/// An application of this version is elsewhere, and may not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IsOutdated;

impl Instances {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another open of this client, which is [`Created::Pending`] still.
    pub fn add(
        self: &Arc<Self>,
        opened: Opened,
        (client, version): (ClientGuid, Option<AppVersion>),
    ) -> InstanceOpen {
        let mut inner = self.inner();
        let number = inner.next;
        inner.next = number.wrapping_add(1);
        let one = One { number, client, version, created: Created::Pending };
        inner.of.entry(opened).or_default().push(one);
        InstanceOpen { all: Arc::clone(self), opened, number }
    }

    /// Where the opens are that other clients than this have of it.
    ///
    /// # Errors
    /// One of them has a version that is not below that of the request.
    pub fn others(
        &self,
        opened: &Opened,
        client: ClientGuid,
        version: Option<AppVersion>,
    ) -> Result<Vec<Created>, IsOutdated> {
        let inner = self.inner();
        let all = inner.of.get(opened).map_or(&[][..], Vec::as_slice);
        let others = all.iter().filter(|one| one.client != client);
        let found = |one: &One| match one.version {
            Some(held) if version.is_none_or(|version| held >= version) => Err(IsOutdated),
            _ => Ok(one.created),
        };
        others.map(found).collect()
    }

    /// Has a session close an open of this number, if it is there still.
    pub fn close(&self, opened: &Opened, (session, volatile): (u64, u64)) {
        let mut inner = self.inner();
        let is_it = |one: &One| one.created == Created::Open(session, volatile);
        if !inner.of.get(opened).is_some_and(|all| all.iter().any(is_it)) {
            return;
        }
        inner.closing.insert((session, volatile));
        self.closing.store(inner.closing.len(), Ordering::Release);
    }

    /// Whether there is something that a session is to close.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire) > 0
    }

    /// Takes the numbers of the opens that this session is to close.
    pub fn take_closing(&self, session: u64) -> Vec<u64> {
        let mut inner = self.inner();
        let all = inner.closing.range((session, 0)..=(session, u64::MAX)).copied();
        let all: Vec<_> = all.collect();
        for one in &all {
            inner.closing.remove(one);
        }
        self.closing.store(inner.closing.len(), Ordering::Release);
        all.into_iter().map(|(_, volatile)| volatile).collect()
    }

    /// Notifies of what is closed, or is elsewhere.
    pub fn changed(&self) -> &Notify {
        &self.changed
    }
}

impl InstanceOpen {
    /// It is here from now on.
    pub fn set(&self, created: Created) {
        self.handle().set(created);
    }

    /// It, for what outlives it.
    pub fn handle(&self) -> InstanceHandle {
        InstanceHandle { all: Arc::clone(&self.all), opened: self.opened, number: self.number }
    }
}

/// What is known of an open, which may have ended.
#[derive(Debug)]
pub(crate) struct InstanceHandle {
    all: Arc<Instances>,
    opened: Opened,
    number: u64,
}

impl InstanceHandle {
    /// It is here from now on, if it is there still.
    pub fn set(&self, created: Created) {
        let mut inner = self.all.inner();
        let all = inner.of.get_mut(&self.opened);
        let one = all.and_then(|all| all.iter_mut().find(|one| one.number == self.number));
        let before = one.map(|one| std::mem::replace(&mut one.created, created));
        self.all.forget(&mut inner, before);
        drop(inner);
        self.all.changed.notify_waiters();
    }
}

impl Instances {
    /// An open is not there any more.
    fn forget(&self, inner: &mut Inner, created: Option<Created>) {
        if let Some(Created::Open(session, volatile)) = created
            && inner.closing.remove(&(session, volatile))
        {
            self.closing.store(inner.closing.len(), Ordering::Release);
        }
    }
}

impl Drop for InstanceOpen {
    fn drop(&mut self) {
        let mut inner = self.all.inner();
        let mut created = None;
        if let Some(all) = inner.of.get_mut(&self.opened) {
            created = all.iter().find(|one| one.number == self.number).map(|one| one.created);
            all.retain(|one| one.number != self.number);
            if all.is_empty() {
                inner.of.remove(&self.opened);
            }
        }
        self.all.forget(&mut inner, created);
        drop(inner);
        self.all.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
