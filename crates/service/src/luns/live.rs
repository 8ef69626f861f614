//! The branches of the tree: `/shares/PROJECT/luns` next to the shares, and `/configuration/san`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use base::clock::NS_PER_S;
use base::limits::{LUN_ANSWER_TIME_MAX, LUNS_MAX};
use base::node::{Path, Value};
use base::units;
use control::tree::change::{Change, Request};
use control::tree::viewer::Everything;
use control::tree::{Actor, Apply, Operational, Override, Problem, Transition, Tree};
use serde_json::{Value as Json, json};
use vfs::lun::Medium;
use vfs::lun::reservations::Port;

use super::bounded::{STUCK, within};
use super::config::{SAN, is_lun, name_of, problems};
use super::look::LookTime;
use super::room::{Entry, Inner, LunNodes};
use super::ways;
use crate::cache_drops::CacheDrops;

/// The part of the tree that is about logical units.
pub struct Luns {
    room: Arc<LunNodes>,
    tree: std::sync::Weak<Tree>,
    /// Where the service listens.
    at: SocketAddr,
    /// How long storage that does not answer may be waited for.
    time: LookTime,
    drops: CacheDrops,
}

fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn isid(port: &Port) -> String {
    port.isid.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Luns {
    /// The branches of these units.
    pub fn new(room: &Arc<LunNodes>, tree: &Arc<Tree>, at: SocketAddr) -> Arc<Self> {
        let time = LookTime::default();
        let (room, tree, drops) = (Arc::clone(room), Arc::downgrade(tree), CacheDrops::default());
        Arc::new(Self { room, tree, at, time, drops })
    }

    /// The sessions with a unit, each as name and address.
    fn users(&self, entry: &Entry) -> Vec<String> {
        let Some(opened) = &entry.opened else { return Vec::new() };
        let rows = self.room.server.sessions.rows();
        let from = |port: &Port| rows.iter().find(|row| row.port == *port).map(|row| row.peer.ip());
        let one = |port: Port| match from(&port) {
            Some(address) => format!("{} from {address}, ISID {}", port.name, isid(&port)),
            None => format!("{}, ISID {}", port.name, isid(&port)),
        };
        opened.unit.users().into_iter().map(one).collect()
    }

    fn lun_state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        let inner = self.room.inner();
        let Some(entry) = inner.entries.get(&name_of(path)) else {
            return vec![("state", Value::text("offline"))];
        };
        let look = entry.opened.as_ref().map(|opened| (entry.look.clone(), opened.medium.clone()));
        let mut state = unit_state(&inner, entry, ways::portal(&self.room.server, self.at));
        state.push(("initiators", Value::texts(self.users(entry))));
        drop(inner);
        let Some((look, medium)) = look else { return state };
        let (seen, answers) = look.at(&medium, &self.time);
        if let Some(seen) = seen {
            state.push(("allocated", integer(seen.allocated)));
            state.push(("flush_failures", integer(seen.flush_failures)));
        }
        if !answers {
            state.retain(|(name, _)| *name != "reason");
            state.push(("reason", Value::text(STUCK)));
        }
        state
    }

    fn session(&self, path: &Path) -> Option<Vec<(&'static str, Value)>> {
        let tsih: u16 = path.name()?.parse().ok()?;
        let row = self.room.server.sessions.rows().into_iter().find(|row| row.tsih == tsih)?;
        let since = i64::try_from(row.since_ns / NS_PER_S).unwrap_or(i64::MAX);
        Some(vec![
            ("isid", Value::Text(isid(&row.port))),
            ("initiator", Value::Text(row.port.name)),
            ("address", Value::Text(row.peer.to_string())),
            ("target", Value::Text(row.target.unwrap_or_default())),
            ("since", Value::Integer(since)),
        ])
    }

    /// Copies a unit and makes the node of the copy.
    fn copy(&self, path: &Path, name: &str, fixed: bool, who: &Actor) -> Result<Json, Problem> {
        let refused = |why: &str| Problem::conflict(path, why, "");
        let tree = self.tree.upgrade().ok_or_else(|| refused("the server ends"))?;
        let above = path.parent().unwrap_or_default();
        let new = above.join(name);
        let document = tree.document();
        if document.exists(&new) {
            return Err(Problem::conflict(
                &new,
                "there is a LUN with this name",
                "choose another one",
            ));
        }
        let size = self.copied(path, &new).map_err(|why| refused(&why))?;
        let mut properties = BTreeMap::from([
            ("volsize".to_owned(), json!(size)),
            ("read_only".to_owned(), json!(fixed)),
        ]);
        for property in ["volblocksize", "initiatorgroup", "targetgroup"] {
            if let Some(text) = document.text(path, property) {
                properties.insert(property.to_owned(), json!(text));
            }
        }
        let (create, name) = (above.to_string(), name.to_owned());
        let changes = vec![Change::Create { create, name, properties }];
        let comment = format!("copy of {path}");
        let request = Request { changes, comment, ..Request::default() };
        let done = tree.commit(&request, who, &Everything);
        if let Err(problems) = done {
            self.room.forget_copy(&name_of(&new));
            let first = problems.into_iter().next();
            return Err(first.unwrap_or_else(|| refused("it could not be made")));
        }
        Ok(json!(new.to_string()))
    }

    /// Copies the blocks of a unit; gives how many bytes they are.
    fn copied(&self, path: &Path, new: &Path) -> Result<u64, String> {
        let copy = {
            let inner = self.room.inner();
            let entry = inner.entries.get(&name_of(path)).ok_or("there is no such LUN")?;
            let why = || entry.problem.clone().unwrap_or_else(|| "it is offline".to_owned());
            let opened = entry.opened.as_ref().ok_or_else(why)?;
            let (_, record) = entry.known.as_ref().ok_or_else(why)?;
            let disk = inner.disk.as_ref().ok_or_else(why)?;
            disk.begin_copy(opened, record, &name_of(new))?
        };
        // It waits for the storage, and other units are not to wait for it.
        copy.make()?;
        let (inner, size) = (self.room.inner(), copy.size());
        let opened = inner.entries.get(&name_of(path)).and_then(|entry| entry.opened.as_ref());
        let disk = inner.disk.as_ref().filter(|_| opened.is_some_and(|now| copy.is_of(now)));
        let numbers: Vec<u16> = inner.numbers();
        let number = (0..LUNS_MAX as u16).find(|number| !numbers.contains(number));
        let kept = match (disk, number) {
            (Some(disk), Some(number)) => return disk.keep_copy(copy, number).map(|_| size),
            (None, _) => "it was changed meanwhile",
            (_, None) => "there are as many LUNs as there may be",
        };
        copy.remove();
        Err(kept.to_owned())
    }

    fn drop_cache(
        &self,
        path: &Path,
        parameters: &BTreeMap<String, Value>,
    ) -> Result<Json, Problem> {
        let medium = {
            let inner = self.room.inner();
            let entry = inner.entries.get(&name_of(path));
            entry.and_then(|entry| Some(entry.opened.as_ref()?.medium.clone()))
        };
        let medium = medium.ok_or_else(|| Problem::conflict(path, "it is offline", ""))?;
        self.drops.run(path, parameters, move |_| Ok((medium.drop_cache(), true)))
    }

    fn clear(&self, path: &Path) -> Result<Json, Problem> {
        let refused = |why: &str| Problem::conflict(path, why, "");
        let unit = {
            let inner = self.room.inner();
            let entry = inner.entries.get(&name_of(path));
            entry.and_then(|entry| Some(entry.opened.as_ref()?.unit.clone()))
        };
        let unit = unit.ok_or_else(|| refused("it is offline"))?;
        let done = within(LUN_ANSWER_TIME_MAX, move || unit.clear_reservations());
        done.ok_or_else(|| refused(STUCK))?
            .map_err(|_| Problem::server(path, "the change could not be kept"))?;
        Ok(Json::Null)
    }
}

