//! The request of a transaction, and its effect on a draft of the configuration, checked against
//! the declarations. The current configuration is not touched here.

use std::collections::{BTreeMap, BTreeSet};

use base::limits::{COMMENT_MAX, CONFIGURATION_CHANGES_MAX};
use base::node::{Items, Origin, Path, Property, RESERVED, Role, Value};
use serde::Deserialize;
use serde_json::Value as Json;

use super::document::Document;
use super::{Problem, Secrets, json};

/// One transaction: all of it or nothing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The revision that the caller has seen: properties that were changed by others since then are
    /// refused.
    #[serde(default)]
    pub revision: Option<u64>,
    /// Only check whether it is valid.
    #[serde(default)]
    pub dry_run: bool,
    /// A comment for the audit log and the revision.
    #[serde(default)]
    pub comment: String,
    /// In this order.
    pub changes: Vec<Change>,
}

/// One change.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Fields")]
pub enum Change {
    /// Give a property a value.
    Set {
        /// The node.
        set: String,
        /// Its property.
        property: String,
        /// The value; a text is read as people write values.
        value: Json,
    },
    /// Remove the value: the default or the inherited one takes effect.
    Unset {
        /// The node.
        unset: String,
        /// Its property.
        property: String,
    },
    /// Make an item.
    Create {
        /// The node above it.
        create: String,
        /// Its name.
        name: String,
        /// Properties that it begins with.
        properties: BTreeMap<String, Json>,
    },
    /// Take an item away with all below it.
    Destroy {
        /// The item.
        destroy: String,
        /// That the caller knows what goes with it.
        confirm: bool,
    },
    /// Give an item another name.
    Rename {
        /// The item.
        rename: String,
        /// Its new name.
        to: String,
    },
}

/// A change as it is sent: one of the first five fields determines its kind and names the node.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    set: Option<String>,
    unset: Option<String>,
    create: Option<String>,
    destroy: Option<String>,
    rename: Option<String>,
    property: Option<String>,
    value: Option<Json>,
    name: Option<String>,
    properties: Option<BTreeMap<String, Json>>,
    confirm: Option<bool>,
    to: Option<String>,
}

impl Fields {
    /// Refuses what does not go with `verb`.
    fn only(&self, verb: &str, may: &[&str]) -> Result<(), String> {
        let given = [
            ("property", self.property.is_some()),
            ("value", self.value.is_some()),
            ("name", self.name.is_some()),
            ("properties", self.properties.is_some()),
            ("confirm", self.confirm.is_some()),
            ("to", self.to.is_some()),
        ];
        match given.iter().find(|(name, there)| *there && !may.contains(name)) {
            Some((name, _)) => {
                Err(format!("{name:?} is not valid with {verb:?}, which takes {}", may.join(", ")))
            }
            None => Ok(()),
        }
    }
}

impl TryFrom<Fields> for Change {
    type Error = String;

    fn try_from(mut fields: Fields) -> Result<Self, String> {
        let lacks = |verb: &str, name: &str| format!("{verb:?} needs {name:?}");
        let verbs = [
            fields.set.take(),
            fields.unset.take(),
            fields.create.take(),
            fields.destroy.take(),
            fields.rename.take(),
        ];
        match verbs {
            [Some(set), None, None, None, None] => {
                fields.only("set", &["property", "value"])?;
                let property = fields.property.ok_or_else(|| lacks("set", "property"))?;
                let value = fields.value.ok_or_else(|| lacks("set", "value"))?;
                Ok(Self::Set { set, property, value })
            }
            [None, Some(unset), None, None, None] => {
                fields.only("unset", &["property"])?;
                let property = fields.property.ok_or_else(|| lacks("unset", "property"))?;
                Ok(Self::Unset { unset, property })
            }
            [None, None, Some(create), None, None] => {
                fields.only("create", &["name", "properties"])?;
                let name = fields.name.ok_or_else(|| lacks("create", "name"))?;
                Ok(Self::Create { create, name, properties: fields.properties.unwrap_or_default() })
            }
            [None, None, None, Some(destroy), None] => {
                fields.only("destroy", &["confirm"])?;
                Ok(Self::Destroy { destroy, confirm: fields.confirm.unwrap_or(false) })
            }
            [None, None, None, None, Some(rename)] => {
                fields.only("rename", &["to"])?;
                let to = fields.to.ok_or_else(|| lacks("rename", "to"))?;
                Ok(Self::Rename { rename, to })
            }
            _ => Err("a change needs exactly one of set, unset, create, destroy and rename, with \
                the path of the node"
                .to_owned()),
        }
    }
}

