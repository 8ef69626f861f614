//! `/shares` of the tree of administration: the configuration as a list of shares, and what is to
//! be seen of those that are served.

mod roots;

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use base::node::{Path, Shape, Value};
use base::protocol::ShareMode;
use base::units::octal;
use control::tree::{Actor, Apply, Document, Operational, Override, Problem, Transition};
use host_pools::keeper::{FOLDER, SNAPSHOTS};
use host_pools::schedule::Schedule;
use host_pools::subvolume;
use parking_lot::Mutex;
use vfs::cache_drop::CacheDrop;
use vfs::cred::Cred;
use vfs::fs::Context;
use vfs::share::node::{
    CONTINUOUS, DEFAULT_PROJECT, POOL, SMB_ENCRYPT, SMB_OPLOCKS, SNAPDIR, VISIBLE,
};
use vfs::share::rules::{Access, Lookup, Rules, Transport};
use vfs::share::{Service, Share, tag};
use vfs::status::Status;

use super::storage::{on_pool, schedules};
use super::{PREFIX, Root, ShareConfig, Shares, System, rules_for};
use crate::cache_drops::CacheDrops;
use crate::{node, tls};

/// The creator of the share that is in no configuration.
const COMMAND_LINE: &str = "command line";

/// Shares that are configured and not served, by name, and why.
pub type Offline = BTreeMap<String, Problem>;

/// What the room needs of the services on the shares.
pub trait Services: Send + Sync {
    /// Commands that mount a share.
    fn mount(&self, share: &str) -> Vec<String>;

    /// Addresses of clients that hold something through the share with this tag.
    fn holders(&self, tag: u32) -> Vec<String>;

    /// Whether clients' certificates can be verified.
    fn knows_clients(&self) -> bool;
}

/// The branch.
pub struct SharesNode {
    shares: Arc<Shares>,
    services: Box<dyn Services>,
    /// The share of the command line, which is served regardless of the configuration.
    given: String,
    offline: Mutex<Offline>,
    /// Held while the configuration changes: no offline share is served meanwhile. Taken before
    /// `offline`.
    changing: Mutex<()>,
    drops: CacheDrops,
}

impl SharesNode {
    /// The branch of these shares, of which some could not be started; `given` names the one of the
    /// command line.
    pub fn new(
        shares: Arc<Shares>,
        offline: Offline,
        services: Box<dyn Services>,
        given: &str,
    ) -> Self {
        let (given, offline) = (given.to_owned(), Mutex::new(offline));
        let (changing, drops) = (Mutex::default(), CacheDrops::default());
        Self { shares, services, given, offline, changing, drops }
    }

    /// Serves shares that could not be served before, as after a pool is mounted. `document` is the
    /// configuration at the moment.
    pub fn serve_offline(&self, document: &dyn Fn() -> Arc<Document>) {
        let names: Vec<String> = self.offline.lock().keys().cloned().collect();
        names.iter().for_each(|name| self.serve_one_offline(name, document));
    }

    fn serve_one_offline(&self, name: &str, document: &dyn Fn() -> Arc<Document>) {
        // Between two changes of the configuration: the one before has decided on the share.
        let _one = self.changing.lock();
        if !self.offline.lock().contains_key(name) {
            return;
        }
        let document = document();
        let all = paths(&document);
        let Some(path) = all.iter().find(|path| path.name() == Some(name)) else { return };
        let done = config(&document, path, &System)
            .and_then(|config| self.shares.add(ShareConfig { root: Root::default(), ..config }));
        match done {
            Ok(()) => drop(self.offline.lock().remove(name)),
            Err(problem) => drop(self.offline.lock().insert(name.to_owned(), problem)),
        }
    }

    /// Why a share is not served.
    fn offline(&self, name: &str) -> Option<String> {
        let offline = self.offline.lock().get(name).map(|problem| problem.sentence.clone());
        let lost = || self.shares.lost().into_iter().find(|(lost, _)| lost == name);
        offline.or_else(|| lost().map(|(_, problem)| problem.sentence))
    }