/// The state of a unit that is shown without accessing its storage.
fn unit_state(inner: &Inner, entry: &Entry, at: SocketAddr) -> Vec<(&'static str, Value)> {
    let is_served = entry.opened.is_some() && entry.config.online;
    let mut state = vec![("state", Value::text(if is_served { "online" } else { "offline" }))];
    if let Some(why) = &entry.problem {
        state.push(("reason", Value::text(why)));
    } else if !entry.config.online {
        state.push(("reason", Value::text("its status is offline")));
    }
    if let Some((guid, record)) = &entry.known {
        let guid: String = guid.iter().map(|byte| format!("{byte:02x}")).collect();
        state.push(("lunguid", Value::Text(guid)));
        state.push(("number", Value::Integer(i64::from(record.number))));
    }
    let targets = inner.targets_of(&entry.config);
    let Some(opened) = &entry.opened else { return state };
    state.push(("size", integer(opened.medium.size())));
    state.push(("reservations", Value::texts(reservations(&opened.unit))));
    if let (true, Some(target), Some((_, record))) = (is_served, targets.first(), &entry.known) {
        // Secrets are shown where the server is started, and nowhere else.
        let lines = ways::lines(at, target, record.number, None);
        state.push(("connect", Value::texts(lines)));
    }
    state.push(("targets", Value::texts(targets)));
    state
}

