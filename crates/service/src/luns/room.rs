//! Units, targets and initiators as they are configured, and what is served of them. One change at
//! a time; what can fail comes first, and what was created until then is rolled back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::limits::LUN_ANSWER_TIME_MAX;
use base::node::Path;
use control::tree::{Document, Problem, Transition};
use serve::iscsi::Iscsi as Server;
use serve::iscsi::state::sessions::Order;
use serve::iscsi::targets::{SignIn, Target};
use vfs::locks::LockTable;
use vfs::lun::Medium;
use vfs::lun::mapping::Mapping;
use wire::iscsi::login_phase::Credentials;

use super::bounded::{STUCK, within};
use super::config::{LunConfig, SanConfig, Secret, name_of, path_of};
use super::disk::{self, Disk, Opened};
use super::look::Look;
use super::table::{Guid, Record, Stage};

/// Placeholder in the target name of a server without units; no initiator sees it.
const NO_NUMBER: [u8; 8] = [0; 8];

/// A unit that is configured.
pub struct Entry {
    /// As it is to be.
    pub config: LunConfig,
    /// Its identity, if known.
    pub known: Option<(Guid, Record)>,
    /// It is open.
    pub opened: Option<Opened>,
    /// What is wrong with it.
    pub problem: Option<String>,
    /// What was seen of its storage last.
    pub look: Arc<Look>,
}

/// What a change has done so far, so that one that fails can be undone.
#[derive(Default)]
struct AppliedChanges {
    /// Units that have another node: the names that they have now, and their nodes before.
    renamed: Vec<(String, Path)>,
    /// Units that were made.
    made: Vec<String>,
    /// Units that were there, as they were before, with their numbers.
    changed: Vec<(LunConfig, Option<u16>)>,
}

/// All of it.
pub struct Inner {
    /// The folder, once there is anything in it.
    pub disk: Option<Disk>,
    /// Units, by `PROJECT/NAME`.
    pub entries: BTreeMap<String, Entry>,
    /// The configuration.
    pub config: SanConfig,
    /// The targets: that of the server has no name.
    pub targets: BTreeMap<Option<String>, Arc<Target>>,
    /// What initiators sign in with that have no secret of their own.
    pub secret: Credentials,
    /// The name of the target of the server.
    pub target: String,
    /// The secrets that the server has made: of initiators, and of its target.
    made: [Vec<u8>; 2],
    /// The address of the current configuration, which lives as long as it is current. Two branches
    /// of the tree call this with the same change.
    in_force: usize,
}

fn address(document: &Document) -> usize {
    std::ptr::from_ref(document).addr()
}

/// Units, targets and initiators.
pub struct LunNodes {
    folder: PathBuf,
    locks: Arc<LockTable>,
    /// The service.
    pub server: Arc<Server>,
    inner: Mutex<Inner>,
}

impl LunNodes {
    /// None yet; `folder` is that of units in the state directory.
    pub fn new(folder: PathBuf, locks: &Arc<LockTable>, server: &Arc<Server>) -> Arc<Self> {
        let made = [disk::fresh_secret(), disk::fresh_secret()];
        let inner = Inner {
            disk: None,
            entries: BTreeMap::new(),
            config: SanConfig::default(),
            targets: BTreeMap::new(),
            secret: disk::credentials("", made[0].clone()),
            target: disk::name_of(&NO_NUMBER),
            made,
            in_force: 0,
        };
        let (locks, server) = (Arc::clone(locks), Arc::clone(server));
        Arc::new(Self { folder, locks, server, inner: Mutex::new(inner) })
    }

