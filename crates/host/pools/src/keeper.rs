//! The pools of a machine: what is imported, mounted and under repair.
//!
//! A pool is mounted at a folder of its name below one folder that the program gives. Which pools
//! are imported, their settings, the identity of their disks and the history of their tasks are in
//! a file of the helper; the settings are in the record of the pool as well.
//!
//! - `disks`: disks that a request names. `look`: the state of a pool. `task`: scrub, replace,
//!   repair, remove. `change`: create, import, export, destroy. `shares`: subvolumes, snapshots.
//!   `rollback`: rollback and clones.
//!   `usage`: quotas, compression, and the space of shares. `watch`: pools and disks that do not
//!   answer. `zfs`: all of it for pools of ZFS.

mod change;
mod disks;
mod look;
mod rollback;
mod shares;
mod task;
mod usage;
mod watch;
mod zfs;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use base::clock::wall_ns;
use base::random::{Random, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::btrfs::{Scrubbed, Volume};
use crate::disk::Machine;
use crate::pool::{self, Failure, Mounting, Offer};
use crate::profile::Profile;
use crate::request::{Ended, FileSystem, Identity, PoolReply, PoolRequest, Status};
use crate::zfs::command::Tools;
pub use shares::{LISTED_MAX, SNAPSHOTS};
use task::Task;

/// Where pools are mounted: a folder that no restart keeps, so that a share of a pool that is not
/// mounted has no directory, instead of an empty one on the system disk.
pub const FOLDER: &str = "/run/plimsoll-pools";
/// The file with what is imported.
pub const FILE: &str = "pools.json";
/// Most pools of a machine.
pub const POOLS_MAX: usize = 64;
/// Ended tasks that are kept of each pool.
const HISTORY_MAX: usize = 50;
/// How often disks that come back, and scrubs that are due, are looked for. Reads names only.
const LOOK: Duration = Duration::from_secs(5);
const NS_PER_MS: u64 = 1_000_000;
const DAY_MS: u64 = 86_400_000;

/// What is remembered of an imported pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Imported {
    uuid: String,
    #[serde(default)]
    file_system: FileSystem,
    profile: Option<Profile>,
    #[serde(default)]
    mount_degraded: bool,
    #[serde(default)]
    scrub_every_days: Option<u32>,
    #[serde(default)]
    disks: Vec<Identity>,
    #[serde(default)]
    history: Vec<Ended>,
}

#[derive(Default)]
struct Inner {
    known: BTreeMap<String, Imported>,
    /// Why a pool is not mounted.
    failed: BTreeMap<String, String>,
    tasks: BTreeMap<String, Arc<Task>>,
    /// What scrubs that have ended have done.
    scrubbed: BTreeMap<String, Scrubbed>,
}

/// The pools of a machine.
pub struct Keeper {
    folder: PathBuf,
    state: PathBuf,
    machine: Machine,
    /// Held by what changes pools: one change at a time. Before `inner`.
    changing: Mutex<()>,
    inner: Mutex<Inner>,
    /// Pools and disks that do not answer.
    watch: watch::Watch,
    /// The commands of ZFS, once they were found.
    tools: Mutex<Option<Tools>>,
    /// Why there are no pools of ZFS, and when that was checked (monotonic).
    lacked_zfs: Mutex<Option<(u64, Option<String>)>>,
    own: Weak<Self>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now_ms() -> u64 {
    wall_ns() / NS_PER_MS
}

fn now_s() -> u64 {
    now_ms() / 1_000
}

fn wrong<T>(sentence: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Wrong(sentence.into()))
}

fn tried<T>(done: io::Result<T>, what: impl Into<String>) -> Result<T, Failure> {
    done.map_err(|source| Failure::System { tried: what.into(), source })
}

