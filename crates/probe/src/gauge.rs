//! The server's own levels and counters: named atomics that any room may move.
//!
//! Each is declared in `schema/server.toml` or `schema/analytics.toml` (a test holds the two
//! together) with the limit that it is shown against.

use std::sync::atomic::{AtomicU64, Ordering};

/// One level or counter.
#[derive(Debug, Default)]
pub struct Gauge {
    value: AtomicU64,
    /// 0 until its owner sets one.
    limit: AtomicU64,
}

impl Gauge {
    /// Moves it up.
    #[inline]
    pub fn add(&self, by: u64) {
        self.value.fetch_add(by, Ordering::Relaxed);
    }
    /// Moves a level down; never below zero in sum, when every `sub` follows its `add`.
    #[inline]
    pub fn sub(&self, by: u64) {
        self.value.fetch_sub(by, Ordering::Relaxed);
    }
    /// Sets a level.
    pub fn set(&self, to: u64) {
        self.value.store(to, Ordering::Relaxed);
    }
    /// What it shows.
    pub fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
    /// Says what a level is held to, where that is not the limit in `schema/`.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }
    /// The limit that its owner has set.
    pub fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit > 0)
    }
    /// Takes `by` if the level stays at or below `limit`; `false` leaves it as it was.
    pub fn try_add(&self, by: u64, limit: u64) -> bool {
        let sum = |now: u64| now.checked_add(by).filter(|sum| *sum <= limit);
        self.value.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
    }
}

macro_rules! gauges {
    ($($field:ident = $id:literal, $doc:literal;)*) => {
        /// All of them, by field on the hot side and by statistic id on the reading side.
        #[derive(Debug, Default)]
        pub struct Gauges {
            $(#[doc = $doc] pub $field: Gauge,)*
        }

        impl Gauges {
            /// Every statistic id with its gauge.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Gauge)> {
                [$(($id, &self.$field)),*].into_iter()
            }
        }
    };
}

gauges! {
    connections = "server.connections", "Connections open now.";
    refused_connections = "server.refused_connections", "Connections closed at accept, ever.";
    slow_peers = "server.slow_peers", "Connections ended because the peer was too slow, ever.";
    stalls = "server.stalls", "Times a connection was left unread because of a budget, ever.";
    requests = "server.requests", "Requests answered, ever.";
    requests_in_flight = "server.requests_in_flight", "Requests taken and not yet answered.";
    bytes = "server.bytes", "Bytes of requests and replies, ever.";
    bytes_in_flight = "server.bytes_in_flight", "Bytes of the service that buffers most now.";
    pool_queue = "server.pool_queue", "Operations waiting for a pool thread now.";
    pool_busy = "server.pool_busy", "Pool threads at work now.";
    open_files = "server.open_files", "Files in the cache of open files now.";
    retained_files = "server.retained_files", "Files that stay usable if they are removed now.";
    known_files = "server.known_files", "Entries of the table from file to path now.";
    known_handles = "server.known_handles", "Entries of the durable handle table now.";
    stale_handles = "server.stale_handles", "Handles answered with STALE, ever.";
    heap_bytes = "server.heap_bytes", "Bytes allocated and not freed now.";
    drc_entries = "server.drc_entries", "Entries of the duplicate-request cache now.";
    drc_replays = "server.drc_replays", "Replies repeated from the duplicate-request cache, ever.";
    bad_records = "server.bad_records", "Records that were no valid request, ever.";
    tls_sessions = "server.tls_sessions", "TLS sessions set up, ever.";
    tls_failures = "server.tls_failures", "Connections ended by a failure of TLS, ever.";
    panics = "server.panics", "Requests and jobs that failed by a panic, ever.";
    transfers_unlogged = "server.transfers_unlogged", "Transfers that are not in their log, ever.";
    flushes = "server.flushes", "Flushes to stable storage, ever.";
    flush_waiters = "server.flush_waiters", "Operations waiting for a flush now.";
    dropped = "analytics.dropped", "Records overwritten before they were aggregated, ever.";
    waiting = "analytics.waiting", "Records that wait to be aggregated now.";
    late = "analytics.late", "Records counted one second too late, ever.";
    folded = "analytics.folded", "Records counted as other because a table was full, ever.";
    own_cpu_ns = "analytics.cpu", "CPU time of aggregation and collection in ns, ever.";
    lost_samples = "analytics.lost_samples", "Seconds that a slow subscriber missed, ever.";
    missed_seconds = "analytics.missed_seconds", "Seconds stored without all of the cores, ever.";
}

impl Gauges {
    /// The gauge of statistic `id` (`server.connections`).
    pub fn get(&self, id: &str) -> Option<&Gauge> {
        self.iter().find(|(name, _)| *name == id).map(|(_, gauge)| gauge)
    }
}

#[cfg(test)]
mod tests;
