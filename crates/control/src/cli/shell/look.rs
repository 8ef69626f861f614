//! What looks only: `show`, `get`, `list`, `help`.

use serde_json::{Map, Value as Json, json};

use super::change::property;
use super::{CliError, Output, Shell, VERBS, Verb, VerbResult};
use crate::cli::declared::Context;
use crate::cli::node::{Entry, Node, Shown};
use crate::cli::pending::Before;
use crate::cli::place::NodePath;
use crate::cli::show;

/// Items that a list shows with their properties if the server does not send them at once.
const ITEMS_ASKED_MAX: usize = 100;

impl Shell {
    pub(super) fn show(&self, place: &NodePath) -> VerbResult {
        let context = self.found(place)?.context;
        let node = self.node(place, true)?;
        let rows = self.rows(place, &node)?;
        let text = show::node(place, context, &node, &rows);
        Ok(Output::new(text, as_json(context, &node)))
    }

    pub(super) fn list(&self, place: &NodePath) -> VerbResult {
        let context = self.found(place)?.context;
        let node = self.node(place, true)?;
        let rows = self.rows(place, &node)?;
        let items: Vec<&str> = node.items.iter().map(Entry::name).collect();
        let children: Vec<&str> = context.children.iter().map(|c| c.name.as_str()).collect();
        let text = show::below(context, &rows);
        Ok(Output::new(text, json!({"children": children, "items": items})))
    }

    /// The items of a node with their properties.
    fn rows(&self, place: &NodePath, node: &Node) -> Result<Vec<(String, Option<Node>)>, CliError> {
        let Some(items) = &self.found(place)?.context.items else { return Ok(Vec::new()) };
        let row = |(at, entry): (usize, &Entry)| {
            let name = entry.name().to_owned();
            let item = place.child(&name);
            let node = match entry {
                Entry::Node(node) if self.pending.before(&item) == Before::Server(item.clone()) => {
                    Some(node.as_ref().clone().after(&item, &items.context, &self.pending))
                }
                _ if at < ITEMS_ASKED_MAX => match self.node(&item, false) {
                    Ok(node) => Some(node),
                    // It has gone since it was listed.
                    Err(CliError::Refused { .. }) => None,
                    Err(error) => return Err(error),
                },
                _ => None,
            };
            Ok((name, node))
        };
        node.items.iter().enumerate().map(row).collect()
    }

    pub(super) fn get_properties(&self, place: &NodePath, names: &[&str]) -> VerbResult {
        let context = self.found(place)?.context;
        let names: Vec<String> = match names {
            [] => context.properties.iter().map(|property| property.name.clone()).collect(),
            names => names.iter().map(|name| (*name).to_owned()).collect(),
        };
        for name in &names {
            property(context, place, name)?;
        }
        let node = self.node(place, false)?;
        let value = |name: &String| node.property(name).map_or(Json::Null, shown_json);
        let values: Map<String, Json> = names.iter().map(|n| (n.clone(), value(n))).collect();
        Ok(Output::new(show::some(context, &node, &names), Json::Object(values)))
    }

    pub(super) fn help(&self, place: &NodePath, word: Option<&str>) -> VerbResult {
        let found = self.found(place)?;
        let context = found.context;
        let text = match word {
            None => show::help(place, context, found.item_of),
            Some(word) => {
                let verb = Verb::of(word).and_then(|v| VERBS.iter().find(|line| line.verb == v));
                if let Some(property) = context.property(word) {
                    show::help_property(property)
                } else if let Some(action) = context.action(word) {
                    show::help_action(action)
                } else if let Some(child) = context.child(word) {
                    format!("{}: {}\n", child.title, child.help)
                } else if let Some(line) = verb {
                    format!("{}: {}\n", line.usage(), line.help)
                } else {
                    return Err(CliError::refused(
                        format!(
                            "'{word}' is not a command, property, action or context of {place}"
                        ),
                        "`help` lists the commands",
                    ));
                }
            }
        };
        let json = json!({"help": text.trim_end()});
        Ok(Output::new(text, json))
    }
}

/// A node as `show` prints it in JSON.
fn as_json(context: &Context, node: &Node) -> Json {
    let properties: Map<String, Json> = node
        .properties
        .iter()
        .map(|shown| {
            let about = json!({"value": shown_json(shown), "source": shown.source});
            (shown.name.clone(), about)
        })
        .collect();
    json!({
        "path": node.path,
        "properties": properties,
        "children": context.children.iter().map(|child| &child.name).collect::<Vec<_>>(),
        "items": node.items.iter().map(Entry::name).collect::<Vec<_>>(),
        "actions": context.actions.iter().map(|action| &action.name).collect::<Vec<_>>(),
    })
}

/// A value as it is; a secret only as whether it is set.
fn shown_json(shown: &Shown) -> Json {
    match shown.value {
        Json::Null if shown.set => Json::String(show::SECRET.to_owned()),
        ref value => value.clone(),
    }
}
