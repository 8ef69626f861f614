//! The disks of this machine: what is on them, and why one cannot be used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::signature;
use crate::superblock::Superblock;

/// Smallest disk of a pool: btrfs refuses devices below 109 MiB.
pub const DISK_BYTES_MIN: u64 = 128 << 20;
/// Bytes of a sector in sysfs, whatever the device has.
const SECTOR: u64 = 512;
/// Block devices that are read at most.
const DEVICES_MAX: usize = 4_096;
/// The mounts that the calling thread has: a thread may be in a namespace of its own.
const MOUNTS: &str = "proc/thread-self/mountinfo";
/// Where a mounted system has its own files.
const SYSTEM: [&str; 6] = ["/", "/boot", "/boot/efi", "/usr", "/var", "/home"];

/// A block device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Name of the kernel.
    pub name: String,
    /// Names below `/dev/disk/by-id`.
    pub ids: Vec<String>,
    /// Size in bytes.
    pub size: u64,
    /// Model, if the device has one.
    pub model: String,
    /// Serial number, if the device has one.
    pub serial: String,
    /// The device that it is a partition of.
    pub partition_of: Option<String>,
    /// What is on it.
    pub content: Option<String>,
    /// Its superblock of btrfs.
    pub superblock: Option<Superblock>,
    /// Why it cannot be used for a pool.
    pub reason: Option<String>,
}

impl Disk {
    /// Its path.
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.name)
    }

    /// The path that stays the same when disks are connected in another order.
    pub fn lasting_path(&self) -> PathBuf {
        let id = self.ids.first().map(|id| Path::new("/dev/disk/by-id").join(id));
        id.unwrap_or_else(|| self.path())
    }
}

/// Where a machine is read: `/`, or a folder with files of another one.
#[derive(Debug, Clone)]
pub struct Machine {
    root: PathBuf,
}

impl Default for Machine {
    fn default() -> Self {
        Self { root: PathBuf::from("/") }
    }
}

/// Why disks of a request are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{disk}: {sentence}")]
pub struct Refusal {
    /// As the request names it.
    pub disk: String,
    /// Why.
    pub sentence: String,
}

/// What uses a device.
type Uses = BTreeMap<String, String>;

