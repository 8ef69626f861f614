//! Users, roles and tokens through the tree: what is refused, what takes effect at once, what is
//! retained, and the users that are signed out.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use base::clock::ManualClock;
use base::node::{Context, Path};
use serde_json::{Value as Json, json};

use super::People;
use crate::access::{Level, Permission, Rights};
use crate::accounts::{Accounts, Source, Table, Verdict, first, node, password};
use crate::sessions::node::{PREFERENCES, SESSIONS};
use crate::state::StateDir;
use crate::state::files::write_atomic;
use crate::state::tests::Scratch;
use crate::tree::store::Folder;
use crate::tree::view;
use crate::tree::viewer::{Everything, Viewer};
use crate::tree::{Actor, Done, Fault, Problem, Request, Tree};

static CONFIGURATION: Context = Context::new("configuration", "Configuration", "", "configuration")
    .children(&[&node::USERS, &node::ROLES, &node::TOKENS, &PREFERENCES]);
static MAINTENANCE: Context =
    Context::new("maintenance", "Maintenance", "", "maintenance").children(&[&SESSIONS]);
/// A tree with what this room has.
pub(crate) static ROOT: Context =
    Context::new("", "Test", "", "status").children(&[&CONFIGURATION, &MAINTENANCE]);

const NOW: u64 = 1_800_000_000;
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));

struct Server {
    tree: Arc<Tree>,
    accounts: Arc<Accounts>,
    clock: Arc<ManualClock>,
    _scratch: Option<Scratch>,
}

impl Server {
    fn fresh() -> Self {
        let scratch = Scratch::new();
        let server = Self::new(&scratch);
        Self { _scratch: Some(scratch), ..server }
    }

    fn new(scratch: &Scratch) -> Self {
        let clock = Arc::new(ManualClock::at(NOW * 1_000_000_000));
        let disk = Arc::new(Folder::new(scratch.path()));
        let tree = Arc::new(Tree::open(disk, &ROOT, clock.clone()).unwrap());
        let accounts = Arc::new(Accounts::new(Table::default()).unwrap());
        let people = People::start(accounts.clone(), clock.clone(), &tree);
        tree.join(people.branches());
        Self { tree, accounts, clock, _scratch: None }
    }

    fn change(&self, changes: Json) -> Result<Done, Vec<Problem>> {
        let request: Request = serde_json::from_value(json!({ "changes": changes })).unwrap();
        self.tree.commit(&request, &actor(), &Everything)
    }

    /// On behalf of a user with these permissions.
    fn change_as(&self, permissions: &[&str], changes: Json) -> Result<Done, Vec<Problem>> {
        let request: Request = serde_json::from_value(json!({ "changes": changes })).unwrap();
        self.tree.commit(&request, &actor(), &RestrictedViewer(permissions))
    }

    fn create(&self, kind: &str, name: &str, properties: Json) -> Result<Done, Vec<Problem>> {
        let parent = format!("/configuration/{kind}");
        self.change(json!([{ "create": parent, "name": name, "properties": properties }]))
    }

    fn anna(&self) {
        let properties = json!({
            "kind": "administrator", "roles": ["operator"], "password": "correct horse"
        });
        self.create("users", "anna", properties).unwrap();
    }

    fn act(&self, path: &str, action: &str) -> Result<Json, Problem> {
        self.tree.act(&path.parse().unwrap(), action, &Default::default(), &actor(), &Everything)
    }

    fn sign_in(&self, user: &str, token: &str) {
        use base::clock::Clock;
        self.accounts.sessions().open(token, user, PEER, self.clock.monotonic_ns());
    }

    fn is_in(&self, token: &str) -> bool {
        use base::clock::Clock;
        self.accounts.sessions().find(token, self.clock.monotonic_ns()).is_some()
    }
}

/// A viewer with these permissions.
struct RestrictedViewer<'a>(&'a [&'a str]);

impl Viewer for RestrictedViewer<'_> {
    fn may_read(&self, scope: &str) -> bool {
        self.rights().may(scope, Level::Read)
    }

    fn why_not(&self, scope: &str) -> Option<String> {
        (!self.rights().may(scope, Level::Change)).then(|| format!("may not change {scope}"))
    }

    fn rights(&self) -> Rights {
        Rights::of(self.0.iter().map(|text| Permission::parse(text).unwrap()))
    }
}

fn actor() -> Actor {
    Actor::new("root", "local")
}

fn sentence(refused: Result<Done, Vec<Problem>>) -> String {
    let problems = refused.unwrap_err();
    assert_eq!(problems.len(), 1, "told once: {problems:?}");
    problems[0].to_string()
}