impl Change {
    /// The node that it is about, as the caller wrote it.
    pub fn target(&self) -> &str {
        match self {
            Self::Set { set, .. } => set,
            Self::Unset { unset, .. } => unset,
            Self::Create { create, .. } => create,
            Self::Destroy { destroy, .. } => destroy,
            Self::Rename { rename, .. } => rename,
        }
    }

    /// What it is called in the audit log.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Set { .. } => "set",
            Self::Unset { .. } => "unset",
            Self::Create { .. } => "create",
            Self::Destroy { .. } => "destroy",
            Self::Rename { .. } => "rename",
        }
    }
}

/// What the running server knows of a node and a document cannot.
pub trait Running {
    /// Items that are there without being in the configuration.
    fn items(&self, path: &Path) -> Vec<String>;
    /// What decides a setting in place of the configuration.
    fn source(&self, path: &Path, property: &str) -> Option<&'static str>;
    /// What else ends with an item.
    fn facts(&self, path: &Path) -> Vec<String>;
}

/// A draft: the configuration as it would be.
pub struct Draft<'a> {
    /// The configuration as far as it has been changed.
    pub document: Document,
    /// Items under new names: from, to.
    pub renamed: Vec<(Path, Path)>,
    /// Secrets that are new: number, node, property, as it was given.
    pub secrets: Vec<(i64, Path, String, String)>,
    running: &'a dyn Running,
    numbers: &'a Secrets,
}

impl<'a> Draft<'a> {
    /// A draft that begins with `document`.
    pub fn new(document: Document, running: &'a dyn Running, numbers: &'a Secrets) -> Self {
        Self { document, renamed: Vec::new(), secrets: Vec::new(), running, numbers }
    }

    /// Does all changes of a request.
    ///
    /// # Errors
    /// The first that cannot be done.
    pub fn run(&mut self, request: &Request) -> Result<(), Problem> {
        let wrong = |sentence: &str| Problem::new(&Path::root(), sentence, "use two changes");
        if request.changes.len() > CONFIGURATION_CHANGES_MAX {
            return Err(wrong(&format!(
                "a commit has at most {CONFIGURATION_CHANGES_MAX} changes"
            )));
        }
        let long = request.comment.chars().count() > COMMENT_MAX;
        if long || request.comment.chars().any(char::is_control) {
            let sentence = format!("a comment is one line of at most {COMMENT_MAX} characters");
            return Err(Problem::new(&Path::root(), &sentence, ""));
        }
        request.changes.iter().try_for_each(|change| self.one(change))
    }

    fn one(&mut self, change: &Change) -> Result<(), Problem> {
        let path = parse(change.target())?;
        match change {
            Change::Set { property, value, .. } => self.set(&path, property, value),
            Change::Unset { property, .. } => self.unset(&path, property),
            Change::Create { name, properties, .. } => self.create(&path, name, properties),
            Change::Destroy { confirm, .. } => self.destroy(&path, *confirm),
            Change::Rename { to, .. } => self.rename(&path, to),
        }
    }

    fn set(&mut self, path: &Path, name: &str, value: &Json) -> Result<(), Problem> {
        let property = self.settable(path, name)?;
        let there = self.document.set_value(path, name).is_some();
        if property.role == Role::AtCreate && there {
            let sentence = format!("{name} can only be set at creation");
            return Err(Problem::conflict(path, &sentence, "destroy it and create another one")
                .property(name));
        }
        self.enter(path, property, value)
    }

