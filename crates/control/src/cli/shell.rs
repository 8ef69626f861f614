//! The interpreter: where one is, what waits for `commit`, and what a line does. Everything
//! outside comes in through [`Api`] and [`Outside`], so that tests can be both.

mod act;
mod change;
mod look;
mod records;
mod verb;

use serde_json::{Value as Json, json};

pub use verb::{VERBS, Verb};

use super::api::{Api, Request};
use super::declared::{Context, DeclaredNode, did_you_mean};
use super::node::Node;
use super::pending::{Before, Pending};
use super::place::NodePath;
use super::words::{self, Word};
use super::{CliError, show};

/// What the shell needs of the machine that it runs on.
pub trait Outside: Send {
    /// The text of a file.
    ///
    /// # Errors
    /// One sentence.
    fn read(&mut self, path: &str) -> Result<String, String>;
    /// Makes or replaces a file.
    ///
    /// # Errors
    /// One sentence.
    fn write(&mut self, path: &str, text: &str) -> Result<(), String>;
    /// Asks the user for confirmation; `None` without a terminal.
    fn confirm(&mut self, question: &str) -> Option<bool>;
    /// Reads a secret without echo; `None` without a terminal.
    fn secret(&mut self, name: &str) -> Option<String>;
}

/// What a line has led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The output; empty or ending with a line end.
    Text(String),
    /// The user leaves the shell.
    Leave,
}

/// The output of a command: a text, or in JSON a value.
type VerbResult = Result<Output, CliError>;

/// The output of a command, in both formats.
pub(super) struct Output {
    text: String,
    json: Json,
}

impl Output {
    fn new(text: impl Into<String>, json: Json) -> Self {
        Self { text: text.into(), json }
    }

    fn nothing() -> Self {
        Self::new("", Json::Null)
    }
}

/// A shell on one server.
pub struct Shell {
    api: Box<dyn Api>,
    outside: Box<dyn Outside>,
    tree: Context,
    place: NodePath,
    pending: Pending,
    json: bool,
}

impl Shell {
    /// A shell at the root of a server's tree.
    ///
    /// # Errors
    /// The server does not return its declaration of the tree.
    pub fn open(
        api: Box<dyn Api>,
        outside: Box<dyn Outside>,
        json: bool,
    ) -> Result<Self, CliError> {
        let tree = api.ask(&Request::Get("/tree".to_owned()))?;
        let tree = serde_json::from_value(tree).map_err(|e| CliError::Lost {
            sentence: format!("the declaration of the tree cannot be parsed: {e}"),
        })?;
        let (place, pending) = (NodePath::default(), Pending::default());
        Ok(Self { api, outside, tree, place, pending, json })
    }

    /// Where it is, for a prompt: `shares default tank`.
    pub fn here(&self) -> String {
        self.place.0.join(" ")
    }

    /// How many changes wait for `commit`.
    pub fn waiting(&self) -> usize {
        self.pending.changes().len()
    }

    /// Executes a line.
    ///
    /// # Errors
    /// What is wrong; nothing has then been done.
    pub fn run(&mut self, line: &str) -> Result<Answer, CliError> {
        let words = words::split(line).map_err(|_| {
            CliError::usage("unterminated quote", "close the quote, or escape it with \\")
        })?;
        let Some(first) = words.first() else { return Ok(Answer::Text(String::new())) };
        if Verb::of(&first.text) == Some(Verb::Exit) {
            return self.leave();
        }
        let place = self.place.clone();
        let output = self.perform(&place, &words, false)?;
        Ok(Answer::Text(match self.json {
            true if output.json.is_null() => String::new(),
            true => format!("{}\n", output.json),
            false => output.text,
        }))
    }

