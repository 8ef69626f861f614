//! What a share is to be: its directory, who may use it, and what its root is made to be.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;

use base::protocol::ShareMode;
use vfs::share::Service;
use vfs::share::rules::{Access, Lookup, Rule, RuleError, Rules};

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
    /// Who may use it over each of [`Service::ALL`].
    pub rules: [Rules; Service::ALL.len()],
    /// What its root is made to be when it is made.
    pub root: Root,
}

/// What the root of a share is made to be, where anything is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Root {
    /// Makes the directory if there is none; its parent must be there.
    pub make: bool,
    /// User.
    pub owner: Option<u32>,
    /// Group.
    pub group: Option<u32>,
    /// Permission bits.
    pub mode: Option<u32>,
}

/// What holds for clients that no exception fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// They may not use it.
    None,
    /// They may read.
    ReadOnly,
    /// They may change.
    ReadWrite,
}

impl Base {
    /// By its word in the configuration.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "ro" => Some(Self::ReadOnly),
            "rw" => Some(Self::ReadWrite),
            _ => None,
        }
    }

    /// The rules for a service, in the mode in which shares state them.
    ///
    /// # Errors
    /// An exception is wrong.
    pub fn rules_for(
        self,
        service: Service,
        exceptions: &[String],
        names: &dyn Lookup,
    ) -> Result<Rules, RuleError> {
        match service.shares() {
            Some(ShareMode::Export) => self.rules(exceptions, names),
            Some(ShareMode::SignIn) => self.service_rules(exceptions, names),
            None => Ok(Rules::default()),
        }
    }

    /// The export rules: the exceptions, and after them what holds for everybody else. Without
    /// exceptions and with everything allowed there are none.
    ///
    /// # Errors
    /// An exception is wrong.
    pub fn rules(self, exceptions: &[String], names: &dyn Lookup) -> Result<Rules, RuleError> {
        if let Some(bad) = exceptions.iter().find(|rule| rule.contains('\n')) {
            return Err(RuleError::Form(bad.clone()));
        }
        if self == Self::ReadWrite && exceptions.is_empty() {
            return Ok(Rules::default());
        }
        let rest = match self {
            Self::None => "*(noaccess)",
            Self::ReadOnly => "*(ro,no_root_squash)",
            Self::ReadWrite => "*(rw,no_root_squash)",
        };
        let lines: Vec<&str> = exceptions.iter().map(String::as_str).chain([rest]).collect();
        Rules::parse(&lines.join("\n"), names).map_err(|e| match e {
            // Each stands for itself: there are no lines to count.
            RuleError::Line { source, .. } => *source,
            other => other,
        })
    }

    /// The same for a service whose users sign in.
    ///
    /// # Errors
    /// An exception is wrong.
    pub fn service_rules(
        self,
        exceptions: &[String],
        names: &dyn Lookup,
    ) -> Result<Rules, RuleError> {
        if self == Self::ReadWrite && exceptions.is_empty() {
            return Ok(Rules::default());
        }
        let rest = Rule::everybody(match self {
            Self::None => Access::None,
            Self::ReadOnly => Access::ReadOnly,
            Self::ReadWrite => Access::ReadWrite,
        });
        let exceptions = exceptions.iter().map(|text| Rule::parse_access(text, names));
        let rules: Result<Vec<_>, _> = exceptions.chain([Ok(rest)]).collect();
        rules.map(Rules::of)
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

    /// Who may use it over a service.
    pub fn rules_for(&self, service: Service) -> &Rules {
        &self.rules[service.index()]
    }

    /// Where it is in the tree of administration.
    pub fn place(&self) -> String {
        format!("/shares/{}/{}", self.project, self.name)
    }
}

/// Why shares cannot be as they are wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("share {share}: {sentence}")]
pub struct Problem {
    /// The share; empty if it is about all of them.
    pub share: String,
    /// The property; empty if it is about the share.
    pub property: &'static str,
    /// What is wrong, one sentence.
    pub sentence: String,
    /// What to do, or nothing.
    pub hint: String,
    /// It does not go together with what is there, and may later.
    pub conflict: bool,
}

impl Problem {
    /// A value is wrong.
    pub fn new(share: &str, property: &'static str, sentence: &str, hint: &str) -> Self {
        let (share, sentence) = (share.to_owned(), sentence.to_owned());
        Self { share, property, sentence, hint: hint.to_owned(), conflict: false }
    }

    /// It does not go together with what is there.
    pub fn conflict(share: &str, property: &'static str, sentence: &str, hint: &str) -> Self {
        Self { conflict: true, ..Self::new(share, property, sentence, hint) }
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
        // A machine without the file has no groups, and the rule that names one says so.
        fs::read_to_string(NETGROUPS)
            .inspect_err(|e| {
                if e.kind() != ErrorKind::NotFound {
                    base::error!("nfs", "cannot read {NETGROUPS}: {e}");
                }
            })
            .unwrap_or_default()
    }
}
