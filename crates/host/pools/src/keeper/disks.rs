//! Disks that a request names: by their names below `/dev/disk/by-id`, or by serial number. Names
//! of the kernel change from boot to boot, and name only disks that have nothing else.

use std::path::Path;

use super::{Keeper, tried};
use crate::disk::{Disk, Identities, Refusal};
use crate::pool::Failure;
use crate::request::{Identity, MemberStatus};
use crate::zfs::Role;

const BY_ID: &str = "/dev/disk/by-id/";

/// The path of a disk by a name of a request.
fn path(disks: &[Disk], name: &str) -> Result<String, String> {
    let id = name.strip_prefix(BY_ID).unwrap_or(name);
    if disks.iter().any(|disk| disk.ids.iter().any(|one| one == id)) {
        return Ok(format!("{BY_ID}{id}"));
    }
    let mut by_serial = disks.iter().filter(|disk| !name.is_empty() && disk.serial == name);
    match (by_serial.next(), by_serial.next()) {
        (Some(disk), None) => return Ok(disk.path().display().to_string()),
        (Some(_), Some(_)) => {
            return Err("several disks have this serial number: use a name of \
                        /dev/disk/by-id"
                .to_owned());
        }
        _ => {}
    }
    let below = name.strip_prefix("/dev/").unwrap_or(name);
    if let Some(disk) = disks.iter().find(|disk| disk.name == below) {
        let lasting = disk.ids.first().or(Some(&disk.serial)).filter(|one| !one.is_empty());
        return match lasting {
            Some(lasting) => Err(format!("names of the kernel may change: use {lasting}")),
            None => Ok(disk.path().display().to_string()),
        };
    }
    // Another link to a device is resolved where disks are selected.
    let is_path = name.starts_with("/dev/");
    is_path.then(|| name.to_owned()).ok_or_else(|| "there is no such disk".to_owned())
}

impl Keeper {
    /// Paths of the disks that a request names.
    pub(super) fn paths(&self, names: &[String]) -> Result<Vec<String>, Failure> {
        let disks = tried(self.machine.disks(), "list the disks of this machine")?;
        let (mut paths, mut refused) = (Vec::new(), Vec::new());
        for name in names {
            match path(&disks, name) {
                Ok(path) => paths.push(path),
                Err(sentence) => refused.push(Refusal { disk: name.clone(), sentence }),
            }
        }
        if refused.is_empty() { Ok(paths) } else { Err(Failure::Disks(refused)) }
    }

    /// The one usable disk that a request names.
    pub(super) fn usable(&self, name: &str) -> Result<Disk, Failure> {
        let paths = self.paths(std::slice::from_ref(&name.to_owned()))?;
        let mut selected = self.machine.select(&paths).map_err(Failure::Disks)?;
        selected.pop().ok_or_else(|| Failure::Wrong("no disk is named".to_owned()))
    }
}

/// What identifies a device of the kernel.
pub(super) fn identity(all: &Identities<'_>, devid: u64, device: &str) -> Identity {
    let name = device.strip_prefix("/dev/").unwrap_or(device);
    let (serial, model, id) = all.of(name);
    Identity {
        devid,
        device: name.to_owned(),
        serial,
        model,
        id,
        seen_s: super::now_s(),
        vdev: String::new(),
    }
}

/// The member that a request names.
pub(super) fn member<'a>(
    members: &'a [MemberStatus],
    name: &str,
) -> Result<&'a MemberStatus, Failure> {
    let id = name.strip_prefix(BY_ID).unwrap_or(name);
    let device = Path::new(name).strip_prefix("/dev").ok().and_then(Path::to_str).unwrap_or(name);
    let is_it = |one: &&MemberStatus| {
        let Identity { devid, device: known, serial, id: known_id, .. } = &one.identity;
        let is_device = !one.member.missing && known == device;
        (!serial.is_empty() && serial == name)
            || (!known_id.is_empty() && known_id == id)
            || is_device
            || devid.to_string() == name
    };
    let mut found = members.iter().filter(is_it);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        // A spare in use is a spare, and the disk in the place of another.
        (Some(one), Some(spare)) if spare.role == Role::Spare && one.role != Role::Spare => Ok(one),
        (Some(_), Some(_)) => super::wrong(format!("{name} names several disks of the pool")),
        _ => super::wrong(format!("{name} is not a disk of the pool")),
    }
}

#[cfg(test)]
mod tests;