    fn served_as(&self, path: &Path) -> Option<Arc<Share>> {
        let mut all = self.shares.list().into_iter();
        all.find(|(_, config)| config.path() == *path).map(|(share, _)| share)
    }

    /// Drops what is cached of a share. A run ends when the share is not served any more.
    fn drop_cache(
        &self,
        path: &Path,
        parameters: &BTreeMap<String, Value>,
    ) -> Result<serde_json::Value, Problem> {
        let share = self.served_as(path);
        let name = share.map(|share| share.name.clone());
        let files = name.as_ref().and_then(|name| self.shares.files(name));
        let (Some(name), Some(files)) = (name, files) else {
            return Err(Problem::conflict(path, "the share is offline", ""));
        };
        let directory = parameters.get("directory").and_then(Value::as_text).unwrap_or_default();
        let below = PathBuf::from(directory);
        let shares = Arc::clone(&self.shares);
        self.drops.run(path, parameters, move |more| {
            let mut served = |found: &CacheDrop| {
                let same = shares.files(&name).is_some_and(|now| Arc::ptr_eq(&now, &files));
                more(found) && same
            };
            let done = files.drop_cache(&below, &mut served);
            done.map_err(|status| match status {
                Status::NotFound => "there is no such directory in the share".to_owned(),
                other => other.to_string(),
            })
        })
    }

    /// What is to be served under a configuration, and what keeps the rest of it from being so.
    fn wanted(&self, transition: &Transition<'_>) -> Result<Evaluation, Vec<Problem>> {
        let Transition { old, new, renamed, .. } = transition;
        let mut shares = self.shares.configured();
        shares.retain(|one| one.name == self.given);
        let mut offline = Vec::new();
        let mut problems = Vec::new();
        let authority = |service| new.text(&node::path(service), "tls_client_ca");
        let knows_clients = |service| self.services.knows_clients() || authority(service).is_some();
        for path in paths(new).iter().filter(|path| path.name() != Some(&self.given)) {
            let mut config = match config(new, path, &System) {
                Ok(config) => config,
                Err(problem) => {
                    problems.push(problem);
                    continue;
                }
            };
            if let Some(problem) = renamed_on_pool(renamed, path, &config) {
                problems.push(problem);
                continue;
            }
            // Its root is as it is: it was made before, under another name.
            if renamed.iter().any(|(_, to)| path.is_in(to)) {
                config.root = Root::default();
            }
            for service in Service::EXPORTING {
                let checked = tls::check(config.rules_for(service), knows_clients(service));
                problems.extend(checked.err().map(|sentence| {
                    let hint = format!("set tls_client_ca of {} first", node::path(service));
                    Problem::new(path, &sentence, &hint).property(service.exceptions())
                }));
            }
            let as_before = old.exists(path)
                && self::config(old, path, &System).is_ok_and(|before| before == config);
            let broken = self.offline.lock().contains_key(&config.name) && as_before;
            match self.shares.check_one(&config) {
                // A share that could not be served before does not prevent other changes.
                Some(problem) if broken => offline.push((config.name, problem)),
                _ => shares.push(config),
            }
        }
        if problems.is_empty() { Ok((shares, offline)) } else { Err(problems) }
    }
}

/// Serves the configured shares in addition to the served ones, each separately: one with a missing
/// disk does not prevent the others. To be called before the first client connects, which would get
/// stale handles otherwise. Logs and returns the problems.
pub fn start(shares: &Shares, document: &Document) -> Offline {
    let mut offline = Offline::new();
    for path in paths(document) {
        let Some(name) = path.name() else { continue };
        // The command line takes precedence over the configuration.
        if shares.configs().iter().any(|one| one.name == name) {
            continue;
        }
        let done = config(document, &path, &System)
            .and_then(|config| shares.add(ShareConfig { root: Root::default(), ..config }));
        if let Err(problem) = done {
            let [service, ..] = Service::EXPORTING;
            base::error!(service.id(), "the share {name} is offline: {}", problem.sentence);
            offline.insert(name.to_owned(), problem);
        }
    }
    offline
}

