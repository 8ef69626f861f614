//! Requests that were refused, or entries that were removed for others, because a limit of a table
//! was reached: counted for each table, for limits of which no statistic shows a level.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A limit that requests can reach.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Limit {
            $($(#[$doc])* $name,)*
        }

        /// Their names in statistics, in order.
        const NAMES: &[&str] = &[$($text,)*];
    };
}

limits! {
    /// Sign-ins to services for data that wait.
    SignIns = "sign-ins waiting",
    /// Sign-ins to the administration that wait.
    AdministratorSignIns = "administrator sign-ins waiting",
    /// Queries of statistics that run or wait.
    Queries = "queries waiting",
    /// Live streams.
    Streams = "live streams",
    /// Bytes of state of NFSv4 clients.
    Nfs4State = "NFSv4 state bytes",
    /// Connections for callbacks of NFSv4.0.
    Dials = "NFSv4.0 callback connections",
    /// Replies to `*_MSG` calls of NLM.
    NlmMessages = "NLM messages",
    /// Connections over RDMA.
    RdmaConnections = "RDMA connections",
    /// Registrations of persistent reservations.
    Registrations = "LUN registrations",
    /// Writes of initiators without a session that no flush has covered.
    Unsettled = "LUN unflushed writes",
    /// Byte-range locks of an open of SMB.
    SmbRanges = "SMB locks of an open",
    /// Opens of SMB that would have waited for their client.
    SmbParked = "SMB durable handles",
    /// Listings of a connection of SMB.
    SmbListings = "SMB listings",
    /// Memory of runs of dsync on shares.
    DsyncMemory = "dsync memory",
    /// Signed-in users of HTTP.
    HttpSessions = "HTTP sessions",
}

static COUNTS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

impl Limit {
    /// Counts a request that was refused, or an entry that was removed for another.
    pub fn count(self) {
        if let Some(count) = COUNTS.get(self as usize) {
            count.fetch_add(1, Relaxed);
        }
    }
}

/// Each limit by its name, with its count since the start of the process.
pub fn counts() -> impl Iterator<Item = (&'static str, u64)> {
    NAMES.iter().zip(&COUNTS).map(|(name, count)| (*name, count.load(Relaxed)))
}

#[cfg(test)]
mod tests;
