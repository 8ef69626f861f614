//! The state of a pool of ZFS.

use super::super::disks::identity;
use super::super::{DAY_MS, HISTORY_MAX, Imported, Keeper, LISTED_MAX, now_ms, now_s};
use super::kernel_name;
use crate::disk::{Identities, Machine};
use crate::pool::Failure;
use crate::quota::Accounting;
use crate::request::{Ended, Identity, Kind, MemberStatus, PoolStatus, ShareUsage};
use crate::state::{Errors, Member};
use crate::zfs::command::{CHANGE_TIME, READ_TIME, Tools};
use crate::zfs::{Health, Leaf, Pool, state, table};

/// Properties that the state of a pool is read from.
const PROPERTIES: &str = "type,used,available,mounted,creation,quota,usedbydataset,usedbysnapshots";

/// The members of a pool, numbered in the order of the output.
fn members(known: &Imported, pool: &Pool) -> Vec<MemberStatus> {
    let machine = Machine::default();
    let all = machine.identities();
    let one = |(number, leaf): (u64, &Leaf)| {
        let device = kernel_name(&leaf.name);
        let is_gone = matches!(leaf.health, Health::Removed | Health::Unavailable);
        let missing = is_gone || device.is_none();
        let errors = Errors {
            read: leaf.read,
            write: leaf.write,
            corruption: leaf.checksum,
            ..Errors::default()
        };
        let mut found = identity_of((&machine, &all), known, number, leaf, device.as_deref());
        if missing {
            found.device.clear();
        }
        MemberStatus {
            member: Member {
                devid: number,
                device: found.device.clone(),
                missing,
                size: device.as_deref().map_or(0, |device| machine.size(device)),
                allocated: 0,
                errors,
            },
            identity: found,
            role: leaf.role,
            group: leaf.groups.join("/"),
            health: Some(leaf.health),
        }
    };
    (1..).zip(&pool.leaves).map(one).collect()
}

