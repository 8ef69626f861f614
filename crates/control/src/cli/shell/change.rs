//! What changes something: `set`, `unset`, `create`, `destroy`, `rename`, and `commit`, which
//! alone does it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{CliError, Output, Shell, VerbResult, read};
use crate::cli::api::Request;
use crate::cli::declared::{Context, Items, Property, did_you_mean};
use crate::cli::pending::{Before, Change, Pending};
use crate::cli::place::NodePath;
use crate::cli::{show, value};

/// The response to changes.
#[derive(Debug, Deserialize)]
pub(super) struct Answered {
    #[serde(default)]
    revision: u64,
    #[serde(default)]
    changes: Json,
    #[serde(default)]
    notes: Vec<String>,
}

/// Conflict: the configuration has changed meanwhile, or a confirmation is required.
const CONFLICT: u16 = 409;

impl Shell {
    pub(super) fn set(&mut self, place: &NodePath, words: &[&str], passing: bool) -> VerbResult {
        let mut pending = self.pending.clone();
        let mut names = Vec::new();
        for word in words {
            let (name, value) = self.assignment(place, &pending, word)?;
            names.push(name.clone());
            pending = pending.with(Change::Set { at: place.clone(), property: name, value });
        }
        self.keep(place, pending, passing, &names)
    }

    /// `P=V`, `P+=V`, `P-=V`, or the name of a secret alone.
    fn assignment(
        &mut self,
        place: &NodePath,
        pending: &Pending,
        word: &str,
    ) -> Result<(String, Json), CliError> {
        let (left, text) = match word.split_once('=') {
            Some((left, text)) => (left, Some(text)),
            None => (word, None),
        };
        let name = left.trim_end_matches(['+', '-']);
        let property = self.settable(place, pending, name)?.clone();
        let Some(text) = text else { return Ok((name.to_owned(), self.ask_for(&property)?)) };
        let text = self.read_file(&property, text)?;
        let wrong = |why| CliError::refused(format!("{name}: {why}"), hint(&property));
        let value = value::parse(&property.kind, &text).map_err(wrong)?;
        let value = match left.strip_prefix(name) {
            Some("") => value,
            Some(sign @ ("+" | "-")) => {
                let now = pending.value(place, name).flatten().cloned();
                let now = match now {
                    Some(now) => now,
                    None => self
                        .node(place, false)?
                        .property(name)
                        .map_or(Json::Null, |p| p.value.clone()),
                };
                changed_list(&property, sign, &now, value)?
            }
            _ => {
                return Err(CliError::usage(
                    format!("'{word}' is not an assignment"),
                    "set P=V, P+=V, P-=V",
                ));
            }
        };
        Ok((name.to_owned(), value))
    }

    /// The declaration of a property that can be set at `place`.
    fn settable(
        &self,
        place: &NodePath,
        pending: &Pending,
        name: &str,
    ) -> Result<&Property, CliError> {
        let found = self.found(place)?;
        let property = property(found.context, place, name)?;
        if property.is_state() {
            let why = format!("{name} is read-only");
            return Err(CliError::refused(why, ""));
        }
        if property.is_at_create() && pending.before(place) != Before::New {
            let noun = found.item_of.map_or("item", |items| items.noun.as_str());
            let why = format!("{name} can only be set when the {noun} is created");
            return Err(CliError::refused(why, ""));
        }
        Ok(property)
    }

    /// A secret that is not on the line.
    fn ask_for(&mut self, property: &Property) -> Result<Json, CliError> {
        let name = &property.name;
        if !property.is_secret() {
            let hint = format!("say {name}=VALUE");
            return Err(CliError::usage(format!("'{name}' needs a value"), hint));
        }
        match self.outside.secret(name) {
            Some(text) => Ok(Json::String(text)),
            None => {
                let hint = format!("say {name}=@FILE");
                Err(CliError::refused(
                    format!("{name} cannot be prompted for without a terminal"),
                    hint,
                ))
            }
        }
    }

