//! What the API needs of the rest of the program: the status, and an engine for statistics.

use std::time::Duration;

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
    fn engine(&self) -> &dyn Engine;
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

/// A JSON text that goes out as it is: only the engine knows the shape of its answers.
pub type JsonText = String;

/// Statistics: what there is, stored, and live. Calls may block and run on threads for that.
pub trait Engine: Send + Sync {
    /// What can be asked, as a JSON list.
    fn statistics(&self) -> JsonText;
    /// One data object.
    ///
    /// # Errors
    /// [`AskError::Wrong`] if the caller asked for what is not there.
    fn data(&self, ask: &Ask) -> Result<JsonText, AskError>;
    /// Each second of these statistics from now on.
    ///
    /// # Errors
    /// [`AskError::Wrong`] for a statistic that does not exist.
    fn subscribe(&self, stats: &[String]) -> Result<Box<dyn Feed>, AskError>;
    /// The state of the flight recorder, as a JSON object.
    fn recorder(&self) -> JsonText;
    /// Switches the aggregation of breakdowns on or off.
    fn set_collect(&self, on: bool);
}

/// A question for stored statistics. Times are seconds since the epoch; negative ones count back
/// from the end of the newest complete second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The statistic id.
    pub stat: String,
    /// First second; by default a minute before `to`.
    pub from: Option<i64>,
    /// First second after the interval; by default the newest complete second's end.
    pub to: Option<i64>,
    /// Seconds per point.
    pub step: i64,
    /// Rows at most.
    pub top: usize,
    /// Where the answer must come from, if that can answer; by default the store where it can.
    pub source: Option<AskSource>,
}

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskSource {
    /// The statistics of each second.
    Store,
    /// The flight recorder.
    Recorder,
}

/// A live subscription.
pub trait Feed: Send {
    /// Waits up to `wait` for the next second.
    fn next(&mut self, wait: Duration) -> Heard;
}

/// What a [`Feed`] has heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Data objects of one second, one for each statistic.
    Second(Vec<JsonText>),
    /// This many seconds were lost because the listener was slow.
    Lost(u64),
    /// Nothing yet.
    Nothing,
    /// There will be no more.
    End,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The caller is at fault.
    #[error("{failed}")]
    Wrong {
        /// What is wrong, one sentence.
        failed: String,
        /// What to ask instead.
        hint: String,
    },
    /// The store is at fault.
    #[error("{0}")]
    Failed(String),
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
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
    /// With whose rights files are opened.
    pub acting_as: ActingAs,
    /// What is served.
    pub shares: Vec<ShareStatus>,
    /// Who serves it.
    pub services: Vec<ServiceStatus>,
    /// Limits and how near they are.
    pub budgets: Vec<Budget>,
}

/// With whose rights files are opened.
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
    /// Who may use it: rules `CLIENT(OPTIONS)` in their order; none: everyone, everything.
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

/// One budget of the request path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Its statistic.
    pub id: String,
    /// What it counts.
    pub sentence: String,
    /// In use now.
    pub used: u64,
    /// At most.
    pub limit: u64,
}
