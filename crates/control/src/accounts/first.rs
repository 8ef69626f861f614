//! The users of a first start: those of an older version's `users.json`, or a new one.

use std::collections::BTreeMap;

use base::limits::USER_NAME_MAX;
use base::node::{Kind, Path, Shape, Value};
use serde_json::{Value as Json, json};

use super::password;
use crate::state::{StateDir, StateError, users};
use crate::tree::viewer::Everything;
use crate::tree::{Actor, Change, Problem, Request, Tree};

/// Why the first users cannot be entered.
#[derive(Debug, thiserror::Error)]
pub enum FirstError {
    /// The old file is damaged or cannot be removed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The configuration does not take them.
    #[error("the first users cannot be added to the configuration: {0}")]
    Refused(String),
}

/// Imports the users of `users.json` as administrators with their passwords, and removes the file.
/// Users that are configured already stay as they are. Returns the names that the configuration
/// cannot have.
///
/// # Errors
/// Nothing has been entered then.
pub fn take_over(state: &StateDir, tree: &Tree) -> Result<Vec<String>, FirstError> {
    let old = users::read(state)?;
    if old.is_empty() {
        return Ok(Vec::new());
    }
    let name = Kind::Text { max: USER_NAME_MAX, shape: Shape::Name };
    let there = tree.document().items(&Path::of(&["configuration", "users"]));
    let (good, left): (Vec<_>, Vec<_>) =
        old.into_iter().partition(|(user, _)| name.check(&Value::text(user)).is_ok());
    let new = good.into_iter().filter(|(user, _)| !there.contains(user));
    let changes: Vec<Change> = new.map(|(user, hash)| administrator(user, hash)).collect();
    if !changes.is_empty() {
        enter(tree, changes, "users of an older version")?;
    }
    users::remove(state)?;
    Ok(left.into_iter().map(|(user, _)| user).collect())
}

/// Creates an administrator; returns its password, to be printed once.
///
/// # Errors
/// The user does not exist then.
pub fn make(tree: &Tree, user: &str) -> Result<String, FirstError> {
    let password = password::generate();
    enter(tree, vec![administrator(user.to_owned(), password.clone())], "first start")?;
    Ok(password)
}

fn administrator(name: String, password: String) -> Change {
    let properties: BTreeMap<String, Json> = BTreeMap::from([
        ("kind".to_owned(), json!("administrator")),
        ("roles".to_owned(), json!(["administrator"])),
        ("password".to_owned(), json!(password)),
    ]);
    Change::Create { create: "/configuration/users".to_owned(), name, properties }
}

fn enter(tree: &Tree, changes: Vec<Change>, comment: &str) -> Result<(), FirstError> {
    let request = Request { changes, comment: comment.to_owned(), ..Request::default() };
    let refused = |problems: Vec<Problem>| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        FirstError::Refused(all.join("; "))
    };
    let who = Actor::new("plimsoll", "start");
    tree.commit(&request, &who, &Everything).map(drop).map_err(refused)
}
