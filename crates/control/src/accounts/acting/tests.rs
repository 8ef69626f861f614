//! Whose rights a signed-in user has.

use std::fs;

use super::*;
use crate::state::tests::Scratch;

const PASSWD: &str = "root:x:0:0::/:\nann:x:1000:100::/:\nftp:x:1001:101::/:\n";
const GROUP: &str = "staff:x:50:ann,ftp\n";

fn server() -> Cred {
    Cred { uid: 900, gid: 901, groups: vec![902] }
}

/// As whom a user of this name acts.
fn acting(name: &str, kind: Kind, owner: Owner) -> Cred {
    let scratch = Scratch::new();
    let (passwd, group) = (scratch.path().join("passwd"), scratch.path().join("group"));
    fs::write(&passwd, PASSWD).unwrap();
    fs::write(&group, GROUP).unwrap();
    let user = User { kind, owner, ..User::administrator(None) };
    cred(name, &user, &Machine::at(passwd, group), &server())
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
fn without_an_account_it_is_the_server_for_administrators_and_nobody_for_others() {
    assert_eq!(acting("admin", Kind::Administrator, Owner::default()), server());
    assert_eq!(acting("dora", Kind::Data, Owner::default()), ids(NOBODY, NOBODY, &[]));
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
