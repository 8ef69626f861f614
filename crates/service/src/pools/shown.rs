//! Pools and disks as their nodes show them.

use std::collections::BTreeMap;

use base::node::Value;
use base::units;
use host_pools::disk::Disk;
use host_pools::pool::Offer;
use host_pools::request::{Ended, FileSystem, Kind, MemberStatus, PoolStatus, ShareUsage};
use host_pools::zfs::Health;

/// State properties of a node.
pub(super) type Shown = Vec<(&'static str, Value)>;
/// Bays by the kernel's names of disks.
pub(super) type Bays = BTreeMap<String, String>;

/// The separator of share and name in the name of a snapshot.
const AT: char = '@';

/// Adds a text if there is one.
fn text(shown: &mut Shown, name: &'static str, text: &str) {
    if !text.is_empty() {
        shown.push((name, Value::text(text)));
    }
}

/// A task that has ended, in a line.
fn ended(one: &Ended) -> String {
    let Ended { kind, ended_s, result, .. } = one;
    format!("{} {}: {result}", units::utc(i64::try_from(*ended_s).unwrap_or_default()), kind.name())
}

/// The space of a share, in a line.
fn usage(one: &ShareUsage) -> String {
    let used = units::bytes(one.used as f64);
    let of =
        one.quota.map_or_else(String::new, |quota| format!(" of {}", units::bytes(quota as f64)));
    format!("{}: {used}{of}", one.share)
}

/// A pool.
pub(super) fn pool(pool: &PoolStatus) -> Shown {
    let mut shown = vec![
        ("state", Value::text(pool.state.name())),
        ("capacity", Value::number(pool.capacity)),
        ("used", Value::number(pool.used)),
        ("available", Value::number(pool.available)),
        ("used_data", Value::number(pool.used_data)),
        ("accounting", Value::text(pool.accounting.name())),
        ("without_copies", Value::number(pool.without_copies)),
        ("mount_degraded", Value::Bool(pool.mount_degraded)),
        ("scrub_every_days", Value::number(pool.scrub_every_days.unwrap_or(0))),
        ("directory", Value::text(&pool.directory)),
        ("type", Value::text(pool.file_system.name())),
        ("uuid", Value::text(&pool.uuid)),
        ("shares", Value::texts(&pool.shares)),
        ("usage", Value::texts(pool.usage.iter().map(usage))),
        ("history", Value::texts(pool.history.iter().rev().map(ended))),
    ];
    if let Some(bytes) = pool.used_snapshots {
        shown.push(("used_snapshots", Value::number(bytes)));
    }
    text(&mut shown, "reason", pool.reason.as_deref().unwrap_or_default());
    text(&mut shown, "profile", pool.profile.map_or("", |profile| profile.name()));
    let mut scrubs = pool.history.iter().rev();
    if let Some(scrub) = scrubs.find(|one| one.complete && one.kind == Kind::Scrub) {
        shown.push(("scrubbed", Value::number(scrub.ended_s)));
    }
    if let Some(task) = &pool.task {
        shown.push(("task", Value::text(task.kind.name())));
        shown.push(("phase", Value::text(task.phase.name())));
        shown.push(("progress", Value::number(task.thousandths / 10)));
        if let Some(left) = task.seconds_left {
            shown.push(("time_left", Value::number(left.min(u32::MAX.into()))));
        }
    }
    shown
}

/// A disk of a pool.
pub(super) fn member(of: &MemberStatus, bays: &Bays) -> Shown {
    let MemberStatus { identity, member, role, group, health } = of;
    let state = match health {
        _ if member.missing => "missing",
        None | Some(Health::Online) => "present",
        // None is a state of a present disk.
        Some(Health::Removed | Health::Unavailable | Health::Suspended) => "missing",
        Some(other) => other.name(),
    };
    let mut shown = vec![
        ("state", Value::text(state)),
        ("role", Value::text(role.name())),
        ("size", Value::number(member.size)),
        ("allocated", Value::number(member.allocated)),
        ("seen", Value::number(identity.seen_s)),
        ("write_errors", Value::number(member.errors.write)),
        ("read_errors", Value::number(member.errors.read)),
        ("flush_errors", Value::number(member.errors.flush)),
        ("corruption_errors", Value::number(member.errors.corruption)),
        ("generation_errors", Value::number(member.errors.generation)),
    ];
    text(&mut shown, "group", group);
    text(&mut shown, "serial", &identity.serial);
    text(&mut shown, "model", &identity.model);
    text(&mut shown, "device", &identity.device);
    text(&mut shown, "by_id", &identity.id);
    if !member.missing {
        text(&mut shown, "bay", bays.get(&identity.device).map_or("", String::as_str));
    }
    shown
}

/// A disk of the machine.
pub(super) fn disk(disk: &Disk, bays: &Bays) -> Shown {
    let mut shown = vec![
        ("usable", Value::Bool(disk.reason.is_none())),
        ("size", Value::number(disk.size)),
        ("name", Value::text(name(disk))),
        ("by_id", Value::texts(&disk.ids)),
    ];
    text(&mut shown, "reason", disk.reason.as_deref().unwrap_or_default());
    text(&mut shown, "model", &disk.model);
    text(&mut shown, "serial", &disk.serial);
    text(&mut shown, "content", disk.content.as_deref().unwrap_or_default());
    text(&mut shown, "bay", bays.get(&disk.name).map_or("", String::as_str));
    shown
}

/// The name of a disk that stays, for requests.
fn name(disk: &Disk) -> &str {
    let serial = Some(disk.serial.as_str()).filter(|serial| !serial.is_empty());
    disk.ids.first().map(String::as_str).or(serial).unwrap_or(&disk.name)
}

/// A pool that can be imported, in a line.
pub(super) fn offer(offer: &Offer) -> String {
    let Offer { name, file_system, uuid, devices, present } = offer;
    let kind = if *file_system == FileSystem::Zfs { "ZFS, " } else { "" };
    format!("{name} (UUID {uuid}): {kind}{} of {devices} disks", present.len())
}

/// The name of a snapshot's node.
pub(super) fn snapshot_name((share, snapshot, _): &(String, String, u64)) -> String {
    format!("{share}{AT}{snapshot}")
}

/// The snapshot of a node.
pub(super) fn snapshot<'a>(pool: &'a PoolStatus, name: &str) -> Option<&'a (String, String, u64)> {
    pool.snapshots.iter().find(|one| snapshot_name(one) == name)
}

#[cfg(test)]
mod tests;
