//! Permissions as text, and what roles add up to.

use super::{BUILT_IN, Level, Permission, Rights, SCOPES, built_in};

fn rights(texts: &[&str]) -> Rights {
    Rights::of(texts.iter().map(|text| Permission::parse(text).unwrap()))
}

#[test]
fn change_includes_read_and_nothing_else() {
    let rights = rights(&["shares:read", "clients:change"]);
    assert!(rights.may("shares", Level::Read) && !rights.may("shares", Level::Change));
    assert!(rights.may("clients", Level::Read) && rights.may("clients", Level::Change));
    assert!(!rights.may("users", Level::Read));
    assert!(!Rights::default().may("status", Level::Read));
}

#[test]
fn the_star_is_every_scope_at_its_level() {
    for (scope, _) in SCOPES {
        assert!(rights(&["*:read"]).may(scope, Level::Read));
        assert!(!rights(&["*:read"]).may(scope, Level::Change));
        assert!(rights(&["*"]).may(scope, Level::Change));
    }
}

#[test]
fn adding_never_removes() {
    let mut sum = rights(&["shares:change"]);
    sum.add([Permission::parse("shares:read").unwrap()]);
    assert!(sum.may("shares", Level::Change));
    assert_eq!(sum.names(), ["shares:change"]);
}

#[test]
fn text_goes_both_ways_and_is_refused_with_a_sentence() {
    for (scope, _) in SCOPES {
        for level in [Level::Read, Level::Change] {
            let permission = Permission { scope, level };
            assert_eq!(Permission::parse(&permission.to_string()), Ok(permission));
        }
    }
    for wrong in ["", "shares", "shares:", "shares:write", "pools:read", "*:x", "shares:read "] {
        assert!(Permission::parse(wrong).unwrap_err().contains(' '), "{wrong:?}");
    }
}

#[test]
fn the_built_in_roles_are_as_documented() {
    for (name, _, permissions) in BUILT_IN {
        assert_eq!(built_in(name).unwrap().len(), permissions.len(), "{name}: all can be read");
    }
    let operator = Rights::of(built_in("operator").unwrap());
    assert!(operator.may("users", Level::Read) && !operator.may("users", Level::Change));
    assert!(operator.may("clients", Level::Change));
    assert_eq!(Rights::of(built_in("administrator").unwrap()), Rights::all());
    assert_eq!(Rights::of(built_in("data").unwrap()), Rights::default());
    assert_eq!(built_in("nobody"), None);
}
