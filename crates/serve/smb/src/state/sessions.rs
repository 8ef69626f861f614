//! Sessions of all connections: seen and ended from outside, and by PreviousSessionId.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::random::{Random, SystemRandom};
use tokio::sync::Notify;
use wire::smb::crypto::Signer;

use super::clients::ChannelFacts;

/// A session as others see it.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its number.
    pub id: u64,
    /// The user of the session.
    pub user: String,
    /// From where.
    pub from: IpAddr,
    /// The dialect.
    pub dialect: &'static str,
    /// Whether everything of it is encrypted.
    pub encrypted: bool,
}

/// How a session was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By an administrator: everything is closed.
    Closed = 1,
    /// By its client, which has signed in again (PreviousSessionId): durable handles stay.
    Replaced = 2,
}

struct One {
    row: Row,
    facts: ChannelFacts,
    signer: Signer,
    ended: Arc<AtomicU8>,
    /// Wakes the connection of the session.
    wake: Arc<Notify>,
}

/// All sessions.
#[derive(Default)]
pub struct Sessions {
    rows: Mutex<BTreeMap<u64, One>>,
}

/// A session is listed as long as this lives.
pub struct Listed {
    sessions: Arc<Sessions>,
    id: u64,
    ended: Arc<AtomicU8>,
}

impl Listed {
    /// Whether it was ended from outside.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) != 0
    }

    /// Whether its durable handles stay.
    pub fn stays_durable(&self) -> bool {
        self.ended.load(Ordering::Acquire) != End::Closed as u8
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.sessions.rows().remove(&self.id);
    }
}

impl Sessions {
    fn rows(&self) -> MutexGuard<'_, BTreeMap<u64, One>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no session has, nor 0, which is none. It cannot be guessed.
    pub fn new_id(&self) -> u64 {
        let rows = self.rows();
        loop {
            // With the highest bit set some clients take it for a negative number.
            let id = SystemRandom.next_u64() >> 1;
            if id != 0 && !rows.contains_key(&id) {
                return id;
            }
        }
    }

    /// Lists a session; its connection is woken by `wake` when an administrator ends it.
    pub fn add(
        self: &Arc<Self>,
        (row, facts, signer): (Row, ChannelFacts, Signer),
        wake: &Arc<Notify>,
    ) -> Listed {
        let (id, ended) = (row.id, Arc::<AtomicU8>::default());
        let one = One { row, facts, signer, ended: Arc::clone(&ended), wake: Arc::clone(wake) };
        self.rows().insert(id, one);
        Listed { sessions: Arc::clone(self), id, ended }
    }

    /// Ends a session of this user, or of any; false if there is none. What it has open is closed
    /// by its connection.
    pub fn end(&self, id: u64, user: Option<&str>, how: End) -> bool {
        let rows = self.rows();
        let Some(one) = rows.get(&id) else { return false };
        if user.is_some_and(|user| one.row.user != user) {
            return false;
        }
        let _ = one.ended.fetch_update(Ordering::AcqRel, Ordering::Acquire, |before| {
            (before != End::Closed as u8).then_some(how as u8)
        });
        one.wake.notify_one();
        true
    }

    /// Wakes the connection of a session, which looks at what was asked of it from outside.
    pub fn wake(&self, id: u64) {
        if let Some(one) = self.rows().get(&id) {
            one.wake.notify_one();
        }
    }

    /// What connections of a session have in common.
    pub fn facts(&self, id: u64) -> Option<ChannelFacts> {
        self.rows().get(&id).map(|one| one.facts)
    }

    /// What signs messages of a session, also for connections that do not have it.
    pub fn signer(&self, id: u64) -> Option<Signer> {
        self.rows().get(&id).map(|one| one.signer.clone())
    }

    /// All sessions, by number.
    pub fn rows_now(&self) -> Vec<Row> {
        self.rows().values().map(|one| one.row.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