impl Machine {
    /// The machine with `sys`, `proc` and `dev` in this folder.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn text(&self, path: &str) -> String {
        let text = fs::read_to_string(self.root.join(path)).unwrap_or_default();
        text.trim().to_owned()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.root.join(folder)) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.take(DEVICES_MAX).collect();
        names.sort();
        names
    }

    /// All disks and partitions of some size, by name. Reads each that is not in use.
    ///
    /// # Errors
    /// The devices cannot be listed.
    pub fn disks(&self) -> io::Result<Vec<Disk>> {
        fs::read_dir(self.root.join("sys/class/block"))?;
        let (uses, ids) = (self.uses(), self.ids());
        let system = self.system_disks(&uses);
        let mut disks = Vec::new();
        for name in self.names("sys/class/block") {
            let size = self.text(&format!("sys/class/block/{name}/size")).parse::<u64>();
            let size = size.unwrap_or_default().saturating_mul(SECTOR);
            let is_other = ["ram", "zram", "sr", "fd"].iter().any(|kind| {
                name.strip_prefix(kind).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
            });
            if size == 0 || is_other {
                continue;
            }
            let file = |file: &str| self.text(&format!("sys/class/block/{name}/device/{file}"));
            let mut disk = Disk {
                ids: ids.get(&name).cloned().unwrap_or_default(),
                size,
                model: file("model"),
                serial: file("serial"),
                partition_of: self.whole(&name),
                name,
                ..Disk::default()
            };
            self.judge(&mut disk, &uses, &system);
            disks.push(disk);
        }
        Ok(disks)
    }

    /// Enters what is on a disk, and why it cannot be used.
    fn judge(&self, disk: &mut Disk, uses: &Uses, system: &BTreeSet<String>) {
        let name = disk.name.as_str();
        let read = File::open(self.root.join("dev").join(name)).and_then(|file| {
            let superblock = Superblock::read(&file, disk.size)?;
            Ok((signature::identify(&file, disk.size)?, superblock))
        });
        let (content, superblock, failed) = match read {
            Ok((content, superblock)) => (content, superblock, None),
            Err(e) => (None, None, Some(format!("it cannot be read: {e}"))),
        };
        disk.reason = if let Some(used) = uses.get(name) {
            Some(used.clone())
        } else if let Some(holder) = self.names(&format!("sys/class/block/{name}/holders")).first()
        {
            Some(format!("it is a part of {holder}"))
        } else if disk.partition_of.as_ref().is_some_and(|whole| system.contains(whole)) {
            Some("it is a partition of the system disk".to_owned())
        } else if self.has_partitions(name) {
            Some("it has partitions".to_owned())
        } else if self.text(&format!("sys/class/block/{name}/ro")) == "1" {
            Some("it is read-only".to_owned())
        } else if let Some(pool) = superblock.as_ref().and_then(Superblock::pool) {
            Some(format!("it is a member of the pool {pool}"))
        } else if let Some(content) = content {
            Some(format!("there is a signature of {content} on it"))
        } else if failed.is_some() {
            failed
        } else {
            let least = DISK_BYTES_MIN >> 20;
            (disk.size < DISK_BYTES_MIN).then(|| format!("it is smaller than {least} MiB"))
        };
        disk.content = content.map(str::to_owned);
        disk.superblock = superblock;
    }

    /// What identifies devices, with the folder `/dev/disk/by-id` as it is now. Reads no disk.
    pub fn identities(&self) -> Identities<'_> {
        Identities { machine: self, ids: self.ids() }
    }

    /// Size of a device in bytes; 0 if there is none. Reads no disk.
    pub(crate) fn size(&self, name: &str) -> u64 {
        let sectors = self.text(&format!("sys/class/block/{name}/size")).parse::<u64>();
        sectors.unwrap_or(0).saturating_mul(SECTOR)
    }

    fn has_partitions(&self, name: &str) -> bool {
        let folder = format!("sys/class/block/{name}");
        let inside = self.names(&folder);
        inside.iter().any(|one| self.root.join(&folder).join(one).join("partition").exists())
    }

    /// The device that one is a partition of.
    pub(crate) fn whole(&self, name: &str) -> Option<String> {
        let folder = self.root.join("sys/class/block").join(name);
        if !folder.join("partition").exists() {
            return None;
        }
        let real = fs::canonicalize(folder).ok()?;
        Some(real.parent()?.file_name()?.to_string_lossy().into_owned())
    }

    /// Devices that are mounted, swap, or members of a mounted btrfs.
    fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for line in self.text("proc/swaps").lines().skip(1) {
            if let Some(name) =
                line.split_whitespace().next().and_then(|path| self.kernel_name(path))
            {
                uses.insert(name, "it is swap".to_owned());
            }
        }
        for uuid in self.names("sys/fs/btrfs") {
            let label = self.text(&format!("sys/fs/btrfs/{uuid}/label"));
            let pool = label.strip_prefix(crate::superblock::LABEL_PREFIX).unwrap_or(&uuid);
            for name in self.names(&format!("sys/fs/btrfs/{uuid}/devices")) {
                uses.insert(name, format!("it is in use by the mounted pool {pool}"));
            }
        }
        let mounts = self.text(MOUNTS);
        for (source, target) in mounts.lines().filter_map(mount) {
            if let Some(name) = self.kernel_name(source) {
                uses.entry(name).or_insert_with(|| format!("it is mounted at {target}"));
            }
        }
        uses
    }

    /// Disks of which a partition, or all of it, has files of the system.
    fn system_disks(&self, uses: &Uses) -> BTreeSet<String> {
        let mounts = self.text(MOUNTS);
        let system = mounts.lines().filter_map(mount).filter(|(_, target)| SYSTEM.contains(target));
        let mut names: BTreeSet<String> =
            system.filter_map(|(source, _)| self.kernel_name(source)).collect();
        names.extend(
            uses.iter().filter(|(_, why)| *why == "it is swap").map(|(name, _)| name.clone()),
        );
        let wholes = names.iter().filter_map(|name| self.whole(name)).collect::<Vec<_>>();
        names.extend(wholes);
        names
    }

    /// Names below `/dev/disk/by-id` of each device, shortest first: the others have details of
    /// the connection.
    fn ids(&self) -> BTreeMap<String, Vec<String>> {
        let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for id in self.names("dev/disk/by-id") {
            if let Some(name) = self.kernel_name(&format!("/dev/disk/by-id/{id}")) {
                ids.entry(name).or_default().push(id);
            }
        }
        ids.values_mut().for_each(|list| list.sort_by_key(|id| (id.len(), id.clone())));
        ids
    }

    /// The kernel's name of a device from a path below `/dev`, through links.
    fn kernel_name(&self, path: &str) -> Option<String> {
        let below = path.strip_prefix("/dev/")?;
        let is_plain = below.split('/').all(|part| !matches!(part, "" | "." | ".."));
        let real = fs::canonicalize(self.root.join("dev").join(below).as_path()).ok()?;
        let dev = fs::canonicalize(self.root.join("dev")).ok()?;
        let name = real.strip_prefix(dev).ok()?.to_str()?.to_owned();
        (is_plain && !name.contains('/')).then_some(name)
    }

    /// The disks that a request names, each usable and named once.
    ///
    /// # Errors
    /// Why they are refused, one sentence for each.
    pub fn select(&self, names: &[String]) -> Result<Vec<Disk>, Vec<Refusal>> {
        let refuse = |disk: &str, sentence: String| Refusal { disk: disk.to_owned(), sentence };
        let disks = self.disks().map_err(|e| {
            vec![refuse("disks", format!("the disks of this machine cannot be listed: {e}"))]
        })?;
        let (mut selected, mut refused) = (Vec::<Disk>::new(), Vec::new());
        for name in names {
            let kernel = self.kernel_name(name);
            let disk = kernel.and_then(|kernel| disks.iter().find(|disk| disk.name == kernel));
            match disk {
                None => refused.push(refuse(name, "there is no such disk below /dev".to_owned())),
                Some(disk) if selected.iter().any(|other| other.name == disk.name) => {
                    refused.push(refuse(name, format!("it is named twice: {}", disk.name)));
                }
                Some(Disk { reason: Some(reason), .. }) => {
                    refused.push(refuse(name, reason.clone()))
                }
                Some(disk) => {
                    selected.push(disk.clone());
                }
            }
        }
        let overlaps = selected.iter().filter_map(|disk| {
            let whole = disk.partition_of.as_ref()?;
            let is_selected = selected.iter().any(|other| other.name == *whole);
            is_selected.then(|| refuse(&disk.name, format!("it is a part of {whole}")))
        });
        refused.extend(overlaps);
        if refused.is_empty() { Ok(selected) } else { Err(refused) }
    }
}

/// What identifies devices. Links are read once for all of them: a pool may have hundreds.
pub struct Identities<'a> {
    machine: &'a Machine,
    ids: BTreeMap<String, Vec<String>>,
}

impl Identities<'_> {
    /// Serial number, model and name below `/dev/disk/by-id` of a device.
    pub fn of(&self, name: &str) -> (String, String, String) {
        let file = |file: &str| self.machine.text(&format!("sys/class/block/{name}/device/{file}"));
        let id = self.ids.get(name).and_then(|ids| ids.first()).cloned();
        (file("serial"), file("model"), id.unwrap_or_default())
    }
}

/// Source and target of a line of `mountinfo` (proc_pid_mountinfo(5)).
fn mount(line: &str) -> Option<(&str, &str)> {
    let (front, back) = line.split_once(" - ")?;
    Some((back.split(' ').nth(1)?, front.split(' ').nth(4)?))
}

#[cfg(test)]
mod tests;
