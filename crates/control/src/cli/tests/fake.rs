//! A simulated server with a small tree: two services, projects with shares, users, sessions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};

use crate::cli::api::{Api, Request};
use crate::cli::place::NodePath;
use crate::cli::{CliError, Outside, Shell};

type Nodes = BTreeMap<NodePath, BTreeMap<String, Json>>;

/// What the server holds. `nodes` has the items and what was set anywhere.
#[derive(Debug, Default)]
pub struct FakeState {
    pub nodes: Nodes,
    pub revision: u64,
    pub acted: Vec<(String, Json)>,
    pub committed: Vec<Json>,
    pub gone: bool,
    /// It takes requests and dies before it answers those that do something.
    pub dies: bool,
}

/// A handle on it, which tests keep.
#[derive(Clone, Default)]
pub struct Fake(pub Arc<Mutex<FakeState>>);

/// The user: answers and files that are handed in.
#[derive(Clone, Default)]
pub struct User(pub Arc<Mutex<UserState>>);

#[derive(Default)]
pub struct UserState {
    pub yes: Option<bool>,
    pub asked: Vec<String>,
    pub secret: Option<String>,
    pub files: BTreeMap<String, String>,
}

impl Outside for User {
    fn read(&mut self, path: &str) -> Result<String, String> {
        let hands = self.0.lock().unwrap();
        hands.files.get(path).cloned().ok_or_else(|| format!("cannot read {path}"))
    }

    fn write(&mut self, path: &str, text: &str) -> Result<(), String> {
        self.0.lock().unwrap().files.insert(path.to_owned(), text.to_owned());
        Ok(())
    }

    fn confirm(&mut self, question: &str) -> Option<bool> {
        let mut hands = self.0.lock().unwrap();
        hands.asked.push(question.to_owned());
        hands.yes
    }

    fn secret(&mut self, _name: &str) -> Option<String> {
        self.0.lock().unwrap().secret.clone()
    }
}

/// A shell, its server, its user.
pub fn shell() -> (Shell, Fake, User) {
    let fake = Fake::default();
    {
        let mut held = fake.0.lock().unwrap();
        held.revision = 7;
        for path in ["/shares/default", "/maintenance/sessions/s1"] {
            held.nodes.insert(NodePath::parse(path), BTreeMap::new());
        }
        let tank = BTreeMap::from([("directory".to_owned(), json!("/srv/tank"))]);
        held.nodes.insert(NodePath::parse("/shares/default/tank"), tank);
    }
    let user = User::default();
    let shell = Shell::open(Box::new(fake.clone()), Box::new(user.clone()), false).unwrap();
    (shell, fake, user)
}

fn property(name: &str, kind: Json, default: Json, role: &str) -> Json {
    json!({
        "name": name, "title": name, "kind": kind, "unit": "", "default": default, "role": role,
        "help": format!("What {name} is."), "example": "", "required": name == "directory",
    })
}

fn context(name: &str, properties: &[Json], children: &[Json], items: Json) -> Json {
    json!({
        "name": name, "title": name.to_uppercase(), "help": format!("All about {name}."),
        "scope": name, "properties": properties, "actions": [], "children": children,
        "items": items,
    })
}

fn items(noun: &str, origin: &str, context: Json) -> Json {
    json!({"noun": noun, "plural": format!("{noun}s"), "key": {"type": "text"}, "max": 9,
        "origin": origin, "context": context})
}

/// A session: with actions that are called as commands are.
fn session() -> Json {
    let mut used = property("used", json!({"type": "time"}), Json::Null, "state");
    used["absent"] = json!("never");
    let mut phone = property("phone", json!({"type": "text"}), Json::Null, "state");
    phone["only_if"] = json!({"property": "kind", "values": ["phone"]});
    let kind = property("kind", json!({"type": "text"}), json!("desk"), "state");
    let mut session = context("session", &[kind, phone, used], &[], Json::Null);
    session["actions"] = json!(["abort", "destroy"].map(|name| {
        json!({"name": name, "title": name, "help": "Ends it.", "destructive": true,
            "parameters": []})
    }));
    session
}

