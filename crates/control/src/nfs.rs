//! What the API needs of NFS's state: the clients, their opens and locks, and a way to expire a
//! client that will not return.

use base::limits::API_STATE_ROWS_MAX;
use serde::{Deserialize, Serialize};

/// The state that NFS keeps of its clients. Calls look through tables and may take a while.
pub trait NfsState: Send + Sync {
    /// Clients, at most as many as the API shows.
    fn clients(&self) -> Listing<NfsClient>;
    /// What is held open, by one client or by all; `None` if there is no such client.
    fn opens(&self, client: Option<&str>) -> Option<Listing<NfsOpen>>;
    /// Locks that are held or waited for, by one client or by all; `None` as in [`Self::opens`].
    fn locks(&self, client: Option<&str>) -> Option<Listing<NfsLock>>;
    /// Expires a client and releases its state, on behalf of the user `by`; returns the client.
    /// `None` as in [`Self::opens`].
    fn expire(&self, client: &str, by: &str) -> Option<NfsClient>;
}

/// A list that may be cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listing<T> {
    /// What is shown.
    pub rows: Vec<T>,
    /// Whether there is more than is shown.
    pub more: bool,
}

impl<T> Listing<T> {
    /// As many rows as the API shows.
    pub fn cut(mut rows: Vec<T>) -> Self {
        let more = rows.len() > API_STATE_ROWS_MAX;
        rows.truncate(API_STATE_ROWS_MAX);
        Self { rows, more }
    }
}

/// A client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NfsClient {
    /// Names it in the API, as long as it is there: the protocol and its number.
    pub id: String,
    /// `nfs4`, `nlm`.
    pub protocol: String,
    /// `4.0`, `4.1`, `4.2`; `3` for those of NLM.
    pub version: String,
    /// Its addresses, the latest first.
    pub addresses: Vec<String>,
    /// The latest address with the name that its machine reports.
    pub label: String,
    /// What it calls itself, made safe to show.
    pub name: String,
    /// The user that it authenticates as: name or number.
    pub principal: String,
    /// `active`, or `courtesy` once its lease has expired: its state is retained until another
    /// client needs it.
    pub state: String,
    /// Seconds since its last request; `null` for those of NLM, which need not send any.
    pub silent_s: Option<f64>,
    /// Sessions (4.1 and later).
    pub sessions: u64,
    /// Opens.
    pub opens: u64,
    /// Byte-range locks.
    pub locks: u64,
    /// Requests that wait for a lock.
    pub waiting: u64,
    /// Delegations.
    pub delegations: u64,
}

/// A file as locks know it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NfsFile {
    /// Its path, or its number where no path is known.
    pub file: String,
    /// The share, if it is in one.
    pub share: Option<String>,
}

/// An open, or a delegation, which permits opens without a request to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NfsOpen {
    /// The client's id.
    pub client: String,
    /// As in [`NfsClient::protocol`].
    pub protocol: String,
    /// The client, for people.
    pub label: String,
    /// The file.
    #[serde(flatten)]
    pub file: NfsFile,
    /// `open`, `delegation`, or `recall`: a delegation that was recalled.
    pub kind: String,
    /// What it is for: `read`, `write`, `both`, `none`.
    pub access: String,
    /// What others may not, in the same words.
    pub deny: String,
    /// The owner's own bytes, made safe to show.
    pub owner: String,
}

/// A byte-range lock, held or waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NfsLock {
    /// The client's id.
    pub client: String,
    /// As in [`NfsClient::protocol`].
    pub protocol: String,
    /// The client, for people.
    pub label: String,
    /// The file.
    #[serde(flatten)]
    pub file: NfsFile,
    /// `read` or `write`.
    pub kind: String,
    /// First byte.
    pub offset: u64,
    /// Bytes; `null`: to the end of the file, however it grows.
    pub length: Option<u64>,
    /// Whether it is waited for.
    pub waiting: bool,
    /// The owner's own bytes, made safe to show.
    pub owner: String,
}