/// A type of reservation in words: `write exclusive`.
fn kind(kind: &vfs::lun::reservations::Kind) -> String {
    let mut words = String::new();
    for letter in format!("{kind:?}").chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// The holder of the reservation of a unit, and the registered initiators.
fn reservations(unit: &serve::iscsi::unit::Unit) -> Vec<String> {
    let all = unit.reservations();
    let mut lines = Vec::new();
    if let Some(holder) = unit.simple_holder() {
        lines.push(format!("reserved by {}, ISID {} (RESERVE)", holder.name, isid(&holder)));
    }
    if let Some(held) = all.holding() {
        let by = &held.holder;
        lines.push(format!("{} by {}, ISID {}", kind(&held.kind), by.name, isid(by)));
    }
    lines.extend(all.registrations().map(|(port, key)| {
        format!("registered {}, ISID {}, key 0x{key:x}", port.name, isid(port))
    }));
    lines
}

impl Apply for Luns {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let mut found = problems(transition);
        found.extend(self.smaller(transition));
        found
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        self.room.lead(transition)?;
        self.drops.retain(|path| transition.new.exists(path));
        Ok(())
    }
}

impl Luns {
    /// Units that were to be made smaller.
    fn smaller(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let size =
            |document: &control::tree::Document, path: &Path| document.integer(path, "volsize");
        let before = |path: &Path| {
            let back = |at: Path, (from, to): &(Path, Path)| at.moved(to, from);
            transition.renamed.iter().rev().fold(path.clone(), back)
        };
        let shrinks = |path: &&Path| {
            let (old, new) = (size(transition.old, &before(path)), size(transition.new, path));
            is_lun(path) && old.zip(new).is_some_and(|(old, new)| new < old)
        };
        let problem = |path: &Path| {
            let sentence = "a LUN cannot be made smaller: what lies at its end would be lost";
            Problem::conflict(path, sentence, "make another one and copy").property("volsize")
        };
        let nodes = transition.new.nodes().map(|(path, _)| path);
        nodes.filter(shrinks).map(problem).collect()
    }
}

