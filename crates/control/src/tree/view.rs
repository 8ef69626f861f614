//! The declarations and the nodes as JSON, as the API shows them.

use base::node::{
    Action, Context, Default, Effect, Items, Kind, NodeRef, Origin, Path, Property, Role,
};
use serde_json::{Map, Value as Json, json};

use super::change::{self, Running, there};
use super::document::{Document, Source};
use super::engine::{Current, Tree};
use super::json::to_json;
use super::viewer::Viewer;
use super::{Fault, Override, Problem};

/// All of a declaration, with what is below it.
pub fn declaration(context: &Context) -> Json {
    let below: Vec<Json> = context.children.iter().map(|child| declaration(child)).collect();
    json!({
        "name": context.name,
        "title": context.title,
        "help": context.help,
        "scope": context.scope,
        "statistics": context.statistics,
        "properties": context.properties.iter().map(property).collect::<Vec<_>>(),
        "actions": context.actions.iter().map(action).collect::<Vec<_>>(),
        "children": below,
        "items": context.items.map(items),
    })
}

fn items(items: &Items) -> Json {
    json!({
        "noun": items.noun,
        "plural": items.plural,
        "key": kind(items.key),
        "max": items.max,
        "origin": match items.origin {
            Origin::Configured => "configured",
            Origin::Running => "live",
        },
        "fixed": items.fixed,
        "context": declaration(items.context),
    })
}

fn property(property: &Property) -> Json {
    json!({
        "name": property.name,
        "title": property.title,
        "kind": kind(&property.kind),
        "unit": property.unit,
        "default": property.default.value().as_ref().map(to_json),
        "inherited": property.default == Default::Inherited,
        "role": role(property.role),
        "required": property.required,
        "effect": match property.effect {
            Effect::Now => "now",
            Effect::Service => "service-restart",
            Effect::Restart => "restart",
        },
        "items_of": Some(property.items_of).filter(|path| !path.is_empty()),
        "help": property.help,
        "example": property.example,
        "only_if": property.only_if.map(|one| {
            json!({ "property": one.property, "values": one.values })
        }),
        "absent": property.absent,
    })
}

fn action(action: &Action) -> Json {
    json!({
        "name": action.name,
        "title": action.title,
        "help": action.help,
        "destructive": action.destructive,
        "reads": action.reads,
        "result": action.result,
        "parameters": action.parameters.iter().map(property).collect::<Vec<_>>(),
    })
}

fn kind(kind: &Kind) -> Json {
    let mut fields = Map::from_iter([("type".to_owned(), Json::from(kind.name()))]);
    let mut add = |name: &str, value: Json| fields.insert(name.to_owned(), value);
    match kind {
        Kind::Bool | Kind::Time => {}
        Kind::Integer { min, max } => {
            add("min", Json::from(*min));
            add("max", Json::from(*max));
        }
        Kind::Bytes { min, max } | Kind::Seconds { min, max } => {
            add("min", Json::from(*min));
            add("max", Json::from(*max));
        }
        Kind::Choice(choices) => {
            let one =
                |(value, meaning): &(&str, &str)| json!({ "value": value, "meaning": meaning });
            add("choices", choices.iter().map(one).collect());
        }
        Kind::Text { max, shape } => {
            add("max_length", Json::from(*max));
            add("shape", Json::from(shape.name()));
        }
        Kind::List { of, max } => {
            add("of", self::kind(of));
            add("max_length", Json::from(*max));
        }
    }
    add("described", Json::from(kind.described()));
    Json::Object(fields)
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Setting => "setting",
        Role::State => "state",
        Role::Secret => "secret",
        Role::AtCreate => "at-create",
    }
}

/// Current state of a node. Down to `depth`, nodes stand in place of the names of children and
/// items. May block: rooms are queried.
///
/// # Errors
/// It is not there, or may not be seen.
pub fn node(tree: &Tree, path: &Path, depth: usize, viewer: &dyn Viewer) -> Result<Json, Problem> {
    let current = tree.current();
    let scope = tree.root().find(path).ok().map(|place| place.context.scope);
    if let Some(scope) = scope.filter(|scope| !viewer.may_read(scope)) {
        let sentence = format!("reading it requires a role with {scope}:read");
        let denied = Problem::new(path, &sentence, "ask an administrator for this permission");
        return Err(denied.fault(Fault::Denied));
    }
    let place = there(&current.document, tree, path)?;
    Ok(one(tree, &current, (path, place), depth, viewer))
}

