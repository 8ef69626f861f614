//! A run of changes through the API of a server, and what was acknowledged when.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use base::random::{Random, SeededRandom};
use e2e::NOBODY;
use e2e::api::Api;
use e2e::scratch::{Scratch, make_folder};
use e2e::server::{Options, Server};
use serde_json::{Value, json};
use sim::forget::{Choose, ForgetFs, Image};

use super::left;

/// What every password and token of a run begins with.
pub const SECRET: &str = "correct-horse-";

/// How a run goes.
pub struct RunPlan<'a> {
    /// What the changes follow from.
    pub seed: u64,
    /// Picks the moments.
    pub choose: Choose,
    /// Whether moments before the server is ready count, too.
    pub from_start: bool,
    /// Whether this number of changes is enough.
    pub enough: Box<dyn FnMut(usize) -> bool>,
    /// A flush to leave out.
    pub skip_flush: Option<&'a str>,
}

/// A revision that was acknowledged.
pub struct Acknowledged {
    /// Calls of the file system until then.
    pub call: u64,
    /// The changes that the response lists.
    pub changes: Vec<Value>,
    /// The whole configuration.
    pub nodes: Value,
}

/// What happened.
pub struct Run {
    /// By number; 0 is before anything was set.
    pub revisions: Vec<Acknowledged>,
    /// `secrets.json` at the end, which has those of all revisions.
    pub secrets: Value,
    /// Passwords of the users that were made.
    pub passwords: BTreeMap<String, String>,
    scratch: Scratch,
}

impl Run {
    /// The revision that was acknowledged before a call.
    pub fn least(&self, call: u64) -> usize {
        self.revisions.iter().filter(|revision| revision.call < call).count().saturating_sub(1)
    }

    /// A served directory, for a server that starts from what is left.
    pub fn served(&self) -> PathBuf {
        self.scratch.path().join("served")
    }
}

fn set(path: &str, property: &str, value: Value) -> Value {
    json!({ "set": path, "property": property, "value": value })
}

/// What is changed next, from what the changes before have made.
struct Changes {
    random: SeededRandom,
    folder: PathBuf,
    shares: Vec<String>,
    passwords: BTreeMap<String, String>,
    made: usize,
}

impl Changes {
    fn next(&mut self) -> Value {
        self.made += 1;
        let share = match self.shares.len() {
            0 => None,
            n => self.shares.get(self.random.below(n as u64) as usize).cloned(),
        };
        match (self.random.below(6), share) {
            (0, _) => json!([set("/configuration/services/nfs", "lease", (9 + self.made).into())]),
            (1, _) => json!([self.user()]),
            (2, _) => {
                let (name, secret) = (format!("t{}", self.made), self.secret());
                let token = json!({ "role": "operator", "secret": secret });
                json!([{ "create": "/configuration/tokens", "name": name, "properties": token }])
            }
            (3, Some(share)) => {
                self.shares.retain(|one| *one != share);
                json!([{ "destroy": format!("/shares/default/{share}"), "confirm": true }])
            }
            (4, Some(share)) => {
                let at = format!("/shares/default/{share}");
                let rule = format!("10.{}.0.0/16(rw)", self.made % 256);
                json!([
                    set(&at, "nfs_exceptions", json!([rule])),
                    set("/configuration/preferences", "session_idle", (3_600 + self.made).into()),
                ])
            }
            _ => {
                let name = format!("s{}", self.made);
                self.shares.push(name.clone());
                let properties = json!({ "directory": self.folder });
                json!([{ "create": "/shares/default", "name": name, "properties": properties }])
            }
        }
    }

    fn user(&mut self) -> Value {
        let (name, password) = (format!("u{}", self.made), self.secret());
        self.passwords.insert(name.clone(), password.clone());
        let properties =
            json!({ "kind": "administrator", "roles": ["operator"], "password": password });
        json!({ "create": "/configuration/users", "name": name, "properties": properties })
    }

    fn secret(&mut self) -> String {
        format!("{SECRET}{:016x}{:016x}", self.random.next_u64(), self.random.next_u64())
    }
}

/// The options of a server with its state below a forgetful mount.
pub fn options<'a>(dir: &'a Path, state: &'a Path) -> Options<'a> {
    let mut options = Options::new(dir, state);
    // A server that does not run as root depends on the owner and mode of the files it created.
    options.unprivileged = true;
    options
}

/// Changes the configuration of a server repeatedly.
///
/// # Panics
/// When a change is refused.
pub fn run(name: &str, mut wanted: RunPlan<'_>) -> (Run, Vec<Image>) {
    let scratch = Scratch::new(name);
    let mounted = ForgetFs::mount(&scratch.folder("mount", None)).expect("the forgetful mount");
    let served = scratch.folder("served", Some(NOBODY));
    let state = mounted.path().join("state");
    make_folder(&state, Some(NOBODY));
    for dir in [&state, mounted.path()] {
        File::open(dir).and_then(|dir| dir.sync_all()).expect("making it durable");
    }
    let mut options = options(&served, &state);
    options.env.extend(wanted.skip_flush.map(|site| ("PLIMSOLL_TEST_SKIP_FLUSH", site.to_owned())));
    let start = (!wanted.from_start).then(|| Server::start(&options));
    mounted.keep_images(wanted.choose);
    let server = start.unwrap_or_else(|| Server::start(&options));
    let api = Api::new(&state);
    let now = || mounted.stats().ops;
    let mut revisions = vec![Acknowledged { call: now(), changes: Vec::new(), nodes: json!({}) }];
    let (random, folder) = (SeededRandom::new(wanted.seed), served);
    let (shares, passwords) = (Vec::new(), BTreeMap::new());
    let mut changes = Changes { random, folder, shares, passwords, made: 0 };
    while !(wanted.enough)(changes.made) {
        let ask = json!({ "changes": changes.next() });
        let (code, answer) = api.post("/api/v1/changes", &ask);
        let call = now();
        assert_eq!(code, 200, "{ask}: {answer}\n{}", server.stderr_text());
        assert_eq!(answer["revision"], revisions.len(), "every change changes something: {ask}");
        let changes = answer["changes"].as_array().cloned().unwrap_or_default();
        revisions.push(Acknowledged { call, changes, nodes: Value::Null });
    }
    let images = mounted.take_images();
    for (number, revision) in revisions.iter_mut().enumerate().skip(1) {
        revision.nodes = left::inspect(&state, number).expect("a revision");
    }
    let secrets = fs::read(state.join("secrets.json")).expect("secrets");
    let secrets = serde_json::from_slice(&secrets).expect("secrets as JSON");
    let Changes { passwords, .. } = changes;
    (Run { revisions, secrets, passwords, scratch }, images)
}
