//! Sign-ins: the accepted users, their identities, and the end of sessions.

use base::limits::{PASSWORD_MAX, USER_NAME_MAX};

use super::token_secret as new_secret;
use super::{Accounts, Kind, Source, TOKEN_PREFIX, Table, Token, User, Verdict, password};
use crate::access::{Level, Permission, Rights};
use crate::state::files::digest_hex;

fn user(kind: Kind, roles: &[&str]) -> User {
    let roles = roles.iter().map(|role| (*role).to_owned()).collect();
    let password = Some(password::hash("right").unwrap());
    User { kind, roles, ..User::administrator(password) }
}

fn table() -> Table {
    let mut table = Table::default();
    let mut add = |name: &str, user: User| table.users.insert(name.to_owned(), user);
    add("anna", user(Kind::Administrator, &["operator", "shares"]));
    add("dora", user(Kind::Data, &["administrator"]));
    add("gone", User { enabled: false, ..user(Kind::Administrator, &["administrator"]) });
    add("mute", User { password: None, ..user(Kind::Administrator, &["administrator"]) });
    let shares = vec![Permission::parse("shares:change").unwrap()];
    table.roles.insert("shares".to_owned(), shares);
    table
}

#[test]
fn names_and_passwords_are_judged() {
    let accounts = Accounts::new(table()).unwrap();
    assert_eq!(accounts.judge("anna", "right"), Verdict::Right);
    assert_eq!(accounts.judge("dora", "right"), Verdict::DataOnly);
    for (name, given) in [
        ("anna", "wrong"),
        ("anna", ""),
        ("dora", "wrong"),
        ("gone", "right"),
        ("mute", "right"),
        ("mute", ""),
        ("nobody", "right"),
        (&*"a".repeat(USER_NAME_MAX + 1), "right"),
        ("anna", &*"x".repeat(PASSWORD_MAX + 1)),
    ] {
        assert_eq!(accounts.judge(name, given), Verdict::Wrong, "{name:.10} {given:.10}");
    }
}

#[test]
fn an_unknown_name_costs_the_same_hash() {
    let accounts = Accounts::new(table()).unwrap();
    // Algorithm, version, memory, passes, lanes: what sets the time.
    let cost = |hash: &str| hash.split('$').take(4).collect::<Vec<_>>().join("$");
    let inner = accounts.read();
    let real = cost(accounts.hash_to_check(inner.user("anna")));
    assert_eq!(real, "$argon2id$v=19$m=19456,t=2,p=1");
    for name in ["nobody", "mute", "gone"] {
        assert_eq!(cost(accounts.hash_to_check(inner.user(name))), real, "{name}");
    }
}

#[test]
fn roles_add_up_and_follow_the_configuration() {
    let accounts = Accounts::new(table()).unwrap();
    let rights = accounts.rights("anna").unwrap();
    assert!(rights.may("shares", Level::Change) && rights.may("users", Level::Read));
    assert!(!rights.may("users", Level::Change));
    for name in ["dora", "gone", "nobody"] {
        assert_eq!(accounts.rights(name), None, "{name}");
    }
    let mut less = table();
    less.roles.clear();
    less.users.remove("mute");
    accounts.replace(less);
    assert!(!accounts.rights("anna").unwrap().may("shares", Level::Change));
    assert_eq!(accounts.rights("mute"), None);
}

#[test]
fn a_user_of_the_command_line_stands_before_the_configured_one() {
    let accounts = Accounts::new(table()).unwrap();
    accounts.add_command_line("dora", "given").unwrap();
    assert_eq!(accounts.judge("dora", "given"), Verdict::Right);
    assert_eq!(accounts.judge("dora", "right"), Verdict::Wrong);
    assert_eq!(accounts.rights("dora"), Some(Rights::all()));
    assert_eq!(accounts.source("dora"), Some(Source::CommandLine));
    assert_eq!(accounts.source("anna"), Some(Source::Configuration));
    assert_eq!(accounts.source("nobody"), None);
    accounts.replace(Table::default());
    assert_eq!(accounts.judge("dora", "given"), Verdict::Right, "whatever is configured");
    assert_eq!(accounts.table(), Table::default(), "and is not configured");
}

#[test]
fn tokens_have_a_role_and_an_end() {
    let (secret, other) = (new_secret(), new_secret());
    assert!(secret.starts_with(TOKEN_PREFIX) && secret != other);
    let mut table = table();
    let token =
        Token { role: "shares".to_owned(), ends: Some(1_000), digest: Some(digest_hex(&secret)) };
    table.tokens.insert("build".to_owned(), token.clone());
    table.tokens.insert("unused".to_owned(), Token { digest: None, ..token });
    let accounts = Accounts::new(table).unwrap();
    let (name, rights) = accounts.token(&secret, 999).unwrap();
    assert_eq!(name, "build");
    assert!(rights.may("shares", Level::Change) && !rights.may("status", Level::Read));
    assert_eq!(accounts.token(&secret, 1_000), None, "it has ended");
    for wrong in [&*other, "", TOKEN_PREFIX, &digest_hex(&secret)] {
        assert_eq!(accounts.token(wrong, 0), None, "{wrong}");
    }
}

#[test]
fn however_many_check_a_password_at_once_the_memory_of_few_is_kept() {
    let hash = password::hash("a b c d e f").unwrap();
    std::thread::scope(|scope| {
        for n in 0..12 {
            let (hash, given) = (&hash, if n % 2 == 0 { "a b c d e f" } else { "a b c d e g" });
            scope.spawn(move || assert_eq!(password::is_right(hash, given), n % 2 == 0));
        }
    });
    assert!((1..=base::limits::PASSWORD_CHECKS_MAX).contains(&password::free_slots()));
}

#[test]
fn generated_passwords_are_long_and_differ() {
    let (a, b) = (password::generate(), password::generate());
    assert!(a.len() == 19 && a != b, "{a} {b}");
    let hash = password::hash(&a).unwrap();
    assert!(password::is_ours(&hash) && !password::is_ours(&a));
    assert!(password::is_right(&hash, &a) && !password::is_right(&hash, &b));
    assert!(!password::is_ours(&hash.replace("m=19456", "m=999999")), "of another cost");
    assert!(!password::is_right("$argon2id$broken", &a) && !password::is_ours("$argon2id$broken"));
}

#[test]
fn a_decoy_is_checked_as_a_hash_is_and_no_password_is_right() {
    let (decoy, hash) = (password::decoy().unwrap(), password::hash("right").unwrap());
    assert_eq!(decoy.len(), hash.len(), "{decoy}: {hash}");
    assert!(password::is_ours(&decoy) && password::is_ours(&hash));
    assert!(password::is_right(&hash, "right"));
    for given in ["", "right", decoy.as_str()] {
        assert!(!password::is_right(&decoy, given));
    }
    assert_ne!(password::decoy().unwrap(), decoy);
}
