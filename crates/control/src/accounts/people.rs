//! Users, roles, tokens, sessions and preferences as a room of the tree: applies the configuration,
//! and lists the sessions.

mod grants;
mod last;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use base::clock::{Clock, NS_PER_S};
use base::limits::{PASSWORD_MIN, TOKEN_MIN};
use base::node::{Path, Value};
use serde_json::{Value as Json, json};

use super::{Accounts, Kind, Owner, Table, Token, User, nt, password, token_secret};
use crate::access::{BUILT_IN, Permission, Rights, built_in};
use crate::sessions::{Lifetime, SessionInfo};
use crate::state::files::digest_hex;
use crate::tree::{
    Actor, Apply, Document, Operational, Override, Problem, Secrets, Subtree, Transition, Tree,
};

/// The room.
pub struct People {
    accounts: Arc<Accounts>,
    clock: Arc<dyn Clock>,
    tree: OnceLock<Weak<Tree>>,
}

/// What a path of this room leads to.
enum AccountNode<'a> {
    Users,
    User(&'a str),
    Role(&'a str),
    Token(&'a str),
    Sessions,
    Session(&'a str),
    Other,
}

fn place(path: &Path) -> AccountNode<'_> {
    let names: Vec<&str> = path.segments().iter().map(String::as_str).collect();
    match names.as_slice() {
        ["configuration", "users"] => AccountNode::Users,
        ["configuration", "users", name] => AccountNode::User(name),
        ["configuration", "roles", name] => AccountNode::Role(name),
        ["configuration", "tokens", name] => AccountNode::Token(name),
        ["maintenance", "sessions"] => AccountNode::Sessions,
        ["maintenance", "sessions", id] => AccountNode::Session(id),
        _ => AccountNode::Other,
    }
}

fn users() -> Path {
    Path::of(&["configuration", "users"])
}

fn roles() -> Path {
    Path::of(&["configuration", "roles"])
}

fn smb() -> Path {
    Path::of(&["configuration", "services", "smb"])
}

fn tokens() -> Path {
    Path::of(&["configuration", "tokens"])
}

impl People {
    /// Takes what `tree` has now.
    pub fn start(accounts: Arc<Accounts>, clock: Arc<dyn Clock>, tree: &Arc<Tree>) -> Arc<Self> {
        let people = Self { accounts, clock, tree: OnceLock::from(Arc::downgrade(tree)) };
        people.take(&tree.document(), tree.secrets());
        Arc::new(people)
    }

    /// The branches that it handles.
    pub fn branches(self: &Arc<Self>) -> Vec<Subtree> {
        // Users, roles, tokens and preferences refer to each other: one branch, one check.
        let configured = Subtree::new(&["configuration"], self.clone());
        vec![configured, Subtree::live(&["maintenance", "sessions"], self.clone())]
    }

    fn take(&self, document: &Document, secrets: &Secrets) {
        self.accounts.set_keeps_nt(document.bool(&smb(), "enabled"));
        self.accounts.replace(table(document, secrets));
        let preferences = Path::of(&["configuration", "preferences"]);
        let seconds = |property, otherwise| {
            let set = document.integer(&preferences, property);
            set.and_then(|s| u64::try_from(s).ok()).map_or(otherwise, Duration::from_secs)
        };
        let default = Lifetime::default();
        self.accounts.sessions().set_lifetime(Lifetime {
            idle: seconds("session_idle", default.idle),
            age: seconds("session_age", default.age),
        });
    }

    /// How many browsers are signed in.
    pub fn signed_in(&self) -> usize {
        self.sessions().len()
    }

    fn sessions(&self) -> Vec<SessionInfo> {
        self.accounts.sessions().list(self.clock.monotonic_ns())
    }

    fn now_s(&self) -> u64 {
        self.clock.wall_ns() / NS_PER_S
    }

    fn session(&self, id: &str) -> Vec<(&'static str, Value)> {
        let Some(seen) = self.sessions().into_iter().find(|seen| seen.id == id) else {
            return Vec::new();
        };
        let ago = |time: Duration| {
            Value::Integer(self.now_s().saturating_sub(time.as_secs()).cast_signed())
        };
        vec![
            ("user", Value::text(&seen.user)),
            ("address", Value::text(&seen.from.to_string())),
            ("opened", ago(seen.open)),
            ("used", ago(seen.idle)),
        ]
    }

    fn holders(&self, role: &str) -> Value {
        let table = self.accounts.table();
        let has = |user: &User| user.roles.iter().any(|name| name == role);
        let users = table.users.iter().filter(|(_, user)| has(user)).map(|(name, _)| name);
        let tokens = table.tokens.iter().filter(|(_, token)| token.role == role);
        Value::texts(users.chain(tokens.map(|(name, _)| name)))
    }

    fn is_valid(&self, token: &str) -> bool {
        self.accounts.table().tokens.get(token).is_some_and(|token| {
            token.digest.is_some() && token.ends.is_none_or(|ends| self.now_s() < ends)
        })
    }

    /// Makes a token's secret.
    fn issue(&self, path: &Path, who: &Actor) -> Result<Json, Problem> {
        let tree = self.tree.get().and_then(Weak::upgrade);
        let tree = tree.ok_or_else(|| Problem::server(path, "the server is stopping"))?;
        let secret = token_secret();
        let first = |problems: Vec<Problem>| {
            let none = || Problem::server(path, "the token was refused");
            problems.into_iter().next().unwrap_or_else(none)
        };
        tree.set_secret(path, "secret", &secret, who).map_err(first)?;
        Ok(json!({ "token": secret }))
    }

    fn end_session(&self, path: &Path, id: &str) -> Result<Json, Problem> {
        if self.accounts.sessions().end(id, self.clock.monotonic_ns()) {
            return Ok(json!({ "ended": 1 }));
        }
        let hint = "it may have expired; list maintenance/sessions";
        Err(Problem::unknown(path, "this session does not exist any more", hint))
    }

    fn end_sessions(&self, user: &str) -> Json {
        let before = self.sessions().len();
        // First, so that a sign-in that is being checked opens no session afterwards.
        self.accounts.renew(user);
        self.accounts.sessions().end_others(|name| name != user);
        json!({ "ended": before.saturating_sub(self.sessions().len()) })
    }
}

impl Apply for People {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let mut problems = check(transition.new);
        problems.extend(same_but_for_case(transition));
        // Wrong roles have been reported already.
        if problems.is_empty() {
            problems.extend(grants::check(transition, &self.accounts.command_line()));
            problems.extend(last::check(transition));
        }
        problems
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        self.take(transition.new, transition.secrets);
        Ok(())
    }

    fn seal(&self, path: &Path, property: &str, plain: &str) -> Result<String, Problem> {
        let wrong =
            |sentence: String, hint: &str| Problem::new(path, &sentence, hint).property(property);
        let length = plain.chars().count();
        match place(path) {
            // What an older version of the program has kept, or another server.
            AccountNode::User(_) if password::is_ours(nt::split(plain).0) => Ok(plain.to_owned()),
            AccountNode::User(_) if length < PASSWORD_MIN => Err(wrong(
                format!("a password has at least {PASSWORD_MIN} characters"),
                "several words are easy to remember",
            )),
            AccountNode::User(_) => {
                let hash = password::hash(plain);
                let hash = hash.map_err(|e| Problem::server(path, &e.to_string()))?;
                Ok(match self.accounts.keeps_nt() {
                    true => nt::join(&hash, nt::NtHash::of(plain)),
                    false => hash,
                })
            }
            AccountNode::Token(_) if length < TOKEN_MIN => Err(wrong(
                format!("a token has at least {TOKEN_MIN} characters"),
                "use the action issue to create one",
            )),
            AccountNode::Token(_) => Ok(digest_hex(plain)),
            _ => Ok(plain.to_owned()),
        }
    }
}

impl Operational for People {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        match place(path) {
            AccountNode::User(name) => {
                let sessions = self.sessions().iter().filter(|seen| seen.user == name).count();
                vec![("sessions", Value::Integer(sessions as i64))]
            }
            AccountNode::Role(name) => vec![("holders", self.holders(name))],
            AccountNode::Token(name) => vec![("valid", Value::Bool(self.is_valid(name)))],
            AccountNode::Session(id) => self.session(id),
            _ => Vec::new(),
        }
    }

    fn items(&self, path: &Path) -> Vec<String> {
        match place(path) {
            AccountNode::Users => self.accounts.command_line(),
            AccountNode::Sessions => self.sessions().into_iter().map(|seen| seen.id).collect(),
            _ => Vec::new(),
        }
    }

    fn overrides(&self, path: &Path) -> Vec<Override> {
        match place(path) {
            AccountNode::User(name) if self.accounts.command_line().iter().any(|n| n == name) => {
                let source = "command line";
                let one = |property, value| Override { property, value, source };
                vec![
                    one("kind", Value::text("administrator")),
                    one("roles", Value::texts(["administrator"])),
                    one("enabled", Value::Bool(true)),
                ]
            }
            AccountNode::Role(name) => built_in_role(name),
            _ => Vec::new(),
        }
    }

    fn facts(&self, path: &Path) -> Vec<String> {
        let AccountNode::User(name) = place(path) else { return Vec::new() };
        match self.sessions().iter().filter(|seen| seen.user == name).count() {
            0 => Vec::new(),
            n => vec![format!("{n} sessions of {name} end")],
        }
    }

    fn why_not(&self, path: &Path, action: &str, rights: &Rights) -> Option<String> {
        match (place(path), action) {
            (AccountNode::Token(name), "issue") => {
                grants::issue(&self.accounts.table(), name, rights)
            }
            _ => None,
        }
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        _parameters: &BTreeMap<String, Value>,
        who: &Actor,
    ) -> Result<Json, Problem> {
        match (place(path), action) {
            (AccountNode::User(name), "end_sessions") => Ok(self.end_sessions(name)),
            (AccountNode::Token(_), "issue") => self.issue(path, who),
            (AccountNode::Session(id), "end") => self.end_session(path, id),
            _ => Err(Problem::unknown(path, &format!("unknown action {action}"), "")),
        }
    }
}

