//! How a room declares what can be configured and seen of it: the nodes of the one tree.
//!
//! Plain static data. The API's schema, the command line's completion and help, the browser's forms
//! and the reference come from it; `docs/decisions/one-tree.md` explains why. A room has its
//! declarations in a file `node.rs`; `appliance` joins them under one root.

mod builders;
mod kind;
mod path;
pub mod service;
mod shape;
mod value;

pub use kind::{Kind, parse_bytes, parse_seconds, show_bytes};
pub use path::{Path, PathError};
pub use shape::Shape;
pub use value::Value;

/// A node of the tree.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// One segment of a path: lower case, digits, `-`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// One or two sentences.
    pub help: &'static str,
    /// What can be set or seen.
    pub properties: &'static [Property],
    /// What can be done.
    pub actions: &'static [Action],
    /// Contexts below it that are always there.
    pub children: &'static [&'static Context],
    /// Children with names of their own, which users or the running server make.
    pub items: Option<&'static Items>,
    /// The permission that reading (`SCOPE:read`) and changing (`SCOPE:change`) it takes.
    pub scope: &'static str,
    /// Statistics about it, as `nfs3.ops[client]`.
    pub statistics: &'static [&'static str],
}

/// Named children that come and go.
#[derive(Debug, Clone, Copy)]
pub struct Items {
    /// What one of them is: `share`.
    pub noun: &'static str,
    /// What many of them are: `shares`.
    pub plural: &'static str,
    /// The form of their names.
    pub key: &'static Kind,
    /// Most items in one context.
    pub max: usize,
    /// What each of them is like; its own name is not used.
    pub context: &'static Context,
    /// How they are made.
    pub origin: Origin,
    /// Those that are always there and cannot be destroyed.
    pub fixed: &'static [&'static str],
}

/// How items are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// By users, in the configuration.
    Configured,
    /// By the running server: sessions, clients. They are in no configuration.
    Running,
}

/// Something that can be set or seen.
#[derive(Debug, Clone, Copy)]
pub struct Property {
    /// Its name: lower case, digits, `_`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What values it has.
    pub kind: Kind,
    /// Unit for people, or nothing.
    pub unit: &'static str,
    /// Its value as long as it is not set.
    pub default: Default,
    /// What can be done with it.
    pub role: Role,
    /// One or two sentences.
    pub help: &'static str,
    /// A value that is good, or nothing.
    pub example: &'static str,
    /// Whether an item cannot be made without it.
    pub required: bool,
    /// When a change takes effect.
    pub effect: Effect,
    /// Whether only users with the permission `*` may set it: it lets its owner act as other users.
    pub guarded: bool,
    /// Path of the node with the items that its values name; empty if they name none.
    pub items_of: &'static str,
    /// Of what use it is only with some values of another property of its node. Without them it is
    /// not required either.
    pub only_if: Option<Condition>,
    /// What people read where a time is 0: that of something that has not happened.
    pub absent: &'static str,
}

/// One of several values of another property of the same node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Which property, a choice.
    pub property: &'static str,
    /// Any of these.
    pub values: &'static [&'static str],
}

/// Names that items cannot have, because a line of the command line that begins with one means
/// something else: its commands; and what stands between a node and its actions in the API.
pub const RESERVED: [&str; 29] = [
    "abort", "actions", "audit", "cd", "commit", "compare", "create", "destroy", "done", "exit",
    "export", "get", "help", "history", "import", "json", "list", "ls", "pending", "quit",
    "rename", "restore", "select", "set", "show", "top", "unset", "up", "..",
];

/// The value of what is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// There is none.
    None,
    /// A switch.
    Bool(bool),
    /// A number.
    Integer(i64),
    /// A text.
    Text(&'static str),
    /// A list of texts.
    List(&'static [&'static str]),
    /// The value of the property of the same name in the nearest node above that has it.
    Inherited,
}

/// What can be done with a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It can be set and unset.
    Setting,
    /// It can only be seen; the running server reports it.
    State,
    /// It can be set and unset, never seen.
    Secret,
    /// It is set when its item is made, and stays.
    AtCreate,
}

/// When a change of a setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// At once.
    Now,
    /// When the service restarts.
    Service,
    /// When the server starts again.
    Restart,
}

/// Something that can be done.
#[derive(Debug, Clone, Copy)]
pub struct Action {
    /// Its name: lower case, digits, `_`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// One or two sentences.
    pub help: &'static str,
    /// What it takes.
    pub parameters: &'static [Property],
    /// Whether people are asked before.
    pub destructive: bool,
    /// Whether it only shows something: read permission for the node is enough, and it is not in
    /// the audit log.
    pub reads: bool,
    /// What it answers, one sentence.
    pub result: &'static str,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy)]
pub struct NodeRef {
    /// The declaration of the node there.
    pub context: &'static Context,
    /// If it is an item: which kind.
    pub item: Option<&'static Items>,
}

/// Why a path leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{above} has no {segment:?}")]
pub struct NoSuchNode {
    /// The last node that exists.
    pub above: Path,
    /// What it does not have.
    pub segment: String,
}

impl Context {
    /// Follows a path from this node on. Items are taken to be there if their names have the form
    /// of their keys: whether there is one is not known here.
    ///
    /// # Errors
    /// Reports where the path ends.
    pub fn find(&'static self, path: &Path) -> Result<NodeRef, NoSuchNode> {
        let mut place = NodeRef { context: self, item: None };
        for (depth, segment) in path.segments().iter().enumerate() {
            place = place.context.below(segment).ok_or_else(|| NoSuchNode {
                above: path.prefix(depth),
                segment: segment.clone(),
            })?;
        }
        Ok(place)
    }

    /// What is below it under this name. A context is never hidden by an item.
    pub fn below(&'static self, name: &str) -> Option<NodeRef> {
        if let Some(context) = self.children.iter().find(|child| child.name == name) {
            return Some(NodeRef { context, item: None });
        }
        let items = self.items?;
        items.key.check(&Value::Text(name.to_owned())).ok()?;
        Some(NodeRef { context: items.context, item: Some(items) })
    }

    /// One of its properties.
    pub fn property(&self, name: &str) -> Option<&'static Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    /// One of its actions.
    pub fn action(&self, name: &str) -> Option<&'static Action> {
        self.actions.iter().find(|action| action.name == name)
    }
}

impl Property {
    /// Whether the configuration may hold it.
    pub fn is_configured(&self) -> bool {
        self.role != Role::State
    }

    /// Whether it is of use at a node with properties that have these values.
    pub fn applies(&self, value: impl Fn(&str) -> Option<Value>) -> bool {
        self.only_if.is_none_or(|Condition { property, values }| {
            value(property).is_some_and(|now| values.iter().any(|one| now.as_text() == Some(one)))
        })
    }
}

impl Default {
    /// As a value; `None` if there is none here.
    pub fn value(self) -> Option<Value> {
        match self {
            Self::None | Self::Inherited => None,
            Self::Bool(on) => Some(Value::Bool(on)),
            Self::Integer(n) => Some(Value::Integer(n)),
            Self::Text(text) => Some(Value::Text(text.to_owned())),
            Self::List(list) => {
                let text = |one: &&str| Value::Text((*one).to_owned());
                Some(Value::List(list.iter().map(text).collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests;
