//! Users, roles and API tokens in effect: the users that may sign in, and their permissions.
//!
//! The configured table is set as a whole ([`Accounts::replace`]) and takes effect at the next
//! request of each user. Users of the command line exist in addition, for this run of the server.
//! Passwords are Argon2id hashes ([`password`]), tokens are digests.

pub mod acting;
pub mod first;
pub mod identity;
pub mod machine;
pub mod node;
pub mod nt;
pub mod password;
pub(crate) mod people;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use base::limits::{PASSWORD_MAX, USER_NAME_MAX};
use base::throttle::Throttle;

pub use acting::Owner;
pub use people::People;

use crate::access::{Permission, Rights, built_in};
use crate::sessions::Sessions;
use crate::state::StateError;
use crate::state::files::{digest_hex, random_hex};

/// What a user is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Uses shares; may not sign in to the administration.
    Data,
    /// Administers, within the permissions of its roles.
    Administrator,
}

/// A local user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The display name.
    pub full_name: String,
    /// Whether it is a data user or an administrator.
    pub kind: Kind,
    /// Names of its roles.
    pub roles: Vec<String>,
    /// Whether it may sign in, to any service.
    pub enabled: bool,
    /// Its SSH public keys, one `authorized_keys` line each.
    pub ssh_keys: Vec<String>,
    /// The identity for file access.
    pub owner: Owner,
    /// The Argon2id hash of its password (PHC string); without one no password is accepted.
    pub password: Option<String>,
    /// The hash of its password that SMB needs, if one is stored ([`nt`]).
    pub nt_hash: Option<nt::NtHash>,
}

impl User {
    /// Whether the credentials and the identity for file access are the same in `other`.
    fn is_same_caller(&self, other: &Self) -> bool {
        let of = |user: &Self| {
            let user = user.clone();
            (user.enabled, user.password, user.ssh_keys, user.owner, user.kind)
        };
        of(self) == of(other)
    }

    /// An administrator with all rights.
    pub fn administrator(password: Option<String>) -> Self {
        Self {
            full_name: String::new(),
            kind: Kind::Administrator,
            roles: vec!["administrator".to_owned()],
            enabled: true,
            ssh_keys: Vec::new(),
            owner: Owner::default(),
            password,
            nt_hash: None,
        }
    }
}

/// An API token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its role's name.
    pub role: String,
    /// When it ends, seconds since the epoch; `None`: never.
    pub ends: Option<u64>,
    /// The digest of its secret in hexadecimal; without one no secret is right.
    pub digest: Option<String>,
}

/// What is configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Users by name.
    pub users: BTreeMap<String, User>,
    /// Roles by name, in addition to the built-in ones.
    pub roles: BTreeMap<String, Vec<Permission>>,
    /// Tokens by name.
    pub tokens: BTreeMap<String, Token>,
}

impl Table {
    /// What a list of roles adds up to. A name that no role has gives nothing.
    pub fn rights(&self, roles: &[String]) -> Rights {
        let mut rights = Rights::default();
        for role in roles {
            let own = || self.roles.get(role).cloned();
            rights.add(built_in(role).or_else(own).unwrap_or_default());
        }
        rights
    }
}

/// Where a user comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The configuration.
    Configuration,
    /// `serve --user`, for this run.
    CommandLine,
}

/// The result of checking a name and a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// One of them is wrong, or the user may not sign in at all.
    Wrong,
    /// Both are right, of a user that is not an administrator.
    DataOnly,
    /// The sign-in is permitted.
    Right,
}

/// The current users, roles and tokens, and the sessions.
pub struct Accounts {
    inner: RwLock<Inner>,
    sessions: Mutex<Sessions>,
    /// One limit for failed sign-ins, common to all services.
    throttle: Mutex<Throttle>,
    /// Checked where there is no hash, so that the answer takes as long.
    decoy: String,
    /// Whether SMB is enabled.
    keeps_nt: AtomicBool,
}

/// A user that may sign in to services.
struct Caller {
    user: User,
    /// What its roles permit in the administration.
    rights: Rights,
    /// Another number when the credentials or the identity of the user have changed.
    version: u64,
}

#[derive(Default)]
struct Inner {
    table: Table,
    command_line: BTreeMap<String, User>,
    /// A number for each user: another one when the credentials or the identity have changed.
    versions: BTreeMap<String, u64>,
    /// The last number given; also another one when a user is gone.
    newest: u64,
}

