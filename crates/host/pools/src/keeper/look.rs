//! The state of a pool. Reads no disk: all is in the memory of the kernel.

use std::fs;

use super::{Imported, Keeper, disks};
use crate::btrfs::Volume;
use crate::disk::Identities;
use crate::pool::Failure;
use crate::profile::Profile;
use crate::quota::Accounting;
use crate::record::Record;
use crate::request::{FileSystem, Identity, MemberStatus, PoolStatus};
use crate::state::{Member, Space, State, state};

/// Chunks of data, and of metadata (`BTRFS_BLOCK_GROUP_*`).
const DATA: u64 = 1;

/// Copies of a chunk of these flags.
pub(super) fn copies(flags: u64) -> u64 {
    use linux_raw_sys::btrfs as b;
    let has = |bits: u32| flags & u64::from(bits) != 0;
    match () {
        () if has(b::BTRFS_BLOCK_GROUP_RAID1C4) => 4,
        () if has(b::BTRFS_BLOCK_GROUP_RAID1C3) => 3,
        () if has(b::BTRFS_BLOCK_GROUP_RAID1 | b::BTRFS_BLOCK_GROUP_RAID10) => 2,
        () if has(b::BTRFS_BLOCK_GROUP_DUP) => 2,
        () => 1,
    }
}

/// Bytes of chunks with fewer copies than the profile.
pub(super) fn without_copies(profile: Profile, spaces: &[Space]) -> u64 {
    spaces.iter().filter(|space| !profile.is_kept_by(space.flags)).map(|space| space.total).sum()
}

impl Keeper {
    /// Remembers what identifies the disks of a mounted pool.
    pub(super) fn see(&self, name: &str, volume: &Volume) -> Result<(), Failure> {
        let members = super::tried(volume.members(), "list the disks of the pool")?;
        let all = self.machine.identities();
        self.remember(name, |known| {
            let seen = members.iter().map(|member| identity(&all, known, member)).collect();
            known.disks = seen;
        })
    }

    /// What is known of a pool without a look at it.
    pub(super) fn basic(&self, name: &str, known: &Imported) -> PoolStatus {
        let at = self.at(name);
        let reason = self.inner().failed.get(name).cloned();
        PoolStatus {
            name: name.to_owned(),
            file_system: known.file_system,
            uuid: known.uuid.clone(),
            profile: known.profile,
            directory: at.display().to_string(),
            state: State::Failed,
            reason: Some(reason.unwrap_or_else(|| "it is not mounted yet".to_owned())),
            members: absent(known),
            capacity: 0,
            used: 0,
            available: 0,
            used_data: 0,
            used_snapshots: None,
            accounting: Accounting::Off,
            usage: Vec::new(),
            scrubbed: self.inner().scrubbed.get(name).copied().unwrap_or_default(),
            without_copies: 0,
            mount_degraded: known.mount_degraded,
            scrub_every_days: known.scrub_every_days,
            task: None,
            history: known.history.clone(),
            shares: Vec::new(),
            snapshots: Vec::new(),
        }
    }

    /// The state of a pool.
    pub(super) fn look(&self, name: &str, known: &Imported) -> PoolStatus {
        let mut status = self.basic(name, known);
        if known.file_system == FileSystem::Zfs {
            if let Err(e) = self.observe_zfs(name, known, &mut status) {
                status.reason = Some(format!("its state cannot be read: {e}"));
            }
            return status;
        }
        let Ok(volume) = self.volume(name) else { return status };
        let task = {
            let inner = self.inner();
            // A task that has ended since `known` was read is in the history.
            if let Some(now) = inner.known.get(name) {
                status.history.clone_from(&now.history);
            }
            inner.tasks.get(name).cloned()
        };
        if let Err(e) = self.observe(&volume, known, task.is_some(), &mut status) {
            status.reason = Some(format!("its state cannot be read: {e}"));
        }
        if let Some(task) = &task {
            status.scrubbed = status.scrubbed.and(task.scrubbed(&volume));
        }
        status.task = task.map(|task| task.status(&volume));
        (status.shares, status.snapshots) = self.shares_of(name);
        super::usage::account(&volume, &mut status);
        status
    }

    fn observe(
        &self,
        volume: &Volume,
        known: &Imported,
        runs: bool,
        status: &mut PoolStatus,
    ) -> std::io::Result<()> {
        let record = Record::read(volume.path())?;
        let profile = record.as_ref().map(|record| record.profile).or(known.profile);
        let profile = profile.unwrap_or(Profile::Stripe);
        let (members, spaces) = (volume.members()?, volume.spaces()?);
        let repair = record.and_then(|record| record.repair);
        let (now, reason) = state(profile, &members, &spaces, repair, runs && repair.is_some());
        let all = self.machine.identities();
        let named = reason.map(|reason| match members.iter().find(|one| one.missing) {
            Some(member) => {
                let title = identity(&all, known, member).title();
                format!("the disk {title} is missing: connect it, or replace it")
            }
            None => reason,
        });
        (status.profile, status.state, status.reason) = (Some(profile), now, named);
        status.without_copies = without_copies(profile, &spaces);
        let sizes: Vec<u64> = members.iter().map(|member| member.size).collect();
        status.capacity = profile.capacity(&sizes);
        let data = |space: &&Space| space.flags & DATA != 0;
        status.used = spaces.iter().map(|space| space.used).sum();
        status.used_data = spaces.iter().filter(data).map(|space| space.used).sum();
        let free_in_chunks: u64 =
            spaces.iter().filter(data).map(|space| space.total.saturating_sub(space.used)).sum();
        let unallocated: Vec<u64> = members
            .iter()
            .map(
                |member| {
                    if member.missing { 0 } else { member.size.saturating_sub(member.allocated) }
                },
            )
            .collect();
        status.available = free_in_chunks.saturating_add(profile.capacity(&unallocated));
        let one = |member: Member| {
            let identity = identity(&all, known, &member);
            MemberStatus { identity, member, ..MemberStatus::default() }
        };
        status.members = members.into_iter().map(one).collect();
        Ok(())
    }
}

/// What identifies a member; of a missing one, what is remembered.
fn identity(all: &Identities<'_>, known: &Imported, member: &Member) -> Identity {
    let before = known.disks.iter().find(|one| one.devid == member.devid);
    if member.missing {
        let mut identity = before.cloned().unwrap_or_default();
        identity.devid = member.devid;
        return identity;
    }
    let mut now = disks::identity(all, member.devid, &member.device);
    // What a look has not found, as the folder by-id while disks are connected, stays.
    if let Some(before) = before.filter(|one| one.device == now.device) {
        for (now, before) in [(&mut now.serial, &before.serial), (&mut now.id, &before.id)] {
            if now.is_empty() {
                now.clone_from(before);
            }
        }
    }
    now
}

/// Members of a pool that is not mounted, as they were seen last.
fn absent(known: &Imported) -> Vec<MemberStatus> {
    let one = |identity: &Identity| {
        let missing = !fs::exists(format!("/sys/class/block/{}", identity.device)).unwrap_or(false);
        let member = Member { devid: identity.devid, missing, ..Member::default() };
        MemberStatus { identity: identity.clone(), member, ..MemberStatus::default() }
    };
    known.disks.iter().map(one).collect()
}
