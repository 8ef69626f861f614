//! The configuration of a head: a TOML file, the same on all heads but for `name` and `link`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use host_network::cidr::Cidr;
use serde::Deserialize;

use crate::keys;
use crate::limits::{HEAD_CONFIG_MAX, HEAD_ETCD_MEMBERS_MAX, HEAD_PROBES_MAX, HEAD_RESOURCES_MAX};

/// Where sockets and leases of heads are: in memory, and gone after a restart of the machine.
pub const RUN: &str = "/run/plimsoll-head";

/// The command that evicts a client of CephFS. Rank 0 has it evicted by all others and the OSDs.
const CEPHFS_EVICT: [&str; 5] = ["ceph", "tell", "mds.0", "client", "evict"];

/// A head.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Name of this head, unique in the cluster.
    pub name: String,
    /// Name of the cluster, the same on all heads.
    pub cluster: String,
    /// etcd.
    pub etcd: Members,
    /// Directory for the socket and the lease.
    #[serde(default = "run")]
    pub run: PathBuf,
    /// A program that switches off the head named by its first argument.
    #[serde(default)]
    pub fence_program: Option<PathBuf>,
    /// The command that evicts a client of CephFS, which gets `id=NUMBER` as its last argument.
    #[serde(default = "cephfs_evict")]
    pub cephfs_evict: Vec<String>,
    /// Whether resources may be on a file system of which it is not known that mounts on several
    /// machines see each other's locks.
    #[serde(default)]
    pub unchecked_file_system: bool,
    /// The resources, the same on all heads.
    #[serde(default, rename = "resource")]
    pub resources: Vec<Resource>,
}

/// The members of etcd.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Members {
    /// URLs of all members, `http://HOST:PORT` or `https://HOST:PORT`.
    pub members: Vec<String>,
    /// Certificates of the authority that has signed those of the members (PEM).
    #[serde(default)]
    pub ca: Option<PathBuf>,
}

/// A resource.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Its name, unique in the cluster.
    pub name: String,
    /// The directory that it serves, on the cluster file system.
    pub directory: PathBuf,
    /// Its state directory, on the same file system.
    pub state: PathBuf,
    /// Its address with the length of the prefix.
    pub address: Cidr,
    /// The link of this head that gets the address.
    pub link: String,
    /// Hosts beyond the link. If none answers, clients do not reach this head.
    #[serde(default)]
    pub probe: Vec<IpAddr>,
    /// The head that is to own it.
    pub preferred: String,
    /// Whether it is taken over without a fence, on a file system that does not keep a former owner
    /// from writing.
    #[serde(default)]
    pub unfenced_takeover: bool,
    /// Offset added to every standard port.
    #[serde(default)]
    pub port_offset: u16,
    /// More options of `plimsoll serve`.
    #[serde(default)]
    pub options: Vec<String>,
}

/// Why a configuration is not valid.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It is not TOML, or has other keys.
    #[error("{path} is not the configuration of a head: {why}")]
    Syntax {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A value is not valid.
    #[error("{0}")]
    Value(String),
}

fn run() -> PathBuf {
    PathBuf::from(RUN)
}

fn cephfs_evict() -> Vec<String> {
    CEPHFS_EVICT.map(str::to_owned).to_vec()
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let failed = |source| ConfigError::File { path: path.to_owned(), source };
        let size = path.metadata().map_err(failed)?.len();
        if size > HEAD_CONFIG_MAX {
            let why = format!("it has {size} bytes; {HEAD_CONFIG_MAX} are the most");
            return Err(ConfigError::Syntax { path: path.to_owned(), why });
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let config: Self = toml::from_str(&text).map_err(|e| ConfigError::Syntax {
            path: path.to_owned(),
            why: e.to_string().trim().to_owned(),
        })?;
        config.check()?;
        Ok(config)
    }

    /// The path of the local socket.
    pub fn socket(&self) -> PathBuf {
        self.run.join(format!("{}.sock", self.name))
    }

    /// The resource of this name.
    pub fn resource(&self, name: &str) -> Option<&Resource> {
        self.resources.iter().find(|one| one.name == name)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: String| Err(ConfigError::Value(what));
        for (kind, name) in [("head", &self.name), ("cluster", &self.cluster)] {
            if !keys::is_name(name) {
                return wrong(format!(
                    "the {kind} name {name:?} is not valid: use letters, digits, - and _"
                ));
            }
        }
        self.check_members()?;
        if self.cephfs_evict.is_empty() {
            return wrong("cephfs_evict is a command with its arguments".to_owned());
        }
        if self.resources.len() > HEAD_RESOURCES_MAX {
            return wrong(format!("there are more than {HEAD_RESOURCES_MAX} resources"));
        }
        let (mut names, mut states, mut addresses) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for resource in &self.resources {
            let name = &resource.name;
            if !keys::is_name(name) || !keys::is_name(&resource.preferred) {
                return wrong(format!(
                    "resource {name:?}: name and preferred are letters, digits, - and _"
                ));
            }
            if !resource.directory.is_absolute() || !resource.state.is_absolute() {
                return wrong(format!("resource {name}: directory and state are absolute paths"));
            }
            if resource.link.is_empty() {
                return wrong(format!("resource {name}: link is the name of a network interface"));
            }
            if resource.probe.len() > HEAD_PROBES_MAX {
                return wrong(format!(
                    "resource {name}: probe lists {HEAD_PROBES_MAX} hosts at most"
                ));
            }
            if !names.insert(name) {
                return wrong(format!("two resources have the name {name}"));
            }
            if !states.insert(&resource.state) {
                return wrong(format!("resource {name}: another resource has its state directory"));
            }
            if !addresses.insert(resource.address.address) {
                return wrong(format!("resource {name}: another resource has its address"));
            }
        }
        self.check_overlap()
    }

    /// Two resources that change the same files would not know of each other's locks.
    fn check_overlap(&self) -> Result<(), ConfigError> {
        for (i, one) in self.resources.iter().enumerate() {
            for other in self.resources.iter().skip(i + 1) {
                let (a, b) = (&one.directory, &other.directory);
                if a.starts_with(b) || b.starts_with(a) {
                    let (a, b) = (&one.name, &other.name);
                    let what = format!("the directories of {a} and {b} overlap");
                    return Err(ConfigError::Value(what));
                }
            }
        }
        Ok(())
    }

    fn check_members(&self) -> Result<(), ConfigError> {
        let members = &self.etcd.members;
        if members.is_empty() || members.len() > HEAD_ETCD_MEMBERS_MAX {
            let what = format!("etcd.members lists 1 to {HEAD_ETCD_MEMBERS_MAX} URLs");
            return Err(ConfigError::Value(what));
        }
        for member in members {
            let rest = member.strip_prefix("http://").or_else(|| member.strip_prefix("https://"));
            if !rest.is_some_and(|rest| rest.contains(':') && !rest.contains('/')) {
                let what = format!("{member} is not http://HOST:PORT or https://HOST:PORT");
                return Err(ConfigError::Value(what));
            }
            if member.starts_with("https://") && self.etcd.ca.is_none() {
                let what = format!("etcd.ca is missing: {member} is reached over TLS");
                return Err(ConfigError::Value(what));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
