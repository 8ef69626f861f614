//! The keys of a cluster in etcd and their values (docs/formats/heads.md).
//!
//! Members and owners hang on the lease of their head and vanish with it. The record of a resource
//! stays: it has the number that only rises.

use std::collections::BTreeMap;

use crate::limits::HEAD_NAME_MAX;
pub use crate::takeover::{Cause, Phases, Takeover};
use serde::{Deserialize, Serialize};

/// Identifies a lease in etcd.
pub type LeaseId = i64;

/// Value of `members/HEAD`, which has the lease of that head.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Whether it hands over what it owns and takes nothing over.
    #[serde(default)]
    pub draining: bool,
    /// Resources that it has failed to run, and does not try again.
    #[serde(default)]
    pub failed: Vec<String>,
    /// Resources that clients do not reach at it: their link has no carrier, or no probe answers.
    #[serde(default)]
    pub cut: Vec<String>,
    /// Whether it ends: it keeps nothing, also if no other head can take it.
    #[serde(default)]
    pub ending: bool,
}

/// Value of `owners/RESOURCE`, which has the lease of the owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The head that owns it.
    pub head: String,
    /// The number of this ownership.
    pub number: u64,
}

/// Value of `resources/RESOURCE`, which stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The number of the last ownership.
    pub number: u64,
    /// The head that is to own it.
    pub target: String,
    /// The number of the last ownership that served clients.
    #[serde(default)]
    pub served: u64,
    /// The last takeover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Takeover>,
}

/// A value with what etcd knows of its key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The value.
    pub value: T,
    /// `mod_revision` of the key.
    pub revision: u64,
    /// The lease of the key; 0 without one.
    pub lease: LeaseId,
}

/// All keys of a cluster at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Heads with a valid lease.
    pub members: BTreeMap<String, Versioned<Member>>,
    /// Owners of resources.
    pub owners: BTreeMap<String, Versioned<Owner>>,
    /// Records of resources.
    pub records: BTreeMap<String, Versioned<Record>>,
}

/// Which kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A member.
    Members,
    /// An owner.
    Owners,
    /// A record.
    Resources,
}

impl Kind {
    /// As in the key.
    pub fn name(self) -> &'static str {
        match self {
            Self::Members => "members",
            Self::Owners => "owners",
            Self::Resources => "resources",
        }
    }
}

/// What all keys of a cluster begin with.
pub fn prefix(cluster: &str) -> String {
    format!("/plimsoll/{cluster}/")
}

/// The key of a head or resource.
pub fn key(cluster: &str, kind: Kind, name: &str) -> String {
    format!("{}{}/{name}", prefix(cluster), kind.name())
}

impl View {
    /// Enters a key as it was read. Keys and values that are not Plimsoll's are left out.
    pub fn enter(
        &mut self,
        cluster: &str,
        key: &str,
        value: &[u8],
        (revision, lease): (u64, LeaseId),
    ) {
        let Some((kind, name)) = key.strip_prefix(&prefix(cluster)).and_then(|k| k.split_once('/'))
        else {
            return;
        };
        let name = name.to_owned();
        if kind == Kind::Members.name() {
            put(&mut self.members, name, value, revision, lease);
        } else if kind == Kind::Owners.name() {
            put(&mut self.owners, name, value, revision, lease);
        } else if kind == Kind::Resources.name() {
            put(&mut self.records, name, value, revision, lease);
        }
    }
}

/// A value that cannot be read counts as empty: the key exists, so an owner that is not understood
/// still is one.
fn put<T: Default + for<'a> Deserialize<'a>>(
    map: &mut BTreeMap<String, Versioned<T>>,
    name: String,
    value: &[u8],
    revision: u64,
    lease: LeaseId,
) {
    let value = serde_json::from_slice(value).unwrap_or_default();
    map.insert(name, Versioned { value, revision, lease });
}

/// Whether a cluster, head or resource can have this name: it is part of keys, files and options.
pub fn is_name(name: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty()
        && name.len() <= HEAD_NAME_MAX
        && name.chars().all(valid)
        && !name.starts_with(['.', '-'])
}
