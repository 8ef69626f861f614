//! Create, import, export and destroy pools of ZFS; their settings.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::super::{Imported, Keeper, lock, tried, wrong};
use super::{MOUNT_DEGRADED, PROFILE, SCRUB_EVERY_DAYS, kernel_name};
use crate::pool::{self, DISKS_MAX, Failure, Offer};
use crate::profile::Profile;
use crate::request::{FileSystem, SCRUB_DAYS_MAX};
use crate::zfs::command::{CHANGE_TIME, Dialect, READ_TIME, Tools};
use crate::zfs::layout::{self, Options};
use crate::zfs::{Health, Leaf, Pool, Role, label, table};

/// How often a disk of a destroyed pool is tried that is still in use.
const ATTEMPTS: usize = 40;
/// Time between two of them.
const PAUSE: Duration = Duration::from_millis(50);

/// Whether a device in a list of pools to import cannot be used; caches and spares have no state.
fn is_bad(leaf: &Leaf) -> bool {
    matches!(leaf.role, Role::Data | Role::Log | Role::Special) && leaf.health != Health::Online
}

/// A pool that can be imported.
fn offer(pool: &Pool) -> Offer {
    let of_data = || pool.leaves.iter().filter(|leaf| leaf.role != Role::Spare);
    let present = of_data()
        .filter(|leaf| !is_bad(leaf))
        .map(|leaf| (0, kernel_name(&leaf.name).unwrap_or_else(|| leaf.name.clone()), 0));
    Offer {
        name: pool.name.clone(),
        file_system: FileSystem::Zfs,
        uuid: pool.guid.map(|guid| guid.to_string()).unwrap_or_default(),
        devices: of_data().count() as u64,
        present: present.collect(),
    }
}

impl Keeper {
    /// Pools of ZFS that are not imported.
    pub(in super::super) fn offers_zfs(&self) -> Vec<Offer> {
        if !crate::zfs::command::are_installed() {
            return Vec::new();
        }
        let pools = self.tools().and_then(|tools| Ok(tools.importable()?)).unwrap_or_default();
        pools.iter().map(offer).collect()
    }

    /// Refuses a name that a pool of this machine has.
    fn is_free_for_zfs(&self, tools: &Tools, name: &str) -> Result<(), Failure> {
        self.is_free(name)?;
        if self.imported_zfs(tools)?.iter().any(|(one, _)| one == name) {
            return wrong(format!("ZFS has a pool {name} that Plimsoll did not import"));
        }
        let of_btrfs = self.offers()?.into_iter().any(|offer| offer.name == name);
        if of_btrfs || tools.importable()?.iter().any(|pool| pool.name == name) {
            return wrong(format!("a pool {name} is on disks of this machine: import it"));
        }
        Ok(())
    }

