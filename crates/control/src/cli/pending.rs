//! Changes that wait for `commit`: what they are, how a later one joins an earlier one, and what
//! a place is once they are done.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::place::NodePath;

/// One change, as the API takes it.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A property gets a value.
    Set {
        /// Where.
        at: NodePath,
        /// Which property.
        property: String,
        /// Its value.
        value: Json,
    },
    /// A property gets its default or what is inherited.
    Unset {
        /// Where.
        at: NodePath,
        /// Which property.
        property: String,
    },
    /// An item is made.
    Create {
        /// Below what.
        parent: NodePath,
        /// Its name.
        name: String,
        /// What it is given.
        properties: BTreeMap<String, Json>,
    },
    /// An item goes.
    Destroy {
        /// Which.
        at: NodePath,
        /// Whether the user has confirmed what is destroyed with it.
        confirm: bool,
    },
    /// An item is renamed.
    Rename {
        /// Which.
        at: NodePath,
        /// Its new name.
        to: String,
    },
}

impl Change {
    /// For the API.
    pub fn json(&self) -> Json {
        match self {
            Self::Set { at, property, value } => {
                json!({"set": at.to_string(), "property": property, "value": value})
            }
            Self::Unset { at, property } => {
                json!({"unset": at.to_string(), "property": property})
            }
            Self::Create { parent, name, properties } => {
                json!({"create": parent.to_string(), "name": name, "properties": properties})
            }
            Self::Destroy { at, confirm } => {
                json!({"destroy": at.to_string(), "confirm": confirm})
            }
            Self::Rename { at, to } => json!({"rename": at.to_string(), "to": to}),
        }
    }

    /// The place that it makes, if it makes one.
    pub fn creates(&self) -> Option<NodePath> {
        match self {
            Self::Create { parent, name, .. } => Some(parent.child(name)),
            _ => None,
        }
    }

    /// Whether it changes `place` or anything below.
    fn is_within(&self, place: &NodePath) -> bool {
        match self {
            Self::Set { at, .. } | Self::Unset { at, .. } => at.within(place),
            Self::Create { parent, name, .. } => parent.child(name).within(place),
            Self::Destroy { at, .. } | Self::Rename { at, .. } => at.within(place),
        }
    }

    fn is_for(&self, place: &NodePath, name: &str) -> bool {
        match self {
            Self::Set { at, property, .. } | Self::Unset { at, property } => {
                at == place && property == name
            }
            _ => false,
        }
    }

    /// The name that the item at `place` had before this change; `None` if it was not there.
    fn before(&self, place: &NodePath) -> Option<NodePath> {
        match self {
            Self::Create { parent, name, .. } if place.within(&parent.child(name)) => None,
            Self::Destroy { at, .. } if place.within(at) => None,
            Self::Rename { at, to } => {
                let renamed = at.parent().child(to);
                match place.within(&renamed) {
                    true => Some(place.moved(&renamed, at)),
                    false => (!place.within(at)).then(|| place.clone()),
                }
            }
            _ => Some(place.clone()),
        }
    }

    /// The same after `from` was renamed.
    fn moved(self, from: &NodePath, to: &NodePath) -> Self {
        match self {
            Self::Set { at, property, value } => {
                Self::Set { at: at.moved(from, to), property, value }
            }
            Self::Unset { at, property } => Self::Unset { at: at.moved(from, to), property },
            Self::Create { parent, name, properties } => {
                let place = parent.child(&name).moved(from, to);
                let name = place.name().to_owned();
                Self::Create { parent: place.parent(), name, properties }
            }
            Self::Destroy { at, confirm } => Self::Destroy { at: at.moved(from, to), confirm },
            Self::Rename { at, to: name } => Self::Rename { at: at.moved(from, to), to: name },
        }
    }
}

/// What a place is once the changes are done.
#[derive(Debug, Clone, PartialEq)]
pub enum Before {
    /// The server has it, under this name still.
    Server(NodePath),
    /// A change makes it, or makes what it is in.
    New,
    /// A change takes it away.
    Gone,
}

/// The changes that wait.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pending {
    changes: Vec<Change>,
    /// The revision of the configuration that the first of them was made on.
    pub revision: Option<u64>,
}