/// The declaration.
pub fn tree() -> Json {
    let rules =
        || json!({"type": "list", "max": 9, "of": {"type": "text", "shape": "export-rule"}});
    let modes = json!([["none", "nobody"], ["read-only", "no changes"], ["read-write", "all"]]);
    let access =
        || property("nfs", json!({"type": "choice", "choices": modes}), Json::Null, "setting");
    let mut nfs = context(
        "nfs",
        &[
            property("enabled", json!({"type": "bool"}), json!(true), "setting"),
            property(
                "lease",
                json!({"type": "seconds", "min": 1, "max": 3600}),
                json!(90),
                "setting",
            ),
            property("limit", json!({"type": "bytes"}), json!(1 << 20), "setting"),
            property("status", json!({"type": "text"}), Json::Null, "state"),
        ],
        &[],
        Json::Null,
    );
    nfs["actions"] = json!([
        {"name": "expire", "title": "Expire", "help": "Ends a client.", "destructive": true,
         "parameters": [{"name": "client", "kind": {"type": "text"}, "required": true}]},
        {"name": "history", "title": "History", "help": "Its own history.", "parameters": []},
    ]);
    let share = context(
        "share",
        &[
            property(
                "directory",
                json!({"type": "text", "shape": "path"}),
                Json::Null,
                "at-create",
            ),
            access(),
            property("exceptions", rules(), json!([]), "setting"),
        ],
        &[],
        Json::Null,
    );
    let project = context("project", &[access()], &[], items("share", "configured", share));
    let user = context(
        "user",
        &[
            property("full_name", json!({"type": "text"}), json!(""), "setting"),
            property("password", json!({"type": "text"}), Json::Null, "secret"),
        ],
        &[],
        Json::Null,
    );
    let mut project_of = property("project", json!({"type": "text"}), json!(""), "setting");
    project_of["items_of"] = json!("/shares");
    let services = context("services", &[project_of], &[nfs], Json::Null);
    let users = context("users", &[], &[], items("user", "configured", user));
    let sessions = context("sessions", &[], &[], items("session", "live", session()));
    context(
        "",
        &[],
        &[
            context("configuration", &[], &[services, users], Json::Null),
            context("shares", &[], &[], items("project", "configured", project)),
            context("maintenance", &[], &[sessions], Json::Null),
        ],
        Json::Null,
    )
}

fn refused(status: u16, sentence: &str, property: Option<&str>) -> CliError {
    CliError::Refused {
        status,
        sentence: sentence.to_owned(),
        hint: String::new(),
        property: property.map(str::to_owned),
    }
}

impl Api for Fake {
    fn ask(&self, request: &Request) -> Result<Json, CliError> {
        let mut held = self.0.lock().unwrap();
        if held.gone {
            return Err(CliError::Lost { sentence: "cannot reach the server".to_owned() });
        }
        if held.dies && !matches!(request, Request::Get(_)) {
            return Err(CliError::Unanswered { sentence: "the reply is truncated".to_owned() });
        }
        match request {
            Request::Get(path) if path == "/tree" => Ok(tree()),
            Request::Get(path) if path == "/configuration" => Ok(json!("# revision 7\n")),
            Request::Get(path) if path.starts_with("/audit") => {
                held.acted.push((path.clone(), Json::Null));
                Ok(json!({"rows": [], "more": false}))
            }
            Request::Get(path) => match path.strip_prefix("/nodes") {
                Some(path) => held.node(&NodePath::parse(path.split('?').next().unwrap_or(""))),
                None => Err(refused(404, "no such path", None)),
            },
            Request::Post(path, body) if path == "/changes" => held.change(body),
            Request::Post(path, body) => {
                held.acted.push((path.clone(), body.clone()));
                Ok(json!({"result": {"ended": 3}}))
            }
            Request::Put(..) => Ok(json!({"revision": 8, "changes": []})),
        }
    }
}

