//! The one tree: the configuration as a document, changes as transactions, and the running server
//! behind both.
//!
//! - [`document`]: what was set, at which node. [`text`]: the same as a file.
//! - [`change`]: the request of a transaction, checked against the declarations.
//! - [`store`]: the revisions on disk. [`secrets`]: what is in no document. [`audit`]: the log of
//!   changes and sign-ins.
//! - [`engine`]: [`Tree`], which joins them. [`view`]: a node and the declarations as JSON.
//!
//! Rooms take part by [`Apply`] (the configuration changes) and [`Operational`] (what runs now);
//! each is registered for a branch of the tree. `docs/formats/configuration.md` has the file.

pub mod audit;
pub mod change;
pub mod document;
pub mod engine;
pub mod json;
pub mod revision;
pub mod secrets;
pub mod store;
pub mod text;
pub mod view;
pub mod viewer;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use base::node::{Path, Value};

use crate::access::Rights;

pub use audit::Audit;
pub use change::{Change, Request};
pub use document::{Difference, Document, Source};
pub use engine::{Done, Tree};
pub use revision::Revision;
pub use secrets::Secrets;
pub use store::Store;

/// The user or program that makes a request, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The signed-in name.
    pub user: String,
    /// An address, `local`, or `command line`.
    pub from: String,
    /// The connection of the request; nothing is known of requests of the program itself.
    pub connection: Connection,
}

/// A connection of the administration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Connection {
    /// When it was accepted.
    pub accepted: Option<Instant>,
    /// The address of this machine that it leads to; none at the local socket.
    pub local: Option<IpAddr>,
}

impl Connection {
    /// One that is accepted now.
    pub fn accepted(local: Option<IpAddr>) -> Self {
        Self { accepted: Some(Instant::now()), local }
    }
}

impl Actor {
    /// From its parts.
    pub fn new(user: &str, from: &str) -> Self {
        let connection = Connection::default();
        Self { user: user.to_owned(), from: from.to_owned(), connection }
    }

    /// Over this connection.
    pub fn over(self, connection: Connection) -> Self {
        Self { connection, ..self }
    }
}

/// The cause of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A value or a request is wrong.
    Value,
    /// Something that is named does not exist.
    Unknown,
    /// It does not go together with what is there.
    Conflict,
    /// The caller has no permission.
    Denied,
    /// We, or the machine.
    Server,
}

/// Why something cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {sentence}")]
pub struct Problem {
    /// At which node.
    pub path: Path,
    /// At which of its properties.
    pub property: Option<String>,
    /// What is wrong, one sentence.
    pub sentence: String,
    /// What to do, or nothing.
    pub hint: String,
    /// The cause.
    pub fault: Fault,
}

impl Problem {
    /// A value or a request is wrong.
    pub fn new(path: &Path, sentence: &str, hint: &str) -> Self {
        Self {
            path: path.clone(),
            property: None,
            sentence: sentence.to_owned(),
            hint: hint.to_owned(),
            fault: Fault::Value,
        }
    }

    /// At this property.
    pub fn property(mut self, name: &str) -> Self {
        self.property = Some(name.to_owned());
        self
    }

    /// Sets another cause.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }

    /// It does not go together with what is there.
    pub fn conflict(path: &Path, sentence: &str, hint: &str) -> Self {
        Self::new(path, sentence, hint).fault(Fault::Conflict)
    }

    /// What is named does not exist.
    pub fn unknown(path: &Path, sentence: &str, hint: &str) -> Self {
        Self::new(path, sentence, hint).fault(Fault::Unknown)
    }

    /// The caller has no permission.
    pub fn denied(path: &Path, sentence: &str) -> Self {
        let hint = "ask an administrator for a role with this permission";
        Self::new(path, sentence, hint).fault(Fault::Denied)
    }

    /// We or the machine failed.
    pub fn server(path: &Path, sentence: &str) -> Self {
        let hint = "this is a defect of the server or of its machine; see its log";
        Self::new(path, sentence, hint).fault(Fault::Server)
    }
}

/// From one configuration to another.
#[derive(Clone, Copy)]
pub struct Transition<'a> {
    /// The current configuration.
    pub old: &'a Document,
    /// The new one.
    pub new: &'a Document,
    /// Renamed items: from, to.
    pub renamed: &'a [(Path, Path)],
    /// What is in no document.
    pub secrets: &'a Secrets,
    /// Secrets that come with it: number, node, property, as they were given.
    pub given: &'a [(i64, Path, String, String)],
    /// The caller.
    pub who: &'a Actor,
    /// The rights of the caller: no more can be granted to others.
    pub rights: &'a Rights,
    /// A whole configuration is taken, as by an import: secrets may come after it.
    pub whole: bool,
    /// Time of the commit in seconds since 1970: that of its revision and of its audit records.
    pub when: u64,
    /// Back to the current configuration, from a new one that was applied and could not be kept:
    /// what seems to be created was there.
    pub back: bool,
}

