//! The walk: at each node its settings, its actions, its items, and what is below.

use std::fmt;
use std::time::Duration;

use e2e::api::{Api, wait_for};
use serde_json::{Value, json};

use super::plan::{self, Given, World};
use super::ways::{self, Field, Interface, Values, properties};

/// The name of the items that are walked into.
const OWN: &str = "reach";
/// Longest time of an action that was started: names that do not exist are looked up for some
/// seconds.
const REST: Duration = Duration::from_secs(60);

/// A value that others depend on.
struct Condition {
    property: String,
    value: Value,
}

impl Condition {
    /// Whether a property is there because of it.
    fn is_of(&self, property: &Value) -> bool {
        let only_if = &property["only_if"];
        only_if["property"] == *self.property && list(only_if, "values").any(|v| *v == self.value)
    }

    /// The value of a property without which there is none of the branch's own.
    fn needs<'a>(
        &self,
        one: &Value,
        mut declared: impl Iterator<Item = &'a Value>,
    ) -> Option<Value> {
        let only_if = &declared.find(|of| name(of) == self.property)?["only_if"];
        let is_it = only_if["property"] == one["name"] && !one["name"].is_null();
        if is_it { list(only_if, "values").next().cloned() } else { None }
    }
}

/// How much was tried.
#[derive(Default)]
pub struct Counts {
    pub nodes: usize,
    pub set: usize,
    pub items: usize,
    pub actions: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, set, items, actions } = self;
        write!(f, "{nodes} nodes, {set} settings, {items} kinds of items, {actions} actions")
    }
}

/// Parts of the tree that have a test of their own, so that none takes long: the top of each and
/// its name. A node belongs to the nearest part above it, or to [`REST_OF_THE_TREE`].
pub const PARTS: [(&str, &str); 8] = [
    ("/configuration", "configuration"),
    ("/configuration/network", NETWORK),
    ("/configuration/services", "services"),
    ("/configuration/users", "accounts"),
    ("/configuration/roles", "accounts"),
    ("/configuration/tokens", "accounts"),
    // LUNs name targets and initiators.
    ("/configuration/san", "shares"),
    ("/shares", "shares"),
];
/// The part that is walked through in separate namespaces: its settings change the machine.
pub const NETWORK: &str = "network";
/// The part of all nodes that are in no other.
pub const REST_OF_THE_TREE: &str = "rest";

/// The part that a node belongs to.
fn part(path: &str) -> &'static str {
    let above = |top: &str| {
        path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let parts = PARTS.iter().filter(|(top, _)| above(top));
    parts.max_by_key(|(top, _)| top.len()).map_or(REST_OF_THE_TREE, |(_, name)| name)
}

/// A walk through a part of a tree.
pub struct Walk {
    part: &'static str,
    api: Api,
    ways: Vec<Box<dyn Interface>>,
    world: World,
    pub counts: Counts,
    /// What is out of reach of some way.
    pub missing: Vec<String>,
    /// What this test has no good value for: refused, and by all ways.
    pub notes: Vec<String>,
}

impl Walk {
    pub fn new(part: &'static str, api: Api, ways: Vec<Box<dyn Interface>>, world: World) -> Self {
        let (counts, missing, notes) = (Counts::default(), Vec::new(), Vec::new());
        Self { part, api, ways, world, counts, missing, notes }
    }

    /// A node and all below it, as far as they are in the part.
    pub fn node(&mut self, path: String, declared: &Value) {
        let is_in_part = part(&path) == self.part;
        if is_in_part {
            self.counts.nodes += 1;
            self.settings(&path, declared, None);
            for action in list(declared, "actions") {
                self.action(&path, action);
            }
        }
        for child in list(declared, "children") {
            self.node(format!("{path}/{}", name(child)), child);
        }
        if is_in_part && declared["items"].is_object() {
            self.items(&path, &declared["items"]);
        }
    }

    /// What went wrong on the pages by the way.
    pub fn browser_complaints(&mut self) -> Vec<String> {
        self.ways.iter_mut().flat_map(|way| way.complaints()).collect()
    }

    fn miss(&mut self, way: usize, what: &str, why: &str) {
        self.missing.push(format!("{what}, {}: {why}", self.ways[way].name()));
    }

