//! Sign-ins to the services that transfer files: the accepted users, their identities, and the
//! duration.

use std::fs;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicI64, Ordering};

use base::clock::ManualClock;
use base::limits::{ACCOUNT_FILES_INTERVAL, SIGN_IN_FREE_FAILURES, SIGN_IN_WAIT_MAX};

use super::*;
use crate::access::Permission;
use crate::accounts::{Kind, Owner, Table, User, password};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));
const KEY: &str = "ssh-ed25519 AAAA anna";

struct Scene {
    accounts: Arc<Accounts>,
    clock: Arc<ManualClock>,
    users: Users,
}

fn anna() -> User {
    User {
        kind: Kind::Data,
        roles: Vec::new(),
        ssh_keys: vec![KEY.to_owned()],
        owner: Owner {
            uid: Some(1000),
            gid: Some(100),
            groups: vec![50],
            home: Some("/lab/anna".to_owned()),
        },
        ..User::administrator(Some(password::hash("right").unwrap()))
    }
}

fn table(anna: User) -> Table {
    let mut table = Table::default();
    table.users.insert("anna".to_owned(), anna);
    let gone = User { enabled: false, ..self::anna() };
    table.users.insert("gone".to_owned(), gone);
    table
}

fn scene() -> Scene {
    let accounts = Arc::new(Accounts::new(table(anna())).unwrap());
    let clock = Arc::new(ManualClock::at(1_800_000_000_000_000_000));
    let machine = Machine::at("/nowhere/passwd", "/nowhere/group");
    let server = Cred { uid: 900, gid: 900, groups: Vec::new() };
    let users = Users::new(accounts.clone(), clock.clone(), machine, server);
    Scene { accounts, clock, users }
}

#[test]
fn a_user_of_shares_signs_in_as_configured() {
    let Scene { users, .. } = scene();
    let person = users.password(PEER, "anna", "right").unwrap();
    let cred = Cred { uid: 1000, gid: 100, groups: vec![50] };
    assert_eq!((person.name.as_str(), &person.cred, person.anonymous), ("anna", &cred, false));
    assert_eq!(person.home.as_deref(), Some(b"/lab/anna".as_slice()));
    assert_eq!(users.keys("anna"), [KEY]);
}

#[test]
fn wrong_passwords_and_disabled_users_are_refused_alike() {
    let Scene { users, .. } = scene();
    for (name, given) in [("anna", "wrong"), ("gone", "right"), ("nobody", "right"), ("anna", "")] {
        assert_eq!(users.password(PEER, name, given), Err(Refused::Wrong), "{name} {given}");
    }
    assert_eq!(users.keys("gone"), [""; 0]);
    assert!(users.person("gone").is_none() && users.person("nobody").is_none());
}

#[test]
fn passwords_and_keys_of_all_services_share_one_limit() {
    let Scene { accounts, clock, users } = scene();
    for n in 0..SIGN_IN_FREE_FAILURES {
        match n % 3 {
            0 => users.judged(PEER, "anna", false),
            1 => assert_eq!(users.password(PEER, "anna", "wrong"), Err(Refused::Wrong)),
            _ => accounts.throttle().failed(PEER, "anna", clock.monotonic_ns()),
        }
    }
    let refused = users.password(PEER, "anna", "right");
    assert!(matches!(refused, Err(Refused::Wait(_))), "{refused:?}");
    assert_eq!(
        users.must_wait(PEER, "anna"),
        accounts.throttle().must_wait(PEER, "anna", clock.monotonic_ns())
    );
    clock.advance(SIGN_IN_WAIT_MAX);
    users.password(PEER, "anna", "right").unwrap();
    assert_eq!(users.must_wait(PEER, "anna"), None);
}

#[test]
fn a_sign_in_is_valid_until_its_credentials_or_identity_change() {
    let Scene { accounts, users, .. } = scene();
    let person = users.password(PEER, "anna", "right").unwrap();
    let before = users.generation();
    assert!(users.stands(&person));

    let full_name = "Anna Berg".to_owned();
    accounts.replace(table(User { full_name, ..anna_of(&accounts) }));
    assert!(users.stands(&person), "what he is called matters to nobody");
    assert_ne!(users.generation(), before);

    let changes: [fn(User) -> User; 4] = [
        |anna| User { password: Some(password::hash("other").unwrap()), ..anna },
        |anna| User { ssh_keys: Vec::new(), ..anna },
        |anna| User { owner: Owner { uid: Some(1), ..Owner::default() }, ..anna },
        |anna| User { enabled: false, ..anna },
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let person = users.person("anna").unwrap();
        let generation = users.generation();
        accounts.replace(table(change(anna_of(&accounts))));
        assert!(!users.stands(&person), "change {n}");
        assert_ne!(users.generation(), generation, "change {n}");
    }
    assert!(users.person("anna").is_none());
}

/// A clock at which another password is set, when it is read for this time.
struct Turning {
    clock: ManualClock,
    accounts: Arc<Accounts>,
    left: AtomicI64,
}

