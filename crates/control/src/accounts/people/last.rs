//! The last administrator: a change after which no user could sign in and administer is refused.
//!
//! Users of the command line do not count, they are gone at the next start. The local socket needs
//! no user, so a server without users that can sign in is not lost; but it can only be reached from
//! its machine.

use base::node::{Path, Value};

use super::{table, users};
use crate::accounts::{Kind, Table};
use crate::tree::{Problem, Transition};

/// The properties that a user needs to sign in and administer, in addition to the permissions of
/// its roles.
const NEEDED: [&str; 4] = ["enabled", "kind", "roles", "password"];

/// Why the new configuration may not be: the old one has administrators, and it has none.
pub(super) fn check(transition: &Transition<'_>) -> Option<Problem> {
    let Transition { old, new, secrets, whole, .. } = transition;
    let (before, after) = (table(old, secrets), table(new, secrets));
    let has_password = |name: &str| {
        // The number of a secret that this very transaction brings is known, its hash is not yet.
        let set = new.set_value(&users().join(name), "password").is_some();
        // A file has no secrets: the password of a new user is set after its import.
        set || (*whole && !before.users.contains_key(name))
    };
    let had = |name: &&String| before.users[*name].password.is_some();
    let last: Vec<&String> = administrators(&before).filter(had).collect();
    if last.is_empty() || administrators(&after).any(|name| has_password(name)) {
        return None;
    }
    let all: Vec<&str> = last.iter().map(|name| name.as_str()).collect();
    let who = match all.as_slice() {
        [one] => format!("{one} is the last one"),
        more => format!("{} are the last ones", more.join(", ")),
    };
    let sentence = format!("no administrator could sign in any more: {who} who can");
    let hint = "give another user a password and the role administrator first";
    let at = users().join(last[0]);
    let problem = Problem::conflict(&at, &sentence, hint);
    Some(match changed(transition, &at) {
        Some(property) => problem.property(property),
        None => problem,
    })
}

/// Enabled administrators with roles that permit to change everything.
fn administrators(table: &Table) -> impl Iterator<Item = &String> {
    let may = |roles: &[String]| table.rights(roles).are_all();
    let able = move |user: &crate::accounts::User| {
        user.enabled && user.kind == Kind::Administrator && may(&user.roles)
    };
    table.users.iter().filter(move |(_, user)| able(user)).map(|(name, _)| name)
}

/// Which of a user's own settings takes it away, if it is one of them.
fn changed(transition: &Transition<'_>, at: &Path) -> Option<&'static str> {
    if !transition.new.exists(at) {
        return None;
    }
    let value = |document: &crate::tree::Document, name: &str| -> Option<Value> {
        document.set_value(at, name).cloned()
    };
    NEEDED.into_iter().find(|name| value(transition.old, name) != value(transition.new, name))
}
