//! Create, import, export and destroy pools; their settings.

use std::fs;
use std::path::PathBuf;

use super::{Imported, Keeper, POOLS_MAX, lock, tried, wrong};
use crate::btrfs::Volume;
use crate::disk::{Disk, Refusal};
use crate::pool::{self, Failure, Offer};
use crate::profile::Profile;
use crate::record::Record;
use crate::request::SCRUB_DAYS_MAX;
use crate::zfs::Role;

impl Keeper {
    pub(super) fn enter(&self, name: &str, known: Imported) -> Result<(), Failure> {
        let mut inner = self.inner();
        inner.known.insert(name.to_owned(), known);
        tried(self.store(&inner.known), "write the file of the pools")
    }

    pub(super) fn forget(&self, name: &str) -> Result<(), Failure> {
        let mut inner = self.inner();
        inner.known.remove(name);
        inner.failed.remove(name);
        self.unwatch(name);
        tried(self.store(&inner.known), "write the file of the pools")
    }

    /// Refuses a name that is taken, by an imported pool or by one on the disks.
    pub(super) fn is_free(&self, name: &str) -> Result<(), Failure> {
        pool::check_name(name)?;
        let inner = self.inner();
        if inner.known.contains_key(name) {
            return wrong(format!("there is a pool {name}"));
        }
        if inner.known.len() >= POOLS_MAX {
            return wrong(format!("a machine has at most {POOLS_MAX} pools"));
        }
        Ok(())
    }

