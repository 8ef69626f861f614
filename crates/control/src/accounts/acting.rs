//! The identity under which users read and write files: numbers that are configured, the account
//! of their name on this machine, or the server's own identity.

use vfs::cred::Cred;
use vfs::share::rules::NOBODY;

use super::machine::{Account, Machine};
use super::{Kind, User};
use crate::access::{Level, Rights};

/// The superuser's uid.
const ROOT: u32 = 0;

/// What is configured of a user at the file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// The uid.
    pub uid: Option<u32>,
    /// The primary group.
    pub gid: Option<u32>,
    /// Supplementary groups; none: those of the account.
    pub groups: Vec<u32>,
    /// The initial directory: a path within the shares, as `/SHARE/folder`.
    pub home: Option<String>,
}

/// The identity of `user`, which signs in as `name` and has these `rights` in the administration;
/// `server` is the identity that this program runs as.
///
/// A configured uid takes precedence. Without one it is the account of that name, then the server's
/// own identity for users that may change everything, and the anonymous one for all others. The
/// superuser's account and the server's are never found by name: a user that only happens to be
/// called `root` would be superuser.
pub fn cred(name: &str, user: &User, rights: &Rights, machine: &Machine, server: &Cred) -> Cred {
    let Owner { uid, gid, groups, .. } = &user.owner;
    let privileged = |account: &Account| account.uid == ROOT || account.uid == server.uid;
    let account = match uid {
        Some(uid) => machine.by_uid(*uid),
        None => machine.by_name(name).filter(|account| !privileged(account)),
    };
    let base = match (&account, uid) {
        (Some(account), _) => of_account(account, machine),
        (None, Some(uid)) => Cred { uid: *uid, gid: NOBODY, groups: Vec::new() },
        (None, None) if may_change_everything(user, rights) => server.clone(),
        (None, None) => Cred { uid: NOBODY, gid: NOBODY, groups: Vec::new() },
    };
    Cred {
        uid: base.uid,
        gid: gid.unwrap_or(base.gid),
        groups: if groups.is_empty() { base.groups } else { groups.clone() },
    }
}

/// The server can read and write everything that it serves, and its own configuration: its identity
/// is only for users with equivalent permissions in the administration.
fn may_change_everything(user: &User, rights: &Rights) -> bool {
    user.kind == Kind::Administrator && rights.may("*", Level::Change)
}

fn of_account(account: &Account, machine: &Machine) -> Cred {
    Cred { uid: account.uid, gid: account.gid, groups: machine.groups(&account.name) }
}

#[cfg(test)]
mod tests;
