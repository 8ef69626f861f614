//! The shares that are served: opened, changed and closed while clients work.
//!
//! [`Shares::apply`] leads from one list of shares to another, completely or not at all, and no
//! call on any other share notices. Everything that can fail is done before the first client could
//! see it: directories are opened, rules read; then one table takes the place of another. A share
//! that goes answers "stale" from then on; when the last call on it has ended, what clients held
//! through it ends, and only then its directory is closed. No file is ever removed.

mod config;
mod lookers;
pub mod node;
pub mod rollback;
mod root;
pub mod space;
pub mod storage;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use base::clock::{Clock, SystemClock};
use base::limits::{
    LUN_ANSWER_TIME_MAX, SHARE_DRAIN_MAX, SHARE_DRAIN_STEP, SHARES_MAX, STORAGE_LOOK_TIME_MAX,
};
use base::node::Path;
use control::tree::Problem;
use host_pools::request::ShareSettings;
use parking_lot::Mutex;
use probe::hub::Hub;
use vfs::fs::FileSystem;
use vfs::host::snapshots::Snapshots;
use vfs::host::watch::Changed;
use vfs::host::{HostCounts, HostFs, HostOptions};
use vfs::locks::LockTable;
use vfs::share::rules::Rules;
use vfs::share::{New, Service, ServiceRules, Share, ShareTable, tag};

pub use config::{OnPool, PREFIX, Root, ShareConfig, System, rules_for};
use storage::Configured;
use watch::Lost;
pub use watch::Watch;

use crate::luns::bounded::within;

/// Ends what clients hold through the share with this tag.
pub type Release = Box<dyn Fn(u32) + Send + Sync>;

/// Subvolumes of pools for shares.
pub trait Subvolumes: Send + Sync {
    /// Makes that of a share, unless it is there. Whether it was made.
    ///
    /// # Errors
    /// One sentence.
    fn make(&self, pool: &str, share: &str) -> Result<bool, String>;

    /// Takes back one that was just made.
    fn take_back(&self, pool: &str, share: &str);

    /// Sets quota, reservation and compression of that of a share.
    ///
    /// # Errors
    /// One sentence.
    fn configure(&self, pool: &str, share: &str, settings: &ShareSettings) -> Result<(), String>;
}

/// What every share is opened with.
pub struct Resources {
    /// Where shares on pools get their directories.
    pub pools: Arc<dyn Subvolumes>,
    /// The state directory, and what it is on its file system: no share may show it.
    pub state: (PathBuf, (u64, u64)),
    /// Key of the handles.
    pub secret: [u8; 32],
    /// The table of all protocols; every change through us recalls delegations in it.
    pub locks: Arc<LockTable>,
    /// Where shares have their numbers.
    pub hub: Arc<Hub>,
}

/// One that is served.
#[derive(Clone)]
struct Served {
    config: ShareConfig,
    files: Arc<HostFs>,
    snapshots: Option<Arc<Snapshots>>,
    /// How often its file system went back below its directory.
    exchanges: u64,
}

/// All of them.
pub struct Shares {
    kit: Resources,
    table: Arc<vfs::share::Shares>,
    /// Held while shares change: one change at a time.
    changing: Mutex<()>,
    /// By name. Never held while anything is waited for.
    served: Mutex<BTreeMap<String, Served>>,
    /// Those of which the directory was lost, by name. Taken after `served`, if both are.
    lost: Mutex<BTreeMap<String, Lost>>,
    /// Removed, with calls in progress, or not closed yet.
    leaving: Mutex<Vec<Arc<HostFs>>>,
    release: OnceLock<Release>,
}

impl Shares {
    /// No share yet.
    pub fn new(kit: Resources) -> Self {
        let table = ShareTable::with_locks(Arc::clone(&kit.locks));
        Self {
            table: vfs::share::Shares::new(table),
            kit,
            changing: Mutex::default(),
            served: Mutex::default(),
            lost: Mutex::default(),
            leaving: Mutex::default(),
            release: OnceLock::new(),
        }
    }

    /// From now on what clients hold through a share ends with it. Once.
    pub fn set_release(&self, release: Release) {
        // A second one is not needed: the first ends all.
        let _ = self.release.set(release);
    }

    /// What protocols serve.
    pub fn table(&self) -> &Arc<vfs::share::Shares> {
        &self.table
    }