    /// Units and what is served of them.
    pub fn inner(&self) -> MutexGuard<'_, Inner> {
        // A change that panics half way through leaves units that are offline.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves the configured units. A unit that cannot be served is offline and does not prevent
    /// the service of the others.
    pub fn start(&self, document: &Document, secret: Secret<'_>) {
        let config = SanConfig::read(document, secret);
        let mut inner = self.inner();
        if (!config.luns.is_empty() || self.folder.exists())
            && let Err(why) = inner.open(&self.folder, &self.locks)
        {
            base::error!("iscsi", "logical units cannot be used: {why}");
        }
        for lun in &config.luns {
            let number = inner.number(lun, &config);
            let entry = match inner.bring(lun, number, &config) {
                Ok((entry, _)) => entry,
                Err(why) => {
                    let known = inner.known(&lun.name(), &config);
                    Entry::offline(lun.clone(), known, why)
                }
            };
            if let Some(why) = &entry.problem {
                base::error!("iscsi", "the LUN {} is offline: {why}", lun.name());
            }
            inner.entries.insert(lun.name(), entry);
        }
        self.publish(&mut inner, config);
        inner.purge(document);
        inner.in_force = address(document);
    }

    /// Changes to a new configuration, completely or not at all.
    ///
    /// # Errors
    /// The first thing that cannot be done.
    pub fn lead(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        let secret = |path: &Path, property: &str| transition.secret(path, property);
        let config = SanConfig::read(transition.new, &secret);
        let mut inner = self.inner();
        if inner.in_force == address(transition.new) {
            return Ok(());
        }
        if let Some(first) = config.luns.first() {
            inner.open(&self.folder, &self.locks).map_err(|why| disk::problem(first, &why))?;
        }
        let mut taken = AppliedChanges::default();
        if let Err(problem) = inner.take(transition.renamed, &config, &mut taken) {
            inner.undo(taken);
            return Err(problem);
        }
        let stays: BTreeSet<String> = config.luns.iter().map(LunConfig::name).collect();
        let gone: Vec<String> =
            inner.entries.keys().filter(|name| !stays.contains(*name)).cloned().collect();
        let gone: Vec<Entry> = gone.iter().filter_map(|name| inner.destroy(name)).collect();
        self.publish(&mut inner, config);
        inner.in_force = address(transition.new);
        // Only now no initiator finds them any more.
        gone.into_iter().filter_map(|entry| entry.opened).for_each(Opened::end);
        Ok(())
    }

    /// Permanently removes the units that are not in the configuration any more.
    pub fn purge(&self, document: &Document) {
        self.inner().purge(document);
    }

    /// Offers the current units in the service.
    fn publish(&self, inner: &mut Inner, config: SanConfig) {
        inner.config = config;
        inner.secret = disk::credentials(
            &inner.config.user,
            inner.config.secret.clone().map_or_else(|| inner.made[0].clone(), String::into_bytes),
        );
        let own = disk::credentials(
            &inner.config.own_user,
            inner.config.own.clone().map_or_else(|| inner.made[1].clone(), String::into_bytes),
        );
        let common = SignIn { own: Some(own), ..inner.config.sign_in(&inner.secret, None) };
        if self.server.settings().discovery != common {
            self.server.update(|settings| settings.discovery = common.clone());
        }
        let mut wanted: BTreeMap<Option<String>, (String, SignIn, bool)> = BTreeMap::new();
        wanted.insert(None, (inner.target.clone(), common, false));
        for (name, target) in &inner.config.targets {
            let iqn = target.iqn.clone().unwrap_or_else(|| format!("{}:{name}", inner.target));
            let sign_in = inner.config.sign_in(&inner.secret, Some(target));
            wanted.insert(Some(name.clone()), (iqn, sign_in, target.is_open));
        }
        self.remove_targets(inner, &wanted);
        inner.count_as(&self.server);
        for (name, (iqn, sign_in, is_open)) in wanted {
            let units = inner.mapping(name.as_deref(), is_open);
            let target = inner.targets.entry(name).or_insert_with(|| {
                let target = Target::new(&iqn, sign_in.clone());
                self.server.targets.add(target.clone());
                target
            });
            if *target.sign_in() != sign_in {
                target.set_sign_in(sign_in);
            }
            target.set_units(units);
        }
    }

