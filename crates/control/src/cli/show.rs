//! How things read: nodes as the original showed them, tables, help.

use serde_json::Value as Json;

use super::declared::{Context, Items, Kind, Property};
use super::node::{Node, Shown, UNCOMMITTED};
use super::pending::Change;
use super::place::NodePath;
use super::value;
use super::words::quote;

mod help;
mod table;

pub use help::{action_usage, help, help_action, help_property};
pub use table::{audit, changed, changes, history, plain, result, would_change};

/// What stands for a secret that is set.
pub const SECRET: &str = "(set)";
/// Column at which the equals signs of `show` stand, as in the original.
const EQUALS: usize = 30;
/// Columns of a table of items, in addition to the name.
const COLUMNS: usize = 5;
/// Widest cell of such a table, in characters.
const CELL: usize = 32;

/// A place with all that is in it.
pub fn node(
    place: &NodePath,
    context: &Context,
    node: &Node,
    rows: &[(String, Option<Node>)],
) -> String {
    let mut text = format!("{place}: {}\n", context.title);
    if let Some(may) = node.may.as_ref().filter(|may| !may.change) {
        let why = may.why.as_deref().unwrap_or("your role does not permit it");
        text += &format!("(read-only: {why})\n");
    }
    let mut shown =
        node.properties.iter().filter(|shown| is_of_use(context, node, shown)).peekable();
    if shown.peek().is_some() {
        text += "Properties:\n";
        text.extend(shown.map(|shown| line(context, shown, EQUALS)));
    }
    if !context.actions.is_empty() {
        text += "Actions:\n";
        let lines = context.actions.iter();
        text.extend(lines.map(|action| arrow(&action.name, &action.title)));
    }
    text + &below(context, rows)
}

/// Whether a property applies with the values of the others, or was set nevertheless.
fn is_of_use(context: &Context, node: &Node, shown: &Shown) -> bool {
    let value = |name: &str| node.property(name).map(|shown| &shown.value);
    let declared = context.property(&shown.name);
    let set = shown.set || matches!(shown.source.as_str(), "set" | UNCOMMITTED);
    set || declared.is_none_or(|property| property.applies(value))
}

/// What is below a place.
pub fn below(context: &Context, rows: &[(String, Option<Node>)]) -> String {
    let mut text = String::new();
    if !context.children.is_empty() {
        text += "Children:\n";
        text.extend(context.children.iter().map(|child| arrow(&child.name, &child.title)));
    }
    if let Some(items) = &context.items {
        text += &self::items(items, rows);
    }
    text
}

fn arrow(name: &str, title: &str) -> String {
    format!("{name:>EQUALS$} => {title}\n")
}

/// Some properties, one a line.
pub fn some(context: &Context, node: &Node, names: &[String]) -> String {
    let shown: Vec<&Shown> = names.iter().filter_map(|name| node.property(name)).collect();
    let width = shown.iter().map(|shown| label(context, shown).chars().count()).max();
    shown.into_iter().map(|shown| line(context, shown, width.unwrap_or(0))).collect()
}

/// States in angle brackets, as the original showed what cannot be set.
fn label(context: &Context, shown: &Shown) -> String {
    match context.property(&shown.name) {
        Some(property) if property.is_state() => format!("<{}>", shown.name),
        _ => shown.name.clone(),
    }
}

fn line(context: &Context, shown: &Shown, width: usize) -> String {
    let label = label(context, shown);
    let property = context.property(&shown.name);
    let value = print(property, shown);
    let mark = match (shown.source.as_str(), &shown.from) {
        _ if property.is_some_and(Property::is_state) => String::new(),
        ("default", _) if shown.value.is_null() => String::new(),
        ("default", _) => " (default)".to_owned(),
        ("inherited", Some(from)) => format!(" (inherited from {from})"),
        ("inherited", None) => " (inherited)".to_owned(),
        ("" | "set" | "state", _) => String::new(),
        (source, _) => format!(" ({source})"),
    };
    // A value of several lines keeps its shape below its name.
    let value = value.trim_end().replace('\n', &format!("\n{:width$}   ", ""));
    format!("{label:>width$} = {value}{mark}").trim_end().to_owned() + "\n"
}

