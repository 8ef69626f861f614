//! The tree itself: the current configuration, one transaction at a time.
//!
//! A transaction checks, applies, records, and only then reports success. If a room refuses it
//! half-way, or the disk fails, it is rolled back.

mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use base::clock::{Clock, NS_PER_S};
use base::node::{Context, Effect, Path, Role};
use serde::Serialize;
use serde_json::{Value as Json, json};
use tokio::sync::{broadcast, watch};

use super::audit::{Audit, Record};
use super::change::{self, Change, Draft, Request, Running};
use super::document::{Difference, Document};
use super::revision::Revision;
use super::store::{Disk, Store, StoreError};
use super::viewer::{Everything, Viewer};
use super::{Actor, Override, Problem, Secrets, Subtree, Transition, json, text};
use whole::made;

/// Changes that a slow listener may lag behind before it must read the whole state again.
const LISTENERS_LAG: usize = 64;

/// Why the tree cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The revisions.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The secrets or the audit log.
    #[error("cannot use {file}")]
    File {
        /// Which.
        file: &'static str,
        /// Why not.
        source: io::Error,
    },
}

/// The current configuration.
#[derive(Debug, Clone)]
pub struct Current {
    /// The configuration.
    pub document: Arc<Document>,
    /// Its head.
    pub revision: Revision,
}

/// The tree.
pub struct Tree {
    root: &'static Context,
    branches: OnceLock<Vec<Subtree>>,
    current: RwLock<Current>,
    /// Held through a whole transaction.
    store: Mutex<Store>,
    secrets: Secrets,
    audit: Audit,
    clock: Arc<dyn Clock>,
    changes: broadcast::Sender<Arc<Done>>,
    /// How often connections were renewed.
    renewals: watch::Sender<u64>,
}

/// What a transaction has done.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Done {
    /// The current revision.
    pub revision: u64,
    /// The user or program that made it.
    pub who: String,
    /// What is different now.
    pub changes: Vec<Shown>,
    /// Notes about it.
    pub notes: Vec<String>,
}

/// A difference for people.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Shown {
    /// The node.
    pub path: String,
    /// The property; none: the item came or went.
    pub property: Option<String>,
    /// What was set before; `(secret)` for secrets.
    pub before: Json,
    /// What is set now.
    pub after: Json,
}

/// A transaction in progress.
struct Proposal<'a> {
    document: Document,
    renamed: Vec<(Path, Path)>,
    secrets: Vec<(i64, Path, String, String)>,
    who: &'a Actor,
    viewer: &'a dyn Viewer,
    comment: &'a str,
    /// As the audit log has it.
    action: &'a str,
    notes: Vec<String>,
    dry_run: bool,
    /// It is a configuration as a whole.
    whole: bool,
}

impl Tree {
    /// Reads what is on disk. Rooms come with [`Self::join`], when they run.
    ///
    /// # Errors
    /// Something cannot be read; an older configuration is never taken instead.
    pub fn open(
        disk: Arc<dyn Disk>,
        root: &'static Context,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, TreeError> {
        let file = |file| move |source| TreeError::File { file, source };
        let (store, current) = Store::open(disk.clone(), root)?;
        let secrets = Secrets::open(disk.clone()).map_err(file("secrets.json"))?;
        let audit = Audit::open(disk, clock.clone()).map_err(file("audit.log"))?;
        let (document, revision) = current.unwrap_or_else(|| (Document::new(root), nothing()));
        let current = RwLock::new(Current { document: Arc::new(document), revision });
        forget_secrets(&store, &secrets).map_err(file("secrets.json"))?;
        let (changes, _) = broadcast::channel(LISTENERS_LAG);
        let (branches, store) = (OnceLock::new(), Mutex::new(store));
        let renewals = watch::Sender::new(0);
        Ok(Self { root, branches, current, store, secrets, audit, clock, changes, renewals })
    }

    /// Lets rooms take part from now on. Once.
    pub fn join(&self, branches: Vec<Subtree>) {
        let joined = self.branches.set(branches);
        debug_assert!(joined.is_ok(), "rooms join once");
    }