    /// All problems of a list of shares, also those between shares. Changes nothing.
    pub fn check(&self, new: &[ShareConfig]) -> Vec<Problem> {
        let mut problems = Vec::new();
        if new.len() > SHARES_MAX {
            let sentence = format!("{} shares exceed the maximum of {SHARES_MAX}", new.len());
            problems.push(Problem::new(&Path::of(PREFIX), &sentence, "destroy some of them"));
        }
        let mut names = BTreeMap::<u32, &ShareConfig>::new();
        for share in new {
            if let Some(other) = names.insert(tag(&share.name), share) {
                problems.push(alike(share, other));
            }
            problems.extend(self.check_one(share));
        }
        problems
    }

    fn check_one(&self, share: &ShareConfig) -> Option<Problem> {
        // One that is served already was found good, and its directory may be busy or gone.
        let is_same = |one: &Served| one.config.directory == share.directory;
        let is_served = self.served.lock().get(&share.name).is_some_and(is_same);
        if is_served || self.awaits(share) {
            return None;
        }
        root::check(share, &self.kit.state.0).err()
    }

    /// Serves `new` in place of `old`, completely or not at all. Waits for calls on shares that go;
    /// must not be called on a connection's thread.
    ///
    /// # Errors
    /// The first thing that is wrong; `old` is served then, as before.
    pub fn apply(&self, old: &[ShareConfig], new: &[ShareConfig]) -> Result<(), Problem> {
        if let Some(problem) = self.check(new).into_iter().next() {
            return Err(problem);
        }
        let _one = self.changing.lock();
        self.apply_locked(old, new)
    }