fn built_in_role(name: &str) -> Vec<Override> {
    let Some((_, help, permissions)) = BUILT_IN.iter().find(|(role, _, _)| *role == name) else {
        return Vec::new();
    };
    let source = "built in";
    vec![
        Override { property: "description", value: Value::text(help), source },
        Override { property: "permissions", value: Value::texts(*permissions), source },
    ]
}

/// The users, roles and tokens of a configuration that was checked.
fn table(document: &Document, secrets: &Secrets) -> Table {
    let keeps_nt = document.bool(&smb(), "enabled");
    let user = |name: String| {
        let at = users().join(&name);
        let kind = match document.text(&at, "kind").as_deref() {
            Some("administrator") => Kind::Administrator,
            _ => Kind::Data,
        };
        let secret = secrets.get(document, &at, "password");
        let (password, nt_hash) = match secret.as_deref().map(nt::split) {
            Some((password, hash)) => (Some(password.to_owned()), hash.filter(|_| keeps_nt)),
            None => (None, None),
        };
        let user = User {
            full_name: document.text(&at, "full_name").unwrap_or_default(),
            kind,
            roles: document.texts(&at, "roles"),
            enabled: document.bool(&at, "enabled"),
            ssh_keys: document.texts(&at, "ssh_keys"),
            owner: owner(document, &at),
            password,
            nt_hash,
        };
        (name, user)
    };
    let role = |name: String| {
        let texts = document.texts(&roles().join(&name), "permissions");
        let permissions = texts.iter().filter_map(|text| Permission::parse(text).ok());
        (name, permissions.collect())
    };
    let token = |name: String| {
        let at = tokens().join(&name);
        let token = Token {
            role: document.text(&at, "role").unwrap_or_default(),
            ends: document.integer(&at, "ends").and_then(|ends| u64::try_from(ends).ok()),
            digest: secrets.get(document, &at, "secret"),
        };
        (name, token)
    };
    Table {
        users: document.items(&users()).into_iter().map(user).collect(),
        roles: document.items(&roles()).into_iter().map(role).collect(),
        tokens: document.items(&tokens()).into_iter().map(token).collect(),
    }
}

