//! Who may sign in: the users of the configuration, those of the command line, and the one who
//! is made when there is nobody.

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

/// The user who is made when nobody may sign in yet.
pub const FIRST: &str = "admin";

/// Who signs in by the printed URL when no user may do everything.
const CONSOLE: &str = "console";

/// The users of the command line, and nobody else yet.
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

/// The list of users for services whose users sign in.
pub fn known(accounts: &Arc<Accounts>) -> Arc<Users> {
    let server = acting::own().clone();
    let clock = Arc::new(SystemClock);
    Arc::new(Users::new(accounts.clone(), clock, Machine::default(), server))
}

/// Enters the users of an older version. If nobody could sign in then, makes one, whose password
/// is returned to be printed once.
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

/// For whom the sign-in URL is made, which only who has started the server sees: a user with all
/// rights. Where there is none, one of this run, without a password.
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