    /// Creates a pool.
    pub(super) fn create_zfs(
        &self,
        name: &str,
        profile: Profile,
        disks: &[String],
        options: &Options,
    ) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        pool::check_name(name)?;
        options.check().map_err(Failure::Wrong)?;
        layout::group(profile, disks.len()).map_err(Failure::Wrong)?;
        let all = options.with_data(disks);
        if all.len() > DISKS_MAX {
            return wrong(format!("a pool has at most {DISKS_MAX} disks"));
        }
        let tools = self.tools()?;
        self.is_free_for_zfs(&tools, name)?;
        let mut paths = self.all_exclusive(&all)?.into_iter();
        let mut next = |count: usize| paths.by_ref().take(count).collect::<Vec<String>>();
        let data = layout::data(profile, &next(disks.len())).map_err(Failure::Wrong)?;
        let log = layout::others(Role::Log, options.log_mirror, &next(options.log.len()));
        let cache = layout::others(Role::Cache, false, &next(options.cache.len()));
        let spares = layout::others(Role::Spare, false, &next(options.spares.len()));
        let at = self.mount_point(name)?.display().to_string();
        let mut arguments = vec!["create".to_owned(), "-m".to_owned(), at];
        arguments.extend(root_properties(&tools, profile, options.record_size));
        arguments.push(name.to_owned());
        arguments.extend([data, log, cache, spares].concat());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        tools.zpool(&arguments, CHANGE_TIME)?;
        let entered = self.enter_created(&tools, name, profile);
        if entered.is_err() {
            // It can be imported then.
            let _ = tools.zpool(&["export", name], CHANGE_TIME);
        }
        entered?;
        Ok(format!("The pool {name} is created."))
    }

    fn enter_created(&self, tools: &Tools, name: &str, profile: Profile) -> Result<(), Failure> {
        let all = self.imported_zfs(tools)?;
        let guid = all.into_iter().find(|(one, _)| one == name).map(|(_, guid)| guid);
        let lacks = || Failure::Wrong(format!("ZFS does not list the new pool {name}"));
        let known = Imported {
            uuid: guid.ok_or_else(lacks)?,
            file_system: FileSystem::Zfs,
            profile: Some(profile),
            ..Imported::default()
        };
        self.enter(name, known)?;
        self.see_zfs(tools, name)
    }

    /// Imports a pool that is not imported; `changing` is held.
    pub(in super::super) fn import_zfs(
        &self,
        named: &str,
        degraded: bool,
    ) -> Result<String, Failure> {
        let is_named = |pool: &&Pool| {
            pool.name == named || pool.guid.is_some_and(|guid| guid.to_string() == named)
        };
        let none = || Failure::Wrong(format!("there is no pool {named} to import"));
        if !crate::zfs::command::are_installed() {
            return Err(none());
        }
        // With the programs, and without the kernel module or daemon of ZFS.
        let asked = self.tools().and_then(|tools| Ok(tools.importable()?));
        let pools = asked.map_err(|why| {
            let sentence = format!("there is no pool {named} of btrfs; of ZFS: {why}");
            Failure::Wrong(sentence)
        })?;
        let mut found = pools.iter().filter(is_named);
        let (pool, further) = (found.next().ok_or_else(none)?, found.next());
        if further.is_some() {
            return wrong(format!("several pools are named {named}: use the number of one"));
        }
        let name = pool.name.as_str();
        pool::check_name(name)?;
        self.is_free(name)?;
        self.mount_point(name)?;
        let guid = pool.guid.ok_or_else(none)?;
        let known = Imported {
            uuid: guid.to_string(),
            file_system: FileSystem::Zfs,
            ..Imported::default()
        };
        self.enter(name, known)?;
        if let Err(failure) = self.mount_zfs(name, &guid.to_string(), degraded) {
            self.forget(name)?;
            return Err(failure);
        }
        Ok(format!("The pool {name} is imported."))
    }

    /// Has ZFS import a pool, and mounts its datasets; `changing` is held.
    pub(in super::super) fn mount_zfs(
        &self,
        name: &str,
        uuid: &str,
        degraded: bool,
    ) -> Result<(), Failure> {
        let tools = self.tools()?;
        let pools = tools.importable()?;
        let pool = pools.iter().find(|pool| pool.guid.is_some_and(|one| one.to_string() == uuid));
        let lacks = || Failure::Wrong("none of its disks is connected".to_owned());
        let pool = pool.ok_or_else(lacks)?;
        let bad = pool.leaves.iter().filter(|leaf| is_bad(leaf)).count();
        if bad > 0 && !degraded {
            let sentence = format!(
                "{bad} of {} disks of the pool {name} are missing: connect them, or permit a \
                 degraded mount",
                pool.leaves.len()
            );
            return wrong(sentence);
        }
        let at = self.at(name);
        if tools.dialect == Dialect::Fuse {
            self.import_fuse(&tools, name, uuid, &at)?;
        } else {
            // Nothing is mounted where the pool would have it: that may be anywhere.
            let mut arguments = vec!["import", "-N", "-o", "cachefile=none"];
            // A pool without its log loses what was acknowledged last; it was permitted.
            arguments.extend((bad > 0).then_some("-m"));
            arguments.push(uuid);
            tools.zpool(&arguments, CHANGE_TIME)?;
            let mounted = mount_datasets(&tools, name, &at);
            if mounted.is_err() {
                let _ = tools.zpool(&["export", name], CHANGE_TIME);
            }
            mounted?;
        }
        self.inner().failed.remove(name);
        self.take_settings(&tools, name)?;
        self.see_zfs(&tools, name)
    }

    /// zfs-fuse cannot import without mounting: it first does so below a folder aside.
    fn import_fuse(&self, tools: &Tools, name: &str, uuid: &str, at: &Path) -> Result<(), Failure> {
        let aside = self.aside().join("zfs");
        let root = aside.display().to_string();
        tried(std::fs::create_dir_all(&aside), "make the folder aside")?;
        tools.zpool(&["import", "-R", &root, uuid], CHANGE_TIME)?;
        let checked = check_mount_points(tools, name, &root, at);
        let exported = tools.zpool(&["export", name], CHANGE_TIME);
        checked?;
        exported?;
        tools.zpool(&["import", "-o", "cachefile=none", uuid], CHANGE_TIME)?;
        Ok(())
    }

    /// Takes over the settings that are in a pool.
    fn take_settings(&self, tools: &Tools, name: &str) -> Result<(), Failure> {
        let wanted = format!("{PROFILE},{MOUNT_DEGRADED},{SCRUB_EVERY_DAYS}");
        let get = ["get", "-H", "-p", "-o", "name,property,value", &wanted, name];
        let output = tools.zfs(&get, READ_TIME)?;
        let of = table::properties(&output).remove(name).unwrap_or_default();
        let get = |property: &str| of.get(property).map(String::as_str).unwrap_or_default();
        let entered = Profile::of(get(PROFILE));
        let profile = match entered {
            Some(profile) => profile,
            None => profile_of(&tools.status(name)?.unwrap_or_default()),
        };
        let days = get(SCRUB_EVERY_DAYS).parse().ok();
        self.remember(name, |known| {
            known.profile = Some(profile);
            known.mount_degraded = get(MOUNT_DEGRADED) == "on";
            known.scrub_every_days = days.filter(|days| (1..=SCRUB_DAYS_MAX).contains(days));
        })
    }

    pub(super) fn export_zfs(&self, name: &str) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        self.known(name)?;
        if self.is_imported_zfs(name) {
            self.tools()?.zpool(&["export", name], CHANGE_TIME)?;
        }
        let _ = std::fs::remove_dir(self.at(name));
        self.forget(name)?;
        Ok(format!("The pool {name} is exported; its data stays on its disks."))
    }

    pub(super) fn destroy_data_zfs(&self, name: &str, typed: &str) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let tools = self.of_zfs(name)?;
        if typed != name {
            return wrong("the name of the pool must be typed to destroy its data");
        }
        let pool = tools.status(name)?.unwrap_or_default();
        let lacks = || Failure::Wrong(format!("the number of the pool {name} is not known"));
        let guid: u64 = self.known(name)?.uuid.parse().map_err(|_| lacks())?;
        tools.zpool(&["destroy", name], CHANGE_TIME)?;
        self.forget(name)?;
        let _ = std::fs::remove_dir(self.at(name));
        // The labels of a destroyed pool are complete: it could be imported.
        let mut left = Vec::new();
        for leaf in &pool.leaves {
            let Some(kernel) = kernel_name(&leaf.name) else {
                left.push(leaf.name.clone());
                continue;
            };
            if let Err(e) = wipe(&kernel, guid, leaf) {
                left.push(format!("{kernel} ({e})"));
            }
        }
        let left = match left.as_slice() {
            [] => String::new(),
            left => format!(" These still have their labels: {}.", left.join(", ")),
        };
        Ok(format!("The pool {name} and its data are destroyed.{left}"))
    }

    pub(super) fn configure_zfs(
        &self,
        name: &str,
        mount_degraded: Option<bool>,
        scrub_every_days: Option<u32>,
    ) -> Result<String, Failure> {
        if scrub_every_days.is_some_and(|days| days > SCRUB_DAYS_MAX) {
            return wrong(format!("at most {SCRUB_DAYS_MAX} days between two scrubs"));
        }
        let _one = lock(&self.changing);
        // Of a pool that is not imported only what this machine does at a start can be set.
        if scrub_every_days.is_some() || self.is_imported_zfs(name) {
            let tools = self.of_zfs(name)?;
            let degraded = mount_degraded
                .map(|on| format!("{MOUNT_DEGRADED}={}", if on { "on" } else { "off" }));
            let days = scrub_every_days.map(|days| format!("{SCRUB_EVERY_DAYS}={days}"));
            for setting in degraded.iter().chain(&days) {
                tools.zfs(&["set", setting, name], CHANGE_TIME)?;
            }
        }
        self.remember(name, |known| {
            known.mount_degraded = mount_degraded.unwrap_or(known.mount_degraded);
            if let Some(days) = scrub_every_days {
                known.scrub_every_days = (days > 0).then_some(days);
            }
        })?;
        Ok(format!("The settings of the pool {name} are changed."))
    }

    /// Paths of disks that a request names, each usable, named once, and opened by nothing else.
    pub(super) fn all_exclusive(&self, names: &[String]) -> Result<Vec<String>, Failure> {
        let paths = self.paths(names)?;
        let selected = self.machine.select(&paths).map_err(Failure::Disks)?;
        for disk in &selected {
            let path = disk.path();
            let what = format!("open {} exclusively", path.display());
            tried(crate::sys::open_exclusive(&path, false), what)?;
        }
        Ok(selected.iter().map(|disk| disk.lasting_path().display().to_string()).collect())
    }
}