    /// Ends targets that are not to be there, or have another name.
    fn remove_targets(
        &self,
        inner: &mut Inner,
        wanted: &BTreeMap<Option<String>, (String, SignIn, bool)>,
    ) {
        let goes = |name: &Option<String>, target: &mut Arc<Target>| {
            wanted.get(name).is_none_or(|(iqn, ..)| *iqn != target.name)
        };
        for (_, target) in inner.targets.extract_if(.., goes) {
            self.server.targets.remove(&target.name);
            target.set_units(Mapping::default());
            // No session has this number.
            self.server.sessions.order_all(&target.name, 0, Order::Logout);
        }
    }
}

impl Entry {
    fn offline(config: LunConfig, known: Option<(Guid, Record)>, why: String) -> Self {
        Self { config, known, opened: None, problem: Some(why), look: Arc::default() }
    }
}

impl Inner {
    /// Opens the folder, once.
    fn open(&mut self, folder: &std::path::Path, locks: &Arc<LockTable>) -> Result<(), String> {
        if self.disk.is_none() {
            let disk = Disk::open(folder, locks)?;
            (self.made, self.target) = disk.own()?;
            self.disk = Some(disk);
        }
        Ok(())
    }

    fn disk(&self) -> Result<&Disk, String> {
        self.disk.as_ref().ok_or_else(|| "the state directory cannot be used".to_owned())
    }

    /// The unit of a node, if there is one; that of another node is not taken.
    fn known(&self, name: &str, config: &SanConfig) -> Option<(Guid, Record)> {
        let is_node = |name: &str| config.luns.iter().any(|lun| lun.name() == name);
        self.disk.as_ref()?.table.of(name, &is_node)
    }

    /// The number of a unit: the configured one, the current one, or the lowest free one.
    fn number(&self, lun: &LunConfig, config: &SanConfig) -> u16 {
        let name = lun.name();
        let known = self.known(&name, config);
        let of_others = |number: u16| {
            let configured = config.luns.iter().any(|other| other.number == Some(number));
            let known = self.entries.iter().any(|(other, entry)| {
                *other != name
                    && entry.known.as_ref().is_some_and(|(_, record)| record.number == number)
            });
            configured || known
        };
        let free = || (0..=u16::MAX).find(|number| !of_others(*number)).unwrap_or_default();
        lun.number.or_else(|| known.map(|(_, record)| record.number)).unwrap_or_else(free)
    }

    /// Finds or creates a unit and opens it; returns whether it was created.
    fn bring(
        &self,
        lun: &LunConfig,
        number: u16,
        config: &SanConfig,
    ) -> Result<(Entry, bool), String> {
        let disk = self.disk()?;
        let known = self.known(&lun.name(), config);
        let (guid, mut record, is_new) = disk.find_or_make(lun, number, known)?;
        let taken = self.entries.iter().find(|(name, entry)| {
            **name != record.name
                && entry.known.as_ref().is_some_and(|(_, other)| other.number == number)
        });
        if let Some((other, _)) = taken {
            if is_new {
                disk.remove(&guid, &record)?;
            }
            return Err(format!("{other} has the number {number}"));
        }
        if record.number != number {
            record = Record { number, ..record };
            disk.table.put(&guid, &record).map_err(|e| disk::words(&e))?;
        }
        match disk.open_unit(lun, &guid, &record) {
            Ok(opened) => {
                let (known, config) = (Some((guid, record)), lun.clone());
                let look = Look::new(opened.seen);
                let entry = Entry { config, known, opened: Some(opened), problem: None, look };
                Ok((entry, is_new))
            }
            Err(why) => {
                if is_new {
                    disk.remove(&guid, &record)?;
                    return Err(why);
                }
                Ok((Entry::offline(lun.clone(), Some((guid, record)), why), false))
            }
        }
    }