    /// The declarations.
    pub fn root(&self) -> &'static Context {
        self.root
    }

    /// The current configuration and its revision.
    pub fn current(&self) -> Current {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The current configuration.
    pub fn document(&self) -> Arc<Document> {
        self.current().document
    }

    /// What is in no document.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The audit log.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Every transaction from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Done>> {
        self.changes.subscribe()
    }

    /// Ends the connections of the administration that exist now, each after the request that it
    /// serves: that one of them still works proves nothing after a change of the network.
    pub fn renew_connections(&self) {
        self.renewals.send_modify(|count| *count += 1);
    }

    /// Changes each time that connections are to end.
    pub fn renewals(&self) -> watch::Receiver<u64> {
        self.renewals.subscribe()
    }

    /// Does a transaction. May block.
    ///
    /// # Errors
    /// Nothing has changed then; all problems are returned.
    pub fn commit(
        &self,
        request: &Request,
        who: &Actor,
        viewer: &dyn Viewer,
    ) -> Result<Done, Vec<Problem>> {
        let mut store = self.lock();
        let document = Document::clone(&self.current().document);
        // Before anything about existing nodes is revealed.
        for change in &request.changes {
            let path = change::parse(change.target()).map_err(one)?;
            self.permit(&path, viewer).map_err(one)?;
        }
        self.unseen(&store, request).map_err(one)?;
        let mut draft = Draft::new(document, self, &self.secrets);
        draft.run(request).map_err(one)?;
        let Draft { document, renamed, secrets, .. } = draft;
        let action = match request.changes.as_slice() {
            [single] => single.verb(),
            _ => "change",
        };
        let proposal = Proposal {
            document,
            renamed,
            secrets,
            who,
            viewer,
            comment: &request.comment,
            action,
            notes: Vec::new(),
            dry_run: request.dry_run,
            whole: false,
        };
        self.transact(&mut store, proposal)
    }

    /// Sets one secret, as an action does that has made it.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn set_secret(
        &self,
        path: &Path,
        property: &str,
        value: &str,
        who: &Actor,
    ) -> Result<Done, Vec<Problem>> {
        let (set, property) = (path.to_string(), property.to_owned());
        let changes = vec![Change::Set { set, property, value: Json::from(value) }];
        self.commit(&Request { changes, ..Request::default() }, who, &Everything)
    }

    /// Does an action. May block.
    ///
    /// # Errors
    /// There is no such action, its parameters are wrong, or it could not be done.
    pub fn act(
        &self,
        path: &Path,
        action: &str,
        given: &BTreeMap<String, Json>,
        who: &Actor,
        viewer: &dyn Viewer,
    ) -> Result<Json, Problem> {
        self.permit_action(path, action, viewer)?;
        let place = change::there(&self.document(), self, path)?;
        let declared = place.context.action(action).ok_or_else(|| {
            let known: Vec<&str> = place.context.actions.iter().map(|action| action.name).collect();
            let hint = match known.is_empty() {
                true => "it has no actions".to_owned(),
                false => format!("it has {}", known.join(", ")),
            };
            Problem::unknown(path, &format!("unknown action {action:?}"), &hint)
        })?;
        let parameters = change::parameters(path, declared.parameters, given)?;
        let live = self
            .branch(path)
            .and_then(|branch| branch.live.clone())
            .ok_or_else(|| Problem::server(path, "this node has no handler"))?;
        if let Some(why) = live.why_not(path, action, &viewer.rights()) {
            return Err(Problem::denied(path, &why));
        }
        // Before it is done: an action that cannot be recorded is not done.
        let record = Record {
            path: path.to_string(),
            after: json!({ "parameters": hidden(declared.parameters, &parameters) }),
            ..Record::new(who, action)
        };
        if !declared.reads {
            self.append_records(&[record])?;
        }
        live.act(path, action, &parameters, who)
    }

    /// The branch of a node: the one with the longest prefix.
    pub(super) fn branch(&self, path: &Path) -> Option<&Subtree> {
        let fitting = self.branches().iter().filter(|branch| path.is_in(&branch.prefix));
        fitting.max_by_key(|branch| branch.prefix.segments().len())
    }

    /// What decides the settings of a node in place of the configuration.
    pub(super) fn overrides(&self, path: &Path) -> Vec<Override> {
        let live = self.branch(path).and_then(|branch| branch.live.as_ref());
        live.map(|live| live.overrides(path)).unwrap_or_default()
    }

    fn branches(&self) -> &[Subtree] {
        self.branches.get().map_or(&[], Vec::as_slice)
    }

    /// As [`Self::permit`], but actions that only show something are permitted to all users that
    /// may see the node.
    fn permit_action(&self, path: &Path, action: &str, viewer: &dyn Viewer) -> Result<(), Problem> {
        let context = self.root.find(path).ok().map(|place| place.context);
        let shows = |context: &&Context| context.action(action).is_some_and(|one| one.reads);
        match context.filter(shows) {
            Some(context) if viewer.may_read(context.scope) => Ok(()),
            _ => self.permit(path, viewer),
        }
    }

    /// Refuses a change of what the viewer may not change. What is not there is refused elsewhere.
    fn permit(&self, path: &Path, viewer: &dyn Viewer) -> Result<(), Problem> {
        let why = self.root.find(path).ok().and_then(|place| viewer.why_not(place.context.scope));
        why.map_or(Ok(()), |why| Err(Problem::denied(path, &why)))
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(&self, store: &Store, number: u64) -> Result<(Document, Revision), Problem> {
        if !store.numbers().contains(&number) {
            let kept = match (store.numbers().first(), store.numbers().last()) {
                (Some(first), Some(last)) if first == last => format!("only {first} is retained"),
                (Some(first), Some(last)) => format!("{first} to {last} are retained"),
                _ => "no changes yet".to_owned(),
            };
            let sentence = format!("revision {number} does not exist");
            return Err(Problem::unknown(&Path::root(), &sentence, &kept));
        }
        store.load(number).map_err(|e| Problem::server(&Path::root(), &chain(&e)))
    }

    /// Refuses to change properties that were changed by others since the caller read them.
    fn unseen(&self, store: &Store, request: &Request) -> Result<(), Problem> {
        let Some(seen) = request.revision else { return Ok(()) };
        let Current { document, revision } = self.current();
        let again = "reload and repeat the change";
        if seen == revision.number {
            return Ok(());
        }
        if seen > 0 && !store.numbers().contains(&seen) {
            let sentence = format!(
                "revision {seen}, on which it is based, is not retained; revision {} is current",
                revision.number
            );
            return Err(Problem::conflict(&Path::root(), &sentence, again));
        }
        let before = match seen {
            0 => Document::new(self.root),
            _ => self.load(store, seen)?.0,
        };
        let since = before.differences(&document);
        for change in &request.changes {
            let path = change::parse(change.target())?;
            // With an item goes what is below it, also what its destroyer has never seen.
            let whole = matches!(change, Change::Destroy { .. });
            if since.iter().any(|one| one.path == path || whole && one.path.is_in(&path)) {
                let sentence = format!(
                    "it was changed since revision {seen}; the last change is {}",
                    made(&revision)
                );
                return Err(Problem::conflict(&path, &sentence, again));
            }
        }
        Ok(())
    }

    fn transact(&self, store: &mut Store, proposal: Proposal<'_>) -> Result<Done, Vec<Problem>> {
        let Current { document: old, revision } = self.current();
        let new = Arc::new(proposal.document.clone());
        let mut problems = change::complete(&new);
        let rights = proposal.viewer.rights();
        let transition = Transition {
            old: &old,
            new: &new,
            renamed: &proposal.renamed,
            secrets: &self.secrets,
            given: &proposal.secrets,
            who: proposal.who,
            rights: &rights,
            whole: proposal.whole,
            when: self.clock.wall_ns() / NS_PER_S,
            back: false,
        };
        if problems.is_empty() {
            let rooms = self.branches().iter().filter_map(|branch| branch.apply.as_ref());
            problems.extend(rooms.flat_map(|room| room.check(&transition)));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let differences = old.differences(&new);
        // An import or a restore must not change what its maker could not change by hand.
        for difference in &differences {
            self.permit(&difference.path, proposal.viewer).map_err(one)?;
            guarded(&transition, difference).map_err(one)?;
        }
        let mut done = Done {
            revision: revision.number,
            who: proposal.who.user.clone(),
            changes: differences.iter().map(|one| shown(&new, one)).collect(),
            notes: proposal.notes.clone(),
        };
        done.notes.extend(self.at_restart(&new, &differences));
        done.notes.extend(self.notes(&transition, false));
        if proposal.dry_run || differences.is_empty() {
            return Ok(done);
        }
        let next = Revision {
            number: revision.number + 1,
            when: transition.when,
            who: proposal.who.user.clone(),
            from: proposal.who.from.clone(),
            comment: proposal.comment.to_owned(),
            changes: differences.len(),
        };
        self.seal(&proposal).map_err(one)?;
        self.apply(&transition).map_err(one)?;
        done.notes.extend(self.notes(&transition, true));
        if let Err(problem) = self.keep(store, &proposal, &done, &next) {
            self.apply_back(&transition);
            return Err(one(problem));
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) =
            Current { document: new, revision: next.clone() };
        if let Err(e) = forget_secrets(store, &self.secrets) {
            // They are only more than need be.
            base::warning!("configuration", "old secrets could not be deleted: {}", chain(&e));
        }
        done.revision = next.number;
        // There may be no listener.
        let _ = self.changes.send(Arc::new(done.clone()));
        Ok(done)
    }

    /// Makes the stored form of new secrets, and writes it to disk.
    fn seal(&self, proposal: &Proposal<'_>) -> Result<(), Problem> {
        let mut sealed = Vec::new();
        for (id, path, property, plain) in &proposal.secrets {
            let room = self.branch(path).and_then(|branch| branch.apply.as_ref());
            let value = match room {
                Some(room) => room.seal(path, property, plain)?,
                None => plain.clone(),
            };
            sealed.push((*id, path.clone(), property.clone(), value));
        }
        self.secrets.put(&sealed).map_err(|e| Problem::server(&Path::root(), &chain(&e)))
    }

    /// Has all rooms take the new configuration, or none.
    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        for (at, branch) in self.branches().iter().enumerate() {
            let Some(room) = &branch.apply else { continue };
            if !transition.old.differs_in(transition.new, &branch.prefix) {
                continue;
            }
            if let Err(problem) = room.apply(transition) {
                self.back(transition, at);
                return Err(problem);
            }
        }
        Ok(())
    }

    /// The notes of the rooms that are affected.
    fn notes(&self, transition: &Transition<'_>, done: bool) -> Vec<String> {
        let differs = |branch: &&Subtree| transition.old.differs_in(transition.new, &branch.prefix);
        let rooms = self.branches().iter().filter(differs);
        rooms
            .filter_map(|branch| branch.apply.as_ref())
            .flat_map(|room| room.notes(transition, done))
            .collect()
    }

    fn apply_back(&self, transition: &Transition<'_>) {
        self.back(transition, self.branches().len());
    }

    /// Has the first `rooms` rooms take the old configuration again.
    fn back(&self, transition: &Transition<'_>, rooms: usize) {
        let renamed: Vec<(Path, Path)> =
            transition.renamed.iter().rev().map(|(from, to)| (to.clone(), from.clone())).collect();
        let back = Transition {
            old: transition.new,
            new: transition.old,
            renamed: &renamed,
            back: true,
            ..*transition
        };
        for branch in self.branches()[..rooms].iter().rev() {
            let Some(room) = &branch.apply else { continue };
            if !back.old.differs_in(back.new, &branch.prefix) {
                continue;
            }
            if let Err(problem) = room.apply(&back) {
                // The previous configuration is refused: this must be reported.
                base::error!("configuration", "a change could not be rolled back: {problem}");
            }
        }
    }

    /// Records a transaction: first in the audit log, then as the current configuration.
    fn keep(
        &self,
        store: &mut Store,
        proposal: &Proposal<'_>,
        done: &Done,
        next: &Revision,
    ) -> Result<(), Problem> {
        let record = |shown: &Shown| Record {
            when: next.when,
            path: shown.path.clone(),
            property: shown.property.clone(),
            before: shown.before.clone(),
            after: shown.after.clone(),
            revision: Some(next.number),
            detail: proposal.comment.to_owned(),
            ..Record::new(proposal.who, proposal.action)
        };
        let records: Vec<Record> = done.changes.iter().map(record).collect();
        self.append_records(&records)?;
        store.commit(&proposal.document, next).map_err(|e| {
            // The log has it already, and cannot be changed.
            let taken_back = Record {
                revision: Some(next.number),
                detail: format!("the revision could not be written: {e}"),
                ..Record::new(proposal.who, "taken back")
            };
            let _ = self.audit.write(&[taken_back]);
            let sentence = format!("the configuration could not be written: {e}");
            Problem::server(&Path::root(), &sentence)
        })
    }

    fn append_records(&self, records: &[Record]) -> Result<(), Problem> {
        self.audit.write(records).map_err(|e| {
            let sentence = format!("the audit log could not be written: {e}");
            Problem::server(&Path::root(), &sentence)
        })
    }

    /// Notes on changes that take effect later.
    fn at_restart(&self, document: &Document, differences: &[Difference]) -> Vec<String> {
        let late = |one: &Difference| {
            let name = one.property.as_deref()?;
            let property = document.place(&one.path)?.context.property(name)?;
            let when = match property.effect {
                Effect::Now => return None,
                Effect::Service => "when the service restarts",
                Effect::Restart => "when the server restarts",
            };
            Some(format!("{} {name} takes effect {when}", one.path))
        };
        differences.iter().filter_map(late).collect()
    }
}

