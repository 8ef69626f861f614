//! Who may sign in: the users of the state directory, those of the command line, and the one who
//! is made when there is nobody.

use std::sync::Arc;

use control::access::Rights;
use control::accounts::{Accounts, password};
use control::state::users::Users;
use control::state::{StateDir, StateError};

use super::plan::Plan;

/// The user who is made when nobody may sign in yet.
pub const FIRST: &str = "admin";

/// Who signs in by the printed URL when no user may do everything.
const CONSOLE: &str = "console";

/// Those who may sign in; if nobody could, makes one, whose password is returned to be printed
/// once.
///
/// # Errors
/// A damaged table, or one that cannot be written.
pub fn open(state: &StateDir, plan: &Plan) -> Result<(Arc<Accounts>, Option<String>), StateError> {
    let users = Users::open(state)?;
    let accounts = Arc::new(Accounts::new(users.table())?);
    for (user, password) in &plan.users {
        accounts.add_command_line(user, password)?;
    }
    if !accounts.is_empty() {
        return Ok((accounts, None));
    }
    let password = password::generate();
    users.set(FIRST, &password)?;
    accounts.replace(users.table());
    Ok((accounts, Some(password)))
}

/// For whom the sign-in URL is made, which only who has started the server sees: a user with all
/// rights. Where there is none, one of this run, without a password.
pub fn for_login(accounts: &Accounts, plan: &Plan) -> String {
    let may_all = |user: &String| accounts.rights(user) == Some(Rights::all());
    let given = plan.users.iter().map(|(user, _)| user.clone());
    let configured = accounts.table().users.into_keys();
    let found = given.chain([FIRST.to_owned()]).chain(configured).find(may_all);
    found.unwrap_or_else(|| {
        accounts.add_console(CONSOLE);
        CONSOLE.to_owned()
    })
}
