//! Rooms that record their calls, and refuse them when configured to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base::node::{Path, Value};
use serde_json::json;

use crate::tree::{Actor, Apply, Document, Operational, Override, Problem, Subtree, Transition};

/// The current configuration of the rooms, and what they refuse.
#[derive(Clone, Default)]
pub struct Recorders(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// By room: the configuration that it took last.
    taken: BTreeMap<&'static str, Document>,
    renamed: Vec<(Path, Path)>,
    password: Option<String>,
    refuse: Option<&'static str>,
}

impl Recorders {
    pub fn taken(&self, room: &'static str) -> Option<Document> {
        self.0.lock().unwrap().taken.get(room).cloned()
    }

    pub fn renamed(&self) -> Vec<(Path, Path)> {
        self.0.lock().unwrap().renamed.clone()
    }

    /// Anna's password as the room of users sees it.
    pub fn password(&self) -> Option<String> {
        self.0.lock().unwrap().password.clone()
    }

    /// This room refuses from now on.
    pub fn refuse(&self, room: Option<&'static str>) {
        self.0.lock().unwrap().refuse = room;
    }
}

struct Recorder {
    name: &'static str,
    all: Recorders,
}

impl Apply for Recorder {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let at = Path::of(&["shares", "default", "wrong"]);
        let wrong = self.name == "shares" && transition.new.set_value(&at, "directory").is_some();
        let problem = Problem::new(&at, "the directory does not exist", "make it");
        wrong.then(|| problem.property("directory")).into_iter().collect()
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        let mut inner = self.all.0.lock().unwrap();
        if inner.refuse == Some(self.name) {
            return Err(Problem::server(&Path::of(&[self.name]), "the room refuses"));
        }
        inner.taken.insert(self.name, transition.new.clone());
        inner.renamed = transition.renamed.to_vec();
        if self.name == "users" {
            let anna = Path::of(&["users", "anna"]);
            inner.password = transition.secrets.get(transition.new, &anna, "password");
        }
        Ok(())
    }

    fn seal(&self, path: &Path, _property: &str, plain: &str) -> Result<String, Problem> {
        if plain.len() < 4 {
            return Err(Problem::new(path, "the password is too short", "take a longer one"));
        }
        Ok(format!("sealed:{}", plain.len()))
    }
}

impl Operational for Recorder {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        match path.to_string().as_str() {
            "/services/nfs" => vec![("state", Value::text("online"))],
            "/sessions/s1" => vec![("user", Value::text("anna"))],
            _ => Vec::new(),
        }
    }

    fn items(&self, path: &Path) -> Vec<String> {
        match path.to_string().as_str() {
            "/sessions" => vec!["s1".to_owned()],
            "/shares/default" => vec!["given".to_owned()],
            _ => Vec::new(),
        }
    }

    fn overrides(&self, path: &Path) -> Vec<Override> {
        let source = "command line";
        match path.to_string().as_str() {
            "/services/nfs" => {
                vec![Override { property: "delegations", value: Value::Bool(false), source }]
            }
            "/shares/default/given" => {
                vec![Override { property: "directory", value: Value::text("/given"), source }]
            }
            _ => Vec::new(),
        }
    }

    fn facts(&self, path: &Path) -> Vec<String> {
        let used = path.is_in(&Path::of(&["shares", "p"]));
        used.then(|| "2 clients use it".to_owned()).into_iter().collect()
    }

    fn act(
        &self,
        _path: &Path,
        action: &str,
        parameters: &BTreeMap<String, Value>,
        who: &Actor,
    ) -> Result<serde_json::Value, Problem> {
        Ok(json!(format!("{action} {} from {}", parameters["name"], who.user)))
    }
}

/// One for each branch.
pub fn branches(all: &Recorders) -> Vec<Subtree> {
    let room = |name| Subtree::new(&[name], Arc::new(Recorder { name, all: all.clone() }));
    ["services", "shares", "users", "sessions"].map(room).into()
}