impl Running for Tree {
    fn items(&self, path: &Path) -> Vec<String> {
        let live = self.branch(path).and_then(|branch| branch.live.as_ref());
        live.map(|live| live.items(path)).unwrap_or_default()
    }

    fn source(&self, path: &Path, property: &str) -> Option<&'static str> {
        let overrides = self.overrides(path);
        overrides.iter().find(|one| one.property == property).map(|one| one.source)
    }

    fn facts(&self, path: &Path) -> Vec<String> {
        let live = self.branch(path).and_then(|branch| branch.live.as_ref());
        live.map(|live| live.facts(path)).unwrap_or_default()
    }
}

/// Drops secrets that no revision has any more. Only when many have come together: every revision
/// is read for it.
fn forget_secrets(store: &Store, secrets: &Secrets) -> io::Result<()> {
    if !secrets.are_many() {
        return Ok(());
    }
    let mut used = BTreeSet::new();
    for number in store.numbers() {
        // One that cannot be read may refer to any.
        let Ok((document, _)) = store.load(*number) else { return Ok(()) };
        for (path, settings) in document.nodes() {
            let secret = settings.iter().filter(|(name, _)| is_secret(&document, path, name));
            used.extend(secret.filter_map(|(_, value)| value.as_integer()));
        }
    }
    secrets.keep_only(&|id| used.contains(&id))
}

