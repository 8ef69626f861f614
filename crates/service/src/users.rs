//! The users that may sign in: those of the configuration, those of the command line, and the first
//! one, which is created when there are none.

use std::sync::Arc;

use base::clock::SystemClock;
use base::out::note;
use control::access::Rights;
use control::accounts::first::{self, FirstError};
use control::accounts::identity::Users;
use control::accounts::machine::Machine;
use control::accounts::{Accounts, Table};
use control::state::{StateDir, StateError};
use control::tree::Tree;
use vfs::host::acting;

/// The user that is created when no user may sign in yet.
pub const FIRST: &str = "admin";

/// The user of the printed sign-in URL when no user has all permissions.
const CONSOLE: &str = "console";

/// The users of the command line alone.
///
/// # Errors
/// Passwords cannot be hashed.
pub fn given(users: &[(String, String)]) -> Result<Arc<Accounts>, StateError> {
    let accounts = Accounts::new(Table::default())?;
    for (user, password) in users {
        accounts.add_command_line(user, password)?;
    }
    Ok(Arc::new(accounts))
}

/// The list of users for services with sign-in.
pub fn known(accounts: &Arc<Accounts>) -> Arc<Users> {
    let server = acting::own().clone();
    let clock = Arc::new(SystemClock);
    Arc::new(Users::new(accounts.clone(), clock, Machine::default(), server))
}

/// Imports the users of an older version. If no user could sign in then, creates one and returns
/// its password, to be printed once.
///
/// # Errors
/// The configuration does not take them.
pub fn first(
    state: &StateDir,
    tree: &Tree,
    accounts: &Accounts,
) -> Result<Option<String>, FirstError> {
    for left_out in first::take_over(state, tree)? {
        note(&format!(
            "plimsoll: the user {left_out:?} cannot be imported: names have letters, digits, '.', \
             '_' and '-'; create another one"
        ));
    }
    if !accounts.is_empty() {
        return Ok(None);
    }
    first::make(tree, FIRST).map(Some)
}

/// The user of the sign-in URL, which is printed only to the user that has started the server: a
/// user with all permissions. If there is none, one is created for this run, without a password.
pub fn for_login(accounts: &Accounts, given: &[(String, String)]) -> String {
    let may_all = |user: &String| accounts.rights(user) == Some(Rights::all());
    let given = given.iter().map(|(user, _)| user.clone());
    let configured = accounts.table().users.into_keys();
    let found = given.chain([FIRST.to_owned()]).chain(configured).find(may_all);
    found.unwrap_or_else(|| {
        accounts.add_console(CONSOLE);
        CONSOLE.to_owned()
    })
}
