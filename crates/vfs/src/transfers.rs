//! The record of a finished file transfer, for the transfer log. Protocols that transfer files pass
//! it to a [`Log`]; where and in which form it is stored is not known to them.

use core::net::IpAddr;
use std::borrow::Cow;
use std::sync::Arc;

use crate::identity::Person;

pub use base::protocol::Scheme;

/// Which way the data went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the client.
    Download,
    /// From the client.
    Upload,
}

impl Direction {
    /// All, by name.
    pub const ALL: [Self; 2] = [Self::Download, Self::Upload];

    /// Its name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}

/// What protects the data in transit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Security {
    /// `TLSv1.2`, `TLSv1.3`, `SSH-2.0`.
    pub version: &'static str,
    /// The cipher suite of TLS, or the cipher of SSH, by their own names.
    pub cipher: &'static str,
}

/// How a transfer has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All that was asked for was moved; what was uploaded is on disk under its name.
    Complete,
    /// The client has closed a file of which it had read a part.
    Partial,
    /// The connection ended, or the client aborted the transfer.
    Cut,
    /// It had begun, and the server or the disk failed.
    Failed,
    /// It did not begin: the share, the file system or the protocol's rules refuse it.
    Refused,
}

impl Outcome {
    /// All, by name.
    pub const ALL: [Self; 5] =
        [Self::Complete, Self::Partial, Self::Cut, Self::Failed, Self::Refused];

    /// Its name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Cut => "cut",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// A transfer that has ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// When it began, in nanoseconds since the Unix epoch.
    pub begun_ns: u64,
    /// How long it took, in nanoseconds.
    pub took_ns: u64,
    /// How it was asked for: one of [`Scheme::LOGGED`].
    pub protocol: Scheme,
    /// Which way.
    pub direction: Direction,
    /// The file as the client named it, from the list of shares on: `/SHARE/dir/file`. Any bytes.
    pub path: Vec<u8>,
    /// The user.
    pub person: Arc<Person>,
    /// The address of the client.
    pub client: IpAddr,
    /// What protects the data, as far as it is known.
    pub security: Option<Security>,
    /// Where in the file it began.
    pub offset: u64,
    /// Bytes of the file that were moved.
    pub bytes: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Why, for people; empty if it is complete.
    pub why: Cow<'static, str>,
}

/// Receives finished transfers. Called on threads that serve, so it never waits.
pub trait Log: Send + Sync {
    /// Whether transfers are recorded now.
    fn is_on(&self) -> bool;

    /// A transfer has ended. Without space for it, it is dropped and counted.
    fn ended(&self, transfer: Ended);
}

/// A log that records nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLog;

impl Log for NoLog {
    fn is_on(&self) -> bool {
        false
    }

    fn ended(&self, _transfer: Ended) {}
}