    /// `@FILE` for what is better in a file: secrets, keys, certificates, texts of many lines.
    pub(super) fn read_file(
        &mut self,
        property: &Property,
        text: &str,
    ) -> Result<String, CliError> {
        let of = property.kind.of.as_deref().unwrap_or(&property.kind);
        let shape = of.shape.as_deref().unwrap_or("").to_ascii_lowercase().replace(['-', '_'], "");
        let may = property.is_secret() || matches!(shape.as_str(), "pem" | "sshkey" | "lines");
        match text.strip_prefix('@') {
            Some(literal) if may && literal.starts_with('@') => Ok(literal.to_owned()),
            Some(path) if may => {
                let wrong = |why| CliError::refused(why, "write @@ for a value that starts with @");
                let text = self.outside.read(path).map_err(wrong)?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            _ => Ok(text.to_owned()),
        }
    }

    pub(super) fn unset(&mut self, place: &NodePath, words: &[&str], passing: bool) -> VerbResult {
        let mut pending = self.pending.clone();
        for name in words {
            self.settable(place, &pending, name)?;
            let property = (*name).to_owned();
            pending = pending.with(Change::Unset { at: place.clone(), property });
        }
        let names: Vec<String> = words.iter().map(|name| (*name).to_owned()).collect();
        self.keep(place, pending, passing, &names)
    }

    pub(super) fn create(&mut self, place: &NodePath, words: &[&str], passing: bool) -> VerbResult {
        let (name, rest) = words.split_first().map_or(("", words), |(name, rest)| (*name, rest));
        if name.contains('=') {
            return Err(CliError::usage("the name comes first", "usage: create NAME [P=V]…"));
        }
        self.made_here(place)?;
        let item = place.child(name);
        if self.found(place)?.context.child(name).is_some() || self.exists(&item)? {
            let hint = "choose another name, or `select` it";
            return Err(CliError::refused(format!("{item} already exists"), hint));
        }
        let create = Change::Create {
            parent: place.clone(),
            name: name.to_owned(),
            properties: BTreeMap::new(),
        };
        let mut pending = self.pending.clone().with(create);
        let mut names = Vec::new();
        for word in rest {
            let (name, value) = self.assignment(&item, &pending, word)?;
            names.push(name.clone());
            pending = pending.with(Change::Set { at: item.clone(), property: name, value });
        }
        let said = self.keep(&item, pending, passing, &names)?;
        if !passing {
            self.place = item;
        }
        Ok(said)
    }

    fn made_here(&self, place: &NodePath) -> Result<&Items, CliError> {
        let nothing =
            |why: String| CliError::refused(why, "`list` shows the contexts and items below");
        match &self.found(place)?.context.items {
            Some(items) if items.configured() => Ok(items),
            Some(items) => Err(nothing(format!("{} are created by the server", items.plural))),
            None => Err(nothing(format!("{place} has no items that can be created"))),
        }
    }

    /// The item that a command means: the one called `name` here, or the one where we are.
    fn item(&self, place: &NodePath, name: Option<&str>) -> Result<NodePath, CliError> {
        let item = match name {
            Some(name) => {
                self.made_here(place)?;
                place.child(name)
            }
            None if self.found(place)?.item_of.is_some_and(Items::configured) => place.clone(),
            None => {
                let hint = "name an item";
                return Err(CliError::usage(format!("{place} is not an item"), hint));
            }
        };
        match self.exists(&item)? {
            true => Ok(item),
            false => Err(self.nothing_called(&item.parent(), item.name())),
        }
    }

    pub(super) fn destroy(
        &mut self,
        place: &NodePath,
        words: &[&str],
        passing: bool,
    ) -> VerbResult {
        let (flags, names): (Vec<&str>, Vec<&str>) =
            words.iter().copied().partition(|word| matches!(*word, "--yes" | "-y"));
        if names.len() > 1 || names.iter().any(|name| name.starts_with("--")) {
            return Err(CliError::usage(
                "`destroy` takes one name",
                "usage: destroy [NAME] [--yes]",
            ));
        }
        let at = self.item(place, names.first().copied())?;
        let new = self.pending.before(&at) == Before::New;
        if !new && flags.is_empty() && !self.may_destroy(&at)? {
            return Ok(Output::nothing());
        }
        let pending = self.pending.clone().with(Change::Destroy { at: at.clone(), confirm: true });
        let stays = self.place.clone();
        if self.place.within(&at) {
            self.place = at.parent();
        }
        self.keep(&at.parent(), pending, passing, &[]).inspect_err(|_| self.place = stays)
    }

    /// Shows what is destroyed, and prompts for confirmation.
    fn may_destroy(&mut self, at: &NodePath) -> Result<bool, CliError> {
        let alone = Change::Destroy { at: at.clone(), confirm: false };
        let asked = self.pending.clone().with(alone);
        match self.send(&asked, true, "") {
            Ok(_) => Ok(true),
            Err(CliError::Refused { status: CONFLICT, sentence, .. }) => {
                // What cannot be destroyed at all is no question.
                let sure = Change::Destroy { at: at.clone(), confirm: true };
                self.send(&self.pending.clone().with(sure), true, "")?;
                match self.outside.confirm(&format!("{sentence}. Destroy?")) {
                    Some(answer) => Ok(answer),
                    None => Err(CliError::refused(sentence, "confirm with `destroy --yes`")),
                }
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn rename(&mut self, place: &NodePath, words: &[&str], passing: bool) -> VerbResult {
        let (name, to) = match words {
            [name, to] => (Some(*name), *to),
            _ => (None, words.first().copied().unwrap_or_default()),
        };
        let at = self.item(place, name)?;
        let target = at.parent().child(to);
        if self.exists(&target)? {
            let hint = "choose another name";
            return Err(CliError::refused(format!("{target} already exists"), hint));
        }
        let pending =
            self.pending.clone().with(Change::Rename { at: at.clone(), to: to.to_owned() });
        let stays = self.place.clone();
        self.place = self.place.moved(&at, &target);
        self.keep(&target, pending, passing, &[]).inspect_err(|_| self.place = stays)
    }

    /// Checks changes and keeps them, or, for a line that is a path with its command and when
    /// nothing waited before, does them at once.
    fn keep(
        &mut self,
        place: &NodePath,
        pending: Pending,
        passing: bool,
        names: &[String],
    ) -> VerbResult {
        let mut pending = pending;
        if pending.is_empty() {
            self.pending = pending;
            return Ok(Output::nothing());
        }
        if pending.revision.is_none() {
            let node: super::Node = read(self.get("/nodes")?)?;
            pending.revision = Some(node.revision);
        }
        if passing && self.pending.is_empty() {
            let answer = self.send(&pending, false, "")?;
            let text = show::notes(&answer.notes);
            return Ok(Output::new(text, committed(&answer)));
        }
        let missing = self.missing(&pending);
        let answer = match self.send(&pending, true, "") {
            Ok(answer) => answer,
            Err(CliError::Refused { property, .. })
                if !missing.is_empty()
                    && property.as_ref().is_none_or(|name| missing.contains(name)) =>
            {
                let notes = vec![format!("required, not set yet: {}", missing.join(", "))];
                Answered { revision: 0, changes: Json::Null, notes }
            }
            Err(error) => return Err(error),
        };
        self.pending = pending;
        let node = self.node(place, false)?;
        let context = self.found(place)?.context;
        let text = show::some(context, &node, names) + &show::notes(&answer.notes);
        Ok(Output::new(text, waiting(&answer)))
    }

    /// Properties that items in the making still need.
    fn missing(&self, pending: &Pending) -> Vec<String> {
        let made = pending.changes().iter().filter_map(|change| match change {
            Change::Create { properties, .. } => Some((change.creates()?, properties)),
            _ => None,
        });
        made.flat_map(|(place, given)| {
            let all = self.tree.find(&place).map_or(&[][..], |found| &found.context.properties);
            let value = |name: &str| {
                let default = || all.iter().find(|p| p.name == name).map(|p| &p.default);
                given.get(name).or_else(default)
            };
            let needed = all.iter().filter(|p| p.required && p.applies(value));
            let missing = needed.filter(|p| !given.contains_key(&p.name));
            missing.map(|p| p.name.clone()).collect::<Vec<_>>()
        })
        .collect()
    }

    fn send(&self, pending: &Pending, dry: bool, comment: &str) -> Result<Answered, CliError> {
        let changes: Vec<Json> = pending.changes().iter().map(Change::json).collect();
        let mut body = json!({"dry_run": dry, "comment": comment, "changes": changes});
        if let (Some(revision), Some(body)) = (pending.revision, body.as_object_mut()) {
            body.insert("revision".to_owned(), revision.into());
        }
        let answer = self.api.ask(&Request::Post("/changes".to_owned(), body));
        read(answer.map_err(|error| match error {
            CliError::Unanswered { sentence } if dry => CliError::Lost { sentence },
            error => error,
        })?)
    }

    pub(super) fn commit(&mut self, words: &[&str]) -> VerbResult {
        let force = words.first() == Some(&"--force");
        let comment = words.get(usize::from(force)..).unwrap_or_default().join(" ");
        if self.pending.is_empty() {
            return Ok(Output::new("nothing to commit\n", Json::Null));
        }
        let mut pending = self.pending.clone();
        if force {
            pending.revision = None;
        }
        let answer = self.send(&pending, false, &comment).map_err(after_conflict)?;
        self.pending = Pending::default();
        let text = format!("committed as revision {}\n", answer.revision);
        Ok(Output::new(text + &show::notes(&answer.notes), committed(&answer)))
    }

    pub(super) fn abort(&mut self) -> Output {
        // A place that only the changes made, or renamed, is left for what is there without them.
        let changes = std::mem::take(&mut self.pending);
        let mut place = self.place.clone();
        loop {
            match changes.before(&place) {
                Before::Server(before) => break place = before,
                Before::New | Before::Gone => place = place.parent(),
            }
        }
        self.place = place;
        Output::nothing()
    }

    /// A change for people: without secrets.
    pub(super) fn masked(&self, change: &Change) -> Json {
        let secret = |at: &NodePath, name: &str| {
            let property = self.tree.find(at).and_then(|found| found.context.property(name));
            property.is_some_and(Property::is_secret)
        };
        let masked = || Json::String(show::SECRET.to_owned());
        let mut change = change.clone();
        match &mut change {
            Change::Set { at, property, value } if secret(at, property) => *value = masked(),
            Change::Create { parent, name, properties } => {
                let at = parent.child(name);
                let secrets = properties.iter_mut().filter(|(name, _)| secret(&at, name));
                secrets.for_each(|(_, value)| *value = masked());
            }
            _ => {}
        }
        change.json()
    }
}

fn waiting(answer: &Answered) -> Json {
    json!({"committed": false, "changes": answer.changes, "notes": answer.notes})
}

fn committed(answer: &Answered) -> Json {
    json!({
        "committed": true,
        "revision": answer.revision,
        "changes": answer.changes,
        "notes": answer.notes,
    })
}

fn after_conflict(error: CliError) -> CliError {
    match error {
        CliError::Refused { status: CONFLICT, sentence, property, .. } => CliError::Refused {
            status: CONFLICT,
            sentence,
            hint: "`abort` discards your changes, `commit --force` overwrites the other ones"
                .to_owned(),
            property,
        },
        error => error,
    }
}

/// The property called `name`, or what is wrong with the name.
pub(super) fn property<'a>(
    context: &'a Context,
    place: &NodePath,
    name: &str,
) -> Result<&'a Property, CliError> {
    context.property(name).ok_or_else(|| {
        let names = || context.properties.iter().map(|property| property.name.as_str());
        let hint = match did_you_mean(name, names()) {
            hint if !hint.is_empty() => hint,
            _ if context.properties.is_empty() => "it has none; `list` shows the contexts and \
                items below"
                .into(),
            _ => format!("it has {}", names().collect::<Vec<_>>().join(", ")),
        };
        CliError::refused(format!("{place} has no property '{name}'"), hint)
    })
}

/// What a value could be.
pub(super) fn hint(property: &Property) -> String {
    match property.example.as_str() {
        "" => format!("see `help {}`", property.name),
        example => format!("for example {example}"),
    }
}

/// A list with elements added or removed.
fn changed_list(
    property: &Property,
    sign: &str,
    now: &Json,
    value: Json,
) -> Result<Json, CliError> {
    let name = &property.name;
    let Json::Array(given) = value else {
        return Err(CliError::refused(format!("{name} is not a list"), "set P=V"));
    };
    let mut list = now.as_array().cloned().unwrap_or_default();
    for element in given {
        let at = list.iter().position(|one| *one == element);
        match (sign, at) {
            ("+", None) => list.push(element),
            ("-", Some(at)) => drop(list.remove(at)),
            ("-", None) => {
                let text = value::print(&property.kind, &Json::Array(vec![element]));
                return Err(CliError::refused(format!("{name} does not have {text}"), ""));
            }
            _ => {}
        }
    }
    Ok(Json::Array(list))
}
