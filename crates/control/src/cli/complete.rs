//! What could come next on a line: commands, contexts, items, properties, their values.

use super::declared::{Context, Kind, Property};
use super::place::NodePath;
use super::shell::{Shell, VERBS, Verb};
use super::words::{self, Word, quote};

/// One possible completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// What to put in place of what is typed.
    pub text: String,
    /// What it is.
    pub help: String,
    /// Where what is typed begins, in bytes.
    pub start: usize,
    /// Whether a blank follows.
    pub whole: bool,
}

/// A candidate before it is known where it goes.
struct Idea {
    text: String,
    help: String,
    whole: bool,
}

impl Idea {
    fn new(text: &str, help: &str) -> Self {
        Self { text: quote(text), help: help.to_owned(), whole: true }
    }

    fn open(text: String, help: &str) -> Self {
        Self { text, help: help.to_owned(), whole: false }
    }
}

/// The possible completions at the end of `line`, as far as the server can list them.
pub fn complete(shell: &Shell, line: &str) -> Vec<Candidate> {
    let (words, _) = words::lenient(line);
    let typing = match words.last() {
        Some(word) if word.end == line.len() => Some(word),
        _ => None,
    };
    let before = &words[..words.len() - usize::from(typing.is_some())];
    let typed = typing.map_or("", |word| word.text.as_str());
    let start = typing.map_or(line.len(), |word| word.start);
    let ideas = ideas(shell, shell.place().clone(), before, typed);
    let fits = |idea: &Idea| {
        idea.text.starts_with(typed) || idea.text.trim_matches('\'').starts_with(typed)
    };
    let candidate = |Idea { text, help, whole }| Candidate { text, help, start, whole };
    ideas.into_iter().filter(fits).map(candidate).collect()
}

fn ideas(shell: &Shell, place: NodePath, before: &[Word], typed: &str) -> Vec<Idea> {
    let Some(found) = shell.tree().find(&place) else { return Vec::new() };
    let context = found.context;
    let Some((first, rest)) = before.split_first() else {
        let verbs = VERBS.iter().map(|line| Idea::new(line.name, line.help));
        let actions = context.actions.iter().map(|action| Idea::new(&action.name, &action.title));
        let mut all: Vec<Idea> = places(shell, &place, typed);
        all.extend(actions);
        if !typed.contains('/') {
            all.extend(verbs);
        }
        return all;
    };
    if let Some(action) = context.action(&first.text) {
        return assignments(shell, &action.parameters, typed, &|_| true);
    }
    match Verb::of(&first.text) {
        Some(verb) => arguments(shell, &place, context, verb, typed),
        None => {
            let next = walk(shell.tree(), &place, &first.text);
            next.map_or_else(Vec::new, |next| ideas(shell, next, rest, typed))
        }
    }
}

/// Where a path leads, names of items being taken on trust.
fn walk(tree: &Context, place: &NodePath, path: &str) -> Option<NodePath> {
    let mut place = if path.starts_with('/') { NodePath::default() } else { place.clone() };
    for name in path.split('/').filter(|name| !name.is_empty()) {
        place = if name == ".." { place.parent() } else { place.child(name) };
    }
    tree.find(&place).map(|_| place)
}

/// Contexts and items as parts of a path.
fn places(shell: &Shell, place: &NodePath, typed: &str) -> Vec<Idea> {
    let (above, _) = typed.rsplit_once('/').map_or(("", typed), |(above, last)| (above, last));
    let prefix = if typed.contains('/') { format!("{above}/") } else { String::new() };
    let base = if prefix.is_empty() {
        place.clone()
    } else {
        match walk(shell.tree(), place, &prefix) {
            Some(base) => base,
            None => return Vec::new(),
        }
    };
    let Some(found) = shell.tree().find(&base) else { return Vec::new() };
    let children = found.context.children.iter();
    let mut all: Vec<Idea> =
        children.map(|child| Idea::new(&format!("{prefix}{}", child.name), &child.title)).collect();
    if let Some(items) = &found.context.items {
        let names = shell.items(&base).unwrap_or_default();
        let names = names.iter().map(|name| Idea::new(&format!("{prefix}{name}"), &items.noun));
        all.extend(names);
    }
    all
}

fn arguments(
    shell: &Shell,
    place: &NodePath,
    context: &Context,
    verb: Verb,
    typed: &str,
) -> Vec<Idea> {
    let names = |keep: &dyn Fn(&Property) -> bool| -> Vec<Idea> {
        let kept = context.properties.iter().filter(|property| keep(property));
        kept.map(|property| Idea::new(&property.name, &property.title)).collect()
    };
    match verb {
        Verb::Get => names(&|_| true),
        Verb::Unset => names(&|property| !property.is_state()),
        Verb::Set => {
            assignments(shell, &context.properties, typed, &|property| !property.is_state())
        }
        Verb::Create => match &context.items {
            Some(items) => {
                let given = &items.context.properties;
                assignments(shell, given, typed, &|property| !property.is_state())
            }
            None => Vec::new(),
        },
        Verb::Cd | Verb::Show | Verb::List => places(shell, place, typed),
        Verb::Select | Verb::Destroy | Verb::Rename => {
            let noun = context.items.as_ref().map_or("", |items| items.noun.as_str());
            let names = shell.items(place).unwrap_or_default();
            names.iter().map(|name| Idea::new(name, noun)).collect()
        }
        Verb::Help => {
            let mut all = names(&|_| true);
            all.extend(context.actions.iter().map(|a| Idea::new(&a.name, &a.title)));
            all.extend(context.children.iter().map(|c| Idea::new(&c.name, &c.title)));
            all.extend(VERBS.iter().map(|line| Idea::new(line.name, line.help)));
            all
        }
        Verb::Json => vec![Idea::new("on", ""), Idea::new("off", "")],
        _ => Vec::new(),
    }
}

/// `P=` of each property; behind the equals sign the values that are known.
fn assignments(
    shell: &Shell,
    properties: &[Property],
    typed: &str,
    keep: &dyn Fn(&Property) -> bool,
) -> Vec<Idea> {
    let kept = properties.iter().filter(|property| keep(property));
    let Some((left, _)) = typed.split_once('=') else {
        return kept.map(|p| Idea::open(format!("{}=", p.name), &p.title)).collect();
    };
    let name = left.trim_end_matches(['+', '-']);
    let Some(property) = kept.into_iter().find(|property| property.name == name) else {
        return Vec::new();
    };
    let value = |(value, help): (String, String)| Idea::new(&format!("{left}={value}"), &help);
    let known = match &property.items_of {
        Some(path) => named(shell, path),
        None => values(&property.kind),
    };
    known.into_iter().map(value).collect()
}

/// Names of the items of a node, as far as the server lists them.
fn named(shell: &Shell, path: &str) -> Vec<(String, String)> {
    let place = NodePath::parse(path);
    let noun = shell.tree().find(&place).and_then(|found| found.context.items.as_ref());
    let noun = noun.map_or("", |items| items.noun.as_str());
    let names = shell.items(&place).unwrap_or_default();
    names.into_iter().map(|name| (name, noun.to_owned())).collect()
}

fn values(kind: &Kind) -> Vec<(String, String)> {
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    match kind.base.as_str() {
        "bool" => vec![pair("on", ""), pair("off", "")],
        "choice" => {
            let choices = kind.choices.iter().flatten();
            choices.map(|choice| pair(&choice.value, &choice.meaning)).collect()
        }
        "list" => kind.of.as_deref().map_or_else(Vec::new, values),
        _ => Vec::new(),
    }
}
