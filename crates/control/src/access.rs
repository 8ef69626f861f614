//! Access control: permissions over parts of the tree, roles made of them, and the rights that a
//! user or a token has through its roles.
//!
//! A permission is `scope:read` or `scope:change`; `change` includes `read`, and the scope `*` is
//! all of them (`*` alone is `*:change`). Every route of the API and every node of the tree names
//! its scope.

use std::collections::BTreeMap;
use std::fmt;

/// The parts of the appliance that a permission can be about, each with a sentence for people.
pub const SCOPES: &[(&str, &str)] = &[
    ("*", "all permissions"),
    ("analytics", "statistics, worksheets, datasets and alerts"),
    ("clients", "clients of the services and their state"),
    ("cluster", "servers and resources of a cluster"),
    ("configuration", "the configuration as a whole: export, import, history, restore"),
    ("lab", "load jobs and their results"),
    ("maintenance", "logs, audit log, system"),
    ("network", "devices, datalinks, interfaces, routes and names of the network"),
    ("preferences", "settings of the administration interface"),
    ("replication", "replication actions"),
    ("services", "services and their properties"),
    ("sessions", "sign-in sessions"),
    ("shares", "projects and shares"),
    ("status", "served shares and health"),
    ("storage", "disks, pools and their file systems"),
    ("users", "users, roles and API tokens"),
];

/// How far a permission goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// To look.
    Read,
    /// To look and to change.
    Change,
}

impl Level {
    /// `read` or `change`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Change => "change",
        }
    }
}

/// One permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// One of [`SCOPES`].
    pub scope: &'static str,
    /// How far.
    pub level: Level,
}

impl Permission {
    /// Reads `scope:read`, `scope:change` or `*`.
    ///
    /// # Errors
    /// One sentence; the administrator is at fault.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scope, level) = text.split_once(':').unwrap_or((text, ""));
        let known = SCOPES.iter().find(|(name, _)| *name == scope);
        let Some((scope, _)) = known else {
            let names: Vec<&str> = SCOPES.iter().map(|(name, _)| *name).collect();
            return Err(format!("unknown scope {scope:?}; scopes are {}", names.join(", ")));
        };
        let level = match level {
            "read" => Level::Read,
            "change" => Level::Change,
            "" if *scope == "*" => Level::Change,
            _ => return Err(format!("{text:?} must end in :read or :change")),
        };
        Ok(Self { scope, level })
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.scope, self.level) {
            ("*", Level::Change) => f.write_str("*"),
            (scope, level) => write!(f, "{scope}:{}", level.name()),
        }
    }
}

/// The sum of the permissions of a user or a token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    levels: BTreeMap<&'static str, Level>,
}

impl Rights {
    /// Everything: root and the serving user at the local socket.
    pub fn all() -> Self {
        Self::of([Permission { scope: "*", level: Level::Change }])
    }

    /// The sum of `permissions`.
    pub fn of(permissions: impl IntoIterator<Item = Permission>) -> Self {
        let mut rights = Self::default();
        rights.add(permissions);
        rights
    }

    /// Adds permissions; the further one of a scope counts.
    pub fn add(&mut self, permissions: impl IntoIterator<Item = Permission>) {
        for Permission { scope, level } in permissions {
            let have = self.levels.entry(scope).or_insert(level);
            *have = (*have).max(level);
        }
    }

    /// Whether they reach as far as `level` in `scope`.
    pub fn may(&self, scope: &str, level: Level) -> bool {
        let reaches = |scope| self.levels.get(scope).is_some_and(|have| *have >= level);
        reaches(scope) || reaches("*")
    }

    /// Whether they include all of `others`: a user may grant only such rights.
    pub fn cover(&self, others: &Rights) -> bool {
        others.levels.iter().all(|(scope, level)| self.may(scope, *level))
    }

    /// Whether they permit to change everything.
    pub fn are_all(&self) -> bool {
        self.may("*", Level::Change)
    }

    /// The permissions, one for each scope, as text.
    pub fn names(&self) -> Vec<String> {
        let permissions = self.levels.iter();
        permissions.map(|(scope, level)| Permission { scope, level: *level }.to_string()).collect()
    }
}

/// Roles that are always there: name, what it is for, its permissions.
pub const BUILT_IN: &[(&str, &str, &[&str])] = &[
    ("administrator", "all permissions", &["*"]),
    (
        "operator",
        "read everything, end sessions and clients",
        &["*:read", "sessions:change", "clients:change"],
    ),
    ("data", "file services only, no administration", &[]),
];

/// The permissions of a built-in role.
pub fn built_in(role: &str) -> Option<Vec<Permission>> {
    let (_, _, permissions) = BUILT_IN.iter().find(|(name, _, _)| *name == role)?;
    Some(permissions.iter().filter_map(|text| Permission::parse(text).ok()).collect())
}

#[cfg(test)]
mod tests;