    /// Serves one more share, and all others as they are now. One that is served, or waits for its
    /// directory, stays as it is. As [`Self::apply`] otherwise.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn add(&self, config: ShareConfig) -> Result<(), Problem> {
        let _one = self.changing.lock();
        // A list from before the lock would take back what was changed meanwhile.
        let before = self.configured();
        if before.iter().any(|one| one.path() == config.path()) {
            return Ok(());
        }
        let after: Vec<ShareConfig> = before.iter().cloned().chain([config]).collect();
        if let Some(problem) = self.check(&after).into_iter().next() {
            return Err(problem);
        }
        self.apply_locked(&before, &after)
    }

    /// As [`Self::apply`], of a list that was checked. `changing` is held.
    fn apply_locked(&self, old: &[ShareConfig], new: &[ShareConfig]) -> Result<(), Problem> {
        // A share with a lost directory and no changes is served when the directory is back.
        let lost = self.still_lost(new);
        let present = |one: &&ShareConfig| !lost.contains(&one.name);
        let new: Vec<ShareConfig> = new.iter().filter(present).cloned().collect();
        let is_served = |one: &&ShareConfig| self.served.lock().contains_key(&one.name);
        let old: Vec<ShareConfig> = old.iter().filter(is_served).cloned().collect();
        self.lead(&old, &new)?;
        self.lost.lock().retain(|name, _| lost.contains(name));
        Ok(())
    }

    /// As [`Self::apply`], for shares with existing directories.
    fn lead(&self, old: &[ShareConfig], new: &[ShareConfig]) -> Result<(), Problem> {
        // A share with another directory is another share under the same name; its table of handles
        // must be closed first.
        let stays = |share: &&ShareConfig| {
            let served = self.served.lock();
            served.get(&share.name).is_none_or(|one| one.config.directory == share.directory)
        };
        let stays: Vec<ShareConfig> = new.iter().filter(stays).cloned().collect();
        if stays.len() == new.len() {
            return self.exchange(new);
        }
        self.exchange(&stays)?;
        let done = self.exchange(new);
        if done.is_err() {
            // They were served a moment ago.
            self.exchange(old)?;
        }
        done
    }

    /// Exchanges the rules of one share until the next change of it, for all services.
    pub fn set_rules(&self, name: &str, rules: &Rules) {
        let mut served = self.served.lock();
        let Some(one) = served.get_mut(name) else { return };
        let new = one.config.clone().with_rules(rules);
        if let Some(share) = self.table.load().by_name(name) {
            set_rules(share, &one.config, &new);
        }
        one.config = new;
    }

    /// Each share with where its files are.
    pub fn list(&self) -> Vec<(Arc<Share>, ShareConfig)> {
        let served = self.served.lock();
        let table = self.table.load();
        let one = |share: &Arc<Share>| {
            let config = served.get(&share.name)?.config.clone();
            Some((Arc::clone(share), config))
        };
        table.iter().filter_map(one).collect()
    }

    /// Served shares.
    pub fn configs(&self) -> Vec<ShareConfig> {
        self.list().into_iter().map(|(_, config)| config).collect()
    }

    /// The files of a share that is served.
    pub fn files(&self, name: &str) -> Option<Arc<HostFs>> {
        self.served.lock().get(name).map(|one| Arc::clone(&one.files))
    }

    /// Whether files are used with their callers' rights, and a sentence about it.
    pub fn acting_as(&self) -> (bool, String) {
        let served = self.served.lock();
        let first = served.values().next();
        first.map_or((false, "no shares are served".to_owned()), |one| {
            (one.files.privileged(), one.files.acting_as())
        })
    }

    /// Counts of all shares together.
    pub fn counts(&self) -> HostCounts {
        let all: Vec<_> = self.served.lock().values().map(|one| Arc::clone(&one.files)).collect();
        all.iter().fold(HostCounts::default(), |sum, files| sum.and(&files.counts()))
    }

    /// Closes removed shares that are not used any more. To be called every second.
    pub fn sweep(&self) {
        let with_snapshots: Vec<_> =
            self.served.lock().values().filter_map(|one| one.snapshots.clone()).collect();
        with_snapshots.iter().for_each(|snapshots| snapshots.tidy());
        let gone: Vec<_> = {
            let mut leaving = self.leaving.lock();
            leaving.extract_if(.., |files| Arc::strong_count(files) == 1).collect()
        };
        gone.iter().for_each(|files| self.released(files));
    }

    fn released(&self, files: &Arc<HostFs>) {
        let tag = vfs::share::tag_of(&files.root());
        if let (Some(release), Some(tag)) = (self.release.get(), tag) {
            // It may be there again.
            if self.table.load().by_handle(&files.root()).is_none() {
                release(tag);
            }
        }
    }

    /// The one step of [`Self::apply`]: no share in it moves.
    fn exchange(&self, new: &[ShareConfig]) -> Result<(), Problem> {
        let before = self.served.lock().clone();
        let mut opened = Vec::new();
        for config in new.iter().filter(|config| !before.contains_key(&config.name)) {
            // One of the same name that just went may have its last calls in progress.
            self.wait_for(config)?;
            opened.push(self.open(config)?);
        }
        let mut configured = Configured::new(&*self.kit.pools);
        for config in new {
            let before = before.get(&config.name).and_then(|one| one.config.storage.as_ref());
            configured.set(config, before)?;
        }
        let mut table = ShareTable::clone(&self.table.load());
        let stays = |name: &str| new.iter().any(|config| config.name == name);
        before.keys().filter(|name| !stays(name)).for_each(|name| drop(table.remove(name)));
        for (one, _) in &opened {
            let config = &one.config;
            let rules = ServiceRules::default();
            for service in Service::ALL {
                rules.of(service).set(config.rules_for(service).clone());
            }
            let id = self.kit.hub.shares().intern(&config.name);
            enter(&mut table, config, one, (id, rules))
                .map_err(|e| config.problem(None, &e, "choose another name"))?;
        }
        for config in new {
            // A share that stays, with or without changes being refused from now on.
            let Some(one) = before.get(&config.name) else { continue };
            if one.config.read_only != config.read_only
                && let Some(share) = table.remove(&config.name)
            {
                enter(&mut table, config, one, (share.id, share.rules.clone()))
                    .map_err(|e| config.problem(Some("read_only"), &e, ""))?;
            }
        }
        // Nothing can fail any more.
        configured.keep();
        drop(before);
        drop(self.table.replace(table));
        self.settle(new, opened);
        self.drain();
        Ok(())
    }

    /// After the exchange: what is served now, under which rules, and what is leaving.
    fn settle(&self, new: &[ShareConfig], opened: Vec<(Served, root::Undo)>) {
        let mut served = self.served.lock();
        for (one, undo) in opened {
            undo.keep();
            served.insert(one.config.name.clone(), one);
        }
        let table = self.table.load();
        let stays = |name: &String| new.iter().any(|config| config.name == *name);
        let gone = served.extract_if(.., |name, _| !stays(name)).map(|(_, one)| one.files);
        self.leaving.lock().extend(gone);
        for config in new {
            let Some(one) = served.get_mut(&config.name) else { continue };
            if let Some(share) = table.by_name(&config.name) {
                set_rules(share, &one.config, config);
            }
            one.config = config.clone();
        }
    }

    /// Opens a directory for serving, and makes its root what it is to be.
    fn open(&self, config: &ShareConfig) -> Result<(Served, root::Undo), Problem> {
        let undo = root::prepare(config, &self.kit.pools)?;
        let (state, identity) = &self.kit.state;
        let options = HostOptions {
            state_dir: Some(state.clone()),
            hide: vec![*identity],
            exclusive: Arc::clone(self.kit.locks.exclusive()),
            exchangeable: config.snapshots.is_some(),
            ..HostOptions::new(tag(&config.name), self.kit.secret)
        };
        // Files of logical units have other inodes after a remount.
        let exclusive = Arc::clone(self.kit.locks.exclusive());
        let directory = config.directory.clone();
        let renewed = within(LUN_ANSWER_TIME_MAX, move || {
            let renewed = exclusive.renew(&directory);
            let elsewhere = move || exclusive.renew_elsewhere(&directory);
            // Others may lie on what does not respond, which is not this share's fault.
            within(STORAGE_LOOK_TIME_MAX, elsewhere);
            renewed
        });
        if renewed.is_none() {
            let sentence = format!("{} does not respond", config.directory.display());
            return Err(config.problem(Some("directory"), &sentence, "check its file system"));
        }
        let snapshots = storage::snapshots(config);
        let snapshots =
            snapshots.map(|at| Arc::new(Snapshots::new(at, &config.directory, &options)));
        let files = HostFs::open(&config.directory, options).map_err(|e| {
            let hint = "check that the server may read it and that no other server serves it";
            config.problem(Some("directory"), &e.to_string(), hint)
        })?;
        storage::follow(config, &files);
        // Clients that cache file contents must be notified of changes by local programs.
        let locks = Arc::clone(&self.kit.locks);
        files.set_change_listener(Box::new(move |changed| match changed {
            Changed::File(file) => locks.changed_on_host(file),
            Changed::Directory(dir, kinds) => locks.notices().seen(dir, kinds),
        }));
        Ok((Served { config: config.clone(), files, snapshots, exchanges: 0 }, undo))
    }

    /// Waits until nothing is left of a removed share of this name.
    fn wait_for(&self, share: &ShareConfig) -> Result<(), Problem> {
        let name = &share.name;
        let left = || {
            let leaving = self.leaving.lock();
            leaving.iter().any(|files| vfs::share::tag_of(&files.root()) == Some(tag(name)))
        };
        if left() {
            self.drain();
        }
        if !left() {
            return Ok(());
        }
        let sentence = format!("calls on the removed share {name} are still in progress");
        Err(Problem::conflict(&share.path(), &sentence, "try again in a moment"))
    }

    /// Waits for the calls on removed shares, up to a limit: what is left then is closed by
    /// [`Self::sweep`].
    fn drain(&self) {
        let until = SystemClock.monotonic_ns() + SHARE_DRAIN_MAX.as_nanos() as u64;
        loop {
            self.sweep();
            if self.leaving.lock().is_empty() || SystemClock.monotonic_ns() > until {
                return;
            }
            std::thread::sleep(SHARE_DRAIN_STEP);
        }
    }
}