/// Shares that are to be, and those that cannot be served, by name, and why.
type Evaluation = (Vec<ShareConfig>, Vec<(String, Problem)>);

/// Project and name of a share.
fn parts(path: &Path) -> Option<(&str, &str)> {
    match path.segments() {
        [_, project, name] => Some((project, name)),
        _ => None,
    }
}

/// All shares of a configuration.
fn paths(document: &Document) -> Vec<Path> {
    let root = Path::of(PREFIX);
    let projects = document.items(&root).into_iter().map(|project| root.join(&project));
    let shares = |project: Path| {
        let names = document.items(&project).into_iter();
        names.map(move |name| project.join(&name)).collect::<Vec<_>>()
    };
    projects.flat_map(shares).collect()
}

/// A share as it is configured.
fn config(document: &Document, path: &Path, names: &dyn Lookup) -> Result<ShareConfig, Problem> {
    let wrong = |property: &str, sentence: &str, hint: &str| {
        Problem::new(path, sentence, hint).property(property)
    };
    let (project, name) = parts(path).ok_or_else(|| Problem::new(path, "it is not a share", ""))?;
    if let Err(sentence) = Shape::Name.check(name) {
        return Err(Problem::new(path, &sentence, "choose another name"));
    }
    let directory = directory(document, path)?;
    let (pool, storage) = (document.text(path, POOL), on_pool(document, path)?);
    let base = |name| {
        let base = document.text(path, name).and_then(|word| Access::parse(&word));
        base.ok_or_else(|| wrong(name, "it is not one of none, ro, rw", ""))
    };
    let mut rules: [Rules; Service::ALL.len()] = Default::default();
    for service in Service::SHARING {
        let property = service.exceptions();
        let exceptions = document.texts(path, property);
        let read = rules_for(service, base(service.id())?, &exceptions, names);
        rules[service.index()] =
            read.map_err(|e| wrong(property, &e.to_string(), how_to_except(service)))?;
    }
    if document.bool(path, SMB_ENCRYPT) {
        let smb = &mut rules[Service::Smb.index()];
        *smb = std::mem::take(smb).requiring(Transport::Tls);
    }
    let number = |property| document.integer(path, property).and_then(|n| u32::try_from(n).ok());
    let mode = |text: String| {
        let sentence = format!("{text:?} is not an octal mode, 0 to 7777");
        let hint = "use 755, or 2775 to inherit the group";
        octal(&text, 0o7777).ok_or_else(|| wrong("root_mode", &sentence, hint))
    };
    let mode = document.text(path, "root_mode").map(mode).transpose()?;
    Ok(ShareConfig {
        project: project.to_owned(),
        name: name.to_owned(),
        directory,
        read_only: document.bool(path, "read_only"),
        smb_oplocks: document.bool(path, SMB_OPLOCKS),
        continuous: document.bool(path, CONTINUOUS),
        snapshots: pool.as_ref().map(|pool| snapshots_of(pool, name)),
        snapdir_visible: document.text(path, SNAPDIR).as_deref() == Some(VISIBLE),
        rules,
        root: Root {
            make: document.bool(path, "make_directory"),
            pool,
            owner: number("root_owner"),
            group: number("root_group"),
            mode,
        },
        storage,
    })
}

/// The directory of a share: as it is set, or that of its subvolume.
fn directory(document: &Document, path: &Path) -> Result<PathBuf, Problem> {
    let name = path.name().unwrap_or_default();
    match (document.text(path, "directory"), document.text(path, POOL)) {
        (Some(directory), None) => Ok(PathBuf::from(directory)),
        (None, Some(pool)) => {
            let checked = subvolume::check_name(name);
            checked.map_err(|why| Problem::new(path, &why, "choose another name"))?;
            Ok(FilePath::new(FOLDER).join(pool).join(name))
        }
        (Some(_), Some(_)) => {
            let sentence = "a share has a directory or a pool";
            Err(Problem::new(path, sentence, "leave one of them out").property(POOL))
        }
        (None, None) => {
            let sentence = "it needs a directory or a pool";
            Err(Problem::new(path, sentence, "set directory, or pool").property("directory"))
        }
    }
}

