//! The tree as the server declares it (`GET /tree`): contexts, properties, actions, and finding a
//! place in it.

use serde::Deserialize;
use serde_json::Value as Json;

use super::place::NodePath;

/// A node of the tree.
#[derive(Debug, Clone, Deserialize)]
pub struct Context {
    /// Its segment of a path.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What it is for.
    pub help: String,
    /// What can be set or looked at here.
    #[serde(default)]
    pub properties: Vec<Property>,
    /// What can be done here.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// Contexts below.
    #[serde(default)]
    pub children: Vec<Context>,
    /// Named things below, which users or the running server make.
    #[serde(default)]
    pub items: Option<Items>,
}

/// Named things of one kind.
#[derive(Debug, Clone, Deserialize)]
pub struct Items {
    /// What one is called: `share`.
    pub noun: String,
    /// What several are called.
    pub plural: String,
    /// The origin of the items: `configured`, or `live` for those of the running server.
    #[serde(default)]
    pub origin: String,
    /// What each of them is.
    pub context: Box<Context>,
}

impl Items {
    /// Whether users make and destroy them.
    pub fn configured(&self) -> bool {
        !self.origin.eq_ignore_ascii_case("live")
    }
}

/// What a property or a parameter is.
#[derive(Debug, Clone, Deserialize)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its title.
    #[serde(default)]
    pub title: String,
    /// Its kind.
    pub kind: Kind,
    /// Its unit; empty if it has none.
    #[serde(default)]
    pub unit: String,
    /// What it is unless it is set; null if it has to be.
    #[serde(default)]
    pub default: Json,
    /// `setting`, `state`, `secret` or `at-create`.
    #[serde(default)]
    pub role: String,
    /// What it does.
    #[serde(default)]
    pub help: String,
    /// A value that makes sense.
    #[serde(default)]
    pub example: String,
    /// Whether an item cannot be made without it.
    #[serde(default)]
    pub required: bool,
    /// `restart` or `service-restart` if a change waits for the next start, of the server or
    /// service.
    #[serde(default)]
    pub effect: String,
    /// The node with the items that its values name.
    #[serde(default)]
    pub items_of: Option<String>,
    /// Of what use it is only with some values of another property.
    #[serde(default)]
    pub only_if: Option<Condition>,
    /// What is read in place of a time that is 0.
    #[serde(default)]
    pub absent: String,
}

/// One of several values of another property.
#[derive(Debug, Clone, Deserialize)]
pub struct Condition {
    /// Which property.
    pub property: String,
    /// Any of these.
    pub values: Vec<String>,
}

impl Property {
    /// Read only: state of the server.
    pub fn is_state(&self) -> bool {
        self.role.eq_ignore_ascii_case("state")
    }

    /// Write only: never shown, never kept.
    pub fn is_secret(&self) -> bool {
        self.role.eq_ignore_ascii_case("secret")
    }

    /// Whether it is of use where other properties have these values.
    pub fn applies<'a>(&self, value: impl Fn(&str) -> Option<&'a Json>) -> bool {
        self.only_if.as_ref().is_none_or(|Condition { property, values }| {
            let now = value(property).and_then(Json::as_str);
            now.is_some_and(|now| values.iter().any(|one| one == now))
        })
    }

    /// Can be given when the item is made, and not changed later.
    pub fn is_at_create(&self) -> bool {
        let role = self.role.to_ascii_lowercase();
        matches!(role.as_str(), "at-create" | "at_create" | "atcreate")
    }
}

/// The kind of a value.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Kind {
    /// `bool`, `integer`, `bytes`, `seconds`, `time`, `choice`, `text`, `list`.
    #[serde(rename = "type")]
    pub base: String,
    /// Smallest number.
    #[serde(default)]
    pub min: Json,
    /// Largest number; most elements of a list.
    #[serde(default)]
    pub max: Json,
    /// The values of a choice.
    #[serde(default)]
    pub choices: Option<Vec<Choice>>,
    /// What a list is of.
    #[serde(default)]
    pub of: Option<Box<Kind>>,
    /// What a text must look like.
    #[serde(default)]
    pub shape: Option<String>,
    /// What its values are, in words.
    #[serde(default)]
    pub described: Option<String>,
}

/// One value of a choice.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Pair")]
pub struct Choice {
    /// The value.
    pub value: String,
    /// What it means.
    pub meaning: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Pair {
    Fields { value: String, meaning: String },
    Tuple(String, String),
}

impl From<Pair> for Choice {
    fn from(pair: Pair) -> Self {
        match pair {
            Pair::Fields { value, meaning } | Pair::Tuple(value, meaning) => {
                Self { value, meaning }
            }
        }
    }
}

/// Something that can be done.
#[derive(Debug, Clone, Deserialize)]
pub struct Action {
    /// Its name.
    pub name: String,
    /// Its title.
    #[serde(default)]
    pub title: String,
    /// What it does.
    #[serde(default)]
    pub help: String,
    /// Whether it destroys data or state.
    #[serde(default)]
    pub destructive: bool,
    /// What it needs to know.
    #[serde(default)]
    pub parameters: Vec<Property>,
}

/// A place that the declaration has.
#[derive(Debug, Clone, Copy)]
pub struct DeclaredNode<'a> {
    /// What is there.
    pub context: &'a Context,
    /// The items that it is one of, if it is one.
    pub item_of: Option<&'a Items>,
}

impl Context {
    /// What is at `place`, names of items being taken on trust.
    pub fn find(&self, place: &NodePath) -> Option<DeclaredNode<'_>> {
        let mut found = DeclaredNode { context: self, item_of: None };
        for name in &place.0 {
            found = found.context.step(name)?;
        }
        Some(found)
    }

    /// What is called `name` right below this context.
    pub fn step(&self, name: &str) -> Option<DeclaredNode<'_>> {
        if let Some(context) = self.child(name) {
            return Some(DeclaredNode { context, item_of: None });
        }
        let items = self.items.as_ref()?;
        Some(DeclaredNode { context: &items.context, item_of: Some(items) })
    }

    /// The child called `name`.
    pub fn child(&self, name: &str) -> Option<&Context> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The property called `name`.
    pub fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    /// The action called `name`.
    pub fn action(&self, name: &str) -> Option<&Action> {
        self.actions.iter().find(|action| action.name == name)
    }

    /// Whether `test` holds for a property or parameter anywhere below here.
    pub fn any_property(&self, test: &dyn Fn(&Property) -> bool) -> bool {
        let parameters = self.actions.iter().flat_map(|action| &action.parameters);
        self.properties.iter().chain(parameters).any(test)
            || self.children.iter().any(|child| child.any_property(test))
            || self.items.as_ref().is_some_and(|items| items.context.any_property(test))
    }
}

/// What sounds like `name` among `names`, as a hint; empty if nothing does.
pub fn did_you_mean<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let near = names
        .map(|other| (distance(name, other), other))
        .filter(|(distance, other)| *distance <= 2.min(other.len() / 2))
        .min();
    near.map_or_else(String::new, |(_, other)| format!("did you mean '{other}'?"))
}

/// Letters to change, add, leave out, or exchange with their neighbour (Damerau and Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
