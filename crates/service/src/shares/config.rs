//! The configuration of a share: its directory, its access rules, and the attributes of its root.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;

use base::node::Path;
use base::protocol::ShareMode;
use control::tree::Problem;
use host_pools::request::ShareSettings;
use vfs::share::Service;
use vfs::share::rules::{Access, Lookup, Rule, RuleError, Rules};

/// Where shares are in the tree of administration.
pub const PREFIX: &[&str] = &["shares"];
/// Groups of hosts (netgroup(5)).
const NETGROUPS: &str = "/etc/netgroup";

/// A share as it is to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareConfig {
    /// Its project.
    pub project: String,
    /// Its name, which no other share has in any project: it is exported as `/export/NAME`.
    pub name: String,
    /// The directory, absolute.
    pub directory: PathBuf,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Whether clients of SMB get leases and oplocks.
    pub smb_oplocks: bool,
    /// Whether clients of SMB get persistent handles.
    pub continuous: bool,
    /// The directory of its snapshots, if it is on a pool.
    pub snapshots: Option<PathBuf>,
    /// Whether its root lists the way to its snapshots.
    pub snapdir_visible: bool,
    /// The access rules for each of [`Service::ALL`].
    pub rules: [Rules; Service::ALL.len()],
    /// The attributes of its root when it is created.
    pub root: Root,
    /// Its settings on a pool, if it is on one.
    pub storage: Option<OnPool>,
}

/// A share on a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnPool {
    /// Which pool.
    pub pool: String,
    /// What holds there.
    pub settings: ShareSettings,
}

/// The attributes of the root of a share, where configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Root {
    /// Makes the directory if there is none; its parent must be there.
    pub make: bool,
    /// The pool on which it is made, as a subvolume with the name of the share.
    pub pool: Option<String>,
    /// User.
    pub owner: Option<u32>,
    /// Group.
    pub group: Option<u32>,
    /// Permission bits.
    pub mode: Option<u32>,
}

/// The rules for a service, in the mode in which shares state them: the exceptions, and after them
/// the access of all other clients. Without exceptions and with full access there are none.
///
/// # Errors
/// An exception is wrong.
pub fn rules_for(
    service: Service,
    base: Access,
    exceptions: &[String],
    names: &dyn Lookup,
) -> Result<Rules, RuleError> {
    if base == Access::ReadWrite && exceptions.is_empty() {
        return Ok(Rules::default());
    }
    match service.shares() {
        Some(ShareMode::Export) => {
            let rest = match base {
                Access::None => "*(noaccess)",
                Access::ReadOnly => "*(ro,no_root_squash)",
                Access::ReadWrite => "*(rw,no_root_squash)",
            };
            let all: Vec<&str> = exceptions.iter().map(String::as_str).chain([rest]).collect();
            Rules::parse_each(&all, names)
        }
        Some(ShareMode::SignIn) => {
            let exceptions = exceptions.iter().map(|text| Rule::parse_access(text, names));
            let rules = exceptions.chain([Ok(Rule::for_all_clients(base))]);
            rules.collect::<Result<_, _>>().map(Rules::of)
        }
        None => Ok(Rules::default()),
    }
}

impl ShareConfig {
    /// With these export rules, which hold for the other services as well, as far as they can.
    #[must_use]
    pub fn with_rules(self, rules: &Rules) -> Self {
        let rules = Service::ALL.map(|service| match service.shares() {
            Some(ShareMode::Export) => rules.clone(),
            Some(ShareMode::SignIn) => rules.for_signed_in(),
            None => Rules::default(),
        });
        Self { rules, ..self }
    }

    /// The access rules for a service.
    pub fn rules_for(&self, service: Service) -> &Rules {
        &self.rules[service.index()]
    }

    /// Where it is in the tree of administration.
    pub fn path(&self) -> Path {
        Path::of(PREFIX).join(&self.project).join(&self.name)
    }

    /// What is wrong with it, or with one of its properties.
    pub fn problem(&self, property: Option<&str>, sentence: &str, hint: &str) -> Problem {
        let problem = Problem::new(&self.path(), sentence, hint);
        property.into_iter().fold(problem, Problem::property)
    }
}

/// This machine's resolver and groups.
pub struct System;

impl Lookup for System {
    fn host(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let found = (name, 0).to_socket_addrs().map_err(|e| e.to_string())?;
        Ok(found.map(|at| at.ip()).collect())
    }

    fn netgroups(&self) -> String {
        // A machine without the file has no groups; a rule that names one reports the error.
        fs::read_to_string(NETGROUPS).unwrap_or_else(|e| {
            if e.kind() != ErrorKind::NotFound {
                let [service, ..] = Service::EXPORTING;
                base::error!(service.id(), "cannot read {NETGROUPS}: {e}");
            }
            String::new()
        })
    }
}