/// Refuses a change of a guarded property by a user without the permission to change everything.
fn guarded(transition: &Transition<'_>, one: &Difference) -> Result<(), Problem> {
    let Some(name) = &one.property else { return Ok(()) };
    let place = transition.new.place(&one.path).or_else(|| transition.old.place(&one.path));
    let property = place.and_then(|place| place.context.property(name));
    if transition.rights.are_all() || !property.is_some_and(|property| property.guarded) {
        return Ok(());
    }
    let sentence = "it lets its owner act as other users; setting it requires the permission *";
    Err(Problem::denied(&one.path, sentence).property(name))
}

/// Before anything was set.
fn nothing() -> Revision {
    let (who, from, comment) = (String::new(), String::new(), String::new());
    Revision { number: 0, when: 0, who, from, comment, changes: 0 }
}

fn is_secret(document: &Document, path: &Path, property: &str) -> bool {
    let declared = document.place(path).and_then(|place| place.context.property(property));
    declared.is_some_and(|declared| declared.role == Role::Secret)
}

fn shown(document: &Document, one: &Difference) -> Shown {
    let secret = one.property.as_ref().is_some_and(|name| is_secret(document, &one.path, name));
    let value = |value: &Option<base::node::Value>| match value {
        None => Json::Null,
        Some(_) if secret => Json::from(text::SECRET),
        Some(value) => json::to_json(value),
    };
    Shown {
        path: one.path.to_string(),
        property: one.property.clone(),
        before: value(&one.before),
        after: value(&one.after),
    }
}

/// Parameters as the audit log may have them.
fn hidden(
    declared: &[base::node::Property],
    given: &BTreeMap<String, base::node::Value>,
) -> BTreeMap<String, Json> {
    let secret = |name: &str| declared.iter().any(|p| p.name == name && p.role == Role::Secret);
    let one = |(name, value): (&String, &base::node::Value)| {
        let value = if secret(name) { Json::from(text::SECRET) } else { json::to_json(value) };
        (name.clone(), value)
    };
    given.iter().map(one).collect()
}

fn one(problem: Problem) -> Vec<Problem> {
    vec![problem]
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}