/// Refuses another name of a share on a pool. Its directory has its name: the subvolume would stay
/// behind, and if there is one with the new name, another share's files would be served.
fn renamed_on_pool(renamed: &[(Path, Path)], path: &Path, config: &ShareConfig) -> Option<Problem> {
    let back = |at: Path, (from, to): &(Path, Path)| at.moved(to, from);
    let before = renamed.iter().rev().fold(path.clone(), back);
    // A project can have another name.
    if config.storage.is_none() || before.name() == path.name() {
        return None;
    }
    let sentence = "a share on a pool has the name of its subvolume and cannot be renamed";
    let hint = "clone a snapshot of it under the new name";
    Some(Problem::conflict(path, sentence, hint))
}

/// The directory of the snapshots of a share on a pool.
fn snapshots_of(pool: &str, share: &str) -> PathBuf {
    FilePath::new(FOLDER).join(pool).join(SNAPSHOTS).join(share)
}

/// Shares of a configuration with a directory in this folder, by name.
pub fn shares_below(document: &Document, folder: &FilePath) -> Vec<String> {
    let is_below = |path: &Path| directory(document, path).is_ok_and(|one| one.starts_with(folder));
    let all = paths(document).into_iter().filter(is_below);
    all.filter_map(|path| path.name().map(str::to_owned)).collect()
}

/// Shares on pools that have schedules of snapshots: pool, share, and schedules.
pub fn scheduled(document: &Document) -> Vec<(String, String, Vec<Schedule>)> {
    let one = |path: Path| {
        let (pool, share) = (document.text(&path, POOL)?, path.name()?.to_owned());
        Some((pool, share, schedules(document, &path)))
    };
    let all = paths(document).into_iter().filter_map(one);
    all.filter(|(.., schedules)| !schedules.is_empty()).collect()
}

/// How exceptions are written.
fn how_to_except(service: Service) -> &'static str {
    match service.shares() {
        Some(ShareMode::SignIn) => "use CLIENT(ro), for example 10.0.0.0/24(ro)",
        Some(ShareMode::Export) | None => {
            "use CLIENT(OPTIONS), for example 10.0.0.0/24(rw,root_squash)"
        }
    }
}

/// The access without a matching rule, and the rules, as they are shown of the share of the command
/// line.
fn shown(rules: &Rules) -> (Value, Value) {
    let texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
    // Where there are rules, a client without a matching rule is refused.
    (Value::text(if texts.is_empty() { "rw" } else { "none" }), Value::texts(texts))
}

impl Apply for SharesNode {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let made = |path: &&Path| !transition.old.exists(path);
        if let Some(path) =
            paths(transition.new).iter().filter(made).find(|path| path.name() == Some(&self.given))
        {
            let sentence =
                format!("{} is already served by the command line of the server", self.given);
            return vec![Problem::conflict(path, &sentence, "choose another name")];
        }
        let given = self.shares.configured().into_iter().find(|one| one.name == self.given);
        let elsewhere = roots::elsewhere(transition, given.map(|one| one.directory));
        if !elsewhere.is_empty() {
            return elsewhere;
        }
        let wanted = self.wanted(transition).map(|(shares, _)| self.shares.check(&shares));
        wanted.unwrap_or_else(|problems| problems)
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        let first = |mut problems: Vec<Problem>| problems.remove(0);
        let _one = self.changing.lock();
        let (shares, offline) = self.wanted(transition).map_err(first)?;
        self.shares.apply(&self.shares.configured(), &shares)?;
        *self.offline.lock() = offline.into_iter().collect();
        let is_given = |path: &Path| path.name() == Some(&self.given);
        self.drops.retain(|path| transition.new.exists(path) || is_given(path));
        Ok(())
    }
}