    fn enter(&mut self, path: &Path, property: &Property, value: &Json) -> Result<(), Problem> {
        let name = property.name;
        let value = json::from_json(&property.kind, value).map_err(|why| {
            let hint = if property.example.is_empty() {
                property.help.to_owned()
            } else {
                format!("for example {}", property.example)
            };
            Problem::new(path, &format!("{name}: {why}"), &hint).property(name)
        })?;
        if property.role != Role::Secret {
            self.document.set(path, name, value);
            return Ok(());
        }
        let id = self.numbers.reserve();
        self.secrets.retain(|(_, at, of, _)| !(at == path && of == name));
        self.secrets.push((id, path.clone(), name.to_owned(), value.to_string()));
        self.document.set(path, name, Value::Integer(id));
        Ok(())
    }

    fn unset(&mut self, path: &Path, name: &str) -> Result<(), Problem> {
        let property = self.settable(path, name)?;
        // One that depends on another property may go together with it.
        let always = property.required && property.only_if.is_none();
        if always || property.role == Role::AtCreate {
            let sentence = format!("{name} must have a value");
            return Err(Problem::new(path, &sentence, "set another one").property(name));
        }
        self.document.unset(path, name);
        Ok(())
    }

    /// The property, if it can be set here.
    fn settable(&self, path: &Path, name: &str) -> Result<&'static Property, Problem> {
        let place = self.there(path)?;
        let property = property(path, place.context.properties, name)?;
        let refuse = |sentence: &str, hint: &str| {
            Err(Problem::conflict(path, sentence, hint).property(name))
        };
        if !property.is_configured() {
            let sentence = format!("{name} is read-only");
            return Err(Problem::new(path, &sentence, "the server sets it").property(name));
        }
        if let Some(source) = self.running.source(path, name) {
            let sentence = decided(name, source);
            let hint = match source {
                "built in" => "it cannot be changed",
                _ => "start the server without that option to use the configuration",
            };
            return refuse(&sentence, hint);
        }
        if let Some(missing) = self.document.missing(path) {
            let sentence =
                format!("{missing} comes from the command line and is not in the configuration");
            return refuse(&sentence, "change it on the command line of the server");
        }
        Ok(property)
    }

    fn create(
        &mut self,
        above: &Path,
        name: &str,
        properties: &BTreeMap<String, Json>,
    ) -> Result<(), Problem> {
        let items = self.items_of(above)?;
        let path = above.join(name);
        self.free(above, items, name)?;
        if self.document.missing(above).is_some() {
            let hint = "create it below a node of the configuration";
            return Err(Problem::conflict(above, "it comes from the command line", hint));
        }
        self.document.create(&path);
        for (name, value) in properties {
            let property = property(&path, items.context.properties, name)?;
            if !property.is_configured() {
                let sentence = format!("{name} is read-only");
                return Err(Problem::new(&path, &sentence, "remove it").property(name));
            }
            self.enter(&path, property, value)?;
        }
        Ok(())
    }

    fn destroy(&mut self, path: &Path, confirm: bool) -> Result<(), Problem> {
        let items = self.made(path)?;
        let below = self.document.nodes().filter(|(at, _)| at.is_in(path)).count() - 1;
        let mut facts = self.running.facts(path);
        if below > 0 {
            facts.insert(0, format!("{below} more items below it"));
        }
        if !confirm {
            let what = match facts.is_empty() {
                true => format!("the {} ends", items.noun),
                false => {
                    format!("destroying the {} also destroys: {}", items.noun, facts.join("; "))
                }
            };
            let hint = "confirm it: \"confirm\": true";
            return Err(Problem::conflict(path, &what, hint));
        }
        self.document.destroy(path);
        self.secrets.retain(|(_, at, _, _)| !at.is_in(path));
        Ok(())
    }

    fn rename(&mut self, path: &Path, to: &str) -> Result<(), Problem> {
        let items = self.made(path)?;
        let above = path.parent().unwrap_or_default();
        self.free(&above, items, to)?;
        let target = above.join(to);
        self.document.rename(path, &target);
        self.secrets.iter_mut().for_each(|(_, at, _, _)| *at = at.moved(path, &target));
        self.renamed.push((path.clone(), target));
        Ok(())
    }

    /// An existing node, in the configuration or in this run.
    fn there(&self, path: &Path) -> Result<base::node::NodeRef, Problem> {
        there(&self.document, self.running, path)
    }

    /// The kind of an item that users made.
    fn made(&self, path: &Path) -> Result<&'static Items, Problem> {
        let place = self.there(path)?;
        let refuse = |sentence: &str| Err(Problem::conflict(path, sentence, ""));
        match place.item {
            None => refuse("it is a fixed part of the appliance"),
            Some(items) if items.origin == Origin::Running => {
                refuse("it is created by the server; use its actions")
            }
            Some(_) if !self.document.is_made(path) => refuse("it is built in"),
            Some(_) if self.document.missing(path).is_some() => {
                refuse("it comes from the command line and is not in the configuration")
            }
            Some(items) => Ok(items),
        }
    }

    /// The kind of items that can be made below a node.
    fn items_of(&self, above: &Path) -> Result<&'static Items, Problem> {
        let place = self.there(above)?;
        match place.context.items {
            Some(items) if items.origin == Origin::Configured => Ok(items),
            _ => Err(Problem::new(above, "this node has no items that can be created", "")),
        }
    }

    /// Whether a name is good and not taken.
    fn free(&self, above: &Path, items: &Items, name: &str) -> Result<(), Problem> {
        let path = above.join(name);
        let text = Value::text(name);
        let wrong = |why: &str| {
            let sentence = format!("{name:?} cannot be the name of a {}: {why}", items.noun);
            Problem::new(above, &sentence, "")
        };
        items.key.check(&text).map_err(|why| wrong(&why))?;
        let place = self.document.place(above);
        let action = place.and_then(|place| place.context.action(name));
        if action.is_some() || RESERVED.contains(&name) {
            let problem = wrong("it is a reserved word of the command line");
            return Err(Problem { hint: "choose another name".to_owned(), ..problem });
        }
        // A slash would make it another path, whatever the form of the key allows.
        path.to_string()
            .parse::<Path>()
            .ok()
            .filter(|again| *again == path)
            .ok_or_else(|| wrong("it is not valid in a path"))?;
        let context = |place: base::node::NodeRef| {
            place.context.children.iter().any(|child| child.name == name)
        };
        if self.there(&path).is_ok() || place.is_some_and(context) {
            let sentence = format!("a {} {name:?} already exists", items.noun);
            return Err(Problem::conflict(&path, &sentence, "choose another name"));
        }
        Ok(())
    }
}