fn owner(document: &Document, at: &Path) -> Owner {
    let id = |n: i64| u32::try_from(n).ok();
    let groups = document.value(at, "groups");
    let groups = groups.as_ref().and_then(Value::as_list).unwrap_or_default();
    Owner {
        uid: document.integer(at, "uid").and_then(id),
        gid: document.integer(at, "gid").and_then(id),
        groups: groups.iter().filter_map(|one| id(one.as_integer()?)).collect(),
        home: document.text(at, "home"),
    }
}

/// Checks beyond those of the declarations.
fn check(document: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    let known = document.items(&roles());
    let mut needs = |at: &Path, property: &str, role: &str| {
        if !known.contains(role) {
            let sentence = format!("unknown role {role:?}");
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let hint = format!("there are {}", names.join(", "));
            problems.push(Problem::conflict(at, &sentence, &hint).property(property));
        }
    };
    for name in document.items(&users()) {
        let at = users().join(&name);
        document.texts(&at, "roles").iter().for_each(|role| needs(&at, "roles", role));
    }
    for name in document.items(&tokens()) {
        let at = tokens().join(&name);
        if let Some(role) = document.text(&at, "role") {
            needs(&at, "role", &role);
        }
    }
    problems
        .extend(document.items(&users()).iter().filter_map(|name| without_role(document, name)));
    problems.extend(known.iter().filter_map(|role| wrong_role(document, role)));
    problems
}

