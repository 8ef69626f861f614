//! Sessions by their identity (RFC 7143 §6.3.5): a login with the name and ISID of an existing
//! session replaces it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::clock::wall_ns;
use base::limits::{ISCSI_SESSIONS_CLIENT_MAX, ISCSI_SESSIONS_MAX};
use base::peer::network;
use tokio::sync::watch;
use vfs::lun::reservations::Port;

/// Why a session is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// It is not.
    #[default]
    Stay,
    /// Another login has taken its place: at once.
    Replaced,
    /// An administrator ends it: the initiator is requested to log out.
    Logout,
}

/// A session, for people.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its number here (TSIH).
    pub tsih: u16,
    /// The initiator port.
    pub port: Port,
    /// Name of the target; none for discovery.
    pub target: Option<String>,
    /// From where.
    pub peer: SocketAddr,
    /// Since when, in nanoseconds since the epoch.
    pub since_ns: u64,
}

struct Entry {
    row: Row,
    order: watch::Sender<Order>,
    /// Closed when the session has ended.
    ended: watch::Receiver<()>,
}

/// All sessions.
#[derive(Default)]
pub struct Sessions {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<u16, Entry>,
    last: u16,
}

impl Inner {
    /// The session of this name at a target; those for discovery have none.
    fn find(&self, port: &Port, target: Option<&str>) -> Option<&Entry> {
        self.entries.values().find(|entry| {
            target.is_some() && entry.row.port == *port && entry.row.target.as_deref() == target
        })
    }
}

/// A place among the sessions; given back when dropped.
pub struct SessionPermit {
    sessions: Arc<Sessions>,
    /// The session's number.
    pub tsih: u16,
    /// Orders to it.
    pub order: watch::Receiver<Order>,
    _ended: watch::Sender<()>,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRefused {
    /// There are as many sessions, of all addresses or of this one, as there may be.
    Full,
    /// There is a session with this name at this target, which is to be replaced first.
    InUse,
}

impl Sessions {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing under this lock panics half way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders the session that this login replaces, if there is one, to end; returns what closes
    /// when it has.
    pub fn replace(&self, port: &Port, target: Option<&str>) -> Option<watch::Receiver<()>> {
        let inner = self.inner();
        let entry = inner.find(port, target)?;
        entry.order.send_replace(Order::Replaced);
        Some(entry.ended.clone())
    }

    /// Takes a place.
    ///
    /// # Errors
    /// [`SessionRefused`].
    pub fn enter(
        self: &Arc<Self>,
        port: Port,
        target: Option<String>,
        peer: SocketAddr,
    ) -> Result<SessionPermit, SessionRefused> {
        let mut inner = self.inner();
        if inner.find(&port, target.as_deref()).is_some() {
            return Err(SessionRefused::InUse);
        }
        let from = network(peer.ip());
        let is_of_address = |entry: &&Entry| network(entry.row.peer.ip()) == from;
        if inner.entries.len() >= ISCSI_SESSIONS_MAX
            || inner.entries.values().filter(is_of_address).count() >= ISCSI_SESSIONS_CLIENT_MAX
        {
            return Err(SessionRefused::Full);
        }
        // 0 stands for a session that is not there yet.
        loop {
            inner.last = inner.last.wrapping_add(1).max(1);
            if !inner.entries.contains_key(&inner.last) {
                break;
            }
        }
        let tsih = inner.last;
        let (order, orders) = watch::channel(Order::Stay);
        let (ends, ended) = watch::channel(());
        let row = Row { tsih, port, target, peer, since_ns: wall_ns() };
        inner.entries.insert(tsih, Entry { row, order, ended });
        Ok(SessionPermit { sessions: Arc::clone(self), tsih, order: orders, _ended: ends })
    }

    /// Orders all sessions of a target but one.
    pub fn order_all(&self, target: &str, but: u16, order: Order) {
        for (tsih, entry) in &self.inner().entries {
            if *tsih != but && entry.row.target.as_deref() == Some(target) {
                entry.order.send_replace(order);
            }
        }
    }

    /// All of them.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<_> = self.inner().entries.values().map(|e| e.row.clone()).collect();
        rows.sort_by_key(|row| row.tsih);
        rows
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.inner().entries.len()
    }

    /// Asks a session to end; false if there is none with this number.
    pub fn log_out(&self, tsih: u16) -> bool {
        let inner = self.inner();
        let Some(entry) = inner.entries.get(&tsih) else { return false };
        entry.order.send_replace(Order::Logout);
        true
    }
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        self.sessions.inner().entries.remove(&self.tsih);
    }
}

#[cfg(test)]
mod tests;