#[test]
fn a_user_is_in_effect_at_once_and_after_a_restart() {
    let scratch = Scratch::new();
    {
        let server = Server::new(&scratch);
        assert_eq!(server.accounts.judge("anna", "correct horse"), Verdict::Wrong);
        server.anna();
        assert_eq!(server.accounts.judge("anna", "correct horse"), Verdict::Right);
    }
    let server = Server::new(&scratch);
    assert_eq!(server.accounts.judge("anna", "correct horse"), Verdict::Right);
    assert_eq!(server.accounts.judge("anna", "correct horsf"), Verdict::Wrong);
    let rights = server.accounts.rights("anna").unwrap();
    assert!(rights.may("shares", Level::Read) && !rights.may("shares", Level::Change));
    assert_eq!(server.accounts.source("anna"), Some(Source::Configuration));
}

#[test]
fn passwords_and_tokens_are_kept_as_hashes_only_and_shown_nowhere() {
    let scratch = Scratch::new();
    let server = Server::new(&scratch);
    server.anna();
    server.create("tokens", "build", json!({ "role": "operator" })).unwrap();
    let token = server.act("/configuration/tokens/build", "issue").unwrap();
    let token = token["token"].as_str().unwrap();
    let (name, _) = server.accounts.token(token, NOW).unwrap();
    assert_eq!(name, "build");
    let export = server.tree.export("test");
    assert!(export.contains("anna") && export.contains("(secret)"), "{export}");
    assert!(!export.contains("argon2"), "{export}");
    let mut seen = 0;
    for name in ["secrets.json", "audit.log", "configuration/000001.toml"] {
        let text = fs::read_to_string(scratch.path().join(name)).unwrap();
        assert!(!text.contains("correct horse") && !text.contains(token), "{name}: {text}");
        seen += usize::from(text.contains("$argon2id$"));
    }
    assert_eq!(seen, 1, "in secrets.json only");
}

#[test]
fn a_new_secret_of_a_token_ends_the_old_one_and_an_end_is_kept() {
    let server = Server::fresh();
    let ends = NOW + 60;
    server.create("tokens", "build", json!({ "role": "operator", "ends": ends })).unwrap();
    let issue = || {
        let answer = server.act("/configuration/tokens/build", "issue").unwrap();
        answer["token"].as_str().unwrap().to_owned()
    };
    let (old, new) = (issue(), issue());
    assert_eq!(server.accounts.token(&old, NOW), None);
    assert!(server.accounts.token(&new, ends - 1).is_some());
    assert_eq!(server.accounts.token(&new, ends), None);
    let short = json!([{
        "set": "/configuration/tokens/build", "property": "secret", "value": "guess me"
    }]);
    assert!(sentence(server.change(short)).contains("at least 32 characters"));
    let gone = json!([{ "destroy": "/configuration/tokens/build", "confirm": true }]);
    server.change(gone).unwrap();
    assert_eq!(server.accounts.token(&new, NOW), None);
}

#[test]
fn what_does_not_go_together_is_refused_with_one_sentence() {
    let server = Server::fresh();
    server.create("roles", "keeper", json!({ "permissions": ["shares:change"] })).unwrap();
    let bert = json!({ "kind": "administrator", "roles": ["keeper"], "password": "long enough" });
    server.create("users", "bert", bert).unwrap();
    assert!(server.accounts.rights("bert").unwrap().may("shares", Level::Change));
    let refused = [
        ("users", json!({ "kind": "administrator" }), "needs a role"),
        ("users", json!({ "roles": ["nothing"] }), "unknown role \"nothing\""),
        ("users", json!({ "password": "short" }), "at least 8 characters"),
        ("users", json!({ "ssh_keys": ["ssh-rsa x"] }), "SSH public key"),
        ("roles", json!({ "permissions": ["pools:read"] }), "unknown scope \"pools\""),
        ("tokens", json!({ "role": "nothing" }), "unknown role \"nothing\""),
    ];
    for (kind, properties, says) in refused {
        let said = sentence(server.create(kind, "x", properties));
        assert!(said.contains(says), "{said}");
        assert_eq!(server.accounts.source("x"), None);
    }
    let in_use = json!([{ "destroy": "/configuration/roles/keeper", "confirm": true }]);
    assert!(sentence(server.change(in_use)).contains("unknown role \"keeper\""));
    let built_in = json!([{
        "set": "/configuration/roles/operator", "property": "permissions", "value": ["*"]
    }]);
    server.change(built_in).unwrap_err();
    assert!(!server.accounts.table().rights(&["operator".to_owned()]).may("users", Level::Change));
}