impl Transition<'_> {
    /// A secret of the configuration that is to be: as it was given, if it comes with this
    /// transition, and as it was sealed otherwise.
    pub fn secret(&self, path: &Path, property: &str) -> Option<String> {
        let id = self.new.set_value(path, property)?.as_integer()?;
        let given = self.given.iter().find(|(number, ..)| *number == id);
        given
            .map(|(.., plain)| plain.clone())
            .or_else(|| self.secrets.get(self.new, path, property))
    }

    /// Refuses that a stored secret is sent to another recipient than before, if the caller may not
    /// change everything: with a recipient of its choice it could read the secret. `recipient`
    /// reads the settings that decide on it, from a configuration and a node.
    pub fn other_recipient<R: PartialEq>(
        &self,
        path: &Path,
        property: &str,
        recipient: impl Fn(&Document, &Path) -> R,
    ) -> Option<Problem> {
        let number = self.new.set_value(path, property).filter(|_| !self.rights.are_all())?;
        // A number that is new is that of a secret that comes with this change; and a node can have
        // been renamed.
        let was = |settings: &document::Settings| settings.get(property) == Some(number);
        let (before, _) = self.old.nodes().find(|(_, settings)| was(settings))?;
        (recipient(self.old, before) != recipient(self.new, path)).then(|| {
            let sentence = format!(
                "{property} would be sent to another recipient; retaining it requires the \
                 permission *"
            );
            let hint = format!("set {property} again with the same change");
            Problem::conflict(path, &sentence, &hint).property(property)
        })
    }
}

/// A room with a branch of the configuration that can change while it runs.
pub trait Apply: Send + Sync {
    /// What is wrong with the new configuration, beyond the checks of the declarations. Changes
    /// nothing.
    fn check(&self, _transition: &Transition<'_>) -> Vec<Problem> {
        Vec::new()
    }

    /// Applies the new configuration, completely or not at all. Called after [`Self::check`] found
    /// nothing, one call at a time; also with `old` and `new` exchanged, when a later branch
    /// failed ([`Transition::back`]).
    ///
    /// # Errors
    /// Why not; the old configuration stays in effect.
    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem>;

    /// Notes about the change, one sentence each: before it is `done` (and in a dry run) its
    /// expected effects, afterwards its results.
    fn notes(&self, _transition: &Transition<'_>, _done: bool) -> Vec<String> {
        Vec::new()
    }

    /// What is kept of a secret: as it is, or a hash of it.
    ///
    /// # Errors
    /// It is not good as a secret.
    fn seal(&self, _path: &Path, _property: &str, plain: &str) -> Result<String, Problem> {
        Ok(plain.to_owned())
    }
}

/// A value that the configuration does not decide in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Which property.
    pub property: &'static str,
    /// Its value.
    pub value: Value,
    /// Where it comes from: `command line`, `built in`.
    pub source: &'static str,
}

/// A room with a branch that shows the running state and performs actions. Calls may block. All but
/// [`Self::act`] are also made within transactions, and so must not begin one.
pub trait Operational: Send + Sync {
    /// The state properties of a node.
    fn state(&self, _path: &Path) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// Items that are there now without being in the configuration.
    fn items(&self, _path: &Path) -> Vec<String> {
        Vec::new()
    }

    /// Settings that something else than the configuration decides in this run. They are shown with
    /// their source and cannot be set.
    fn overrides(&self, _path: &Path) -> Vec<Override> {
        Vec::new()
    }

    /// What else ends with an item, one sentence each: shown before it is destroyed.
    fn facts(&self, _path: &Path) -> Vec<String> {
        Vec::new()
    }

    /// Why nothing of the branch can be changed now; `None`: it can.
    fn locked(&self) -> Option<String> {
        None
    }

    /// Why a user with these rights may not perform an action, beyond the permission for the scope
    /// of its node; `None`: it is permitted.
    fn why_not(&self, _path: &Path, _action: &str, _rights: &Rights) -> Option<String> {
        None
    }

    /// Whether an action of the context has a use for this node now: others are not shown.
    fn offers(&self, _path: &Path, _action: &str) -> bool {
        true
    }

    /// Performs an action; its parameters are checked.
    ///
    /// # Errors
    /// Why not.
    fn act(
        &self,
        path: &Path,
        action: &str,
        _parameters: &BTreeMap<String, Value>,
        _who: &Actor,
    ) -> Result<serde_json::Value, Problem> {
        Err(Problem::unknown(path, &format!("unknown action {action}"), ""))
    }
}

/// A branch of the tree with its handlers. The longest prefix of a path decides.
#[derive(Clone)]
pub struct Subtree {
    /// Where it begins.
    pub prefix: Path,
    /// The handler of changes, if there are any.
    pub apply: Option<Arc<dyn Apply>>,
    /// The handler of the running state.
    pub live: Option<Arc<dyn Operational>>,
}

impl Subtree {
    /// One with changes and running state.
    pub fn new<T: Apply + Operational + 'static>(prefix: &[&str], room: Arc<T>) -> Self {
        let prefix = Path::of(prefix);
        Self { prefix, apply: Some(room.clone()), live: Some(room) }
    }

    /// One with running state only.
    pub fn live(prefix: &[&str], room: Arc<dyn Operational>) -> Self {
        Self { prefix: Path::of(prefix), apply: None, live: Some(room) }
    }
}

#[cfg(test)]
pub(crate) mod tests;