/// Properties of a new pool and of all its datasets.
fn root_properties(tools: &Tools, profile: Profile, record_size: Option<u64>) -> Vec<String> {
    let mut all = vec![format!("{PROFILE}={}", profile.name()), "atime=off".to_owned()];
    // No program and no device file of a pool has effect on this machine.
    all.extend(["devices=off", "setuid=off"].map(str::to_owned));
    all.extend(record_size.map(|bytes| format!("recordsize={bytes}")));
    if tools.dialect != Dialect::Fuse {
        all.extend(["acltype=posixacl", "xattr=sa", "compression=lz4"].map(str::to_owned));
    }
    let of_pool = ["-o".to_owned(), "cachefile=none".to_owned()];
    of_pool.into_iter().chain(all.into_iter().flat_map(|one| ["-O".to_owned(), one])).collect()
}

/// Properties of the datasets of a pool.
fn datasets(
    tools: &Tools,
    name: &str,
) -> Result<BTreeMap<String, BTreeMap<String, String>>, Failure> {
    let get = ["get", "-H", "-p", "-r", "-o", "name,property,value", "type,mountpoint,mounted"];
    let output = tools.zfs(&[&get[..], &[name]].concat(), READ_TIME)?;
    Ok(table::properties(&output))
}

/// Has a pool that is imported below another root have its mount point, and all its datasets below
/// it.
fn check_mount_points(tools: &Tools, name: &str, root: &str, at: &Path) -> Result<(), Failure> {
    let inside = format!("{root}{}", at.display());
    let is_at = |all: &BTreeMap<String, BTreeMap<String, String>>| {
        all.get(name).and_then(|of| of.get("mountpoint")).is_some_and(|path| *path == inside)
    };
    let mut all = datasets(tools, name)?;
    if !is_at(&all) {
        let mount_point = format!("mountpoint={}", at.display());
        // It is set also where its old place is still busy, which fails.
        let set = tools.zfs(&["set", &mount_point, name], CHANGE_TIME);
        all = datasets(tools, name)?;
        if !is_at(&all) {
            set?;
        }
    }
    let foreign = all.iter().find(|(_, of)| {
        let path = of.get("mountpoint").map(String::as_str).unwrap_or_default();
        path.starts_with('/') && !Path::new(path).starts_with(&inside)
    });
    foreign.map_or(Ok(()), |(dataset, _)| {
        wrong(format!("the dataset {dataset} has a mount point of its own: unset it"))
    })
}