impl Inner {
    fn user(&self, name: &str) -> Option<&User> {
        self.command_line.get(name).or_else(|| self.table.users.get(name))
    }

    /// Takes another table, and gives the one before.
    fn replace(&mut self, table: Table) -> Table {
        let before = std::mem::replace(&mut self.table, table);
        self.newest += 1;
        let Self { table, command_line, versions, newest } = self;
        versions
            .retain(|name, _| table.users.contains_key(name) || command_line.contains_key(name));
        for (name, user) in table.users.iter().filter(|(name, _)| !command_line.contains_key(*name))
        {
            if !before.users.get(name).is_some_and(|one| one.is_same_caller(user)) {
                *newest += 1;
                versions.insert(name.clone(), *newest);
            }
        }
        before
    }

    /// Makes a user of this run.
    fn add(&mut self, name: &str, user: User) {
        self.command_line.insert(name.to_owned(), user);
        self.renew(name);
    }

    /// Sign-ins under this name are no longer valid and must be repeated.
    fn renew(&mut self, name: &str) {
        self.newest += 1;
        if self.user(name).is_some() {
            self.versions.insert(name.to_owned(), self.newest);
        }
    }
}

impl Accounts {
    /// Those of `table`.
    ///
    /// # Errors
    /// [`StateError::Hash`] if this machine cannot hash passwords.
    pub fn new(table: Table) -> Result<Self, StateError> {
        let mut inner = Inner::default();
        drop(inner.replace(table));
        let (sessions, decoy) = (Mutex::default(), password::decoy()?);
        let (throttle, keeps_nt) = Default::default();
        Ok(Self { inner: RwLock::new(inner), sessions, throttle, decoy, keeps_nt })
    }

    /// Replaces the configured table. Users that may not be signed in any more, or have another
    /// password now, are signed out.
    pub fn replace(&self, table: Table) {
        let before = self.write().replace(table);
        let goes_on = |name: &str| {
            let inner = self.read();
            let password = |user: Option<&User>| user.and_then(|user| user.password.clone());
            let same = password(before.users.get(name)) == password(inner.table.users.get(name));
            same || inner.command_line.contains_key(name)
        };
        self.sessions().end_others(|name| goes_on(name) && self.rights(name).is_some());
    }

    /// The sessions of signed-in users.
    pub fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limit for failed sign-ins.
    pub fn throttle(&self) -> MutexGuard<'_, Throttle> {
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the hashes that SMB needs are kept with passwords that are set, or are not.
    fn set_keeps_nt(&self, keeps: bool) {
        self.keeps_nt.store(keeps, Ordering::Relaxed);
    }

    /// Whether they are.
    fn keeps_nt(&self) -> bool {
        self.keeps_nt.load(Ordering::Relaxed)
    }

    /// What is configured.
    pub fn table(&self) -> Table {
        self.read().table.clone()
    }

    /// Creates `user` for this run, with all permissions. It takes precedence over a configured one
    /// of that name.
    ///
    /// # Errors
    /// [`StateError::Hash`].
    pub fn add_command_line(&self, user: &str, password: &str) -> Result<(), StateError> {
        let mut entry = User::administrator(Some(password::hash(password)?));
        // It is written nowhere, and used only while SMB is enabled.
        entry.nt_hash = Some(nt::NtHash::of(password));
        self.write().add(user, entry);
        Ok(())
    }

    /// Creates `user` for this run, with all permissions and without a password: for the one-time
    /// sign-in of the user that has started the server.
    pub fn add_console(&self, user: &str) {
        self.write().add(user, User::administrator(None));
    }

    /// The users of the command line.
    pub fn command_line(&self) -> Vec<String> {
        self.read().command_line.keys().cloned().collect()
    }

    /// Whether there is no user that could sign in.
    pub fn is_empty(&self) -> bool {
        let inner = self.read();
        inner.command_line.is_empty() && inner.table.users.is_empty()
    }

    /// Where a user comes from, if there is one of that name.
    pub fn source(&self, user: &str) -> Option<Source> {
        let inner = self.read();
        if inner.command_line.contains_key(user) {
            return Some(Source::CommandLine);
        }
        inner.table.users.contains_key(user).then_some(Source::Configuration)
    }