impl Operational for Luns {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        match path.segments() {
            [_, _, _, _] if is_lun(path) => self.lun_state(path),
            [_, san] if san == SAN[1] => {
                vec![("target", Value::Text(self.room.inner().target.clone()))]
            }
            [_, _, sessions, _] if sessions == "sessions" => self.session(path).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn items(&self, path: &Path) -> Vec<String> {
        match path.segments() {
            [_, _, sessions] if sessions == "sessions" => {
                self.room.server.sessions.rows().iter().map(|row| row.tsih.to_string()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn overrides(&self, _path: &Path) -> Vec<Override> {
        Vec::new()
    }

    fn facts(&self, path: &Path) -> Vec<String> {
        let inner = self.room.inner();
        let fact = |entry: &Entry| {
            let used = match self.users(entry).len() {
                0 => "no initiator uses it".to_owned(),
                1 => "1 initiator uses it".to_owned(),
                n => format!("{n} initiators use it"),
            };
            let blocks = match (&entry.known, &inner.disk) {
                (Some((_, record)), Some(disk)) if !disk.is_own(record) => {
                    format!("its blocks stay in {}", disk.file(record).display())
                }
                _ => {
                    let size = entry.opened.as_ref().map_or(0, |opened| opened.medium.size());
                    format!("its {} are removed", units::bytes(size as f64))
                }
            };
            format!("{}: {used}; {blocks}", entry.config.path.name().unwrap_or_default())
        };
        inner.entries.values().filter(|entry| entry.config.path.is_in(path)).map(fact).collect()
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        parameters: &BTreeMap<String, Value>,
        who: &Actor,
    ) -> Result<Json, Problem> {
        let name = || parameters.get("name").and_then(Value::as_text).unwrap_or_default();
        match action {
            "snapshot" => self.copy(path, name(), true, who),
            "clone" => self.copy(path, name(), false, who),
            "clear_reservations" => self.clear(path),
            "drop_cache" => self.drop_cache(path, parameters),
            "end" => {
                let tsih = path.name().and_then(|name| name.parse().ok());
                match tsih.is_some_and(|tsih| self.room.server.sessions.log_out(tsih)) {
                    true => Ok(Json::Null),
                    false => Err(Problem::unknown(path, "there is no such session any more", "")),
                }
            }
            _ => Err(Problem::unknown(path, &format!("nothing does {action} here"), "")),
        }
    }
}

/// The shares and, below the same projects, the units.
pub struct SharesAndLuns<A> {
    /// The handler of shares.
    pub shares: Arc<A>,
    /// The handler of units.
    pub luns: Arc<Luns>,
}

impl<A: Apply> Apply for SharesAndLuns<A> {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        // Units are checked with /configuration/san, whatever has changed.
        self.shares.check(transition)
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        self.shares.apply(transition)?;
        self.luns.apply(transition).inspect_err(|_| {
            let renamed: Vec<(Path, Path)> = transition
                .renamed
                .iter()
                .rev()
                .map(|(from, to)| (to.clone(), from.clone()))
                .collect();
            let back = Transition {
                old: transition.new,
                new: transition.old,
                renamed: &renamed,
                back: true,
                ..*transition
            };
            if let Err(problem) = self.shares.apply(&back) {
                base::error!("shares", "a change could not be taken back: {problem}");
            }
        })
    }

    fn notes(&self, transition: &Transition<'_>, done: bool) -> Vec<String> {
        self.shares.notes(transition, done)
    }

    fn seal(&self, path: &Path, property: &str, plain: &str) -> Result<String, Problem> {
        self.shares.seal(path, property, plain)
    }
}

impl<A: Operational> Operational for SharesAndLuns<A> {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        if is_lun(path) { self.luns.state(path) } else { self.shares.state(path) }
    }

    fn items(&self, path: &Path) -> Vec<String> {
        if is_lun(path) { self.luns.items(path) } else { self.shares.items(path) }
    }

    fn overrides(&self, path: &Path) -> Vec<Override> {
        if is_lun(path) { Vec::new() } else { self.shares.overrides(path) }
    }

    fn facts(&self, path: &Path) -> Vec<String> {
        let mut facts = if is_lun(path) { Vec::new() } else { self.shares.facts(path) };
        facts.extend(self.luns.facts(path));
        facts
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        parameters: &BTreeMap<String, Value>,
        who: &Actor,
    ) -> Result<Json, Problem> {
        match is_lun(path) {
            true => self.luns.act(path, action, parameters, who),
            false => self.shares.act(path, action, parameters, who),
        }
    }
}

/// Creates a node for each unit of the command line, and for those that an older version has
/// created, unless it exists.
///
/// # Errors
/// The first that cannot be made.
pub fn give(room: &LunNodes, tree: &Tree, given: &[super::LunGiven]) -> Result<(), Problem> {
    let who = Actor::new("plimsoll", "command line");
    let document = tree.document();
    let mut wanted: BTreeMap<String, Json> = room
        .left()
        .into_iter()
        .map(|(name, size, block)| {
            (name, json!({ "volsize": size, "volblocksize": block.to_string() }))
        })
        .collect();
    for lun in given {
        let name = format!("{}/{}", vfs::share::node::DEFAULT_PROJECT, lun.name);
        wanted.entry(name).or_insert_with(|| json!({ "volsize": lun.size }));
    }
    for (name, properties) in wanted {
        let Some(path) = super::config::path_of(&name) else { continue };
        if document.exists(&path) {
            continue;
        }
        let properties = serde_json::from_value(properties).unwrap_or_default();
        let (create, name) = (path.parent().unwrap_or_default().to_string(), path.name());
        let name = name.unwrap_or_default().to_owned();
        let changes = vec![Change::Create { create, name, properties }];
        let comment = "a LUN of the command line".to_owned();
        let request = Request { changes, comment, ..Request::default() };
        tree.commit(&request, &who, &Everything).map_err(|mut all| all.remove(0))?;
    }
    Ok(())
}

/// Removes units permanently once the configuration without them is stored.
///
/// # Errors
/// The system gives no thread.
pub fn follow(room: &Arc<LunNodes>, tree: &Arc<Tree>) -> std::io::Result<()> {
    let (room, mut changes) = (Arc::downgrade(room), tree.listen());
    let tree = Arc::downgrade(tree);
    std::thread::Builder::new().name("luns".to_owned()).spawn(move || {
        loop {
            // A receiver that lags behind reads the current configuration.
            let _ = changes.blocking_recv();
            let (Some(room), Some(tree)) = (room.upgrade(), tree.upgrade()) else { return };
            room.purge(&tree.document());
        }
    })?;
    Ok(())
}