/// Mounts the root dataset of a pool at its place, and those below it that are mounted inside.
fn mount_datasets(tools: &Tools, name: &str, at: &Path) -> Result<(), Failure> {
    tools.zfs(&["set", &format!("mountpoint={}", at.display()), name], CHANGE_TIME)?;
    for (dataset, of) in datasets(tools, name)? {
        let path = of.get("mountpoint").map(Path::new);
        let is_mounted = of.get("mounted").is_none_or(|mounted| mounted == "yes");
        let is_file_system = of.get("type").is_some_and(|kind| kind == "filesystem");
        // Elsewhere it could hide files of the system.
        if is_file_system && !is_mounted && path.is_some_and(|path| path.starts_with(at)) {
            tools.zfs(&["mount", &dataset], CHANGE_TIME)?;
        }
    }
    Ok(())
}

/// The profile of a pool that another program has created.
fn profile_of(pool: &Pool) -> Profile {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for leaf in pool.leaves.iter().filter(|leaf| leaf.role == Role::Data) {
        let name = leaf.groups.first().cloned().unwrap_or_default();
        match groups.iter_mut().find(|(one, _)| *one == name && !name.is_empty()) {
            Some((_, count)) => *count += 1,
            None => groups.push((name, 1)),
        }
    }
    layout::profile_of(&groups)
}

/// Overwrites the labels of a disk that the pool of this number has just left.
fn wipe(kernel: &str, guid: u64, leaf: &Leaf) -> std::io::Result<()> {
    let path = Path::new("/dev").join(kernel);
    // ZFS has had it open until now, or its name may be another disk's.
    let may_lack = matches!(leaf.role, Role::Cache | Role::Spare) && leaf.health.is_good();
    for _ in 0..ATTEMPTS {
        match label::wipe(&path, guid, may_lack) {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(PAUSE),
            done => return done.map(drop),
        }
    }
    label::wipe(&path, guid, may_lack).map(drop)
}