    /// Renames units, and makes each what it is to be. What is done is in `taken`, also of a
    /// change that fails.
    fn take(
        &mut self,
        renamed: &[(Path, Path)],
        config: &SanConfig,
        taken: &mut AppliedChanges,
    ) -> Result<(), Problem> {
        self.rename(renamed, &mut taken.renamed)
            .map_err(|(path, why)| Problem::server(&path, &why))?;
        for lun in &config.luns {
            if let Some(entry) = self.entries.get(&lun.name()) {
                let number = entry.known.as_ref().map(|(_, record)| record.number);
                taken.changed.push((entry.config.clone(), number));
            }
            self.change(lun, config, &mut taken.made).map_err(|why| disk::problem(lun, &why))?;
        }
        Ok(())
    }

    /// Undoes what a change has done that failed. A unit that has grown stays as large as it is.
    fn undo(&mut self, taken: AppliedChanges) {
        taken.made.iter().for_each(|name| self.take_back(name));
        let failed = |name: &str, why: &str| {
            base::error!("iscsi", "a change of the LUN {name} could not be taken back: {why}");
        };
        for (lun, number) in taken.changed.into_iter().rev() {
            let name = lun.name();
            let done = number.map_or(Ok(()), |number| self.renumber(&name, number));
            let done = done.and_then(|()| self.set(&name, &lun));
            done.unwrap_or_else(|why| failed(&name, &why));
            if let Some(entry) = self.entries.get_mut(&name) {
                entry.config = lun;
            }
        }
        for (name, before) in taken.renamed.into_iter().rev() {
            let Err(why) = self.rename_one(&name, before.clone()) else { continue };
            failed(&name, &why);
            // The table finds it by the name that it had before, too.
            if let Some(mut entry) = self.entries.remove(&name) {
                entry.config.path = before;
                self.entries.insert(entry.config.name(), entry);
            }
        }
    }

    /// Makes a unit what it is to be. `made` gets those that were not there before.
    fn change(
        &mut self,
        lun: &LunConfig,
        config: &SanConfig,
        made: &mut Vec<String>,
    ) -> Result<(), String> {
        let (name, number) = (lun.name(), self.number(lun, config));
        let is_known = self.entries.contains_key(&name);
        let is_open = self.entries.get(&name).is_some_and(|entry| entry.opened.is_some());
        if !is_known || !is_open {
            let (entry, _) = match self.bring(lun, number, config) {
                // A unit that could not be served before does not prevent other changes.
                Err(why) if is_known => {
                    let known = self.entries.get(&name).and_then(|entry| entry.known.clone());
                    (Entry::offline(lun.clone(), known, why), false)
                }
                other => other?,
            };
            if !is_known {
                if let Some(why) = &entry.problem {
                    return Err(why.clone());
                }
                made.push(name.clone());
            }
            self.entries.insert(name.clone(), entry);
        }
        self.renumber(&name, number)?;
        self.grow(&name, lun)?;
        self.set(&name, lun)?;
        if let Some(entry) = self.entries.get_mut(&name) {
            entry.config = lun.clone();
        }
        Ok(())
    }

    /// Sets what initiators find set, which waits for its storage if the write cache is switched
    /// off.
    fn set(&self, name: &str, lun: &LunConfig) -> Result<(), String> {
        let opened = self.entries.get(name).and_then(|entry| entry.opened.as_ref());
        let settings = disk::settings(lun);
        let Some(opened) = opened.filter(|opened| opened.unit.settings() != settings) else {
            return Ok(());
        };
        let unit = Arc::clone(&opened.unit);
        let done = within(LUN_ANSWER_TIME_MAX * 6, move || unit.set(settings));
        done.ok_or_else(|| STUCK.to_owned())?.map_err(|e| e.to_string())
    }