/// Why a setting cannot be set.
pub(super) fn decided(name: &str, source: &str) -> String {
    match source {
        "built in" => format!("{name} is built in"),
        source => format!("{name} is overridden by the {source} in this run"),
    }
}

/// Reads the path of a request.
///
/// # Errors
/// It is none.
pub fn parse(text: &str) -> Result<Path, Problem> {
    text.parse().map_err(|e: base::node::PathError| {
        Problem::new(&Path::root(), &e.to_string(), "GET /api/v1/tree lists the nodes")
    })
}

/// An existing node, in the configuration or in this run.
///
/// # Errors
/// Where the path ends, and what exists there.
pub fn there(
    document: &Document,
    running: &dyn Running,
    path: &Path,
) -> Result<base::node::NodeRef, Problem> {
    let place = document.root().find(path).map_err(|e| {
        let known =
            document.root().find(&e.above).map(|place| names(document, running, &e.above, place));
        let hint = match known {
            Ok(known) if !known.is_empty() => format!("it has {}", known.join(", ")),
            _ => "it has no children".to_owned(),
        };
        Problem::unknown(path, &e.to_string(), &hint)
    })?;
    let mut at = document.root().find(&Path::root()).unwrap_or(place);
    for (depth, name) in path.segments().iter().enumerate() {
        let above = path.prefix(depth);
        let Some(next) = at.context.below(name) else { break };
        if let Some(items) = next.item {
            let known = document.exists(&path.prefix(depth + 1))
                || document.items(&above).contains(name)
                || running.items(&above).contains(name);
            if !known {
                let sentence = format!("there is no {} named {name:?}", items.noun);
                let known = names(document, running, &above, at);
                let hint = match known.is_empty() {
                    true => format!("there are no {} yet", items.plural),
                    false => format!("there are {}", known.join(", ")),
                };
                return Err(Problem::unknown(path, &sentence, &hint));
            }
        }
        at = next;
    }
    Ok(place)
}