impl Keeper {
    /// The pools that are mounted below `folder`, with files of this program in `state`.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged: what it has may not be overwritten.
    pub fn open(folder: &Path, state: &Path) -> io::Result<Arc<Self>> {
        fs::create_dir_all(state)?;
        // Users of shares pass through it. Without the right to make it no pool is mounted, which
        // is refused then.
        let made = fs::DirBuilder::new().mode(0o755).recursive(true).create(folder);
        if made.is_ok() {
            let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o755));
        }
        let known = match fs::read(state.join(FILE)) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(e) => return Err(e),
        };
        Ok(Arc::new_cyclic(|own| Self {
            folder: folder.to_owned(),
            state: state.to_owned(),
            machine: Machine::default(),
            changing: Mutex::default(),
            inner: Mutex::new(Inner { known, ..Inner::default() }),
            watch: watch::Watch::default(),
            tools: Mutex::default(),
            lacked_zfs: Mutex::default(),
            own: own.clone(),
        }))
    }

    /// Where a pool is mounted.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn aside(&self) -> PathBuf {
        self.state.join("aside")
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    fn known(&self, name: &str) -> Result<Imported, Failure> {
        let known = self.inner().known.get(name).cloned();
        known.ok_or_else(|| Failure::Wrong(format!("there is no pool {name}")))
    }

    /// Changes what is remembered of a pool.
    fn remember(&self, name: &str, change: impl FnOnce(&mut Imported)) -> Result<(), Failure> {
        let mut inner = self.inner();
        if let Some(known) = inner.known.get_mut(name) {
            change(known);
        }
        tried(self.store(&inner.known), "write the file of the pools")
    }

    fn store(&self, known: &BTreeMap<String, Imported>) -> io::Result<()> {
        let (path, new) = (self.state.join(FILE), self.state.join(format!("{FILE}.new")));
        let mut options = fs::OpenOptions::new();
        let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec_pretty(known)?)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        fs::File::open(&self.state)?.sync_all()
    }

    /// The mounted pool of this name.
    fn volume(&self, name: &str) -> Result<Volume, Failure> {
        let known = self.known(name)?;
        let volume = Volume::open(&self.at(name)).ok();
        let volume = volume.filter(|one| one.uuid().is_ok_and(|uuid| uuid == known.uuid));
        volume.ok_or_else(|| {
            let why = self.inner().failed.get(name).cloned();
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            Failure::Wrong(format!("the pool {name} is not mounted{why}"))
        })
    }

    fn offers(&self) -> Result<Vec<Offer>, Failure> {
        let disks = tried(self.machine.disks(), "list the disks of this machine")?;
        Ok(pool::offers(&disks))
    }

    /// Mounts what is imported, and then follows disks that come back, repairs, and scrubs that
    /// are due, until the keeper is gone.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn start(self: &Arc<Self>) -> io::Result<()> {
        let own = Arc::downgrade(self);
        let devices = self.devices();
        self.watch()?;
        self.mount_all();
        let follow = move || {
            let mut before = Some(devices);
            loop {
                let Some(keeper) = own.upgrade() else { return };
                let devices = keeper.devices();
                if before.as_ref() != Some(&devices) {
                    keeper.mount_all();
                    before = Some(devices);
                }
                keeper.begin_what_is_due();
                drop(keeper);
                std::thread::sleep(LOOK);
            }
        };
        std::thread::Builder::new().name("pools".to_owned()).spawn(follow).map(drop)
    }

    /// Names and sizes of block devices.
    fn devices(&self) -> Vec<(String, String)> {
        let Ok(entries) = fs::read_dir("/sys/class/block") else { return Vec::new() };
        let one = |entry: fs::DirEntry| {
            let size = fs::read_to_string(entry.path().join("size")).unwrap_or_default();
            (entry.file_name().to_string_lossy().into_owned(), size)
        };
        let mut all: Vec<_> = entries.flatten().map(one).collect();
        all.sort();
        all
    }

    /// Mounts the imported pools that are not mounted.
    pub fn mount_all(&self) {
        let _one = lock(&self.changing);
        let names: Vec<String> = self.inner().known.keys().cloned().collect();
        let missing =
            names.into_iter().filter(|name| self.stuck(name).is_none() && !self.is_mounted(name));
        for name in missing.collect::<Vec<_>>() {
            let Ok(known) = self.known(&name) else { continue };
            let done = self.mount(&name, &known.uuid, known.mount_degraded);
            let mut inner = self.inner();
            match done {
                Ok(()) => drop(inner.failed.remove(&name)),
                Err(failure) => {
                    let why = failure.to_string();
                    if inner.failed.get(&name) != Some(&why) {
                        base::warning!("host", "the pool {name} is not mounted: {why}");
                    }
                    inner.failed.insert(name, why);
                }
            }
        }
    }

    /// Whether a pool is mounted. Disks of ZFS that are back are taken online.
    fn is_mounted(&self, name: &str) -> bool {
        if !self.is_zfs(name) {
            return self.volume(name).is_ok();
        }
        let is_imported = self.is_imported_zfs(name);
        if is_imported {
            self.rejoin_zfs(name);
        }
        is_imported
    }

    /// Mounts a pool; `changing` is held.
    fn mount(&self, name: &str, uuid: &str, degraded: bool) -> Result<(), Failure> {
        if self.is_zfs(name) {
            return self.mount_zfs(name, uuid, degraded);
        }
        let offer = self.offers()?.into_iter().find(|offer| offer.uuid == uuid);
        let lacks = || Failure::Wrong("none of its disks is connected".to_owned());
        let offer = offer.ok_or_else(lacks)?;
        let (at, aside) = (self.at(name), self.aside());
        let nonce = SystemRandom.next_u64();
        let mounting = Mounting { at: &at, aside: &aside, degraded, now_ms: now_ms(), nonce };
        let (volume, record) = pool::mount(&offer, mounting)?;
        self.inner().failed.remove(name);
        self.see(name, &volume)?;
        if let Err(failure) = self.recover(name) {
            base::warning!("host", "the pool {name}: {failure}");
        }
        self.remember(name, |known| {
            known.profile = Some(record.profile);
            known.mount_degraded = record.mount_degraded;
            known.scrub_every_days = record.scrub_every_days;
        })
    }

    /// Does what is requested.
    ///
    /// # Errors
    /// Why not.
    pub fn answer(&self, request: PoolRequest) -> Result<PoolReply, Failure> {
        let stuck = request.imported().and_then(|name| Some((name, self.stuck(name)?)));
        if let Some((name, why)) = stuck {
            return wrong(format!("the pool {name} cannot be changed now: {why}"));
        }
        self.answer_now(request)
    }

    fn answer_now(&self, request: PoolRequest) -> Result<PoolReply, Failure> {
        let done = |sentence: String| Ok(PoolReply::Done(sentence));
        if let Some(answer) = self.answer_zfs(&request) {
            return answer;
        }
        // What is imported may be of ZFS.
        let may_lack = request.reads()
            || matches!(request, PoolRequest::Import { .. }) && self.lacks_zfs().is_none();
        if let (false, Some(why)) = (may_lack, pool::lacks()) {
            return wrong(why);
        }
        match request {
            PoolRequest::Status {} => Ok(PoolReply::Status(self.status())),
            PoolRequest::Disks {} => self.list(),
            PoolRequest::Create { pool, profile, disks, .. } => {
                self.create(&pool, profile, &disks).and_then(done)
            }
            PoolRequest::Import { pool, degraded } => self.import(&pool, degraded).and_then(done),
            PoolRequest::Export { pool } => self.export(&pool).and_then(done),
            PoolRequest::DestroyData { pool, confirmation } => {
                self.destroy_data(&pool, &confirmation).and_then(done)
            }
            PoolRequest::Scrub { pool } => self.scrub(&pool).and_then(done),
            PoolRequest::Stop { pool } => self.stop(&pool).and_then(done),
            PoolRequest::Replace { pool, member, disk } => {
                self.replace(&pool, &member, &disk).and_then(done)
            }
            PoolRequest::Add { pool, disks, role, .. } => {
                self.add(&pool, &disks, role).and_then(done)
            }
            PoolRequest::Offline { pool, .. } | PoolRequest::Online { pool, .. } => {
                self.known(&pool)?;
                wrong("btrfs cannot take a disk offline: replace it, or remove it")
            }
            PoolRequest::Remove { pool, member } => self.remove(&pool, &member).and_then(done),
            PoolRequest::Configure { pool, mount_degraded, scrub_every_days } => {
                self.configure(&pool, mount_degraded, scrub_every_days).and_then(done)
            }
            PoolRequest::MakeShare { pool, share } => {
                self.make_share(&pool, &share).map(|made| PoolReply::Share { made })
            }
            PoolRequest::TakeBackShare { pool, share } => {
                self.take_back_share(&pool, &share).and_then(done)
            }
            PoolRequest::ConfigureShare { pool, share, settings } => {
                self.configure_share(&pool, &share, &settings).and_then(done)
            }
            PoolRequest::AccountSnapshots { pool } => self.account_snapshots(&pool).and_then(done),
            PoolRequest::Snapshots { pool, share } => {
                self.snapshots_of(&pool, &share).map(PoolReply::Snapshots)
            }
            PoolRequest::Snapshot { pool, share, snapshot } => {
                self.snapshot(&pool, &share, &snapshot).and_then(done)
            }
            PoolRequest::DestroySnapshot { pool, share, snapshot } => {
                self.destroy_snapshot(&pool, &share, &snapshot).and_then(done)
            }
            PoolRequest::RenameSnapshot { pool, share, snapshot, name } => {
                self.rename_snapshot(&pool, (&share, &snapshot), &name).and_then(done)
            }
            PoolRequest::Rollback { pool, share, snapshot } => {
                self.rollback(&pool, &share, &snapshot).and_then(done)
            }
            PoolRequest::Protect { pool } => self.protect(&pool).and_then(done),
            PoolRequest::Clone { pool, share, snapshot, name } => {
                self.clone_share(&pool, (&share, &snapshot), &name).and_then(done)
            }
        }
    }

    /// Has scrubs end, which would hold up the end of this process. Other tasks continue in the
    /// kernel, and what is left of them at the next start.
    pub fn leave(&self) {
        let tasks: Vec<Arc<Task>> = self.inner().tasks.values().cloned().collect();
        tasks.iter().filter(|task| task.is_scrubbing()).for_each(|task| task.stop());
    }

    /// The state of all pools.
    pub fn status(&self) -> Status {
        let names: Vec<(String, Imported)> = self.inner().known.clone().into_iter().collect();
        let pools = self.look_at(&names);
        Status { lacks: pool::lacks(), lacks_zfs: self.lacked_zfs(), pools }
    }

    fn list(&self) -> Result<PoolReply, Failure> {
        let disks = tried(self.machine.disks(), "list the disks of this machine")?;
        let mut offers = pool::offers(&disks);
        offers.extend(self.offers_zfs());
        let known = self.inner().known.clone();
        offers.retain(|offer| known.values().all(|one| one.uuid != offer.uuid));
        Ok(PoolReply::Disks { disks, offers })
    }
}