#[test]
fn users_disabled_destroyed_or_with_a_new_password_are_signed_out() {
    let server = Server::fresh();
    let anna = "/configuration/users/anna";
    let ends = [
        json!([{ "set": anna, "property": "password", "value": "another horse" }]),
        json!([{ "set": anna, "property": "enabled", "value": false }]),
        json!([{ "set": anna, "property": "kind", "value": "data" }]),
        json!([{ "destroy": anna, "confirm": true }]),
        json!([{ "rename": anna, "to": "berta" }]),
    ];
    for change in ends {
        server.anna();
        server.sign_in("anna", "t");
        let other = json!([{ "set": anna, "property": "full_name", "value": "Anna" }]);
        server.change(other).unwrap();
        assert!(server.is_in("t"), "for nothing else");
        server.change(change.clone()).unwrap();
        assert!(!server.is_in("t"), "{change}");
        for name in ["anna", "berta"] {
            let path = format!("/configuration/users/{name}");
            let _ = server.change(json!([{ "destroy": path, "confirm": true }]));
        }
    }
}

#[test]
fn sessions_are_seen_and_ended_through_the_tree() {
    let server = Server::fresh();
    server.anna();
    server.sign_in("anna", "t");
    server.clock.advance(Duration::from_secs(5));
    let path = Path::of(&["maintenance", "sessions"]);
    let shown = view::node(&server.tree, &path, 1, &Everything).unwrap();
    let session = &shown["items"][0];
    assert_eq!(session["name"], json!("s1"));
    let values: Vec<&Json> = session["properties"]
        .as_array()
        .unwrap()
        .iter()
        .map(|property| &property["value"])
        .collect();
    assert_eq!(values, [&json!("anna"), &json!("10.0.0.7"), &json!(NOW), &json!(NOW)]);
    server.act("/maintenance/sessions/s1", "end").unwrap();
    assert!(!server.is_in("t"));
    server.act("/maintenance/sessions/s1", "end").unwrap_err();
    server.sign_in("anna", "u");
    server.sign_in("anna", "v");
    let ended = server.act("/configuration/users/anna", "end_sessions").unwrap();
    assert_eq!(ended, json!({ "ended": 2 }));
    assert!(!server.is_in("u") && !server.is_in("v"));
}

#[test]
fn preferences_set_how_long_sessions_last() {
    let server = Server::fresh();
    server.anna();
    server.sign_in("anna", "t");
    let set = |value: Json| {
        let path = "/configuration/preferences";
        server.change(json!([{ "set": path, "property": "session_idle", "value": value }]))
    };
    set(json!("2m")).unwrap();
    server.clock.advance(Duration::from_secs(119));
    assert!(server.is_in("t"));
    server.clock.advance(Duration::from_secs(120));
    assert!(!server.is_in("t"));
    assert!(sentence(set(json!(5))).contains("too small"));
}

#[test]
fn users_of_the_command_line_are_shown_and_not_configured() {
    let server = Server::fresh();
    server.accounts.add_command_line("root", "given").unwrap();
    let path = Path::of(&["configuration", "users"]);
    let shown = view::node(&server.tree, &path, 1, &Everything).unwrap();
    let root = &shown["items"][0];
    assert_eq!(root["name"], json!("root"));
    assert_eq!(root["may"]["change"], json!(false), "{root}");
    assert!(root["may"]["why"].as_str().unwrap().contains("command line"), "{root}");
    let kind = root["properties"].as_array().unwrap().iter().find(|p| p["name"] == "kind");
    assert_eq!(kind.unwrap()["source"], json!("command line"));
    let set =
        json!([{ "set": "/configuration/users/root", "property": "full_name", "value": "x" }]);
    server.change(set).unwrap_err();
    assert!(!server.tree.export("test").contains("root\""));
}

#[test]
fn the_users_of_an_older_version_are_taken_over_once() {
    let scratch = Scratch::new();
    let state = StateDir::open(scratch.path()).unwrap();
    let hash = password::hash("old one").unwrap();
    let old = json!({ "admin": hash, "anna": hash, "b@d name": hash }).to_string();
    let file = state.file("users.json");
    write_atomic(&file, old.as_bytes(), 0o600).unwrap();
    let server = Server::new(&scratch);
    server.anna();
    assert_eq!(first::take_over(&state, &server.tree).unwrap(), ["b@d name"]);
    assert_eq!(server.accounts.judge("admin", "old one"), Verdict::Right, "however short");
    assert_eq!(server.accounts.rights("admin"), Some(Rights::all()));
    assert_eq!(server.accounts.judge("anna", "correct horse"), Verdict::Right, "left as she was");
    assert!(!file.exists());
    assert_eq!(first::take_over(&state, &server.tree).unwrap(), Vec::<String>::new());
}