impl FakeState {
    fn node(&self, place: &NodePath) -> Result<Json, CliError> {
        let declared: crate::cli::declared::Context = serde_json::from_value(tree()).unwrap();
        let found = declared.find(place).ok_or_else(|| refused(404, "no such node", None))?;
        if found.item_of.is_some() && !self.nodes.contains_key(place) {
            return Err(refused(404, "no such item", None));
        }
        let set = self.nodes.get(place);
        let properties: Vec<Json> = found
            .context
            .properties
            .iter()
            .map(|property| {
                let value = set.and_then(|set| set.get(&property.name));
                let above = self.nodes.get(&place.parent()).and_then(|set| set.get(&property.name));
                let (value, source, from) = match (value, above) {
                    (Some(value), _) => (value, "set", Json::Null),
                    (None, Some(above)) => (above, "inherited", json!(place.parent().to_string())),
                    (None, None) => (&property.default, "default", Json::Null),
                };
                let secret = property.is_secret();
                json!({"name": property.name, "value": if secret { &Json::Null } else { value },
                "set": secret && source == "set", "source": source, "from": from,
                "role": property.role})
            })
            .collect();
        let items: Vec<&str> = self
            .nodes
            .keys()
            .filter(|at| at.parent() == *place && !at.0.is_empty())
            .map(NodePath::name)
            .collect();
        let items = if found.context.items.is_some() { json!(items) } else { json!([]) };
        Ok(json!({"path": place.to_string(), "revision": self.revision, "properties": properties,
            "items": items, "may": {"change": true}}))
    }

    fn change(&mut self, body: &Json) -> Result<Json, CliError> {
        if body["revision"].as_u64().is_some_and(|revision| revision < self.revision) {
            return Err(refused(409, "mia changed /configuration/services/nfs at 12:00:00", None));
        }
        let mut nodes = self.nodes.clone();
        for change in body["changes"].as_array().unwrap() {
            one(&mut nodes, change)?;
        }
        if body["dry_run"] == json!(false) {
            self.nodes = nodes;
            self.revision += 1;
            self.committed.push(body.clone());
        }
        Ok(json!({"revision": self.revision, "changes": [], "notes": []}))
    }
}

fn one(nodes: &mut Nodes, change: &Json) -> Result<(), CliError> {
    let text = |name: &str| change[name].as_str().unwrap_or("").to_owned();
    let at = |name: &str| NodePath::parse(&text(name));
    if change.get("set").is_some() {
        if change["property"] == "lease" && change["value"].as_u64() > Some(3600) {
            return Err(refused(400, "lease is at most 3600 seconds", Some("lease")));
        }
        nodes.entry(at("set")).or_default().insert(text("property"), change["value"].clone());
    } else if change.get("unset").is_some() {
        nodes.entry(at("unset")).or_default().remove(&text("property"));
    } else if change.get("create").is_some() {
        let given = change["properties"].as_object().unwrap();
        if at("create").0 == ["shares", "default"] && !given.contains_key("directory") {
            return Err(refused(400, "a share needs a directory", Some("directory")));
        }
        let given = given.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        nodes.insert(at("create").child(&text("name")), given);
    } else if change.get("destroy").is_some() {
        if change["confirm"] != json!(true) {
            return Err(refused(409, "1 share goes, its files stay", None));
        }
        nodes.retain(|place, _| !place.within(&at("destroy")));
    } else {
        let (from, to) = (at("rename"), at("rename").parent().child(&text("to")));
        let moved = std::mem::take(nodes).into_iter();
        nodes.extend(moved.map(|(place, set)| (place.moved(&from, &to), set)));
    }
    Ok(())
}