    pub(super) fn create(
        &self,
        name: &str,
        profile: Profile,
        disks: &[String],
    ) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        self.is_free(name)?;
        if self.offers()?.iter().any(|offer| offer.name == name) {
            return wrong(format!("a pool {name} is on disks of this machine: import it"));
        }
        let paths = self.paths(disks)?;
        let at = self.mount_point(name)?;
        let done = pool::create(&self.machine, name, profile, &paths, &at);
        let volume = match done {
            Ok(volume) => volume,
            Err(failure) => {
                // Only an empty folder: what is mounted there stays.
                let _ = fs::remove_dir(&at);
                return Err(failure);
            }
        };
        super::usage::begin(&volume);
        let uuid = tried(volume.uuid(), "read the UUID of the pool")?;
        let known = Imported { uuid, profile: Some(profile), ..Imported::default() };
        self.enter(name, known)?;
        self.see(name, &volume)?;
        Ok(format!("The pool {name} is created."))
    }

    /// The folder that a pool is mounted at; nothing may be mounted there, and it may hold nothing.
    pub(super) fn mount_point(&self, name: &str) -> Result<PathBuf, Failure> {
        let at = self.at(name);
        if let Ok(mut entries) = fs::read_dir(&at)
            && entries.next().is_some()
        {
            return wrong(format!("{} is not empty", at.display()));
        }
        Ok(at)
    }

    /// A pool that another keeper has mounted, or had when it ended, is not taken from it: two of
    /// them would change one pool.
    fn is_unmounted(&self, offer: &Offer) -> Result<(), Failure> {
        let at = self.at(&offer.name);
        let mounted = Volume::open(&at).and_then(|volume| volume.uuid());
        if mounted.is_ok_and(|uuid| uuid == offer.uuid) {
            return wrong(format!(
                "the pool {name} is mounted at {at} by a server with another state directory: \
                 export it there, or stop that server and run umount {at}",
                name = offer.name,
                at = at.display()
            ));
        }
        Ok(())
    }

    pub(super) fn import(&self, pool: &str, degraded: bool) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let offers = self.offers()?;
        let uuids: Vec<String> =
            self.inner().known.values().map(|known| known.uuid.clone()).collect();
        let is_named = |offer: &&Offer| offer.name == pool || offer.uuid == pool;
        let mut named = offers.iter().filter(|offer| !uuids.contains(&offer.uuid)).filter(is_named);
        let offer = match (named.next(), named.next()) {
            (Some(offer), None) => offer,
            (Some(_), Some(_)) => {
                return wrong(format!("several pools are named {pool}: use the UUID of one"));
            }
            _ if self.inner().known.contains_key(pool) => return self.mount_known(pool, degraded),
            _ => return self.import_zfs(pool, degraded),
        };
        let name = offer.name.as_str();
        self.is_free(name)?;
        self.is_unmounted(offer)?;
        self.mount_point(name)?;
        let known = Imported { uuid: offer.uuid.clone(), ..Imported::default() };
        self.enter(name, known)?;
        if let Err(failure) = self.mount(name, &offer.uuid, degraded) {
            self.forget(name)?;
            let _ = fs::remove_dir(self.at(name));
            return Err(failure);
        }
        Ok(format!("The pool {name} is imported."))
    }

    /// Mounts a pool that is imported and not mounted, as after a disk has been lost.
    fn mount_known(&self, name: &str, degraded: bool) -> Result<String, Failure> {
        if self.is_mounted(name) {
            return wrong(format!("the pool {name} is imported"));
        }
        let uuid = self.known(name)?.uuid;
        self.mount(name, &uuid, degraded)?;
        Ok(format!("The pool {name} is mounted."))
    }

    /// Unmounts a pool; `changing` is held. None of it must be in use.
    fn close(&self, name: &str) -> Result<(), Failure> {
        if self.inner().tasks.contains_key(name) {
            return wrong(format!("a task of the pool {name} runs: wait for it, or stop it"));
        }
        let at = self.at(name);
        if self.volume(name).is_ok() {
            match pool::unmount(&at) {
                Err(Failure::System { source, .. })
                    if source.raw_os_error() == Some(libc::EBUSY) =>
                {
                    return wrong(format!("files of the pool {name} are in use"));
                }
                done => done?,
            }
        }
        let _ = fs::remove_dir(at);
        Ok(())
    }

    pub(super) fn export(&self, name: &str) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        self.known(name)?;
        self.close(name)?;
        self.forget(name)?;
        Ok(format!("The pool {name} is exported; its data stays on its disks."))
    }

    pub(super) fn destroy_data(&self, name: &str, typed: &str) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let known = self.known(name)?;
        if typed != name {
            return wrong("the name of the pool must be typed to destroy its data");
        }
        self.close(name)?;
        let offer = self.offers()?.into_iter().find(|offer| offer.uuid == known.uuid);
        let Some(offer) = offer else {
            return wrong("none of its disks is connected");
        };
        let done = pool::destroy(&offer);
        if done.is_err() {
            // It is mounted again by the next look.
            self.mount(name, &known.uuid, known.mount_degraded)?;
        }
        done?;
        self.forget(name)?;
        let missing = match offer.missing() {
            0 => String::new(),
            n => format!(" {n} disks were missing and still have their data."),
        };
        Ok(format!("The pool {name} and its data are destroyed.{missing}"))
    }

    pub(super) fn configure(
        &self,
        name: &str,
        mount_degraded: Option<bool>,
        scrub_every_days: Option<u32>,
    ) -> Result<String, Failure> {
        if scrub_every_days.is_some_and(|days| days > SCRUB_DAYS_MAX) {
            return wrong(format!("at most {SCRUB_DAYS_MAX} days between two scrubs"));
        }
        let _one = lock(&self.changing);
        let change = |degraded: &mut bool, days: &mut Option<u32>| {
            *degraded = mount_degraded.unwrap_or(*degraded);
            *days = scrub_every_days.map_or(*days, |days| (days > 0).then_some(days));
        };
        // Of a pool that is not mounted only what this machine does at a start can be set.
        if let Ok(volume) = self.volume(name) {
            self.update(&volume, |record| {
                change(&mut record.mount_degraded, &mut record.scrub_every_days);
            })?;
        } else if scrub_every_days.is_some() {
            self.volume(name)?;
        }
        self.known(name)?;
        self.remember(name, |known| {
            change(&mut known.mount_degraded, &mut known.scrub_every_days);
        })?;
        Ok(format!("The settings of the pool {name} are changed."))
    }

    /// Changes the record of a mounted pool.
    pub(super) fn update(
        &self,
        volume: &crate::btrfs::Volume,
        change: impl FnOnce(&mut Record),
    ) -> Result<Record, Failure> {
        let record = tried(Record::read(volume.path()), "read the record of the pool")?;
        let mut record =
            record.ok_or_else(|| Failure::Wrong("the pool has no record".to_owned()))?;
        change(&mut record);
        tried(record.write(volume.path()), "write the record of the pool")?;
        Ok(record)
    }

    pub(super) fn add(&self, name: &str, disks: &[String], role: Role) -> Result<String, Failure> {
        let (Role::Data, [disk]) = (role, disks) else {
            return wrong("a pool of btrfs gets one disk at a time, for data");
        };
        let _one = lock(&self.changing);
        let volume = self.volume(name)?;
        let members = tried(volume.members(), "list the disks of the pool")?;
        if members.iter().any(|member| member.missing) {
            // It would take the place of none, and the pool would stay degraded.
            return wrong("a disk of the pool is missing: replace it instead");
        }
        if members.len() >= pool::DISKS_MAX {
            return wrong(format!("a pool has at most {} disks", pool::DISKS_MAX));
        }
        let disk = self.exclusive(disk)?;
        tried(volume.add(&disk.path()), "add the disk")?;
        self.see(name, &volume)?;
        Ok(format!("The disk {} is added to the pool {name}.", disk.name))
    }

    /// Wipes a disk that is to replace itself: it was away while the pool was written, and its data
    /// is older than that of the pool. Nothing for all other disks.
    pub(super) fn wipe_returned(
        &self,
        name: &str,
        (uuid, devid): (&str, u64),
        disk: &str,
    ) -> Result<(), Failure> {
        let paths = self.paths(std::slice::from_ref(&disk.to_owned()))?;
        let disks = tried(self.machine.disks(), "list the disks of this machine")?;
        let path = paths.first().and_then(|path| fs::canonicalize(path).ok());
        let Some(found) = disks.iter().find(|one| Some(one.path()) == path) else {
            return Ok(());
        };
        // Only for this reason, which comes after all uses of a disk.
        let is_returned = found.reason == Some(format!("it is a member of the pool {name}"))
            && found.superblock.as_ref().is_some_and(|one| one.uuid == uuid && one.devid == devid);
        if is_returned { pool::wipe_returned(&found.path(), uuid, devid) } else { Ok(()) }
    }

    /// A usable disk that no other program has open for itself.
    pub(super) fn exclusive(&self, name: &str) -> Result<Disk, Failure> {
        let disk = self.usable(name)?;
        crate::sys::open_exclusive(&disk.path(), false).map_err(|e| {
            let sentence = format!("it cannot be opened exclusively: {e}");
            Failure::Disks(vec![Refusal { disk: name.to_owned(), sentence }])
        })?;
        Ok(disk)
    }
}
