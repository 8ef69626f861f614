//! The identities of signed-in users.

use std::fs;

use super::*;
use crate::access::{Permission, SCOPES, built_in};
use crate::state::tests::Scratch;

const PASSWD: &str =
    "root:x:0:0::/:\ntoor:x:0:0::/:\nkeep:x:900:901::/:\nann:x:1000:100::/:\nftp:x:1001:101::/:\n";
const GROUP: &str = "staff:x:50:ann,ftp\n";

fn server() -> Cred {
    Cred { uid: 900, gid: 901, groups: vec![902] }
}

/// The identity of a user of this name, with the rights of `role` if it is built in.
fn acting_with(name: &str, (kind, role): (Kind, &str), owner: Owner) -> Cred {
    let scratch = Scratch::new();
    let (passwd, group) = (scratch.path().join("passwd"), scratch.path().join("group"));
    fs::write(&passwd, PASSWD).unwrap();
    fs::write(&group, GROUP).unwrap();
    let user = User { kind, owner, ..User::administrator(None) };
    let permission = || Permission::parse(role).into_iter().collect();
    let rights = Rights::of(built_in(role).unwrap_or_else(permission));
    cred(name, &user, &rights, &Machine::at(passwd, group), &server())
}

/// The same, of a user that may change everything if it is an administrator.
fn acting(name: &str, kind: Kind, owner: Owner) -> Cred {
    acting_with(name, (kind, "administrator"), owner)
}

fn ids(uid: u32, gid: u32, groups: &[u32]) -> Cred {
    Cred { uid, gid, groups: groups.to_vec() }
}

#[test]
fn without_numbers_it_is_the_account_of_that_name() {
    for kind in [Kind::Data, Kind::Administrator] {
        assert_eq!(acting("ann", kind, Owner::default()), ids(1000, 100, &[50]));
    }
}

#[test]
fn without_an_account_it_is_the_server_for_administrators_and_uid_65534_for_others() {
    assert_eq!(acting("admin", Kind::Administrator, Owner::default()), server());
    assert_eq!(acting("dora", Kind::Data, Owner::default()), ids(NOBODY, NOBODY, &[]));
}

#[test]
fn the_servers_identity_requires_the_right_to_change_everything() {
    let nobody = ids(NOBODY, NOBODY, &[]);
    let scopes = SCOPES.iter().map(|(scope, _)| *scope).filter(|scope| *scope != "*");
    let partial = scopes.map(|scope| format!("{scope}:change"));
    let roles = ["operator", "data", "*:read"].map(str::to_owned).into_iter().chain(partial);
    for role in roles {
        let administrator = (Kind::Administrator, role.as_str());
        assert_eq!(acting_with("op", administrator, Owner::default()), nobody, "{role}");
        assert_eq!(acting_with("ann", administrator, Owner::default()), ids(1000, 100, &[50]));
    }
    for role in ["administrator", "*", "*:change"] {
        let administrator = (Kind::Administrator, role);
        assert_eq!(acting_with("op", administrator, Owner::default()), server(), "{role}");
        // A data user keeps the names of roles that it had as an administrator.
        assert_eq!(acting_with("op", (Kind::Data, role), Owner::default()), nobody, "{role}");
    }
}

#[test]
fn the_superuser_and_the_server_are_not_found_by_name() {
    for name in ["root", "toor", "keep"] {
        let of = |kind, role| acting_with(name, (kind, role), Owner::default());
        assert_eq!(of(Kind::Data, "data"), ids(NOBODY, NOBODY, &[]), "{name}");
        assert_eq!(of(Kind::Administrator, "operator"), ids(NOBODY, NOBODY, &[]), "{name}");
        assert_eq!(of(Kind::Administrator, "administrator"), server(), "{name}");
    }
    let root = Owner { uid: Some(0), ..Owner::default() };
    assert_eq!(acting("ann", Kind::Data, root), ids(0, 0, &[]), "what is configured holds");
}

#[test]
fn a_number_decides_before_the_name() {
    let uid = |uid| Owner { uid: Some(uid), ..Owner::default() };
    assert_eq!(acting("ann", Kind::Data, uid(1001)), ids(1001, 101, &[50]));
    assert_eq!(acting("admin", Kind::Administrator, uid(7)), ids(7, NOBODY, &[]));
}

#[test]
fn groups_that_are_set_take_the_place_of_the_account_s() {
    let owner = Owner { gid: Some(8), groups: vec![9, 10], ..Owner::default() };
    assert_eq!(acting("ann", Kind::Data, owner), ids(1000, 8, &[9, 10]));
    let owner = Owner { gid: Some(8), ..Owner::default() };
    assert_eq!(acting("dora", Kind::Data, owner), ids(NOBODY, 8, &[]));
}
