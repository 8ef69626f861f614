//! Requests that a client may send again over another connection, because it does not know whether
//! the first one was carried out (MS-SMB2 §3.3.5.2.10, §3.3.5.9.10): CREATEs by their CreateGuid,
//! LOCKs by their LockSequence, others by the ChannelSequence of their open. Pure.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::limits::SMB_LOST_CREATES_MAX;
use vfs::locks::FileKey;
use wire::smb::durable::CreateGuid;

use super::leases::ClientGuid;

/// LockSequenceIndex values of one open that are remembered, from 1 on (MS-SMB2 §3.3.5.14).
const LOCK_SEQUENCES: usize = 64;

/// What a CREATE has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Created {
    /// It is carried out.
    Pending,
    /// An open of this session, with this number there.
    Open(u64, u64),
    /// A durable handle that waits for its client.
    Parked(u64),
}

/// ClientGuid and CreateGuid.
pub(crate) type ReplayKey = (ClientGuid, CreateGuid);

/// CREATEs with a number, as long as they are carried out or their opens are there.
#[derive(Debug, Default)]
pub(crate) struct Replays {
    of: Mutex<HashMap<ReplayKey, Created>>,
}

/// One of them, as long as this lives.
#[derive(Debug)]
pub(crate) struct Numbered {
    all: Arc<Replays>,
    /// By what it is known.
    pub key: ReplayKey,
}

impl Replays {
    fn of(&self) -> MutexGuard<'_, HashMap<ReplayKey, Created>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another CREATE.
    ///
    /// # Errors
    /// What an earlier one of this number has come to.
    pub fn begin(
        self: &Arc<Self>,
        client: ClientGuid,
        guid: CreateGuid,
    ) -> Result<Numbered, Created> {
        let key = (client, guid);
        match self.of().entry(key) {
            Entry::Occupied(there) => Err(*there.get()),
            Entry::Vacant(place) => {
                place.insert(Created::Pending);
                Ok(Numbered { all: Arc::clone(self), key })
            }
        }
    }
}

impl Numbered {
    /// What it has come to.
    pub fn set(&self, created: Created) {
        self.all.of().insert(self.key, created);
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        self.all.of().remove(&self.key);
    }
}

/// CREATEs of a session that waited for a lease of a file when their connection was lost, while the
/// session has others.
#[derive(Debug, Default)]
pub(crate) struct LostCreates(RefCell<VecDeque<(Numbered, FileKey)>>);

impl LostCreates {
    /// Another one. The oldest of too many is forgotten: it is a new one when it is sent again.
    pub fn add(&self, number: Numbered, file: FileKey) {
        let mut lost = self.0.borrow_mut();
        if lost.len() >= SMB_LOST_CREATES_MAX {
            lost.pop_front();
        }
        lost.push_back((number, file));
    }

    /// The number of one that is sent again, if its file is not waited for any more.
    pub fn take(&self, key: ReplayKey, waits: impl Fn(FileKey) -> bool) -> Option<Numbered> {
        let mut lost = self.0.borrow_mut();
        let at = lost.iter().position(|(number, _)| number.key == key)?;
        let is_free = lost.get(at).is_some_and(|(_, file)| !waits(*file));
        if is_free { lost.remove(at).map(|(number, _)| number) } else { None }
    }
}

/// The ChannelSequence of an open, and its requests that are carried out.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    channel: Cell<u16>,
    /// Requests of that number.
    requests: Cell<u32>,
    /// Requests of lower ones.
    earlier: Cell<u32>,
}

/// A request is refused: a client may send it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotAvailable;

impl Sequence {
    /// That of an open that is made by a request of this number.
    pub fn new(channel: u16) -> Self {
        Self { channel: Cell::new(channel), ..Self::default() }
    }

    /// Whether its requests are of this number.
    pub const fn is(&self, channel: u16) -> bool {
        self.channel.get() == channel
    }

    /// Whether a request may be carried out that is sent again, or changes something. Then it
    /// counts, unless its number is an old one, until [`Sequence::end`].
    ///
    /// # Errors
    /// An old number, or the first one is still carried out.
    pub fn begin(&self, channel: u16, is_again: bool, changes: bool) -> Result<bool, NotAvailable> {
        let ahead = channel.wrapping_sub(self.channel.get());
        let is_old = ahead > i16::MAX as u16;
        if is_old || (is_again && self.earlier.get() > 0) {
            return if changes { Err(NotAvailable) } else { Ok(false) };
        }
        if ahead > 0 {
            self.earlier.set(self.earlier.get().saturating_add(self.requests.get()));
            self.requests.set(0);
            self.channel.set(channel);
        }
        self.requests.set(self.requests.get().saturating_add(1));
        Ok(true)
    }

    /// A request of this number has ended.
    pub fn end(&self, channel: u16) {
        let of = if self.is(channel) { &self.requests } else { &self.earlier };
        of.set(of.get().saturating_sub(1));
    }
}

/// LockSequenceNumbers of the last LOCKs of an open that have succeeded, by LockSequenceIndex
/// (Open.LockSequenceArray, MS-SMB2 §3.3.5.14).
#[derive(Debug, Default)]
pub(crate) struct LockSequences {
    /// Of the indexes from 1 on, up to the highest one that was used.
    of: RefCell<Vec<Option<u8>>>,
}

impl LockSequences {
    /// The place of an index that is remembered.
    fn place(index: u32) -> Option<usize> {
        let place = (index as usize).checked_sub(1)?;
        (place < LOCK_SEQUENCES).then_some(place)
    }

    /// Whether the last LOCK of this index has succeeded and had this number: then this is the same
    /// one again. What is known of another one is forgotten.
    pub fn is_done(&self, (index, number): (u32, u8)) -> bool {
        let Some(place) = Self::place(index) else { return false };
        let mut of = self.of.borrow_mut();
        let Some(last) = of.get_mut(place) else { return false };
        if *last == Some(number) {
            return true;
        }
        *last = None;
        false
    }

    /// Numbers of the last LOCKs, from index 1 on.
    pub fn numbers(&self) -> Vec<Option<u8>> {
        self.of.borrow().clone()
    }

    /// Those of an open that is continued.
    pub fn of(mut numbers: Vec<Option<u8>>) -> Self {
        numbers.truncate(LOCK_SEQUENCES);
        Self { of: RefCell::new(numbers) }
    }

    /// A LOCK has not succeeded after all.
    pub fn forget(&self, (index, _): (u32, u8)) {
        let Some(place) = Self::place(index) else { return };
        if let Some(last) = self.of.borrow_mut().get_mut(place) {
            *last = None;
        }
    }

    /// A LOCK has succeeded.
    pub fn set_done(&self, (index, number): (u32, u8)) {
        let Some(place) = Self::place(index) else { return };
        let mut of = self.of.borrow_mut();
        if of.len() <= place {
            of.resize(place + 1, None);
        }
        if let Some(last) = of.get_mut(place) {
            *last = Some(number);
        }
    }
}

#[cfg(test)]
mod tests;