    /// Each setting gets another value, each way; with `only`, those that depend on it.
    fn settings(&mut self, path: &str, declared: &Value, only: Option<&Condition>) {
        let node = self.api.get(&format!("/api/v1/nodes{path}")).1;
        let now = |name: &str| list(&node, "properties").find(|one| one["name"] == *name).cloned();
        let settings = list(declared, "properties")
            .filter(|one| one["role"] == "setting" || one["role"] == "secret")
            .filter(|one| only.is_none_or(|only| only.is_of(one)))
            .filter(|one| plan::applies(one, |n| now(n).unwrap_or_default()["value"].clone()));
        let mut fields: Vec<Field> = Vec::new();
        for property in settings {
            let now = now(name(property)).unwrap_or_default();
            // The command line of the server decides it, or it is built in.
            if now["why"].is_string() {
                continue;
            }
            match self.field(path, property, &now["value"]) {
                Ok(mut field) => {
                    field["before"] = now["value"].clone();
                    field["was_set"] = json!(now["source"] == "set");
                    fields.push(field);
                }
                Err(why) => self.missing.push(format!("{path} {}: {why}", name(property))),
            }
        }
        // With what others depend on, those others come and go.
        let branches = plan::branches(declared);
        let decides = |field: &Field| branches.iter().any(|(on, _)| on == name(field));
        let grows = |field: &Field| plan::only_grows(path, name(field));
        let (growing, fields): (Vec<Field>, Vec<Field>) = fields.into_iter().partition(grows);
        growing.into_iter().for_each(|one| self.growing(path, one));
        let (first, rest): (Vec<Field>, Vec<Field>) = fields.into_iter().partition(decides);
        first.into_iter().for_each(|one| self.groups(path, vec![one]));
        self.groups(path, rest);
    }

    /// All together, as far as the server takes them together.
    fn groups(&mut self, path: &str, mut fields: Vec<Field>) {
        while !fields.is_empty() {
            let (together, apart) = self.split(path, fields);
            let again = !together.is_empty();
            match again {
                true => self.group(path, &together),
                false => apart.iter().for_each(|one| self.refused(path, std::slice::from_ref(one))),
            }
            fields = if again { apart } else { Vec::new() };
        }
    }

    /// A property with a value that is not the present one.
    fn field(&self, path: &str, property: &Value, now: &Value) -> Result<Field, String> {
        let mut field = property.clone();
        field["value"] = match Given::other(path, name(property), now, &self.world) {
            Some(value) => value,
            None => plan::other(property, now, &self.world)?,
        };
        Ok(field)
    }

    /// Those that the server takes in one change, and the others, which it may take alone.
    fn split(&self, path: &str, mut fields: Vec<Field>) -> (Vec<Field>, Vec<Field>) {
        let mut apart = Vec::new();
        while !fields.is_empty() {
            let changes = ways::changes(path, &fields);
            let ask = json!({"dry_run": true, "changes": changes});
            let (code, answer) = self.api.post("/api/v1/changes", &ask);
            if code == 200 {
                break;
            }
            let about = &answer["error"]["property"];
            let at = fields.iter().position(|field| field["name"] == *about);
            apart.push(fields.remove(at.unwrap_or(fields.len() - 1)));
        }
        (fields, apart)
    }

    /// Set one way, read the next way, taken back the first way.
    fn group(&mut self, path: &str, fields: &[Field]) {
        self.counts.set += fields.len();
        let what = format!("{path} {}", names(fields));
        let wanted: Values =
            fields.iter().map(|field| (name(field).to_owned(), shown(field, "value"))).collect();
        let before: Values =
            fields.iter().map(|field| (name(field).to_owned(), shown(field, "before"))).collect();
        for way in 0..self.ways.len() {
            let other = (way + 2) % self.ways.len();
            if let Err(why) = self.ways[way].set(path, fields) {
                self.miss(way, &format!("{what} cannot be set"), &why);
                continue;
            }
            match self.ways[other].read(path, fields) {
                Ok(found) if found == wanted => {}
                found => {
                    let told = format!("{found:?} in place of {wanted:?}");
                    self.miss(other, &format!("{what} is read"), &told);
                }
            }
            if let Err(why) = self.take_back(way, path, fields) {
                self.miss(way, &format!("{what} cannot be taken back"), &why);
            }
            let (_, node) = self.api.get(&format!("/api/v1/nodes{path}"));
            for (name, value) in &before {
                let now = list(&node, "properties").find(|one| one["name"] == *name);
                let now = now.map_or(Value::Null, |one| {
                    shown(one, if one["role"] == "secret" { "set" } else { "value" })
                });
                // A list that is not set is empty.
                let is_same = now == *value || (now.is_null() && *value == json!([]));
                if !is_same {
                    self.miss(way, &format!("{path} {name} is not as before"), &now.to_string());
                }
            }
        }
    }