    /// Whether a line has something in it that must not be kept.
    pub fn has_secret(&self, line: &str) -> bool {
        let (words, _) = words::lenient(line);
        let secret = |name: &str| self.tree.any_property(&|p| p.is_secret() && p.name == name);
        words.iter().any(|word| match word.text.split_once('=') {
            // The name of a file is no secret.
            Some((_, value)) if value.starts_with('@') && !value.starts_with("@@") => false,
            Some((name, _)) => secret(name.trim_end_matches('+')),
            None => self.takes_secret(&word.text),
        })
    }

    /// A line as a transcript may show it.
    pub(super) fn kept(&self, line: &str) -> String {
        if !self.has_secret(line) {
            return line.trim().to_owned();
        }
        let (words, _) = words::lenient(line);
        let mut follows = false;
        let masked = words.iter().map(|word| match word.text.split_once('=') {
            Some((name, _)) if self.has_secret(&word.text) => format!("{name}={}", show::SECRET),
            // What follows such an action may be the secret without its name.
            None if follows => show::SECRET.to_owned(),
            _ => {
                follows = follows || self.takes_secret(&word.text);
                words::quote(&word.text)
            }
        });
        masked.collect::<Vec<_>>().join(" ")
    }

    /// Whether an action of that name takes a secret, which may come without its name.
    fn takes_secret(&self, name: &str) -> bool {
        fn any(context: &Context, name: &str) -> bool {
            let here =
                context.action(name).is_some_and(|a| a.parameters.iter().any(|p| p.is_secret()));
            here || context.children.iter().any(|child| any(child, name))
                || context.items.as_ref().is_some_and(|items| any(&items.context, name))
        }
        any(&self.tree, name)
    }

    /// Asks for confirmation if changes would be lost.
    fn leave(&mut self) -> Result<Answer, CliError> {
        let Some(lost) = self.lost() else { return Ok(Answer::Leave) };
        match self.outside.confirm(&format!("{lost}. Discard and exit?")) {
            Some(true) => {
                self.pending = Pending::default();
                Ok(Answer::Leave)
            }
            Some(false) => Ok(Answer::Text(String::new())),
            None => Err(CliError::refused(lost, "`commit` or `abort` before the end")),
        }
    }

    /// What would be lost by leaving now, as a sentence without its full stop.
    pub fn lost(&self) -> Option<String> {
        match self.waiting() {
            0 => None,
            1 => Some("1 change is not committed".to_owned()),
            n => Some(format!("{n} changes are not committed")),
        }
    }

    /// Executes the words at `place`. `passing`: the line reached it by a path and does not stay.
    fn perform(&mut self, place: &NodePath, words: &[Word], passing: bool) -> VerbResult {
        let Some((first, rest)) = words.split_first() else {
            self.place = place.clone();
            return Ok(Output::nothing());
        };
        let name = first.text.as_str();
        let DeclaredNode { context, item_of } = self.found(place)?;
        let is_action = context.action(name).is_some();
        // Live items have no changes: `abort` and `destroy` are their actions.
        let live = item_of.is_some_and(|items| !items.configured());
        // `.. show` looks at what is above, and stays.
        let climbs = name == ".." && !rest.is_empty();
        match Verb::of(name) {
            Some(verb) if (verb.is_core() && !live || !is_action) && !climbs => {
                self.verb(verb, place, rest, passing)
            }
            _ if is_action => self.act(place, name, rest),
            _ => {
                let next = self.follow(place, name).map_err(|error| {
                    let no_such = matches!(error, CliError::Refused { status: 0, .. });
                    if no_such && !name.contains('/') { self.unknown(place, name) } else { error }
                })?;
                self.perform(&next, rest, true)
            }
        }
    }

