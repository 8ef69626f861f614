//! A node as the server has it (`GET /nodes/PATH`), with the changes that wait laid over it.

use serde::Deserialize;
use serde_json::Value as Json;

use super::declared::Context;
use super::pending::Pending;
use super::place::NodePath;

/// A node.
#[derive(Debug, Clone, Deserialize)]
pub struct Node {
    /// Its path.
    pub path: String,
    /// The revision of the configuration that it is of.
    #[serde(default)]
    pub revision: u64,
    /// Its properties with their values.
    #[serde(default)]
    pub properties: Vec<Shown>,
    /// The items below it.
    #[serde(default)]
    pub items: Vec<Entry>,
    /// Whether the caller may change it.
    #[serde(default)]
    pub may: Option<May>,
}

/// A property with its value.
#[derive(Debug, Clone, Deserialize)]
pub struct Shown {
    /// Its name.
    pub name: String,
    /// Its value; null if it has none, and for secrets.
    #[serde(default)]
    pub value: Json,
    /// `default`, `set` or `inherited`; here also `uncommitted`.
    #[serde(default)]
    pub source: String,
    /// From where it is inherited.
    #[serde(default)]
    pub from: Option<String>,
    /// Whether a secret is set.
    #[serde(default)]
    pub set: bool,
}

/// An item below a node: its name, or with `?depth=1` all of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Entry {
    /// Its name.
    Name(String),
    /// All of it.
    Node(Box<Node>),
}

impl Entry {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Node(node) => node.path.rsplit('/').next().unwrap_or(""),
        }
    }
}

/// The permissions of the caller.
#[derive(Debug, Clone, Deserialize)]
pub struct May {
    /// Whether to change it.
    pub change: bool,
    /// Why not.
    #[serde(default)]
    pub why: Option<String>,
}

/// Where a value comes from that waits for `commit`.
pub const UNCOMMITTED: &str = "uncommitted";

impl Node {
    /// A node that only waiting changes make: all defaults.
    pub fn new(place: &NodePath, declared: &Context) -> Self {
        let shown = |property: &super::declared::Property| Shown {
            name: property.name.clone(),
            value: property.default.clone(),
            source: "default".to_owned(),
            from: None,
            set: false,
        };
        let properties = declared.properties.iter().filter(|property| !property.is_state());
        Self {
            path: place.to_string(),
            revision: 0,
            properties: properties.map(shown).collect(),
            items: Vec::new(),
            may: None,
        }
    }

    /// The same once the changes are done.
    #[must_use]
    pub fn after(mut self, place: &NodePath, declared: &Context, pending: &Pending) -> Self {
        self.path = place.to_string();
        for shown in &mut self.properties {
            let Some(value) = pending.value(place, &shown.name) else { continue };
            let property = declared.property(&shown.name);
            shown.source = UNCOMMITTED.to_owned();
            shown.from = None;
            shown.set = value.is_some();
            shown.value = match (value, property) {
                (_, Some(property)) if property.is_secret() => Json::Null,
                (Some(value), _) => value.clone(),
                (None, Some(property)) => property.default.clone(),
                (None, None) => Json::Null,
            };
        }
        let names = self.items.iter().map(|entry| entry.name().to_owned()).collect();
        let entry = |name: String| {
            let here = self.items.iter().find(|entry| entry.name() == name);
            here.cloned().unwrap_or(Entry::Name(name))
        };
        self.items = pending.items(place, names).into_iter().map(entry).collect();
        self
    }

    /// The property called `name`.
    pub fn property(&self, name: &str) -> Option<&Shown> {
        self.properties.iter().find(|shown| shown.name == name)
    }
}
