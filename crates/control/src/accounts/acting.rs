//! As whom users act at the file system: by numbers that are configured, as the account of their
//! name on this machine, or as the server itself.

use vfs::cred::Cred;
use vfs::share::rules::NOBODY;

use super::machine::{Account, Machine};
use super::{Kind, User};

/// What is configured of a user at the file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// His number.
    pub uid: Option<u32>,
    /// His primary group.
    pub gid: Option<u32>,
    /// His other groups; none: those of his account.
    pub groups: Vec<u32>,
    /// Where he begins: a path within the shares, as `/SHARE/folder`.
    pub home: Option<String>,
}

/// The identity of `user`, who signs in as `name`; `server` is the one that this program runs as.
///
/// A number that is set decides. Without one it is the account of that name, for an administrator
/// without an account the server's own identity, and for anybody else nobody's.
pub fn cred(name: &str, user: &User, machine: &Machine, server: &Cred) -> Cred {
    let Owner { uid, gid, groups, .. } = &user.owner;
    let account = match uid {
        Some(uid) => machine.by_uid(*uid),
        None => machine.by_name(name),
    };
    let base = match (&account, uid) {
        (Some(account), _) => of_account(account, machine),
        (None, Some(uid)) => Cred { uid: *uid, gid: NOBODY, groups: Vec::new() },
        (None, None) if user.kind == Kind::Administrator => server.clone(),
        (None, None) => Cred { uid: NOBODY, gid: NOBODY, groups: Vec::new() },
    };
    Cred {
        uid: base.uid,
        gid: gid.unwrap_or(base.gid),
        groups: if groups.is_empty() { base.groups } else { groups.clone() },
    }
}

fn of_account(account: &Account, machine: &Machine) -> Cred {
    Cred { uid: account.uid, gid: account.gid, groups: machine.groups(&account.name) }
}

#[cfg(test)]
mod tests;