impl Clock for Turning {
    fn monotonic_ns(&self) -> u64 {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            let password = Some(password::hash("another").unwrap());
            self.accounts.replace(table(User { password, ..anna_of(&self.accounts) }));
        }
        self.clock.monotonic_ns()
    }

    fn wall_ns(&self) -> u64 {
        self.clock.wall_ns()
    }
}

#[test]
fn a_password_that_is_changed_while_it_is_checked_is_refused() {
    let at = |left: i64| {
        let accounts = Arc::new(Accounts::new(table(anna())).unwrap());
        let (clock, left) = (ManualClock::at(1_800_000_000_000_000_000), AtomicI64::new(left));
        let clock = Arc::new(Turning { clock, accounts: accounts.clone(), left });
        let machine = Machine::at("/nowhere/passwd", "/nowhere/group");
        let server = Cred { uid: 900, gid: 900, groups: Vec::new() };
        let users = Users::new(accounts, clock.clone(), machine, server);
        let judged = users.password(PEER, "anna", "right");
        (judged, clock.left.load(Ordering::Relaxed))
    };
    for reading in 1.. {
        let (judged, left) = at(reading);
        if left > 0 {
            assert!(reading > 2, "the clock is read before and after the check");
            assert!(judged.is_ok(), "nothing has changed");
            return;
        }
        assert_eq!(judged, Err(Refused::Wrong), "at reading {reading} of the clock");
    }
}

#[test]
fn the_account_files_are_looked_at_again_after_their_interval() {
    let dir = std::env::temp_dir().join(format!("plimsoll-identity-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let (passwd, group) = (dir.join("passwd"), dir.join("group"));
    let account = |uid: u32| fs::write(&passwd, format!("anna:x:{uid}:100::/:/bin/sh\n")).unwrap();
    account(1000);
    fs::write(&group, "").unwrap();
    let anna = User { owner: Owner::default(), kind: Kind::Data, ..anna() };
    let accounts = Arc::new(Accounts::new(table(anna)).unwrap());
    let clock = Arc::new(ManualClock::at(1_800_000_000_000_000_000));
    let server = Cred { uid: 900, gid: 900, groups: Vec::new() };
    let machine = Machine::at(&passwd, &group);
    let users = Users::new(accounts, clock.clone(), machine, server);
    let person = users.person("anna").unwrap();
    assert_eq!(person.cred.uid, 1000);
    account(20_000);
    assert!(users.stands(&person), "looked up a moment ago");
    clock.advance(ACCOUNT_FILES_INTERVAL);
    assert!(!users.stands(&person));
    assert_eq!(users.person("anna").unwrap().cred.uid, 20_000);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_user_that_is_signed_out_or_removed_is_not_valid() {
    let Scene { accounts, users, .. } = scene();
    let person = users.person("anna").unwrap();
    accounts.renew("anna");
    assert!(!users.stands(&person));
    let person = users.person("anna").unwrap();
    accounts.replace(Table::default());
    assert!(!users.stands(&person));
}

#[test]
fn a_user_of_the_command_line_acts_as_the_server_and_stays() {
    let Scene { accounts, users, .. } = scene();
    accounts.add_command_line("op", "open").unwrap();
    let person = users.password(PEER, "op", "open").unwrap();
    assert_eq!(person.cred.uid, 900);
    accounts.replace(Table::default());
    assert!(users.stands(&person));
}

/// A signed-in user loses the server's identity with a role that no longer permits everything.
#[test]
fn the_servers_identity_ends_with_the_role() {
    let Scene { accounts, users, .. } = scene();
    let olga = |roles: &[&str]| User {
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        ..User::administrator(Some(password::hash("open").unwrap()))
    };
    let with = |roles: &[&str], permission: &str| {
        let mut table = table(anna());
        let permissions = vec![Permission::parse(permission).unwrap()];
        table.roles.insert("own".to_owned(), permissions);
        table.users.insert("olga".to_owned(), olga(roles));
        table
    };
    let ends: [(&[&str], &str, &[&str], &str); 3] = [
        (&["administrator"], "*", &["operator"], "*"),
        (&["own"], "*", &["own"], "shares:change"),
        (&["operator", "own"], "*", &["operator"], "*"),
    ];
    for (before, permits, after, still_permits) in ends {
        accounts.replace(with(before, permits));
        let person = users.password(PEER, "olga", "open").unwrap();
        assert_eq!(person.cred.uid, 900, "{before:?} {permits}");
        accounts.replace(with(after, still_permits));
        assert!(!users.stands(&person), "{after:?} {still_permits}");
        let person = users.password(PEER, "olga", "open").unwrap();
        assert_eq!(person.cred.uid, NOBODY, "{after:?} {still_permits}");
    }
}

#[test]
fn without_sign_in_the_user_is_anonymous() {
    let Scene { users, .. } = scene();
    let anonymous = users.anonymous();
    assert!(anonymous.anonymous && anonymous.cred.uid == NOBODY);
    assert!(users.stands(&anonymous));
}

#[test]
fn numbers_have_the_names_of_configured_users() {
    let Scene { users, .. } = scene();
    assert_eq!(users.user(1000).as_deref(), Some("anna"));
    assert_eq!(users.user(1001), None);
}

fn anna_of(accounts: &Accounts) -> User {
    accounts.table().users["anna"].clone()
}