    fn unknown(&self, place: &NodePath, name: &str) -> CliError {
        let context = self.tree.find(place).map(|found| found.context);
        let here = context.into_iter().flat_map(|context| {
            let actions = context.actions.iter().map(|action| action.name.as_str());
            actions.chain(context.children.iter().map(|child| child.name.as_str()))
        });
        let items = context.and_then(|context| context.items.as_ref());
        let known = items.and_then(|_| self.items(place).ok()).unwrap_or_default();
        let verbs = VERBS.iter().map(|verb| verb.name);
        let all = verbs.chain(here).chain(known.iter().map(String::as_str));
        let hint = match (did_you_mean(name, all), items) {
            (hint, _) if !hint.is_empty() => hint,
            _ if self.tree.child(name).is_some() => format!("did you mean '/{name}'?"),
            (_, Some(items)) if known.is_empty() => format!("there are no {} yet", items.plural),
            (_, Some(items)) => format!("`list` shows the {}", items.plural),
            _ => "`help` lists the commands".to_owned(),
        };
        let noun = items.map_or_else(String::new, |items| format!(", and no {}", items.noun));
        CliError::usage(format!("'{name}' is not a command, action or context here{noun}"), hint)
    }

    /// The place that a path leads to from `place`; all of it must be there.
    fn follow(&self, place: &NodePath, path: &str) -> Result<NodePath, CliError> {
        let mut place = if path.starts_with('/') { NodePath::default() } else { place.clone() };
        let mut item = false;
        for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
            if name == ".." {
                (place, item) = (place.parent(), false);
                continue;
            }
            let found = self.found(&place)?.context.step(name);
            let found = found.ok_or_else(|| self.nothing_called(&place, name))?;
            item = item || found.item_of.is_some();
            place = place.child(name);
        }
        if item && !self.exists(&place)? {
            return Err(self.nothing_called(&place.parent(), place.name()));
        }
        Ok(place)
    }

    fn nothing_called(&self, place: &NodePath, name: &str) -> CliError {
        let Some(DeclaredNode { context, .. }) = self.tree.find(place) else {
            return CliError::refused(format!("{} does not exist", place.child(name)), "");
        };
        let noun = context.items.as_ref().map_or("context", |items| items.noun.as_str());
        let mut names: Vec<String> = context.children.iter().map(|c| c.name.clone()).collect();
        if context.items.is_some() {
            names.extend(self.items(place).unwrap_or_default());
        }
        let hint = match did_you_mean(name, names.iter().map(String::as_str)) {
            hint if hint.is_empty() => "`list` shows them".to_owned(),
            hint => hint,
        };
        CliError::refused(format!("{place} has no {noun} '{name}'"), hint)
    }

    /// What is declared at `place`.
    fn found(&self, place: &NodePath) -> Result<DeclaredNode<'_>, CliError> {
        let gone =
            || CliError::refused(format!("{place} does not exist"), "`cd /` leads to the top");
        self.tree.find(place).ok_or_else(gone)
    }

    fn exists(&self, place: &NodePath) -> Result<bool, CliError> {
        match self.pending.before(place) {
            Before::New => Ok(true),
            Before::Gone => Ok(false),
            Before::Server(before) => match self.get(&format!("/nodes{}", before.url())) {
                Ok(_) => Ok(true),
                Err(CliError::Refused { status: 404, .. }) => Ok(false),
                Err(error) => Err(error),
            },
        }
    }

    fn get(&self, path: &str) -> Result<Json, CliError> {
        self.api.ask(&Request::Get(path.to_owned()))
    }

    /// The node at `place` as it will be; with all of its items if `deep`.
    fn node(&self, place: &NodePath, deep: bool) -> Result<Node, CliError> {
        let declared = self.found(place)?.context;
        let node = match self.pending.before(place) {
            Before::New => Node::new(place, declared),
            Before::Gone => {
                return Err(CliError::refused(
                    format!("{place} is about to be destroyed"),
                    "`abort` cancels that",
                ));
            }
            Before::Server(before) => {
                let depth = if deep { "?depth=1" } else { "" };
                read(self.get(&format!("/nodes{}{depth}", before.url()))?)?
            }
        };
        Ok(node.after(place, declared, &self.pending))
    }

    /// The names of the items below `place`.
    pub(super) fn items(&self, place: &NodePath) -> Result<Vec<String>, CliError> {
        let node = self.node(place, false)?;
        Ok(node.items.iter().map(|entry| entry.name().to_owned()).collect())
    }

    /// The declaration of the whole tree.
    pub(super) fn tree(&self) -> &Context {
        &self.tree
    }

    /// Where it is.
    pub(super) fn place(&self) -> &NodePath {
        &self.place
    }

    fn verb(&mut self, verb: Verb, place: &NodePath, words: &[Word], passing: bool) -> VerbResult {
        let arguments: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let (min, max) = verb.arguments();
        if arguments.len() < min || arguments.len() > max {
            let expected = match (min, max) {
                (_, 0) => "takes no arguments",
                _ if arguments.len() < min => "needs more arguments",
                _ => "takes fewer arguments",
            };
            let usage = match max {
                0 => format!("usage: {0}, or PATH {0}", verb.usage()),
                _ => format!("usage: {}", verb.usage()),
            };
            return Err(CliError::usage(format!("`{}` {expected}", verb.name()), usage));
        }
        let first = arguments.first().copied();
        match verb {
            Verb::Help => self.help(place, first),
            Verb::Show => self.show(&self.follow(place, first.unwrap_or_default())?),
            Verb::Get => self.get_properties(place, &arguments),
            Verb::List => self.list(&self.follow(place, first.unwrap_or_default())?),
            Verb::Set => self.set(place, &arguments, passing),
            Verb::Unset => self.unset(place, &arguments, passing),
            Verb::Create => self.create(place, &arguments, passing),
            Verb::Destroy => self.destroy(place, &arguments, passing),
            Verb::Rename => self.rename(place, &arguments, passing),
            Verb::Commit => self.commit(&arguments),
            Verb::Abort => Ok(self.abort()),
            Verb::Pending => Ok(self.show_pending()),
            Verb::Select => self.select(place, first.unwrap_or_default()),
            Verb::Cd => self.go(&self.follow(place, first.unwrap_or("/"))?),
            Verb::Up | Verb::Done => self.go(&place.parent()),
            Verb::Top => self.go(&NodePath::default()),
            Verb::Json => Ok(self.switch_json(first)?),
            Verb::History => self.history(first),
            Verb::Compare => self.compare(&arguments),
            Verb::Restore => self.restore(first.unwrap_or_default()),
            Verb::Export => self.export(first),
            Verb::Import => self.import(&arguments),
            Verb::Audit => self.audit(place, first),
            Verb::Exit => {
                Err(CliError::usage("`exit` takes no arguments", "use it without a path"))
            }
        }
    }

    fn go(&mut self, place: &NodePath) -> VerbResult {
        self.place = place.clone();
        Ok(Output::nothing())
    }

    fn select(&mut self, place: &NodePath, name: &str) -> VerbResult {
        if self.found(place)?.context.items.is_none() {
            let hint = "`cd` takes a context";
            return Err(CliError::refused(format!("{place} has no items to select"), hint));
        }
        let item = place.child(name);
        if self.found(place)?.context.child(name).is_some() || !self.exists(&item)? {
            return Err(self.nothing_called(place, name));
        }
        self.go(&item)
    }

    fn switch_json(&mut self, word: Option<&str>) -> Result<Output, CliError> {
        self.json = match word {
            None => !self.json,
            Some("on") => true,
            Some("off") => false,
            Some(other) => {
                return Err(CliError::usage(format!("'{other}' is neither on nor off"), ""));
            }
        };
        Ok(Output::nothing())
    }

    fn show_pending(&self) -> Output {
        let changes: Vec<Json> = self.pending.changes().iter().map(|c| self.masked(c)).collect();
        Output::new(show::pending(&self.tree, self.pending.changes()), json!(changes))
    }
}

/// An answer of the API.
fn read<T: for<'a> serde::Deserialize<'a>>(answer: Json) -> Result<T, CliError> {
    serde_json::from_value(answer).map_err(|e| CliError::Lost {
        sentence: format!("the reply of the server cannot be parsed: {e}"),
    })
}