    /// Made larger each way, and read another way; it is not taken back.
    fn growing(&mut self, path: &str, mut field: Field) {
        self.counts.set += 1;
        for way in 0..self.ways.len() {
            let other = (way + 1) % self.ways.len();
            let now = field["before"].as_u64().unwrap_or_default();
            field["value"] = json!(2 * now);
            let what = format!("{path} {}", name(&field));
            if let Err(why) = self.ways[way].set(path, std::slice::from_ref(&field)) {
                self.miss(way, &format!("{what} cannot be set"), &why);
                continue;
            }
            let wanted: Values = [(name(&field).to_owned(), shown(&field, "value"))].into();
            match self.ways[other].read(path, std::slice::from_ref(&field)) {
                Ok(found) if found == wanted => {}
                found => {
                    let told = format!("{found:?} in place of {wanted:?}");
                    self.miss(other, &format!("{what} is read"), &told);
                }
            }
            field["before"] = field["value"].clone();
        }
    }

    /// What was set before is set so again, the others are unset.
    fn take_back(&mut self, way: usize, path: &str, fields: &[Field]) -> Result<(), String> {
        let (again, gone): (Vec<Field>, Vec<Field>) = fields
            .iter()
            .cloned()
            .partition(|field| field["was_set"] == true && field["role"] != "secret");
        if !gone.is_empty() {
            self.ways[way].unset(path, &gone)?;
        }
        let again: Vec<Field> = again
            .into_iter()
            .map(|mut field| {
                field["value"] = field["before"].clone();
                field
            })
            .collect();
        if again.is_empty() { Ok(()) } else { self.ways[way].set(path, &again) }
    }

    /// No value of this test is good enough: then no way may take it, and each must say so.
    fn refused(&mut self, path: &str, fields: &[Field]) {
        let what = format!("{path} {}", names(fields));
        let mut said = String::new();
        for way in 0..self.ways.len() {
            match self.ways[way].set(path, fields) {
                Ok(()) => self.miss(way, &what, "took what the API refuses"),
                Err(why) if is_missing(&why) => self.miss(way, &what, &why),
                Err(why) => said = why,
            }
        }
        self.notes.push(format!("{what}: {said}"));
    }

    fn action(&mut self, path: &str, action: &Value) {
        self.counts.actions += 1;
        let required = list(action, "parameters").any(|one| one["required"] == true);
        let ask = required || plan::is_only_asked_for(path, action);
        for way in 0..self.ways.len() {
            self.wait_at_rest(path);
            self.prepare_action(path, name(action));
            let Err(why) = self.ways[way].act(path, action, ask) else { continue };
            if !plan::is_not_now(path, action, &why) {
                self.miss(way, &format!("{path} {} ", name(action)), &why);
            }
        }
        self.wait_at_rest(path);
    }

    /// Makes the change without which an action has nothing to do.
    fn prepare_action(&self, path: &str, action: &str) {
        let of = |(at, names, _): &&(&str, &[&str], &str)| *at == path && names.contains(&action);
        for (_, _, body) in plan::BEFORE_ACTIONS.iter().filter(of) {
            let body = body.replace("NUMBER", &(1_000 + self.world.number()).to_string());
            let body: Value = serde_json::from_str(&body).expect("JSON");
            let (code, answer) = self.api.post("/api/v1/changes", &body);
            assert_eq!(code, 200, "{answer}");
        }
    }

    /// Waits for the end of what an action that was done before has begun.
    fn wait_at_rest(&self, path: &str) {
        for (_, property, value, _) in plan::AT_REST.iter().filter(|(at, ..)| path.starts_with(at))
        {
            wait_for(&format!("{property} {value} of {path}"), REST, || {
                let node = self.api.get(&format!("/api/v1/nodes{path}")).1;
                let told = list(&node, "properties").find(|one| name(one) == *property)?;
                (told["value"] == *value).then_some(())
            });
        }
    }