    /// Checks a sign-in. Slow on purpose, and as slow for an unknown name.
    pub fn judge(&self, user: &str, given: &str) -> Verdict {
        if user.len() > USER_NAME_MAX || given.len() > PASSWORD_MAX {
            return Verdict::Wrong;
        }
        let known = self.read().user(user).cloned();
        let right = password::is_right(self.hash_to_check(known.as_ref()), given);
        match known {
            Some(user) if right && user.enabled && user.password.is_some() => match user.kind {
                Kind::Administrator => Verdict::Right,
                Kind::Data => Verdict::DataOnly,
            },
            _ => Verdict::Wrong,
        }
    }

    fn hash_to_check<'a>(&'a self, user: Option<&'a User>) -> &'a str {
        user.and_then(|user| user.password.as_deref()).unwrap_or(&self.decoy)
    }

    /// A user that may sign in to services, as it is configured now.
    fn caller(&self, name: &str) -> Option<Caller> {
        let inner = self.read();
        let user = inner.user(name).filter(|user| user.enabled)?.clone();
        let rights = inner.table.rights(&user.roles);
        Some(Caller { user, rights, version: *inner.versions.get(name)? })
    }

    /// The one user with this name in some case.
    fn in_any_case(&self, name: &str) -> Option<String> {
        let (inner, key) = (self.read(), name.to_lowercase());
        let mut alike = inner.table.users.keys().filter(|one| one.to_lowercase() == key);
        let one = alike.next()?;
        alike.next().is_none().then(|| one.clone())
    }

    /// Another number whenever something about users has changed.
    pub fn generation(&self) -> u64 {
        self.read().newest
    }

    /// Another number whenever the credentials or the identity of a user have changed; `None` if
    /// there is no such user. To be read before a password is checked.
    pub fn version(&self, user: &str) -> Option<u64> {
        self.read().versions.get(user).copied()
    }

    /// Opens a session of a user that has signed in, unless the credentials have changed since
    /// `version`: sign-ins with the old ones have ended by then. Whether it was opened.
    #[must_use]
    pub fn open_session(
        &self,
        token: &str,
        (user, version): (&str, Option<u64>),
        from: IpAddr,
        now_ns: u64,
    ) -> bool {
        // Sessions are ended under this lock, after the versions have changed.
        let mut sessions = self.sessions();
        let is_current = version.is_some() && self.version(user) == version;
        if is_current {
            sessions.open(token, user, from, now_ns);
        }
        is_current
    }

    /// Uses up a one-time token: its user, with the version of the user then.
    pub fn take_once(&self, token: &str, now_ns: u64) -> Option<(String, Option<u64>)> {
        let mut sessions = self.sessions();
        // Before the token, which ends with a change of the user.
        let inner = self.read();
        let user = sessions.take_once(token, now_ns)?;
        let version = inner.versions.get(&user).copied();
        Some((user, version))
    }

    /// Signs a user out of everything but the administration, which has its own sessions.
    fn renew(&self, name: &str) {
        self.write().renew(name);
    }

    /// The first configured user with this uid.
    fn configured_with(&self, uid: u32) -> Option<String> {
        let inner = self.read();
        let mut users = inner.table.users.iter();
        users.find(|(_, user)| user.owner.uid == Some(uid)).map(|(name, _)| name.clone())
    }

    /// The current permissions of a signed-in user; `None` if it may not be signed in any more.
    pub fn rights(&self, user: &str) -> Option<Rights> {
        let inner = self.read();
        let entry = inner.user(user)?;
        let may_be_in = entry.enabled && entry.kind == Kind::Administrator;
        may_be_in.then(|| inner.table.rights(&entry.roles))
    }

    /// The token with this secret: its name and its permissions at `now_s`.
    pub fn token(&self, secret: &str, now_s: u64) -> Option<(String, Rights)> {
        let digest = digest_hex(secret);
        let inner = self.read();
        // Digests are compared, not secrets: the timing reveals nothing of use.
        let is_it = |token: &Token| token.digest.as_deref() == Some(&*digest);
        let (name, token) = inner.table.tokens.iter().find(|(_, token)| is_it(token))?;
        let valid = token.ends.is_none_or(|ends| now_s < ends);
        valid.then(|| (name.clone(), inner.table.rights(std::slice::from_ref(&token.role))))
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins every token, so that people and programs that look for leaked secrets know it.
pub const TOKEN_PREFIX: &str = "plimsoll_";

/// A new token's secret: 256 bits.
pub fn token_secret() -> String {
    format!("{TOKEN_PREFIX}{}", random_hex::<32>())
}

#[cfg(test)]
mod tests;