fn print(property: Option<&Property>, shown: &Shown) -> String {
    if shown.value.is_null() && shown.set {
        return SECRET.to_owned();
    }
    let any = Kind::default();
    let kind = property.map_or(&any, |property| &property.kind);
    let never = kind.base == "time" && shown.value.as_i64().unwrap_or(0) == 0;
    if let Some(absent) =
        property.map(|p| p.absent.as_str()).filter(|words| never && !words.is_empty())
    {
        return absent.to_owned();
    }
    if let (Some(true), Some([first, rest @ ..])) =
        (property.map(Property::is_state), shown.value.as_array().map(Vec::as_slice))
    {
        // What is only to be read has a line for each.
        let of = kind.of.as_deref().unwrap_or(&any);
        let line = |text: String, one: &Json| text + "\n" + &value::print(of, one);
        return rest.iter().fold(value::print(of, first), line);
    }
    let text = value::print(kind, &shown.value);
    match property {
        _ if text.is_empty() => "-".to_owned(),
        // A unit that the value does not include.
        Some(property) if kind.base == "integer" && !property.unit.is_empty() => {
            format!("{text} {}", property.unit)
        }
        _ => text,
    }
}

/// Items as a table of their names and first properties.
fn items(items: &Items, rows: &[(String, Option<Node>)]) -> String {
    let title = capital(&items.plural);
    if rows.is_empty() {
        return format!("{title}: none\n");
    }
    let fits = |property: &&Property| !property.is_secret() && property.kind.base != "list";
    let columns: Vec<&Property> =
        items.context.properties.iter().filter(fits).take(COLUMNS).collect();
    let mut head = vec![items.noun.to_uppercase()];
    head.extend(columns.iter().map(|property| property.name.to_uppercase()));
    let cells = rows.iter().map(|(name, node)| {
        let mut row = vec![name.clone()];
        row.extend(columns.iter().map(|property| {
            let shown = node.as_ref().and_then(|node| node.property(&property.name));
            shown.map_or_else(|| "-".to_owned(), |shown| cell(&print(Some(property), shown)))
        }));
        row
    });
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(cells).collect();
    format!("{title}:\n{}", table::align(&lines))
}

fn cell(text: &str) -> String {
    let first = text.lines().next().unwrap_or("");
    match first.chars().count() > CELL || text.contains('\n') {
        true => first.chars().take(CELL - 1).chain(['…']).collect(),
        false => first.to_owned(),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

/// What waits for commit, as it would be typed.
pub fn pending(tree: &Context, changes: &[Change]) -> String {
    if changes.is_empty() {
        return "no pending changes\n".to_owned();
    }
    changes.iter().map(|change| typed(tree, change) + "\n").collect()
}

fn typed(tree: &Context, change: &Change) -> String {
    let assigned = |at: &NodePath, name: &str, value: &Json| {
        let property = tree.find(at).and_then(|found| found.context.property(name));
        match property {
            Some(property) if property.is_secret() => format!("{name}={SECRET}"),
            Some(property) => format!("{name}={}", quote(&value::print(&property.kind, value))),
            None => format!("{name}={value}"),
        }
    };
    match change {
        Change::Set { at, property, value } => {
            format!("{at} set {}", assigned(at, property, value))
        }
        Change::Unset { at, property } => format!("{at} unset {property}"),
        Change::Create { parent, name, properties } => {
            let at = parent.child(name);
            let given =
                properties.iter().map(|(name, value)| " ".to_owned() + &assigned(&at, name, value));
            format!("{parent} create {}{}", quote(name), given.collect::<String>())
        }
        Change::Destroy { at, .. } => format!("{} destroy {}", at.parent(), quote(at.name())),
        Change::Rename { at, to } => {
            format!("{} rename {} {}", at.parent(), quote(at.name()), quote(to))
        }
    }
}

/// What the server remarks, one a line.
pub fn notes(notes: &[String]) -> String {
    notes.iter().map(|note| format!("note: {note}\n")).collect()
}

/// Kinds in one phrase, the server's own if it has one: `size from 4K to 1M`.
pub fn kind(kind: &Kind) -> String {
    // The API's true and false are on and off here.
    if let Some(described) = kind.described.as_ref().filter(|_| kind.base != "bool") {
        return described.clone();
    }
    let range = |what: &str| {
        let number = |bound: &Json| value::print(kind, bound);
        match (&kind.min, &kind.max) {
            (Json::Null, Json::Null) => what.to_owned(),
            (min, Json::Null) => format!("{what}, at least {}", number(min)),
            (Json::Null, max) => format!("{what}, at most {}", number(max)),
            (min, max) => format!("{what} from {} to {}", number(min), number(max)),
        }
    };
    match kind.base.as_str() {
        "bool" => "on or off".to_owned(),
        "integer" => range("number"),
        "bytes" => range("size"),
        "seconds" => range("time"),
        "time" => "point of time".to_owned(),
        "choice" => "one of the choices".to_owned(),
        "list" => match &kind.of {
            Some(of) => format!("list of: {}", self::kind(of)),
            None => "list".to_owned(),
        },
        _ => kind.shape.clone().unwrap_or_else(|| "text".to_owned()),
    }
}