/// Exchanges the rules that have changed, and no others: clients of unchanged rules need not be
/// checked again.
fn set_rules(share: &Share, before: &ShareConfig, now: &ShareConfig) {
    share.set_caching(now.smb_oplocks);
    share.set_continuous(now.continuous);
    share.set_snapdir_visible(now.snapdir_visible);
    for service in Service::ALL {
        let (before, now) = (before.rules_for(service), now.rules_for(service));
        if before != now {
            share.rules_for(service).set(now.clone());
        }
    }
}

fn enter(
    table: &mut ShareTable,
    config: &ShareConfig,
    one: &Served,
    (id, rules): (u16, ServiceRules),
) -> Result<(), String> {
    enter_files(table, config, (one, one.files.clone()), (id, rules))
}

fn enter_files(
    table: &mut ShareTable,
    config: &ShareConfig,
    (one, fs): (&Served, Arc<dyn FileSystem>),
    (id, rules): (u16, ServiceRules),
) -> Result<(), String> {
    let (name, read_only) = (config.name.as_str(), config.read_only);
    let snapshots = one.snapshots.clone();
    let tree = one.files.number().wrapping_add(one.exchanges);
    let new = New { name, fs, read_only, id, rules, snapshots, tree };
    table.put(new).map(drop).map_err(|e| e.to_string())
}

fn alike(share: &ShareConfig, other: &ShareConfig) -> Problem {
    let sentence = match share.name == other.name {
        true => format!("a share named {} already exists, in {}", other.name, other.path()),
        false => format!("its file handles would be the same as those of {}", other.name),
    };
    Problem::conflict(&share.path(), &sentence, "choose another name")
}

#[cfg(test)]
mod tests;
