//! The text of `help`.

use crate::cli::declared::{Action, Condition, Context, Items, Property};
use crate::cli::place::NodePath;
use crate::cli::shell::{VERBS, Verb};
use crate::cli::value;

/// The help of a context.
pub fn help(place: &NodePath, context: &Context, item_of: Option<&Items>) -> String {
    let mut text = wrapped(&format!("{}: {}", context.title, context.help));
    text += &section("Contexts", context.children.iter().map(|c| (c.name.clone(), &c.help)));
    if let Some(items) = &context.items {
        let name = format!("NAME of {}", with_article(&items.noun));
        text += &section("Items", [(name, &items.context.help)].into_iter());
    }
    let properties = context.properties.iter().map(|p| {
        let name = if p.is_state() { format!("<{}>", p.name) } else { p.name.clone() };
        (name, &p.help)
    });
    text += &section("Properties", properties);
    text += &section("Actions", context.actions.iter().map(|a| (action_usage(a), &a.help)));
    let verbs = VERBS.iter().filter(|line| fits(line.verb, place, context, item_of));
    let verbs: Vec<(String, String)> =
        verbs.map(|line| (line.usage(), line.help.to_owned())).collect();
    text + &section("Commands", verbs.iter().map(|(usage, help)| (usage.clone(), help)))
}

/// A noun after "a" or "an". `LUN` is pronounced as a word, `API token` as letters.
fn with_article(noun: &str) -> String {
    let is_vowel = noun.starts_with(['a', 'e', 'i', 'o', 'A']);
    format!("{} {noun}", if is_vowel { "an" } else { "a" })
}

/// Whether a command can do something at a place.
fn fits(verb: Verb, place: &NodePath, context: &Context, item_of: Option<&Items>) -> bool {
    let settings = context.properties.iter().any(|property| !property.is_state());
    let made = context.items.as_ref().is_some_and(Items::configured);
    let item = item_of.is_some_and(Items::configured);
    match verb {
        Verb::Get => !context.properties.is_empty(),
        Verb::Set | Verb::Unset => settings,
        Verb::Select => context.items.is_some(),
        Verb::Create => made,
        Verb::Destroy | Verb::Rename => made || item,
        Verb::Up | Verb::Top | Verb::Done => !place.0.is_empty(),
        _ => true,
    }
}

/// Width of the left column.
const LEFT: usize = 34;
/// Width of the whole.
const WIDTH: usize = 100;

fn section<'a>(title: &str, lines: impl Iterator<Item = (String, &'a String)>) -> String {
    let lines: Vec<String> = lines.map(|(name, help)| entry(&name, help)).collect();
    if lines.is_empty() { String::new() } else { format!("{title}:\n{}", lines.concat()) }
}

/// A text in lines of [`WIDTH`].
fn wrapped(text: &str) -> String {
    let (mut lines, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        let gap = match column {
            0 => "",
            _ if column + 1 + length > WIDTH => "\n",
            _ => " ",
        };
        column = if gap == "\n" { length } else { column + gap.len() + length };
        lines = lines + gap + word;
    }
    lines + "\n"
}

/// A name, and its help as wrapped lines in the second column.
fn entry(name: &str, help: &str) -> String {
    let mut text = format!("  {name:<width$} ", width = LEFT - 3);
    let mut column = text.chars().count();
    if column > LEFT {
        text = format!("  {name}\n{:LEFT$}", "");
        column = LEFT;
    }
    for word in help.split_whitespace() {
        let length = word.chars().count();
        if column + length > WIDTH && column > LEFT {
            text = text.trim_end().to_owned() + &format!("\n{:LEFT$}", "");
            column = LEFT;
        }
        text += word;
        text.push(' ');
        column += length + 1;
    }
    text.trim_end().to_owned() + "\n"
}

/// All about a property.
pub fn help_property(property: &Property) -> String {
    let mut text = wrapped(&format!("{}: {}", property.title, property.help));
    let mut fact = |name: &str, what: &str| text += &format!("  {name:<8} {what}\n");
    let unit = match property.unit.as_str() {
        unit if property.kind.base == "integer" && !unit.is_empty() => format!(", in {unit}"),
        _ => String::new(),
    };
    fact("kind", &(super::kind(&property.kind) + &unit));
    for choice in property.kind.choices.iter().flatten() {
        fact("", &format!("{:<16} {}", choice.value, choice.meaning));
    }
    if let Some(path) = &property.items_of {
        fact("names", &format!("those below {path}"));
    }
    match &property.default {
        serde_json::Value::Null => {}
        default => fact("default", &value::print(&property.kind, default)),
    }
    if !property.example.is_empty() {
        fact("example", &property.example);
    }
    if let Some(Condition { property, values }) = &property.only_if {
        fact("if", &format!("{property} is {}", values.join(" or ")));
    }
    if property.required {
        fact("needed", "required");
    }
    if property.is_state() {
        fact("access", "read-only");
    } else if property.is_secret() {
        fact("access", "never shown; `set NAME` prompts for it, =@FILE reads it from a file");
    } else if property.is_at_create() {
        fact("access", "can only be set when the item is created");
    }
    match property.effect.as_str() {
        "service-restart" => fact("effect", "when the service restarts"),
        "restart" => fact("effect", "when the server restarts"),
        _ => {}
    }
    text
}

/// All about an action.
pub fn help_action(action: &Action) -> String {
    let mut text = wrapped(&format!("{}: {}", action.title, action.help));
    text += &format!("  usage    {}\n", action_usage(action));
    for parameter in &action.parameters {
        let kind = super::kind(&parameter.kind);
        text += &format!("  {:<8} {} ({kind})\n", parameter.name, parameter.help);
    }
    text
}

/// The syntax of an action.
pub fn action_usage(action: &Action) -> String {
    let parameters = action.parameters.iter().map(|parameter| {
        let name = parameter.name.to_uppercase();
        if parameter.required { format!(" {name}") } else { format!(" [{name}]") }
    });
    let sure = if action.destructive { " [--yes]" } else { "" };
    format!("{}{}{sure}", action.name, parameters.collect::<String>())
}
