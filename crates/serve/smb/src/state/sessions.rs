//! Sessions of all connections: seen and ended from outside, and by PreviousSessionId.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::random::{Random, SystemRandom};
use tokio::sync::Notify;

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

struct One {
    row: Row,
    ended: Arc<AtomicBool>,
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
    ended: Arc<AtomicBool>,
}

impl Listed {
    /// Whether an administrator has ended it.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
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
    pub fn add(self: &Arc<Self>, row: Row, wake: &Arc<Notify>) -> Listed {
        let (id, ended) = (row.id, Arc::<AtomicBool>::default());
        let one = One { row, ended: Arc::clone(&ended), wake: Arc::clone(wake) };
        self.rows().insert(id, one);
        Listed { sessions: Arc::clone(self), id, ended }
    }

    /// Ends a session of this user, or of any; false if there is none. What it has open is closed
    /// by its connection.
    pub fn end(&self, id: u64, user: Option<&str>) -> bool {
        let rows = self.rows();
        let Some(one) = rows.get(&id) else { return false };
        if user.is_some_and(|user| one.row.user != user) {
            return false;
        }
        one.ended.store(true, Ordering::Release);
        one.wake.notify_one();
        true
    }

    /// All sessions, by number.
    pub fn rows_now(&self) -> Vec<Row> {
        self.rows().values().map(|one| one.row.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