    fn renumber(&mut self, name: &str, number: u16) -> Result<(), String> {
        let of = |entry: &Entry| entry.known.as_ref().map(|(_, record)| record.number);
        let taken =
            self.entries.iter().find(|(other, entry)| *other != name && of(entry) == Some(number));
        if let Some((other, _)) = taken {
            return Err(format!("{other} has the number {number}"));
        }
        let Some(disk) = &self.disk else { return Ok(()) };
        let known = self.entries.get_mut(name).and_then(|entry| entry.known.as_mut());
        let Some((guid, record)) = known.filter(|(_, record)| record.number != number) else {
            return Ok(());
        };
        let new = Record { number, ..record.clone() };
        disk.table.put(guid, &new).map_err(|e| disk::words(&e))?;
        *record = new;
        Ok(())
    }

    /// Makes a unit larger. A larger unit stays as it is: a size that was reported to initiators is
    /// not reduced.
    fn grow(&self, name: &str, lun: &LunConfig) -> Result<(), String> {
        let Some(opened) = self.entries.get(name).and_then(|entry| entry.opened.as_ref()) else {
            return Ok(());
        };
        let now = opened.medium.size();
        let Some(size) = lun.size.filter(|size| *size > now) else { return Ok(()) };
        if !lun.sparse {
            // Before initiators count on it.
            let medium = Arc::clone(&opened.medium);
            let reserved = within(LUN_ANSWER_TIME_MAX * 12, move || medium.reserve(size));
            let reserved = reserved.ok_or_else(|| STUCK.to_owned())?;
            reserved.map_err(|_| "there is not enough space for it".to_owned())?;
        }
        let unit = Arc::clone(&opened.unit);
        let done = within(LUN_ANSWER_TIME_MAX * 6, move || unit.resize(size));
        done.ok_or_else(|| STUCK.to_owned())?.map_err(|e| e.to_string())
    }

    /// Renames units that stay in use; `done` gets those that are.
    fn rename(
        &mut self,
        renamed: &[(Path, Path)],
        done: &mut Vec<(String, Path)>,
    ) -> Result<(), (Path, String)> {
        for (from, to) in renamed {
            let paths = self.entries.values().map(|entry| &entry.config.path);
            let moved: Vec<Path> = paths.filter(|path| path.is_in(from)).cloned().collect();
            for before in moved {
                let path = before.moved(from, to);
                let renamed = self.rename_one(&name_of(&before), path.clone());
                renamed.map_err(|why| (path.clone(), why))?;
                done.push((name_of(&path), before));
            }
        }
        Ok(())
    }

    /// Gives a unit another node; if that cannot be recorded, it keeps the one that it has.
    fn rename_one(&mut self, name: &str, path: Path) -> Result<(), String> {
        let Some(entry) = self.entries.get_mut(name) else { return Ok(()) };
        let new = name_of(&path);
        if let (Some((guid, record)), Some(disk)) = (&mut entry.known, &self.disk) {
            let renamed = Record { name: new.clone(), before: name.to_owned(), ..record.clone() };
            disk.table.put(guid, &renamed).map_err(|e| disk::words(&e))?;
            *record = renamed;
        }
        if let Some(mut entry) = self.entries.remove(name) {
            entry.config.path = path;
            self.entries.insert(new, entry);
        }
        Ok(())
    }

    /// Takes back a unit that was made for a change that failed.
    fn take_back(&mut self, name: &str) {
        let Some(entry) = self.entries.remove(name) else { return };
        if let (Some((guid, record)), Some(disk)) = (&entry.known, &self.disk)
            && let Err(why) = disk.remove(guid, record)
        {
            base::warning!("iscsi", "the LUN {name} could not be removed: {why}");
        }
        if let Some(opened) = entry.opened {
            opened.end();
        }
    }

    /// A unit is not configured any more. Its file stays until that is final.
    fn destroy(&mut self, name: &str) -> Option<Entry> {
        let entry = self.entries.remove(name)?;
        if let (Some((guid, record)), Some(disk)) = (&entry.known, &self.disk) {
            let record = Record { stage: Stage::Destroyed, ..record.clone() };
            if let Err(e) = disk.table.put(guid, &record) {
                base::warning!("iscsi", "the LUN {name} could not be removed: {}", disk::words(&e));
            }
        }
        Some(entry)
    }