    /// Items are made, renamed and destroyed each way; one of them is walked into.
    fn items(&mut self, path: &str, items: &Value) {
        let noun = items["noun"].as_str().unwrap_or_default();
        for (_, _, to, body) in plan::PREPARED.iter().filter(|(at, ..)| *at == path) {
            let body: Value = serde_json::from_str(body).expect("JSON");
            let (code, answer) = self.api.post(to, &body);
            assert_eq!(code, 200, "{to}: {answer}");
        }
        if items["origin"] == "configured" {
            self.counts.items += 1;
            for way in 0..self.ways.len() {
                self.item(way, path, items, noun);
            }
            let name = self.name(items, OWN);
            let fields = self.fields(path, &name, items, (false, None));
            match self.made(path, &name, &fields) {
                Ok(()) => {
                    self.node(format!("{path}/{name}"), &items["context"]);
                    return self.branches(path, items, &name);
                }
                Err(why) => self.missing.push(format!("{path} create {name}: {why}")),
            }
        }
        let (_, node) = self.api.get(&format!("/api/v1/nodes{path}"));
        let there =
            list(&node, "items").next().map(|one| one.as_str().unwrap_or_default().to_owned());
        if let Some(name) = there {
            self.node(format!("{path}/{name}"), &items["context"]);
        }
    }

    /// A name that the items' key allows.
    fn name(&self, items: &Value, wanted: &str) -> String {
        let most = items["key"]["max_length"].as_u64().unwrap_or(u64::MAX);
        match items["key"]["shape"].as_str() {
            Some("name" | "line" | "host" | "domain") => plan::short(wanted, most),
            _ => match plan::other(
                &json!({"kind": items["key"], "example": ""}),
                &Value::Null,
                &self.world,
            ) {
                Ok(Value::String(text)) => text,
                other => wanted.to_owned() + &other.map(|_| String::new()).unwrap_or_default(),
            },
        }
    }

    /// What an item is made with: what it must have, and, with `all`, whatever is decided then.
    fn fields(
        &self,
        path: &str,
        item: &str,
        items: &Value,
        (all, branch): (bool, Option<&Condition>),
    ) -> Vec<Field> {
        let path = format!("{path}/{item}");
        let declared = || list(&items["context"], "properties");
        let mut made: Vec<Field> = Vec::new();
        for one in declared().filter(|one| one["role"] != "state") {
            let value = |of: &str| {
                let made = made.iter().find(|field| name(field) == of).map(|made| &made["value"]);
                let default = || declared().find(|one| name(one) == of).map(|one| &one["default"]);
                made.or_else(default).cloned().unwrap_or_default()
            };
            let chosen = branch.and_then(|branch| {
                let is_it = branch.property == name(one);
                if is_it { Some(branch.value.clone()) } else { branch.needs(one, declared()) }
            });
            let only_then = one["role"] == "at-create";
            let (given, required) =
                (Given::of(&path, name(one), &self.world), one["required"] == true);
            let needed = required || plan::is_needed(&path, name(one));
            let decided = (needed || only_then && (all || given.is_some()))
                && !plan::is_left_out(&path, name(one));
            match chosen {
                Some(value) => {
                    let mut field = one.clone();
                    field["value"] = value;
                    made.push(field);
                }
                None if decided && plan::applies(one, value) => {
                    made.extend(self.field(&path, one, &one["default"]));
                }
                None => {}
            }
        }
        made
    }

    /// Settings that an item has only with another value than the one that it was made with.
    fn branches(&mut self, path: &str, items: &Value, of: &str) {
        let context = &items["context"];
        let node = self.api.get(&format!("/api/v1/nodes{path}/{of}")).1;
        for (property, value) in plan::branches(context) {
            let branch = Condition { property, value };
            let has = |one: &Value| one["name"] == *branch.property && one["value"] == branch.value;
            if list(&node, "properties").any(has) {
                continue;
            }
            let item = format!("{OWN}-{}", branch.value.as_str().unwrap_or_default());
            let item = self.name(items, &item);
            let made = self.fields(path, &item, items, (false, Some(&branch)));
            match self.made(path, &item, &made) {
                Ok(()) => self.settings(&format!("{path}/{item}"), context, Some(&branch)),
                Err(why) if plan::is_refused(&format!("{path} create {item}:")) => {
                    self.refused_item((path, &item), items, &branch);
                    self.notes.push(format!("{path} create {item}: {why}"));
                }
                Err(why) => self.missing.push(format!("{path} create {item}: {why}")),
            }
        }
    }

