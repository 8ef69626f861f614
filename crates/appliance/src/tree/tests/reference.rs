//! The reference manual of the tree, `docs/reference.md`: made from the declarations and held
//! against them. `UPDATE_GOLDEN=1` regenerates it.

use std::fmt::Write;
use std::path::Path as FilePath;

use base::node::{Action, Context, Default, Effect, Items, Kind, Origin, Path, Property, Role};

use super::all;

const HEAD: &str = "\
# Reference

All nodes of the configuration tree with their properties, actions and items. Names are the same in the browser, in
`plimsoll cli` and in the API ([command line](howto/command-line.md), [API](protocols/api.md)). Generated from the declarations
(`UPDATE_GOLDEN=1 cargo test -p plimsoll reference`); do not edit. `NAME` in a path is the name of an item.

Properties in angle brackets are read-only. Switches are `on` or `off`, sizes may be written `64M`, times `90s` or `5m`.
";

/// What may be in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn values(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "on, off".to_owned(),
        Kind::Integer { min, max: i64::MAX } => format!("a number, at least {min}"),
        Kind::Choice(choices) => {
            let each = choices.iter().map(|(value, meaning)| format!("`{value}`: {meaning}"));
            each.collect::<Vec<_>>().join("; ")
        }
        Kind::List { of, max } => format!("up to {max}, each {}", values(of)),
        other => other.described(),
    }
}

fn default(property: &Property) -> String {
    match (property.default, property.default.value()) {
        (Default::Inherited, _) => "inherited".to_owned(),
        (_, Some(value)) => match property.kind.show(&value).as_str() {
            "true" => "on".to_owned(),
            "false" => "off".to_owned(),
            "" => String::new(),
            shown => format!("{shown}{}", property.unit),
        },
        (_, None) => String::new(),
    }
}

/// Remarks in addition to the values.
fn remarks(property: &Property) -> String {
    let role = match property.role {
        Role::Setting | Role::State => "",
        Role::Secret => " Never shown.",
        Role::AtCreate => " Can only be set at creation.",
    };
    let required = if property.required { " Required." } else { "" };
    let only_if = property.only_if.map_or_else(String::new, |one| {
        format!(" Only if `{}` is `{}`.", one.property, one.values.join("` or `"))
    });
    let late = match property.effect {
        Effect::Now => "",
        Effect::Service => " Takes effect when the service restarts.",
        Effect::Restart => " Takes effect when the server restarts.",
    };
    let example = match property.example {
        "" => String::new(),
        example => format!(" Example: `{example}`."),
    };
    let names = match property.items_of {
        "" => String::new(),
        path => format!(" One of `{}`.", path.trim_start_matches('/')),
    };
    format!("{}{names}{required}{only_if}{role}{late}{example}", property.help)
}

fn properties(text: &mut String, properties: &[Property]) {
    if properties.is_empty() {
        return;
    }
    *text += "\n| Property | Values | Default | |\n|---|---|---|---|\n";
    for property in properties {
        let name = match property.role {
            Role::State => format!("`<{}>`", property.name),
            _ => format!("`{}`", property.name),
        };
        let (values, remarks) = (cell(&values(&property.kind)), cell(&remarks(property)));
        let _ = writeln!(text, "| {name} | {values} | {} | {remarks} |", cell(&default(property)));
    }
}

fn actions(text: &mut String, actions: &[Action]) {
    for action in actions {
        let asks = if action.destructive { " Asks for confirmation." } else { "" };
        let result = match action.result {
            "" => String::new(),
            result => format!(" Returns: {result}"),
        };
        let _ = writeln!(text, "\nAction `{}`: {}{asks}{result}", action.name, action.help);
        properties(text, action.parameters);
    }
}

fn items(text: &mut String, items: &Items) {
    let who = match items.origin {
        Origin::Configured => "can be created and destroyed",
        Origin::Running => "are created by the server",
    };
    let fixed = match items.fixed {
        [] => String::new(),
        names => format!("; built in: `{}`", names.join("`, `")),
    };
    let (plural, max) = (items.plural, items.max);
    let _ = writeln!(
        text,
        "\nItems: {plural}, at most {max}, which {who}{fixed}. Names of {plural}: {}.",
        values(items.key)
    );
}

fn node(text: &mut String, path: &Path, context: &Context) {
    let (title, scope) = (context.title, context.scope);
    let _ = writeln!(text, "\n## {path}\n\n**{title}.** {} Permission: `{scope}`.", context.help);
    properties(text, context.properties);
    actions(text, context.actions);
    if let Some(one) = context.items {
        items(text, one);
    }
    if !context.statistics.is_empty() {
        let _ = writeln!(text, "\nStatistics: `{}`.", context.statistics.join("`, `"));
    }
}

#[test]
fn the_reference_is_what_is_declared() {
    let mut text = HEAD.to_owned();
    for (path, context) in all() {
        node(&mut text, &path, context);
    }
    let path = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).expect("the file can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == text, "docs/reference.md is not what is declared; UPDATE_GOLDEN=1 writes it");
}
