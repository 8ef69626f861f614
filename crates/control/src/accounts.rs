//! Users, roles and API tokens as they are in force: who may sign in, and what he may do then.
//!
//! What is configured is handed in whole ([`Accounts::replace`]) and takes effect at the next
//! request of everybody. Users of the command line stand beside it, for this run of the server.
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
    /// Administers, as far as his roles go.
    Administrator,
}

/// A local user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// What people call him.
    pub full_name: String,
    /// What he is for.
    pub kind: Kind,
    /// Names of his roles.
    pub roles: Vec<String>,
    /// Whether he may sign in, to whatever service.
    pub enabled: bool,
    /// His SSH public keys, one `authorized_keys` line each.
    pub ssh_keys: Vec<String>,
    /// As whom he acts at the file system.
    pub owner: Owner,
    /// The Argon2id hash of his password (PHC string); without one there is no password that is
    /// right.
    pub password: Option<String>,
    /// The hash of his password that SMB needs, if one is kept ([`nt`]).
    pub nt_hash: Option<nt::NtHash>,
}

impl User {
    /// Whether what somebody was let in by, and as whom he acts, is the same in `other`.
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
    /// Roles by name, beside the built-in ones.
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

/// How a name and a password were judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// One of them is wrong, or the user may not sign in at all.
    Wrong,
    /// Both are right, of a user who does not administer.
    DataOnly,
    /// He may come in.
    Right,
}

/// The users, roles and tokens in force, and who is signed in.
pub struct Accounts {
    inner: RwLock<Inner>,
    sessions: Mutex<Sessions>,
    /// One patience, wherever somebody tries.
    throttle: Mutex<Throttle>,
    /// Checked where there is no hash, so that the answer takes as long.
    decoy: String,
    /// Whether SMB is enabled.
    keeps_nt: AtomicBool,
}

/// A user who may sign in to services.
struct Caller {
    user: User,
    /// What its roles permit in the administration.
    rights: Rights,
    /// Another number when how the user is let in, or as whom, has changed.
    version: u64,
}

#[derive(Default)]
struct Inner {
    table: Table,
    command_line: BTreeMap<String, User>,
    /// A number for each user: another one when how he is let in, or as whom, has changed.
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

    /// Whoever came in by this name must come in anew.
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

    /// Puts what is configured now in place of what was. Whoever may not be signed in any more, or
    /// has another password now, is signed out.
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

    /// Who is signed in.
    pub fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The patience with wrong passwords.
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

    /// Makes `user` for this run, with all rights. He goes before a configured one of that name.
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

    /// Makes `user` for this run, with all rights and without a password: for the one-time
    /// sign-in of who has started the server.
    pub fn add_console(&self, user: &str) {
        self.write().add(user, User::administrator(None));
    }

    /// The users of the command line.
    pub fn command_line(&self) -> Vec<String> {
        self.read().command_line.keys().cloned().collect()
    }

    /// Whether nobody could sign in.
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

    /// Judges a sign-in. Slow on purpose, and as slow for a name that nobody has.
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

    /// A user who may sign in to services, as it is configured now.
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

    /// Signs a user out of everything but the administration, which has its own sessions.
    fn renew(&self, name: &str) {
        self.write().renew(name);
    }

    /// The first configured user who acts by this number.
    fn configured_with(&self, uid: u32) -> Option<String> {
        let inner = self.read();
        let mut users = inner.table.users.iter();
        users.find(|(_, user)| user.owner.uid == Some(uid)).map(|(name, _)| name.clone())
    }

    /// What a signed-in user may do now; `None` if he may not be signed in any more.
    pub fn rights(&self, user: &str) -> Option<Rights> {
        let inner = self.read();
        let entry = inner.user(user)?;
        let may_be_in = entry.enabled && entry.kind == Kind::Administrator;
        may_be_in.then(|| inner.table.rights(&entry.roles))
    }

    /// The token whose secret this is: its name and what it may do at `now_s`.
    pub fn token(&self, secret: &str, now_s: u64) -> Option<(String, Rights)> {
        let digest = digest_hex(secret);
        let inner = self.read();
        // Digests are compared, not secrets: how long it takes tells nothing of use.
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
