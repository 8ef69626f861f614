//! What is counted over all connections, and why none are taken.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Counters of RPC over RDMA. Bytes are those of messages and of their data.
#[derive(Debug, Default)]
pub struct RdmaStats {
    /// Connections now.
    pub connections: AtomicI64,
    /// Calls in flight now, over all connections: credits in use.
    pub credits_in_use: AtomicI64,
    /// Bytes that came and went by SEND.
    pub inline_bytes: AtomicU64,
    /// Bytes that were read from clients.
    pub read_bytes: AtomicU64,
    /// Bytes that were written to clients.
    pub write_bytes: AtomicU64,
    /// Messages that were refused (ERR_VERS, ERR_CHUNK).
    pub refused: AtomicU64,
    /// Connections that were refused because there is no room for them.
    pub refused_connections: AtomicU64,
    /// Connections that ended otherwise than by the client or the service.
    pub failures: AtomicU64,
    listens: AtomicBool,
    problem: Mutex<Option<String>>,
}

impl RdmaStats {
    /// Why no connections are taken, if that is so.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether connections are taken.
    pub fn is_listening(&self) -> bool {
        self.listens.load(Relaxed)
    }

    /// Why no connections are taken; `None` if they are.
    pub(super) fn set_problem(&self, problem: Option<String>) {
        self.listens.store(problem.is_none(), Relaxed);
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Why a connection could not be made although connections are taken; `None` once one was.
    pub(super) fn set_connection_problem(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// The service ends.
    pub(super) fn ended(&self) {
        self.listens.store(false, Relaxed);
    }

    pub(super) fn refuse(&self) {
        self.refused_connections.fetch_add(1, Relaxed);
    }

    pub(super) fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Relaxed);
    }
}