    /// An item that cannot be made here: each way has a field for each of its settings, and refuses
    /// it.
    fn refused_item(&mut self, (path, item): (&str, &str), items: &Value, branch: &Condition) {
        let noun = items["noun"].as_str().unwrap_or_default();
        let mut fields = self.fields(path, item, items, (false, Some(branch)));
        for one in list(&items["context"], "properties").filter(|one| one["role"] == "setting") {
            let value = |of: &str| {
                let made = fields.iter().find(|field| name(field) == of);
                made.map_or(Value::Null, |made| made["value"].clone())
            };
            let is_new = !fields.iter().any(|field| name(field) == name(one));
            if is_new && !plan::is_left_out(path, name(one)) && plan::applies(one, value) {
                let at = format!("{path}/{item}");
                fields.extend(self.field(&at, one, &one["default"]));
            }
        }
        for way in 0..self.ways.len() {
            let what = format!("{path} create {item} with {}", names(&fields));
            match self.ways[way].create(path, noun, item, &fields) {
                Ok(()) => self.miss(way, &what, "took what the API refuses"),
                Err(why) if is_missing(&why) => self.miss(way, &what, &why),
                Err(_) => self.counts.set += fields.len(),
            }
        }
    }

    /// Makes an item to be walked into.
    fn made(&self, path: &str, name: &str, fields: &[Field]) -> Result<(), String> {
        let create = json!([{"create": path, "name": name, "properties": properties(fields)}]);
        let (code, answer) = self.api.post("/api/v1/changes", &json!({"changes": create}));
        if code == 200 { Ok(()) } else { Err(answer["error"].to_string()) }
    }

    fn item(&mut self, way: usize, path: &str, items: &Value, noun: &str) {
        let by = self.ways[way].name();
        let wanted = format!("{OWN}-by-{}", by.replace(' ', "-").to_lowercase());
        let name_ = self.name(items, &wanted);
        let fields = self.fields(path, &name_, items, (true, None));
        let at = format!("{path}/{name_}");
        if let Err(why) = self.ways[way].create(path, noun, &name_, &fields) {
            if is_missing(&why) {
                self.miss(way, &format!("{path} create {noun}"), &why);
            } else {
                self.notes.push(format!("{path} create {noun}, {by}: {why}"));
            }
            return;
        }
        let wanted: Values =
            fields.iter().map(|field| (name(field).to_owned(), shown(field, "value"))).collect();
        let other = (way + 1) % self.ways.len();
        match self.ways[other].read(&at, &fields) {
            Ok(found) if found == wanted => {}
            found => self.miss(other, &at, &format!("{found:?} in place of {wanted:?}")),
        }
        let renamed = self.name(items, &format!("{name_}-2"));
        if let Err(why) = self.ways[way].rename(&at, &renamed) {
            self.miss(way, &format!("{at} rename"), &why);
        }
        if let Err(why) = self.ways[way].destroy(&format!("{path}/{renamed}")) {
            self.miss(way, &format!("{path}/{renamed} destroy"), &why);
        }
        let (_, node) = self.api.get(&format!("/api/v1/nodes{path}"));
        assert!(
            !list(&node, "items").any(|one| *one == *renamed || *one == *name_),
            "{path}: {node}"
        );
    }
}

/// Whether it is the way that lacks something, not the value that is no good.
fn is_missing(why: &str) -> bool {
    [
        "no field",
        "Timeout",
        "no such command",
        "has no property",
        "unknown property",
        "is not called",
    ]
    .iter()
    .any(|part| why.contains(part))
}

fn list<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of[name].as_array().into_iter().flatten()
}

fn name(of: &Value) -> &str {
    of["name"].as_str().unwrap_or_default()
}

fn names(fields: &[Field]) -> String {
    fields.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// A value as all ways show it: of a secret, whether it is set; a list that is not set is empty.
fn shown(field: &Field, which: &str) -> Value {
    let value = &field[which];
    match field["role"].as_str() {
        Some("secret") if which != "set" => json!(which == "value"),
        _ if value.is_null() && field["kind"]["type"] == "list" => json!([]),
        _ => value.clone(),
    }
}
