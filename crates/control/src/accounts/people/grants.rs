//! Limits of granting: a user that may change users, but not everything, cannot grant more than its
//! own rights, and cannot change users with more rights.

use std::collections::BTreeSet;

use base::node::Path;

use super::{roles, table, tokens, users};
use crate::access::Rights;
use crate::accounts::acting::Owner;
use crate::accounts::{Kind, Table, User};
use crate::state::effective_uid;
use crate::tree::{Document, Problem, Transition};

/// What an item of this name may do, in one of two tables.
type Strength<'a> = &'a dyn Fn(&Table, &str) -> Rights;

/// The problems of a change by a user with the rights of the transition. Users of the command line
/// have all permissions, whatever is configured for them.
pub(super) fn check(transition: &Transition<'_>, command_line: &[String]) -> Vec<Problem> {
    let Transition { old, new, secrets, rights, .. } = transition;
    if rights.are_all() {
        return Vec::new();
    }
    let (before, after) = (table(old, secrets), table(new, secrets));
    let of_user = |table: &Table, name: &str| match table.users.get(name) {
        Some(_) if command_line.iter().any(|one| one == name) => Rights::all(),
        Some(user) => strength(user, table),
        None => Rights::default(),
    };
    let of_role = |table: &Table, name: &str| table.rights(&[name.to_owned()]);
    let of_token = |table: &Table, name: &str| {
        table.tokens.get(name).map(|token| of_role(table, &token.role)).unwrap_or_default()
    };
    let kinds: [(Path, Strength<'_>); 3] =
        [(users(), &of_user), (roles(), &of_role), (tokens(), &of_token)];
    let mut problems = Vec::new();
    for (above, of) in kinds {
        for name in changed(old, new, &above) {
            if !rights.cover(&of(&before, &name)) || !rights.cover(&of(&after, &name)) {
                problems.push(refused(&above.join(&name), &name));
            }
        }
    }
    problems
}

/// Why a user with these rights may not create the secret of a token, if so.
pub(super) fn issue(table: &Table, token: &str, rights: &Rights) -> Option<String> {
    let role = &table.tokens.get(token)?.role;
    (!rights.cover(&table.rights(std::slice::from_ref(role)))).then(|| sentence(token))
}

fn refused(path: &Path, name: &str) -> Problem {
    Problem::denied(path, &sentence(name))
}

fn sentence(name: &str) -> String {
    format!(
        "{name} has, or would get, permissions that you do not have; you cannot grant more \
        than your own"
    )
}

/// Items below a node that come, go, or are changed.
fn changed(old: &Document, new: &Document, above: &Path) -> Vec<String> {
    let names: BTreeSet<String> = old.items(above).into_iter().chain(new.items(above)).collect();
    names.into_iter().filter(|name| old.differs_in(new, &above.join(name))).collect()
}

/// The rights of a user. A user with the identity of the superuser or of this server for file
/// access has all.
fn strength(user: &User, table: &Table) -> Rights {
    match user.kind {
        _ if is_superuser(&user.owner) => Rights::all(),
        Kind::Administrator => table.rights(&user.roles),
        Kind::Data => Rights::default(),
    }
}

fn is_superuser(owner: &Owner) -> bool {
    let is_ours = |uid: u32| uid == 0 || uid == effective_uid();
    owner.uid.is_some_and(is_ours) || owner.gid == Some(0) || owner.groups.contains(&0)
}