    /// Removes for good what no node is there for. What was copied for a node that is being made
    /// stays.
    fn purge(&mut self, document: &Document) {
        let Some(disk) = &self.disk else { return };
        for (guid, record) in disk.table.records() {
            let is_there = path_of(&record.name).is_some_and(|path| document.exists(&path));
            if record.stage == Stage::Destroyed
                && !is_there
                && let Err(why) = disk.remove(&guid, &record)
            {
                base::warning!("iscsi", "the LUN {} could not be removed: {why}", record.name);
            }
        }
    }

    /// What is found at a target.
    fn mapping(
        &self,
        target: Option<&str>,
        is_open: bool,
    ) -> Mapping<Arc<serve::iscsi::unit::Unit>> {
        let mut mapping = Mapping::default();
        for entry in self.entries.values().filter(|entry| entry.config.online) {
            let (Some(opened), Some((_, record))) = (&entry.opened, &entry.known) else { continue };
            if !self.config.targets_of(&entry.config).contains(&target) {
                continue;
            }
            let admitted = self.config.admitted(&entry.config, is_open);
            // Numbers are different: that was seen to before.
            let _ = mapping.add(Some(record.number), admitted, Arc::clone(&opened.unit));
        }
        mapping
    }

    /// Gives units the names that statistics have of them.
    fn count_as(&self, server: &Server) {
        for (name, entry) in &self.entries {
            if let Some(opened) = &entry.opened {
                let number = server.engine.hub.shares().intern(name);
                opened.unit.statistic.store(number, Ordering::Relaxed);
            }
        }
    }

    /// Names of the targets at which a unit is found.
    pub fn targets_of(&self, lun: &LunConfig) -> Vec<String> {
        let targets = self.config.targets_of(lun).into_iter();
        let known = |name: Option<&str>| self.targets.get(&name.map(str::to_owned));
        targets.filter_map(known).map(|target| target.name.clone()).collect()
    }
}

impl Inner {
    /// Numbers that units have.
    pub fn numbers(&self) -> Vec<u16> {
        let known = self.entries.values().filter_map(|entry| entry.known.as_ref());
        known.map(|(_, record)| record.number).collect()
    }
}

impl LunNodes {
    /// Removes a copy without a node.
    pub fn forget_copy(&self, name: &str) {
        let inner = self.inner();
        let Some(disk) = &inner.disk else { return };
        // A unit of this name may have been made meanwhile.
        for (guid, record) in disk.table.records() {
            if record.name == name
                && record.stage == Stage::Copied
                && let Err(why) = disk.remove(&guid, &record)
            {
                base::warning!("iscsi", "the copy {name} could not be removed: {why}");
            }
        }
    }

    /// Units in the table that no node is there for: name, bytes, bytes of a block. Copies for
    /// which no node came about are removed.
    pub fn left(&self) -> Vec<(String, u64, u32)> {
        let inner = self.inner();
        let Some(disk) = &inner.disk else { return Vec::new() };
        let mut left = Vec::new();
        for (guid, record) in disk.table.records() {
            if inner.entries.contains_key(&record.name) {
                continue;
            }
            if record.stage == Stage::Copied {
                if let Err(why) = disk.remove(&guid, &record) {
                    base::warning!("iscsi", "{} could not be removed: {why}", record.name);
                }
            } else if record.stage == Stage::Used {
                let path = disk.file(&record);
                let asked = within(LUN_ANSWER_TIME_MAX, move || std::fs::metadata(path));
                if let Some(Ok(meta)) = asked {
                    left.push((record.name, meta.len(), record.block));
                }
            }
        }
        left
    }
}

#[cfg(test)]
mod tests;