/// New users with names that differ from another one's in case alone: clients of SMB do not
/// distinguish it, and throttles and logs would take both for one. Those that are there may stay.
fn same_but_for_case(transition: &Transition<'_>) -> Vec<Problem> {
    let (old, new) = (transition.old.items(&users()), transition.new.items(&users()));
    let is_new = |name: &&String| !old.contains(*name);
    let refused = |name: &String| {
        let key = name.to_lowercase();
        let other = new.iter().find(|other| *other != name && other.to_lowercase() == key)?;
        let sentence = format!("the name {name} differs from the user {other} in case alone");
        let hint = "choose another name: SMB clients do not distinguish case";
        Some(Problem::conflict(&users().join(name), &sentence, hint))
    };
    new.iter().filter(is_new).filter_map(refused).collect()
}

fn without_role(document: &Document, user: &str) -> Option<Problem> {
    let at = users().join(user);
    let administers = document.text(&at, "kind").as_deref() == Some("administrator");
    (administers && document.texts(&at, "roles").is_empty()).then(|| {
        let hint = "set roles to administrator, operator, or a custom role";
        Problem::new(&at, "an administrator needs a role", hint).property("roles")
    })
}

fn wrong_role(document: &Document, role: &str) -> Option<Problem> {
    let at = roles().join(role);
    let texts = document.texts(&at, "permissions");
    if built_in(role).is_some() && document.nodes().any(|(path, _)| *path == at) {
        let hint = "create a custom role";
        return Some(Problem::new(&at, "a built-in role cannot be changed", hint));
    }
    let wrong = texts.iter().find_map(|text| Permission::parse(text).err())?;
    Some(
        Problem::new(&at, &wrong, "permissions are SCOPE:read or SCOPE:change")
            .property("permissions"),
    )
}

#[cfg(test)]
pub(crate) mod tests;
