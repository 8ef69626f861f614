//! The record of a takeover, in etcd with its resource: from which head, why, and how long each
//! phase took.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a resource has another owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It had no owner before.
    Start,
    /// A command: takeover or failback.
    Command,
    /// The former owner drains.
    Drain,
    /// The lease of the former owner is over.
    HeadLost,
    /// The server of the resource ended or failed at the former owner.
    ServerEnded,
    /// Clients did not reach the former owner, which had its lease.
    Unreachable,
    /// One that this version does not know, or an owner that recorded none.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Cause {
    /// Names and meanings.
    pub const CHOICES: &'static [(&'static str, &'static str)] = &[
        ("start", "the resource had no owner before"),
        ("command", "takeover or failback was requested"),
        ("drain", "the former owner drains"),
        ("head_lost", "the lease of the former owner is over"),
        ("server_ended", "the server of the resource ended or failed"),
        ("unreachable", "the link of the address at the former owner was cut"),
        ("unknown", "the former owner recorded no cause"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Command => "command",
            Self::Drain => "drain",
            Self::HeadLost => "head_lost",
            Self::ServerEnded => "server_ended",
            Self::Unreachable => "unreachable",
            Self::Unknown => "unknown",
        }
    }

    /// As a part of a sentence.
    pub fn sentence(self) -> &'static str {
        let found = Self::CHOICES.iter().find(|(name, _)| *name == self.name());
        found.map_or("", |(_, sentence)| sentence)
    }
}

/// How long each phase took, in milliseconds, as the new owner has measured it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// Planned only: from when the new owner read of it until the former owner had released it:
    /// its connections were drained, and its state written.
    pub hand_over: u64,
    /// From when it had no owner until it was claimed.
    pub claim: u64,
    /// Fences, and the lock on the state directory.
    pub lock: u64,
    /// Start of the server: its state is read, and its services listen.
    pub start: u64,
    /// The address is set and announced.
    pub address: u64,
}

impl Phases {
    /// All of it.
    pub fn total(&self) -> u64 {
        let Self { hand_over, claim, lock, start, address } = self;
        [hand_over, claim, lock, start, address].into_iter().fold(0, |a, b| a.saturating_add(*b))
    }

    /// With their names, in order.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("hand-over", self.hand_over),
            ("claim", self.claim),
            ("fence and lock", self.lock),
            ("start", self.start),
            ("address", self.address),
        ]
    }
}

/// A takeover.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takeover {
    /// The former owner; empty without one.
    #[serde(default)]
    pub from: String,
    /// The new owner.
    pub to: String,
    /// Why.
    #[serde(default)]
    pub cause: Cause,
    /// When the resource was served again, in seconds since the epoch; 0 until then.
    #[serde(default)]
    pub at: u64,
    /// Its phases, once it is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// The client of CephFS by which the owner has the resource, until it has the lock that of the
    /// former owner: evicted if its head is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cephfs_client: Option<u64>,
}

impl fmt::Display for Takeover {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, cause, phases, .. } = self;
        match from.as_str() {
            "" => write!(out, "served by {to} ({})", cause.sentence())?,
            from => write!(out, "taken over by {to} from {from} ({})", cause.sentence())?,
        }
        let Some(phases) = phases else { return write!(out, "; it is not served yet") };
        write!(out, " in {} ms", phases.total())?;
        for (n, (name, ms)) in phases.named().into_iter().enumerate() {
            write!(out, "{} {name} {ms} ms", if n == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