/// Names below a node, limited to a readable number.
fn names(
    document: &Document,
    running: &dyn Running,
    path: &Path,
    place: base::node::NodeRef,
) -> Vec<String> {
    const SHOWN: usize = 12;
    let mut names: Vec<String> =
        place.context.children.iter().map(|child| child.name.to_owned()).collect();
    names.extend(document.items(path));
    for name in running.items(path) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() > SHOWN {
        names.truncate(SHOWN);
        names.push("…".to_owned());
    }
    names
}

fn property(
    path: &Path,
    properties: &'static [Property],
    name: &str,
) -> Result<&'static Property, Problem> {
    properties.iter().find(|property| property.name == name).ok_or_else(|| {
        let known: Vec<&str> = properties.iter().map(|property| property.name).collect();
        let hint = match known.is_empty() {
            true => "it has no properties".to_owned(),
            false => format!("it has {}", known.join(", ")),
        };
        Problem::unknown(path, &format!("unknown property {name:?}"), &hint).property(name)
    })
}

/// Reads the parameters of an action.
///
/// # Errors
/// One that is not there, is missing, or has a wrong value.
pub fn parameters(
    path: &Path,
    declared: &'static [Property],
    given: &BTreeMap<String, Json>,
) -> Result<BTreeMap<String, Value>, Problem> {
    let mut values = BTreeMap::new();
    for (name, value) in given {
        let parameter = property(path, declared, name)?;
        let value = json::from_json(&parameter.kind, value).map_err(|why| {
            Problem::new(path, &format!("{name}: {why}"), parameter.help).property(name)
        })?;
        values.insert(name.clone(), value);
    }
    for parameter in declared.iter().filter(|parameter| !given.contains_key(parameter.name)) {
        if let Some(value) = parameter.default.value() {
            values.insert(parameter.name.to_owned(), value);
        } else if parameter.required {
            let sentence = format!("{} is missing", parameter.name);
            return Err(Problem::new(path, &sentence, parameter.help).property(parameter.name));
        }
    }
    Ok(values)
}

/// Checks a whole configuration against the declarations: all required properties are set, and no
/// node has too many items.
pub fn complete(document: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, _) in document.nodes() {
        let Some(place) = document.place(path) else { continue };
        let missing = place.context.properties.iter().filter(|property| {
            property.required
                && property.applies(|name| document.value(path, name))
                && document.resolve(path, property).0.is_none()
        });
        let missing: Vec<&Property> = missing.collect();
        problems.extend(must_be_set(path, &missing));
    }
    problems.extend(too_many(document));
    problems
}

/// Nodes with more items than there may be; each is counted once, however many it has.
fn too_many(document: &Document) -> impl Iterator<Item = Problem> {
    let above: BTreeSet<Path> = document.nodes().filter_map(|(path, _)| path.parent()).collect();
    above.into_iter().filter_map(|above| {
        let items = document.place(&above)?.context.items?;
        (document.items(&above).len() > items.max).then(|| {
            let sentence = format!("the maximum is {} {}", items.max, items.plural);
            Problem::conflict(&above, &sentence, "destroy some first")
        })
    })
}

/// All that a node lacks, in one sentence.
fn must_be_set(path: &Path, missing: &[&Property]) -> Option<Problem> {
    let first = missing.first()?;
    let names: Vec<&str> = missing.iter().map(|property| property.name).collect();
    let sentence = format!("{} must be set", names.join(" and "));
    let examples = missing.iter().map(|property| format!("{}={}", property.name, property.example));
    let hint = match missing.iter().all(|property| !property.example.is_empty()) {
        true => format!("for example {}", examples.collect::<Vec<_>>().join(" ")),
        false => first.help.to_owned(),
    };
    Some(Problem::new(path, &sentence, &hint).property(first.name))
}