impl Operational for SharesNode {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        let Some((_, name)) = parts(path) else { return Vec::new() };
        let Some(share) = self.served_as(path) else {
            let why = self.offline(name).map(|why| ("reason", Value::Text(why)));
            return [("state", Value::text("offline"))].into_iter().chain(why).collect();
        };
        let root = Cred::root();
        let space = share.fs.space(Context { cred: &root, may_block: true }).unwrap_or_default();
        let mut state = vec![
            ("state", Value::text("online")),
            ("export_path", Value::Text(share.export_path())),
            ("mount", Value::texts(self.services.mount(&share.name))),
            ("total", Value::number(space.total_bytes)),
            ("available", Value::number(space.avail_bytes)),
            ("used", Value::number(space.total_bytes.saturating_sub(space.free_bytes))),
            ("holders", Value::texts(self.services.holders(tag(&share.name)))),
        ];
        state.extend(self.drops.line(path).map(|line| ("cache_drop", Value::Text(line))));
        state
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        parameters: &BTreeMap<String, Value>,
        _who: &Actor,
    ) -> Result<serde_json::Value, Problem> {
        match action {
            "drop_cache" => self.drop_cache(path, parameters),
            "stop_drop_cache" => self.drops.stop(path),
            _ => Err(Problem::unknown(path, &format!("unknown action {action}"), "")),
        }
    }

    fn items(&self, path: &Path) -> Vec<String> {
        let of_given = path.segments() == ["shares", DEFAULT_PROJECT];
        if of_given { vec![self.given.clone()] } else { Vec::new() }
    }

    fn overrides(&self, path: &Path) -> Vec<Override> {
        let Some(one) = self.shares.configured().into_iter().find(|one| one.path() == *path) else {
            return Vec::new();
        };
        if one.name != self.given {
            // One on a pool has the directory of its subvolume.
            let is_on_pool = one.directory.starts_with(FOLDER);
            let value = Value::Text(one.directory.display().to_string());
            let decided = Override { property: "directory", value, source: POOL };
            return is_on_pool.then_some(decided).into_iter().collect();
        }
        let given = one;
        let decided = |property, value| Override { property, value, source: COMMAND_LINE };
        let mut overrides = vec![
            decided("directory", Value::Text(given.directory.display().to_string())),
            decided("make_directory", Value::Bool(false)),
            decided("read_only", Value::Bool(given.read_only)),
        ];
        for service in Service::SHARING {
            let (rest, exceptions) = shown(given.rules_for(service));
            overrides.push(decided(service.id(), rest));
            overrides.push(decided(service.exceptions(), exceptions));
        }
        let encrypts = given.rules_for(Service::Smb).transport() > Transport::Plain;
        overrides.push(decided(SMB_ENCRYPT, Value::Bool(encrypts)));
        overrides.push(decided(SMB_OPLOCKS, Value::Bool(given.smb_oplocks)));
        overrides.push(decided(CONTINUOUS, Value::Bool(given.continuous)));
        overrides.push(decided(SNAPDIR, Value::text("hidden")));
        overrides
    }

    fn facts(&self, path: &Path) -> Vec<String> {
        let inside = |config: &ShareConfig| path.segments().len() > 1 && config.path().is_in(path);
        let fact = |(_, config): (Arc<Share>, ShareConfig)| {
            let clients = match self.services.holders(tag(&config.name)).len() {
                0 => "no client has open files".to_owned(),
                1 => "1 client has open files, whose handles become stale".to_owned(),
                n => format!("{n} clients have open files, whose handles become stale"),
            };
            let dir = config.directory.display();
            format!("{}: {clients}; the files stay in {dir}", config.name)
        };
        self.shares.list().into_iter().filter(|(_, one)| inside(one)).map(fact).collect()
    }
}

#[cfg(test)]
mod tests;