#[test]
fn the_first_administrator_is_made() {
    let server = Server::fresh();
    let password = first::make(&server.tree, "admin").unwrap();
    assert_eq!(server.accounts.judge("admin", &password), Verdict::Right);
    assert_eq!(server.accounts.rights("admin"), Some(Rights::all()));
    first::make(&server.tree, "admin").unwrap_err();
}

/// An administrator with all permissions.
fn boss(server: &Server, name: &str) {
    let all = json!({
        "kind": "administrator", "roles": ["administrator"], "password": "correct horse"
    });
    server.create("users", name, all).unwrap();
}

#[test]
fn the_last_administrator_stays_one() {
    let server = Server::fresh();
    server.accounts.add_command_line("root", "for this run").unwrap();
    server.anna();
    boss(&server, "bea");
    let bea = "/configuration/users/bea";
    let refused = [
        (json!([{ "destroy": bea, "confirm": true }]), None),
        (json!([{ "set": bea, "property": "kind", "value": "data" }]), Some("kind")),
        (json!([{ "set": bea, "property": "roles", "value": ["operator"] }]), Some("roles")),
        (json!([{ "set": bea, "property": "enabled", "value": false }]), Some("enabled")),
        (json!([{ "unset": bea, "property": "password" }]), Some("password")),
    ];
    for (change, property) in &refused {
        let problem = server.change(change.clone()).unwrap_err().remove(0);
        assert!(problem.sentence.contains("bea is the last one"), "{problem}");
        assert_eq!(problem.property.as_deref(), *property, "{problem}");
        assert_eq!(problem.fault, Fault::Conflict);
    }
    server.change(json!([{ "rename": bea, "to": "beatrix" }])).unwrap();
    server.change(json!([{ "rename": "/configuration/users/beatrix", "to": "bea" }])).unwrap();
    let other = json!([{ "set": bea, "property": "password", "value": "another horse" }]);
    server.change(other).unwrap();
    // Without a password cleo cannot sign in, so she does not count as an administrator.
    let none = json!({ "kind": "administrator", "roles": ["administrator"] });
    server.create("users", "cleo", none).unwrap();
    server.change(refused[0].0.clone()).unwrap_err();
    let cleo = "/configuration/users/cleo";
    let handed_over = json!([
        { "set": cleo, "property": "password", "value": "her own horse" },
        { "destroy": bea, "confirm": true }
    ]);
    server.change(handed_over).unwrap();
    assert_eq!(server.accounts.judge("cleo", "her own horse"), Verdict::Right);
    assert_eq!(server.accounts.source("bea"), None);
}

#[test]
fn a_role_that_the_last_administrator_lives_by_keeps_its_permission() {
    let server = Server::fresh();
    server.create("roles", "all", json!({ "permissions": ["*"] })).unwrap();
    let by_role = json!({ "kind": "administrator", "roles": ["all"], "password": "long enough" });
    server.create("users", "bert", by_role).unwrap();
    let less = json!([{
        "set": "/configuration/roles/all", "property": "permissions", "value": ["users:change"]
    }]);
    assert!(sentence(server.change(less)).contains("bert is the last one"));
}

#[test]
fn a_whole_configuration_brings_administrators_and_their_passwords_follow() {
    let server = Server::fresh();
    boss(&server, "bea");
    let there = server.tree.export("test");
    let import = |text: &str| server.tree.import(text, false, &actor(), &Everything);
    import(&there.replace("users/bea", "users/cleo").replace("= \"administrator\"", "= \"data\""))
        .unwrap_err();
    let done = import(&there.replace("users/bea", "users/cleo")).unwrap();
    assert!(done.notes.iter().any(|note| note.contains("must be set again")), "{done:?}");
    // No user can sign in now, so nothing gets worse: such changes come through the local socket.
    server.create("users", "dora", json!({})).unwrap();
}

/// The permissions of the user that changes users, in the tests of what can be granted.
const KEEPER: [&str; 2] = ["users:change", "shares:change"];