/// What identifies a device; of a missing one, what is remembered.
fn identity_of(
    (machine, all): (&Machine, &Identities<'_>),
    known: &Imported,
    number: u64,
    leaf: &Leaf,
    device: Option<&str>,
) -> Identity {
    let vdev = leaf.name.clone();
    if let Some(device) = device {
        // ZFS makes a partition of all of a disk: people know the disk.
        let whole = machine.whole(device).unwrap_or_else(|| device.to_owned());
        return Identity { vdev, ..identity(all, number, &whole) };
    }
    let names = [Some(leaf.name.as_str()), leaf.was.as_deref()];
    let is_it = |one: &&Identity| {
        let was = [one.vdev.as_str(), one.id.as_str(), one.device.as_str()];
        let mut last = names.iter().flatten().map(|name| name.rsplit('/').next().unwrap_or(name));
        last.any(|name| {
            was.iter().any(|one| !one.is_empty() && one.rsplit('/').next() == Some(name))
        })
    };
    let before = known.disks.iter().find(is_it).cloned().unwrap_or_default();
    let id = leaf.was.as_deref().and_then(|was| was.strip_prefix("/dev/disk/by-id/"));
    let id =
        if before.id.is_empty() { id.unwrap_or_default().to_owned() } else { before.id.clone() };
    Identity { devid: number, vdev, id, ..before }
}

impl Keeper {
    /// Remembers what identifies the disks of an imported pool.
    pub(super) fn see_zfs(&self, tools: &Tools, name: &str) -> Result<(), Failure> {
        let Some(pool) = tools.status(name)? else { return Ok(()) };
        let known = self.known(name)?;
        let members = members(&known, &pool);
        self.remember(name, |known| {
            known.disks = members.into_iter().map(|member| member.identity).collect();
        })
    }

    /// Enters the state of a pool.
    pub(in super::super) fn observe_zfs(
        &self,
        name: &str,
        known: &Imported,
        status: &mut PoolStatus,
    ) -> Result<(), Failure> {
        let tools = self.tools()?;
        let Some(pool) = tools.status(name)? else { return Ok(()) };
        status.members = members(known, &pool);
        let title = |at: usize| {
            let identity = status.members.get(at).map(|member| &member.identity);
            identity.map(Identity::title).unwrap_or_default()
        };
        (status.state, status.reason) = state::state(&pool, title);
        status.task = state::task(&pool.scan, now_s());
        if let Some(ended) = self.enter_scan(name, known, &pool)? {
            status.history.push(ended);
        }
        let get = ["get", "-H", "-p", "-r", "-o", "name,property,value", PROPERTIES, name];
        let all = table::properties(&tools.zfs(&get, READ_TIME)?);
        if let Some(root) = all.get(name) {
            status.used = table::bytes(root, "used").unwrap_or(0);
            status.available = table::bytes(root, "available").unwrap_or(0);
            status.capacity = status.used.saturating_add(status.available);
        }
        let sum = |property: &str| all.values().filter_map(|of| table::bytes(of, property)).sum();
        // As with simple accounting of btrfs, a share has what its snapshots keep.
        status.accounting = Accounting::Simple;
        status.used_data = sum("usedbydataset");
        status.used_snapshots = Some(sum("usedbysnapshots"));
        let prefix = format!("{name}/");
        for (dataset, of) in &all {
            let Some(inside) = dataset.strip_prefix(&prefix).filter(|one| !one.contains('/'))
            else {
                continue;
            };
            let kind = of.get("type").map(String::as_str);
            match inside.split_once('@') {
                // Shares behind them are listed all the same.
                Some(_) if status.snapshots.len() >= LISTED_MAX => {}
                Some((share, snapshot)) => {
                    let created = table::bytes(of, "creation").unwrap_or(0);
                    status.snapshots.push((share.to_owned(), snapshot.to_owned(), created));
                }
                None if kind == Some("filesystem") && status.shares.len() < LISTED_MAX => {
                    let used = table::bytes(of, "used").unwrap_or(0);
                    let quota = table::bytes(of, "quota").filter(|quota| *quota > 0);
                    status.usage.push(ShareUsage { share: inside.to_owned(), used, quota });
                    status.shares.push(inside.to_owned());
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Enters the last scan in the history, once it has ended and unless it is there.
    fn enter_scan(
        &self,
        name: &str,
        known: &Imported,
        pool: &Pool,
    ) -> Result<Option<Ended>, Failure> {
        let Some(ended) = state::ended(&pool.scan) else { return Ok(None) };
        let is_it = |one: &Ended| one.kind == ended.kind && one.ended_s == ended.ended_s;
        if known.history.iter().any(is_it) {
            return Ok(None);
        }
        self.remember(name, |known| {
            // Another thread may have entered it meanwhile.
            if !known.history.iter().any(is_it) {
                known.history.push(ended.clone());
                let excess = known.history.len().saturating_sub(HISTORY_MAX);
                known.history.drain(..excess);
            }
        })?;
        Ok(Some(ended))
    }

    /// Enters scans that have ended, and begins scrubs that are due; `changing` is held.
    pub(in super::super) fn follow_zfs(&self, name: &str) -> Result<(), Failure> {
        let Ok(tools) = self.of_zfs(name) else { return Ok(()) };
        let Some(pool) = tools.status(name)? else { return Ok(()) };
        self.enter_scan(name, &self.known(name)?, &pool)?;
        let known = self.known(name)?;
        let Some(days) = known.scrub_every_days else { return Ok(()) };
        let last = known.history.iter().rev().find(|one| one.kind == Kind::Scrub);
        let since_ms = now_ms().saturating_sub(last.map_or(0, |one| one.ended_s * 1_000));
        let (kind, _) = state::state(&pool, |_| String::new());
        let is_idle = state::task(&pool.scan, 0).is_none();
        if is_idle && kind == crate::state::State::Healthy && since_ms >= u64::from(days) * DAY_MS {
            tools.zpool(&["scrub", name], CHANGE_TIME)?;
        }
        Ok(())
    }
}
