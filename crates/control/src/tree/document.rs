//! A configuration: what was set at which node, and which items there are. Defaults are not in it.

use std::collections::{BTreeMap, BTreeSet};

use base::node::{Context, Default, NodeRef, Origin, Path, Property, Value};

/// Properties of a node that were set.
pub type Settings = BTreeMap<String, Value>;

/// A configuration over the declarations of a tree. A secret's value in it is the number under
/// which [`super::Secrets`] keeps it.
#[derive(Debug, Clone)]
pub struct Document {
    root: &'static Context,
    nodes: BTreeMap<Path, Settings>,
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

/// Where the value of a property comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// It was set here.
    Set,
    /// It is the declared default.
    Default,
    /// It is that of this node above.
    Inherited(Path),
}

/// One difference between two configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The node.
    pub path: Path,
    /// The property; `None`: the item itself came or went.
    pub property: Option<String>,
    /// What was set before.
    pub before: Option<Value>,
    /// What is set now.
    pub after: Option<Value>,
}

impl Document {
    /// An empty one.
    pub fn new(root: &'static Context) -> Self {
        Self { root, nodes: BTreeMap::new() }
    }

    /// The declarations that it is about.
    pub fn root(&self) -> &'static Context {
        self.root
    }

    /// All nodes that it has something of, in the order of their paths.
    pub fn nodes(&self) -> impl Iterator<Item = (&Path, &Settings)> {
        self.nodes.iter()
    }

    /// What was set here.
    pub fn set_value(&self, path: &Path, property: &str) -> Option<&Value> {
        self.nodes.get(path)?.get(property)
    }

    /// The effective value: set here, inherited, or the default; `None` if there is
    /// none, or no such property.
    pub fn value(&self, path: &Path, property: &str) -> Option<Value> {
        let declared = self.place(path)?.context.property(property)?;
        self.resolve(path, declared).0
    }

    /// The effective value and its source.
    pub fn resolve(&self, path: &Path, property: &Property) -> (Option<Value>, Source) {
        if let Some(value) = self.set_value(path, property.name) {
            return (Some(value.clone()), Source::Set);
        }
        if property.default != Default::Inherited {
            return (property.default.value(), Source::Default);
        }
        let mut above = path.parent();
        while let Some(at) = above {
            let declared = self.place(&at).and_then(|place| place.context.property(property.name));
            if let Some(declared) = declared {
                return match self.resolve(&at, declared) {
                    (value, Source::Inherited(from)) => (value, Source::Inherited(from)),
                    (value, _) => (value, Source::Inherited(at)),
                };
            }
            above = at.parent();
        }
        (None, Source::Default)
    }

    /// The effective value of a switch; `false` if there is none.
    pub fn bool(&self, path: &Path, property: &str) -> bool {
        self.value(path, property).and_then(|value| value.as_bool()).unwrap_or(false)
    }

    /// The effective value of a number.
    pub fn integer(&self, path: &Path, property: &str) -> Option<i64> {
        self.value(path, property)?.as_integer()
    }

    /// The effective value of a text; an empty one is none.
    pub fn text(&self, path: &Path, property: &str) -> Option<String> {
        let text = self.value(path, property)?.as_text()?.to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// The effective texts of a list.
    pub fn texts(&self, path: &Path, property: &str) -> Vec<String> {
        let value = self.value(path, property);
        let texts = value.as_ref().map(Value::as_texts).unwrap_or_default();
        texts.into_iter().map(str::to_owned).collect()
    }

    /// Configured items below a node: those in the document and those that are always there.
    pub fn items(&self, path: &Path) -> BTreeSet<String> {
        let Some(items) = self.place(path).and_then(|place| place.context.items) else {
            return BTreeSet::new();
        };
        let depth = path.segments().len();
        let mut names: BTreeSet<String> = items.fixed.iter().map(|name| (*name).into()).collect();
        let below = self.nodes.range(path.clone()..).map(|(at, _)| at);
        for at in below.skip_while(|at| *at == path).take_while(|at| at.is_in(path)) {
            let name = &at.segments()[depth];
            let is_context = self
                .place(path)
                .is_some_and(|place| place.context.children.iter().any(|child| child.name == name));
            if !is_context {
                names.insert(name.clone());
            }
        }
        names
    }

    /// Whether a node is there: each item on the way to it is in the document or always there.
    pub fn exists(&self, path: &Path) -> bool {
        self.missing(path).is_none()
    }

    /// The first item on the way to a node that is not in the document.
    pub fn missing(&self, path: &Path) -> Option<Path> {
        let mut place = NodeRef { context: self.root, item: None };
        for (depth, name) in path.segments().iter().enumerate() {
            let at = path.prefix(depth + 1);
            let Some(next) = place.context.below(name) else { return Some(at) };
            let fixed = next.item.is_some_and(|items| items.fixed.contains(&name.as_str()));
            if next.item.is_some() && !fixed && !self.nodes.contains_key(&at) {
                return Some(at);
            }
            place = next;
        }
        None
    }

    /// The declaration of a node, whether it is there or not.
    pub fn place(&self, path: &Path) -> Option<NodeRef> {
        self.root.find(path).ok()
    }

    /// Enters a value that was checked.
    pub fn set(&mut self, path: &Path, property: &str, value: Value) {
        self.nodes.entry(path.clone()).or_default().insert(property.to_owned(), value);
    }

    /// Takes a value out.
    pub fn unset(&mut self, path: &Path, property: &str) {
        let Some(settings) = self.nodes.get_mut(path) else { return };
        settings.remove(property);
        let is_empty = settings.is_empty();
        // An item is there without settings too; another node is not worth a mention.
        if is_empty && !self.is_made(path) {
            self.nodes.remove(path);
        }
    }

    /// Whether a path is that of an item that users make and destroy.
    pub fn is_made(&self, path: &Path) -> bool {
        let (Some(place), Some(name)) = (self.place(path), path.name()) else { return false };
        place
            .item
            .is_some_and(|items| items.origin == Origin::Configured && !items.fixed.contains(&name))
    }

    /// Enters an item, with those above it.
    pub fn create(&mut self, path: &Path) {
        let mut place = NodeRef { context: self.root, item: None };
        for (depth, name) in path.segments().iter().enumerate() {
            let Some(next) = place.context.below(name) else { return };
            let configured = |items: &base::node::Items| {
                items.origin == Origin::Configured && !items.fixed.contains(&name.as_str())
            };
            if next.item.is_some_and(configured) {
                self.nodes.entry(path.prefix(depth + 1)).or_default();
            }
            place = next;
        }
    }

    /// Removes an item with all below it; returns the number of removed items.
    pub fn destroy(&mut self, path: &Path) -> usize {
        let before = self.nodes.len();
        self.nodes.retain(|at, _| !at.is_in(path));
        before - self.nodes.len()
    }

    /// Moves an item with all below it.
    pub fn rename(&mut self, from: &Path, to: &Path) {
        let nodes = std::mem::take(&mut self.nodes);
        self.nodes = nodes.into_iter().map(|(at, set)| (at.moved(from, to), set)).collect();
    }

    /// What leads from this one to `new`.
    pub fn differences(&self, new: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let paths: BTreeSet<&Path> = self.nodes.keys().chain(new.nodes.keys()).collect();
        let empty = Settings::new();
        for path in paths {
            let (old, now) = (self.nodes.get(path), new.nodes.get(path));
            if self.is_made(path) && old.is_some() != now.is_some() {
                let there = |set: Option<&Settings>| set.map(|_| Value::Bool(true));
                found.push(Difference {
                    path: path.clone(),
                    property: None,
                    before: there(old),
                    after: there(now),
                });
            }
            let (old, now) = (old.unwrap_or(&empty), now.unwrap_or(&empty));
            let names: BTreeSet<&String> = old.keys().chain(now.keys()).collect();
            for name in names.into_iter().filter(|name| old.get(*name) != now.get(*name)) {
                found.push(Difference {
                    path: path.clone(),
                    property: Some(name.clone()),
                    before: old.get(name).cloned(),
                    after: now.get(name).cloned(),
                });
            }
        }
        found
    }

    /// This one with what `other` has at `prefix` and below in place of its own.
    pub fn with_branch(&self, prefix: &Path, other: &Self) -> Self {
        let outside = self.nodes.iter().filter(|(at, _)| !at.is_in(prefix));
        let inside = other.nodes.iter().filter(|(at, _)| at.is_in(prefix));
        let nodes = outside.chain(inside).map(|(at, set)| (at.clone(), set.clone())).collect();
        Self { root: self.root, nodes }
    }

    /// Whether anything at `prefix` or below differs from `other`.
    pub fn differs_in(&self, other: &Self, prefix: &Path) -> bool {
        let part = |document: &Self| -> Vec<(Path, Settings)> {
            let inside = document.nodes.iter().filter(|(at, _)| at.is_in(prefix));
            inside.map(|(at, set)| (at.clone(), set.clone())).collect()
        };
        part(self) != part(other)
    }
}