impl Pending {
    /// All of them, in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// These changes and one more.
    #[must_use]
    pub fn with(mut self, change: Change) -> Self {
        match change {
            Change::Set { at, property, value } => match self.created(&at) {
                Some(properties) => {
                    properties.insert(property, value);
                }
                None => {
                    self.drop_earlier(&at, |change, at| change.is_for(at, &property));
                    self.changes.push(Change::Set { at, property, value });
                }
            },
            Change::Unset { at, property } => match self.created(&at) {
                Some(properties) => {
                    properties.remove(&property);
                }
                None => {
                    self.drop_earlier(&at, |change, at| change.is_for(at, &property));
                    self.changes.push(Change::Unset { at, property });
                }
            },
            Change::Destroy { at, confirm } => self.destroy(at, confirm),
            Change::Rename { at, to } => self.rename(at, to),
            create @ Change::Create { .. } => self.changes.push(create),
        }
        self
    }

    /// The changes that may be of the item at `place`, the last first: the number of each, and the
    /// name of the item after it. Those of an earlier item of the same name are not among them.
    fn back(&self, place: &NodePath) -> impl Iterator<Item = (usize, NodePath)> {
        let mut place = Some(place.clone());
        self.changes.iter().enumerate().rev().map_while(move |(n, change)| {
            let after = place.take()?;
            place = change.before(&after);
            Some((n, after))
        })
    }

    /// Drops the changes that are `of` the item at `place`, which is given with its name then.
    fn drop_earlier(&mut self, place: &NodePath, of: impl Fn(&Change, &NodePath) -> bool) {
        let is_of = |(n, at): &(usize, NodePath)| of(&self.changes[*n], at);
        let numbers: Vec<usize> = self.back(place).filter(is_of).map(|(n, _)| n).collect();
        // The last first.
        for n in numbers {
            self.changes.remove(n);
        }
    }

    fn destroy(&mut self, at: NodePath, confirm: bool) {
        let new = self.before(&at) == Before::New;
        self.drop_earlier(&at, Change::is_within);
        if !new {
            self.changes.push(Change::Destroy { at, confirm });
        }
    }

    fn rename(&mut self, at: NodePath, to: String) {
        if self.before(&at) != Before::New {
            self.changes.push(Change::Rename { at, to });
            return;
        }
        let all: Vec<(usize, NodePath)> = self.back(&at).collect();
        for (n, at) in all {
            let target = at.parent().child(&to);
            self.changes[n] = self.changes[n].clone().moved(&at, &target);
        }
    }

    /// What the item at `place` is given, if a change makes it.
    pub fn created(&mut self, place: &NodePath) -> Option<&mut BTreeMap<String, Json>> {
        let (first, at) = self.back(place).last()?;
        match self.changes.get_mut(first)? {
            Change::Create { parent, name, properties } if parent.child(name) == at => {
                Some(properties)
            }
            _ => None,
        }
    }

    /// What `place` is once the changes are done.
    pub fn before(&self, place: &NodePath) -> Before {
        let mut place = place.clone();
        for change in self.changes.iter().rev() {
            place = match change.before(&place) {
                Some(before) => before,
                None if matches!(change, Change::Create { .. }) => return Before::New,
                None => return Before::Gone,
            };
        }
        Before::Server(place)
    }

    /// The value that a change gives a property: `Some(None)` if it takes the value away.
    pub fn value(&self, place: &NodePath, name: &str) -> Option<Option<&Json>> {
        self.back(place).find_map(|(n, place)| match &self.changes[n] {
            Change::Set { at, property, value } if *at == place && property == name => {
                Some(Some(value))
            }
            Change::Unset { at, property } if *at == place && property == name => Some(None),
            Change::Create { parent, name: item, properties } if parent.child(item) == place => {
                properties.get(name).map(Some)
            }
            _ => None,
        })
    }

    /// The names of the items below `place`, from those that the server has.
    pub fn items(&self, place: &NodePath, names: Vec<String>) -> Vec<String> {
        let mut names = names;
        let mut all: Vec<(usize, NodePath)> = self.back(place).collect();
        all.reverse();
        for (n, place) in all {
            match &self.changes[n] {
                Change::Create { parent, name, .. } if *parent == place => {
                    names.push(name.clone());
                }
                Change::Destroy { at, .. } if at.parent() == place && !at.0.is_empty() => {
                    names.retain(|name| name != at.name());
                }
                Change::Rename { at, to } if at.parent() == place => {
                    for name in names.iter_mut().filter(|name| *name == at.name()) {
                        name.clone_from(to);
                    }
                }
                _ => {}
            }
        }
        names.sort();
        names.dedup();
        names
    }
}