fn one(
    tree: &Tree,
    current: &Current,
    (path, place): (&Path, NodeRef),
    depth: usize,
    viewer: &dyn Viewer,
) -> Json {
    let document = &*current.document;
    let context = place.context;
    let mut items: Vec<String> = document.items(path).into_iter().collect();
    for name in tree.items(path) {
        if !items.contains(&name) {
            items.push(name);
        }
    }
    let seen = |child: &&&Context| viewer.may_read(child.scope);
    let children: Vec<&str> = context.children.iter().filter(seen).map(|c| c.name).collect();
    let why = why_not(tree, document, path, place, viewer);
    let mut node = json!({
        "name": path.name().unwrap_or(""),
        "path": path.to_string(),
        "title": context.title,
        "help": context.help,
        "scope": context.scope,
        "revision": current.revision.number,
        "item": place.item.map(|items| items.noun),
        "properties": properties(tree, document, path, context),
        "children": children,
        "items": items,
        "actions": offered(tree, path, context),
        "may": { "change": why.is_none(), "why": why },
    });
    if depth > 0 {
        let nested = |name: &str| {
            let next = context.below(name).filter(|next| viewer.may_read(next.context.scope))?;
            Some(one(tree, current, (&path.join(name), next), depth - 1, viewer))
        };
        node["children"] = children.iter().filter_map(|name| nested(name)).collect();
        node["items"] = items.iter().filter_map(|name| nested(name)).collect();
    }
    node
}

fn offered(tree: &Tree, path: &Path, context: &Context) -> Vec<&'static str> {
    let live = tree.branch(path).and_then(|branch| branch.live.as_ref());
    let is_offered = |name: &&str| live.is_none_or(|live| live.offers(path, name));
    context.actions.iter().map(|action| action.name).filter(is_offered).collect()
}

fn why_not(
    tree: &Tree,
    document: &Document,
    path: &Path,
    place: NodeRef,
    viewer: &dyn Viewer,
) -> Option<String> {
    if let Some(why) = viewer.why_not(place.context.scope) {
        return Some(why);
    }
    let live = tree.branch(path).and_then(|branch| branch.live.as_ref());
    if let Some(why) = live.and_then(|live| live.locked()) {
        return Some(why);
    }
    let missing = document.missing(path)?;
    let is_live = |items: &Items| items.origin == Origin::Running;
    // Below a live item, too, nothing could be in the configuration.
    let above = tree.root().find(&missing).ok().and_then(|found| found.item);
    if place.item.is_some_and(is_live) || above.is_some_and(is_live) {
        return None;
    }
    let source = tree.overrides(&missing).first().map_or("this run", |first| first.source);
    Some(format!("{missing} comes from the {source} and is not in the configuration"))
}

fn properties(tree: &Tree, document: &Document, path: &Path, context: &Context) -> Vec<Json> {
    let live = tree.branch(path).and_then(|branch| branch.live.as_ref());
    let has_state = context.properties.iter().any(|property| property.role == Role::State);
    let state = live.filter(|_| has_state).map(|live| live.state(path)).unwrap_or_default();
    let overrides = tree.overrides(path);
    let one = |property: &Property| {
        let (value, source, from) = match property.role {
            Role::State => {
                let found = state.iter().find(|(name, _)| *name == property.name);
                (found.map(|(_, value)| value.clone()), "state".to_owned(), None)
            }
            _ => value(document, path, property, &overrides),
        };
        let set = document.set_value(path, property.name).is_some();
        let mut shown = json!({
            "name": property.name,
            "value": value.as_ref().map(to_json),
            "source": &source,
            "from": from,
            "role": role(property.role),
        });
        if overrides.iter().any(|one| one.property == property.name) {
            shown["why"] = Json::from(change::decided(property.name, &source));
        }
        if property.role == Role::Secret {
            shown["value"] = Json::Null;
            shown["set"] = Json::from(set);
        }
        shown
    };
    context.properties.iter().map(one).collect()
}

/// The effective value, its source, and the node that it is inherited from.
fn value(
    document: &Document,
    path: &Path,
    property: &Property,
    overrides: &[Override],
) -> (Option<base::node::Value>, String, Option<String>) {
    if let Some(one) = overrides.iter().find(|one| one.property == property.name) {
        return (Some(one.value.clone()), one.source.to_owned(), None);
    }
    let (value, source) = document.resolve(path, property);
    match source {
        Source::Set => (value, "set".to_owned(), None),
        Source::Default => (value, "default".to_owned(), None),
        Source::Inherited(from) => (value, "inherited".to_owned(), Some(from.to_string())),
    }
}