/// A server with roles, users and tokens that may do more than [`KEEPER`], as much, and less.
fn ranked() -> Server {
    let server = Server::fresh();
    let roles = [("keeper", &KEEPER[..]), ("strong", &["*"]), ("weak", &["shares:read"])];
    for (name, permissions) in roles {
        server.create("roles", name, json!({ "permissions": permissions })).unwrap();
    }
    let admin =
        |role: &str| json!({ "kind": "administrator", "roles": [role], "password": "long enough" });
    let users = [
        ("boss", admin("strong")),
        ("self", admin("keeper")),
        ("data", json!({ "password": "long enough" })),
        ("root", json!({ "uid": 0, "password": "long enough" })),
    ];
    for (name, properties) in users {
        server.create("users", name, properties).unwrap();
    }
    for (name, role) in [("all", "strong"), ("some", "weak")] {
        server.create("tokens", name, json!({ "role": role })).unwrap();
    }
    server
}

fn set(kind: &str, name: &str, property: &str, value: Json) -> Json {
    let path = format!("/configuration/{kind}/{name}");
    json!([{ "set": path, "property": property, "value": value }])
}

fn new(kind: &str, properties: Json) -> Json {
    let above = format!("/configuration/{kind}");
    json!([{ "create": above, "name": "new", "properties": properties }])
}

#[test]
fn no_user_grants_rights_that_it_does_not_have() {
    let server = ranked();
    let strong = json!({ "kind": "administrator", "roles": ["strong"], "password": "long enough" });
    let refused = [
        set("users", "self", "roles", json!(["administrator"])),
        set("users", "self", "roles", json!(["operator"])),
        set("users", "boss", "password", json!("mine, it is")),
        set("users", "boss", "enabled", json!(false)),
        set("users", "boss", "kind", json!("data")),
        set("users", "root", "password", json!("mine, it is")),
        set("users", "data", "uid", json!(0)),
        set("users", "data", "groups", json!([0])),
        json!([{ "destroy": "/configuration/users/boss", "confirm": true }]),
        json!([{ "rename": "/configuration/users/boss", "to": "other" }]),
        new("users", strong),
        set("roles", "keeper", "permissions", json!(["*"])),
        set("roles", "weak", "permissions", json!(["services:change"])),
        set("roles", "strong", "permissions", json!(["users:change"])),
        new("roles", json!({ "permissions": ["services:read"] })),
        set("tokens", "some", "role", json!("operator")),
        set("tokens", "all", "ends", json!(1)),
        new("tokens", json!({ "role": "strong" })),
    ];
    for changes in refused {
        let problems = server.change_as(&KEEPER, changes.clone()).unwrap_err();
        assert_eq!(problems[0].fault, Fault::Denied, "{changes}: {problems:?}");
    }
    // An import is no way around.
    let text = server.tree.export("test");
    let text = text.replace("roles = [\"keeper\"]", "roles = [\"strong\"]");
    let imported = server.tree.import(&text, false, &actor(), &RestrictedViewer(&KEEPER));
    assert_eq!(imported.unwrap_err()[0].fault, Fault::Denied);
}

#[test]
fn a_users_rights_can_be_granted() {
    let server = ranked();
    let granted = [
        set("users", "data", "password", json!("another one")),
        set("users", "data", "uid", json!(1000)),
        set("users", "self", "password", json!("another one")),
        set("users", "self", "roles", json!(["weak"])),
        new("users", json!({ "kind": "administrator", "roles": ["keeper"] })),
        set("roles", "weak", "permissions", json!(["shares:change"])),
        new("tokens", json!({ "role": "weak" })),
    ];
    for changes in granted {
        server.change_as(&KEEPER, changes).unwrap();
    }
    let issue = |token: &str| {
        let path = format!("/configuration/tokens/{token}").parse().unwrap();
        server.tree.act(&path, "issue", &Default::default(), &actor(), &RestrictedViewer(&KEEPER))
    };
    assert_eq!(issue("all").unwrap_err().fault, Fault::Denied);
    assert!(issue("some").is_ok());
}

#[test]
fn names_of_users_that_differ_in_case_alone_are_refused() {
    let server = Server::fresh();
    server.anna();
    let data = || json!({ "kind": "data", "password": "correct horse" });
    let refused = sentence(server.create("users", "Anna", data()));
    assert!(refused.contains("differs from the user anna in case alone"), "{refused}");
    server.create("users", "Berta", data()).unwrap();
    assert_eq!(server.accounts.in_any_case("bERTA").as_deref(), Some("Berta"));
    assert_eq!(server.accounts.in_any_case("carl"), None);
    // Both at once: each is new to the other.
    let parent = "/configuration/users";
    let create = |name| json!({ "create": parent, "name": name, "properties": data() });
    let both = server.change(json!([create("carl"), create("CARL")]));
    assert_eq!(both.unwrap_err().len(), 2);
    // A user may get the same name in another case.
    let renamed = json!([{ "rename": "/configuration/users/Berta", "to": "berta" }]);
    server.change(renamed).unwrap();
}
