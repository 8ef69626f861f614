//! What the API needs of the rest of the program.

use std::sync::Arc;

use analytics::query::Engine;
use serde::{Deserialize, Serialize};

use crate::dav::DavState;
use crate::lab::Lab;
use crate::nfs::NfsState;
use crate::transfers::Transfers;

/// The running server as the API sees it.
pub trait Appliance: Send + Sync + 'static {
    /// A snapshot for the status page. Must not block for long: it reads counters.
    fn status(&self) -> Status;
    /// Where statistics come from.
    fn engine(&self) -> &Arc<Engine>;
    /// The state of NFS clients.
    fn nfs(&self) -> &dyn NfsState;
    /// The locks of WebDAV clients.
    fn dav(&self) -> &dyn DavState;
    /// Runs of the lab.
    fn lab(&self) -> &dyn Lab;
    /// The log of transfers.
    fn transfers(&self) -> &Transfers;
    /// Whether the host of a request, as its `Host` has it, is this one.
    fn is_own_host(&self, host: &str) -> bool;
}

/// The status page, as `docs/protocols/api.md` has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the appliance: the host's.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// When the server started, seconds since the epoch.
    pub started: u64,
    /// Its time now, seconds since the epoch.
    pub now: u64,
    /// Its process.
    pub pid: u32,
    /// Whether `problems` is empty.
    pub healthy: bool,
    /// Current problems, one sentence each.
    pub problems: Vec<String>,
    /// Number of problems of the machine, of `/maintenance/problems`.
    #[serde(default)]
    pub machine_problems: usize,
    /// Identity used for file access.
    pub acting_as: ActingAs,
    /// Served shares.
    pub shares: Vec<ShareStatus>,
    /// The services.
    pub services: Vec<ServiceStatus>,
    /// Limits and how near they are.
    pub budgets: Vec<Budget>,
}

/// Identity used for file access.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActingAs {
    /// Whether callers' ids decide.
    pub privileged: bool,
    /// The user that the server runs as.
    pub user: String,
    /// One sentence for people.
    pub note: String,
}

/// One share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShareStatus {
    /// Its name.
    pub name: String,
    /// The directory behind it.
    pub dir: String,
    /// Whether it refuses changes.
    pub read_only: bool,
    /// Size of its file system, bytes.
    pub total_bytes: u64,
    /// What users may still write, bytes.
    pub available_bytes: u64,
    /// The clients that may use it: rules `CLIENT(OPTIONS)` in their order; none: all clients, full
    /// access.
    #[serde(default)]
    pub exports: Vec<String>,
    /// How to reach it.
    pub access: Vec<Access>,
}

/// One way to reach a share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Access {
    /// `nfs3`, …
    pub protocol: String,
    /// For our own tools and libnfs.
    pub url: String,
    /// A command to copy.
    pub mount: String,
    /// What to know about it.
    pub note: Option<String>,
    /// The UNC path, `\\HOST\SHARE`, of a protocol that Windows mounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unc: Option<String>,
}

/// One service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// `nfs`, …
    pub name: String,
    /// `online`, `offline`, `maintenance`.
    pub state: String,
    /// Where it listens.
    pub listen: String,
    /// Why it is not online.
    pub reason: Option<String>,
}

pub use analytics::query::Budget;
