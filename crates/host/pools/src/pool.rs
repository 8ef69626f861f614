//! A pool as a whole: create, find, mount, compare and destroy.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use base::clock::{Clock, NS_PER_S, SystemClock};
use linux_raw_sys::btrfs::BTRFS_BLOCK_GROUP_DATA;
use serde::{Deserialize, Serialize};

use crate::btrfs::Volume;
use crate::disk::{Disk, Machine, Refusal};
use crate::profile::Profile;
use crate::record::{Mark, Record, Repair};
use crate::state::Space;
use crate::superblock::{COPIES, LABEL_PREFIX, SIZE, Superblock};
use crate::sys;

/// Most disks of a pool.
pub const DISKS_MAX: usize = 256;
/// Longest name of a pool.
pub const NAME_MAX: usize = 32;
/// How often parts are compared when other programs disturb it.
const COMPARISONS: usize = 20;
/// How long a mount may be busy: a fork and an exec take milliseconds, more under load.
const BUSY_MAX_NS: u64 = 3 * NS_PER_S;
/// Time between two attempts of either.
const PAUSE: Duration = Duration::from_millis(50);
/// Options of each mount: no program and no device file of a pool has effect on this machine.
const FLAGS: u64 = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOATIME;

/// Why a pool is not created, mounted or destroyed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Disks of the request.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Disks(Vec<Refusal>),
    /// The request.
    #[error("{0}")]
    Wrong(String),
    /// Two parts of the pool were written without the other.
    #[error(
        "the disks of this pool were written apart from each other, at {} and {} (milliseconds \
         since 1970): nothing is mounted; remove the disks of the one that is to be lost",
        .first.time_ms, .second.time_ms
    )]
    Apart {
        /// The first mount that the other part does not have.
        first: Mark,
        /// That of the other part.
        second: Mark,
    },
    /// A command of ZFS.
    #[error(transparent)]
    Command(#[from] crate::zfs::command::CommandError),
    /// The operating system.
    #[error("{tried}: {source}")]
    System {
        /// What was tried.
        tried: String,
        /// Why it failed.
        source: io::Error,
    },
}

/// Adds what was tried to a failure of the operating system.
fn tried<T>(done: io::Result<T>, what: impl Into<String>) -> Result<T, Failure> {
    done.map_err(|source| Failure::System { tried: what.into(), source })
}

/// A pool on disks, mounted or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// What it is made with.
    #[serde(default)]
    pub file_system: crate::profile::FileSystem,
    /// UUID of its file system.
    pub uuid: String,
    /// Devices that it has, those that are missing included.
    pub devices: u64,
    /// The devices that are there: number, kernel's name and generation.
    pub present: Vec<(u64, String, u64)>,
}

impl Offer {
    /// Number of devices that are missing.
    pub fn missing(&self) -> usize {
        usize::try_from(self.devices).unwrap_or(usize::MAX).saturating_sub(self.present.len())
    }

    /// Whether a device has missed transactions of the others: it was away, and its data is older.
    pub fn has_stale(&self) -> bool {
        let generations = || self.present.iter().map(|(_, _, generation)| *generation);
        generations().min() != generations().max()
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.present.iter().map(|(_, name, _)| Path::new("/dev").join(name)).collect()
    }
}

/// Pools of Plimsoll on these disks.
pub fn offers(disks: &[Disk]) -> Vec<Offer> {
    let mut offers = BTreeMap::<String, Offer>::new();
    for disk in disks {
        let Some(superblock) = &disk.superblock else { continue };
        let Some(name) = superblock.pool() else { continue };
        let offer = offers.entry(superblock.uuid.clone()).or_insert_with(|| Offer {
            name: name.to_owned(),
            file_system: crate::profile::FileSystem::Btrfs,
            uuid: superblock.uuid.clone(),
            devices: 0,
            present: Vec::new(),
        });
        offer.devices = offer.devices.max(superblock.devices);
        let present = (superblock.devid, disk.name.clone(), superblock.generation);
        offer.present.push(present);
    }
    offers.into_values().collect()
}

/// Checks the name of a pool: it is a folder and a part of a label.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &str) -> Result<(), Failure> {
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if starts && name.len() <= NAME_MAX && name.bytes().all(is_one) {
        return Ok(());
    }
    let rule = format!(
        "the name of a pool starts with a letter and has at most {NAME_MAX} letters, digits, \
         '-', '_' and '.'"
    );
    Err(Failure::Wrong(rule))
}

/// Creates a pool on these disks, named by paths below `/dev`, and mounts it at `at`.
///
/// # Errors
/// Why not. Nothing was written unless `mkfs.btrfs` or what follows it has failed.
pub fn create(
    machine: &Machine,
    name: &str,
    profile: Profile,
    disks: &[String],
    at: &Path,
) -> Result<Volume, Failure> {
    check_name(name)?;
    if !profile.is_of_btrfs() {
        let rule = format!("btrfs has no profile {}: choose kind zfs", profile.name());
        return Err(Failure::Wrong(rule));
    }
    if disks.len() < profile.disks_min() || disks.len() > DISKS_MAX {
        let (least, profile) = (profile.disks_min(), profile.name());
        let rule = format!("a pool of profile {profile} has {least} to {DISKS_MAX} disks");
        return Err(Failure::Wrong(rule));
    }
    let selected = machine.select(disks).map_err(Failure::Disks)?;
    let paths: Vec<PathBuf> = selected.iter().map(Disk::path).collect();
    // All of them before the first write: the kernel refuses one that is in use.
    for path in &paths {
        tried(sys::open_exclusive(path, false), format!("open {} exclusively", path.display()))?;
    }
    let (data, metadata) = profile.for_mkfs(paths.len());
    let mut command = Command::new("mkfs.btrfs");
    command.args(["--quiet", "--data", data, "--metadata", metadata]);
    command.args(["--label", &format!("{LABEL_PREFIX}{name}"), "--"]).args(&paths);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").stdin(Stdio::null());
    let output = tried(command.output(), "run mkfs.btrfs")?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::Wrong(format!("mkfs.btrfs: {why}")));
    }
    let volume = mount_paths(&paths, at, FLAGS, "")?;
    tried(Record::new(name, profile).write(at), "write the record of the pool")?;
    Ok(volume)
}

/// Mounts a file system of these devices.
fn mount_paths(paths: &[PathBuf], at: &Path, flags: u64, more: &str) -> Result<Volume, Failure> {
    tried(fs::create_dir_all(at), format!("make {}", at.display()))?;
    let first = paths.first().ok_or_else(|| Failure::Wrong("no disk is there".to_owned()))?;
    let names = paths.iter().map(|path| format!("device={}", path.display()));
    let options: Vec<String> = names.chain((!more.is_empty()).then(|| more.to_owned())).collect();
    tried(sys::mount(first, at, flags, &options.join(",")), "mount the pool")?;
    tried(Volume::open(at), "open the mounted pool")
}

/// What mounting a pool needs.
#[derive(Debug, Clone, Copy)]
pub struct Mounting<'a> {
    /// Where.
    pub at: &'a Path,
    /// A folder for mounts that read the record of one part, which no other program enters.
    pub aside: &'a Path,
    /// Whether a missing disk is accepted.
    pub degraded: bool,
    /// Now, in milliseconds since 1970.
    pub now_ms: u64,
    /// A random number.
    pub nonce: u64,
}

/// Mounts a pool. A mount without all disks is entered in its record before it returns.
///
/// # Errors
/// Why not; nothing is mounted then.
pub fn mount(offer: &Offer, mounting: Mounting<'_>) -> Result<(Volume, Record), Failure> {
    let Mounting { at, aside, degraded, now_ms, nonce } = mounting;
    let missing = offer.missing();
    if missing > 0 && !degraded {
        let sentence = format!(
            "{missing} of {} disks of the pool {} are missing: connect them, or permit a degraded \
             mount",
            offer.devices, offer.name
        );
        return Err(Failure::Wrong(sentence));
    }
    if missing == 0 {
        compare_undisturbed(offer, aside)?;
    }
    let volume = mount_paths(&offer.paths(), at, FLAGS, if missing > 0 { "degraded" } else { "" })?;
    let record = enter(&volume, offer, (now_ms, nonce));
    if record.is_err() {
        // Writes of a mount that is not entered would be invisible to a comparison.
        let _ = unmount(at);
    }
    Ok((volume, record?))
}

/// Reads the record of a mounted pool, and enters a mount without all disks.
fn enter(volume: &Volume, offer: &Offer, mark: (u64, u64)) -> Result<Record, Failure> {
    let record = tried(Record::read(volume.path()), "read the record of the pool")?;
    let mut record = match record {
        Some(record) => record,
        None => complete(volume, &offer.name)?,
    };
    let members = tried(volume.members(), "list the devices of the pool")?;
    let missing: Vec<u64> = members.iter().filter(|one| one.missing).map(|one| one.devid).collect();
    let before = record.clone();
    if !missing.is_empty() || offer.missing() > 0 {
        record.mark(mark.0, mark.1, &missing);
        record.needs(Repair::Convert);
    }
    if offer.has_stale() {
        record.needs(Repair::Scrub);
    }
    if record != before {
        tried(record.write(volume.path()), "write the record of the pool")?;
    }
    Ok(record)
}

/// Completes a pool of which the creation was interrupted after its file system was made: it is
/// empty, and has no record.
fn complete(volume: &Volume, name: &str) -> Result<Record, Failure> {
    let mut entries = tried(fs::read_dir(volume.path()), "read the top folder of the pool")?;
    let is_begun = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name() == crate::record::TEMPORARY)
    };
    if !entries.all(is_begun) {
        let sentence = "the file system has the label of a pool and files, but no record";
        return Err(Failure::Wrong(sentence.to_owned()));
    }
    let spaces = tried(volume.spaces(), "read the space of the pool")?;
    let is_of = |profile: &&Profile| spaces.iter().all(|space| profile.is_kept_by(space.flags));
    let profiles = [Profile::Copies3, Profile::Mirror, Profile::Stripe];
    let profile = profiles.iter().find(is_of).copied().unwrap_or(Profile::Stripe);
    let record = Record::new(name, profile);
    tried(record.write(volume.path()), "write the record of the pool")?;
    Ok(record)
}

/// Why parts of a pool were not compared.
enum Compared {
    /// Another program has made the kernel know other devices of the pool meanwhile, as
    /// `mkfs.btrfs` does at its end with all that it has found.
    Disturbed(&'static str),
    /// All else.
    Failed(Failure),
}

impl From<Failure> for Compared {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Compares the parts of a pool, again if another program disturbs that.
fn compare_undisturbed(offer: &Offer, aside: &Path) -> Result<(), Failure> {
    let mut last = "";
    for _ in 0..COMPARISONS {
        match compare(offer, aside) {
            Ok(()) => return Ok(()),
            Err(Compared::Failed(failure)) => return Err(failure),
            Err(Compared::Disturbed(why)) => last = why,
        }
        std::thread::sleep(PAUSE);
    }
    Err(Failure::Wrong(last.to_owned()))
}

/// Compares the records of all parts of a pool that can be mounted without the rest: only such
/// parts can have been written apart. Generations do not show it, since both count on.
fn compare(offer: &Offer, aside: &Path) -> Result<(), Compared> {
    let mut records: Vec<Record> = Vec::new();
    let mut unrecorded = false;
    for part in parts(&offer.paths()) {
        // Devices are known to the kernel from earlier mounts; the mount is to have these alone.
        for path in offer.paths() {
            forget(&path);
        }
        let options = "degraded,rescue=nologreplay";
        let volume = match mount_paths(&part, aside, FLAGS | libc::MS_RDONLY, options) {
            Ok(volume) => volume,
            // What cannot be read alone was not written alone.
            Err(Failure::System { source, .. }) if is_unreadable(&source) => continue,
            Err(failure) => return Err(failure.into()),
        };
        let record = read_part(&volume, part.len());
        drop(volume);
        unmount(aside)?;
        // Without a record it was never mounted apart.
        let Some(record) = record? else {
            unrecorded = true;
            continue;
        };
        if let Some((first, second)) = records.iter().find_map(|other| other.apart(&record)) {
            let (first, second) = (first.clone(), second.clone());
            return Err(Failure::Apart { first, second }.into());
        }
        records.push(record);
    }
    let is_compared = !records.is_empty() || unrecorded || parts(&offer.paths()).is_empty();
    if !is_compared && !is_without_copies(offer, aside)? {
        let sentence = "no part of the pool can be read alone: whether its disks were written \
                        apart is unknown, and nothing is mounted";
        return Err(Failure::Wrong(sentence.to_owned()).into());
    }
    offer.paths().iter().for_each(|path| forget(path));
    Ok(())
}

/// Whether all parts together have metadata without copies, as another program makes it: without
/// the rest no part can be mounted for writing then, so that none was written apart.
fn is_without_copies(offer: &Offer, aside: &Path) -> Result<bool, Compared> {
    let options = "rescue=nologreplay";
    let volume = match mount_paths(&offer.paths(), aside, FLAGS | libc::MS_RDONLY, options) {
        Ok(volume) => volume,
        Err(Failure::System { source, .. }) if is_unreadable(&source) => return Ok(false),
        Err(failure) => return Err(failure.into()),
    };
    let spaces = tried(volume.spaces(), "read the space of the pool");
    drop(volume);
    unmount(aside)?;
    let is_data = |space: &Space| space.flags & u64::from(BTRFS_BLOCK_GROUP_DATA) != 0;
    let has_copies = |space: &Space| Profile::Mirror.is_kept_by(space.flags);
    Ok(spaces?.iter().any(|space| !is_data(space) && !has_copies(space)))
}

/// Whether a kernel refuses to mount a part for what is on it. All else may be different at the
/// next attempt, such as a device that another program has made the kernel forget meanwhile, and
/// must not pass for a comparison.
fn is_unreadable(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EUCLEAN))
}

/// The record of a part, which is mounted without the other devices.
fn read_part(volume: &Volume, devices: usize) -> Result<Option<Record>, Compared> {
    let members = tried(volume.members(), "list the devices of a part of the pool")?;
    if members.iter().filter(|member| !member.missing).count() != devices {
        return Err(Compared::Disturbed(
            "another program has connected the disks of the pool while they were compared: try \
             again",
        ));
    }
    Ok(tried(Record::read(volume.path()), "read the record of a part of the pool")?)
}

/// Parts of a pool of which two can be without a device in common, and can be mounted: a profile
/// has at most three copies.
fn parts(paths: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    match paths {
        [_, _] | [_, _, _] => paths.iter().map(|path| vec![path.clone()]).collect(),
        // Three copies without two of four devices.
        [a, rest @ ..] if rest.len() == 3 => {
            let pairs = rest.iter().flat_map(|other| {
                let others = rest.iter().filter(move |one| *one != other).cloned();
                [vec![a.clone(), other.clone()], others.collect()]
            });
            pairs.collect()
        }
        _ => Vec::new(),
    }
}

/// Makes the kernel forget a device that is not mounted. Without effect on one that is.
fn forget(path: &Path) {
    let Ok(control) = File::options().read(true).write(true).open("/dev/btrfs-control") else {
        return;
    };
    let mut arguments = <linux_raw_sys::btrfs::btrfs_ioctl_vol_args as crate::sys::Plain>::zeroed();
    let name = path.as_os_str().as_encoded_bytes();
    for (slot, byte) in arguments.name.iter_mut().zip(name) {
        *slot = *byte as _;
    }
    // It fails for a device that the kernel has not seen, which is what is wanted.
    let _ = sys::call(&control, sys::WRITE, 5, &mut arguments);
}

/// Unmounts a pool that is not in use. A child of this process has all open files for a moment,
/// between its fork and its exec: what is busy is tried again for a while.
///
/// # Errors
/// The operating system's.
pub fn unmount(at: &Path) -> Result<(), Failure> {
    let deadline = SystemClock.monotonic_ns() + BUSY_MAX_NS;
    loop {
        match sys::unmount(at) {
            Err(e)
                if e.raw_os_error() == Some(libc::EBUSY)
                    && SystemClock.monotonic_ns() < deadline =>
            {
                std::thread::sleep(PAUSE);
            }
            done => return tried(done, "unmount the pool"),
        }
    }
}

/// Makes the file system of an unmounted pool unreadable: its superblocks are overwritten.
///
/// # Errors
/// The operating system's; a device is in use.
pub fn destroy(offer: &Offer) -> Result<(), Failure> {
    let paths = offer.paths();
    let open = |path: &PathBuf| Ok((path.clone(), open_member(path, &offer.uuid)?.0));
    let files = paths.iter().map(open).collect::<Result<Vec<_>, Failure>>()?;
    files.iter().try_for_each(|(path, file)| wipe(path, file))
}

/// Wipes a disk of a mounted pool that was away and is back, so that it can take its own place as
/// a new disk.
///
/// # Errors
/// It is in use, or is not this device of the pool: nothing was written then.
pub(crate) fn wipe_returned(path: &Path, uuid: &str, devid: u64) -> Result<(), Failure> {
    let (file, superblock) = open_member(path, uuid)?;
    if superblock.devid != devid {
        return Err(Failure::Wrong(format!("{} is another disk of the pool", path.display())));
    }
    wipe(path, &file)
}

/// Opens a disk of this pool that nothing uses.
fn open_member(path: &Path, uuid: &str) -> Result<(File, Superblock), Failure> {
    forget(path);
    let what = format!("open {} exclusively", path.display());
    let file = tried(sys::open_exclusive(path, true), what)?;
    let superblock = superblock_of(&file)?.filter(|one| one.uuid == uuid);
    let other = || Failure::Wrong(format!("{} is not of this pool", path.display()));
    Ok((file, superblock.ok_or_else(other)?))
}

/// Overwrites all copies of the superblock.
fn wipe(path: &Path, file: &File) -> Result<(), Failure> {
    let size = size_of(file)?;
    for offset in COPIES.into_iter().filter(|offset| offset + SIZE as u64 <= size) {
        let what = format!("overwrite {}", path.display());
        tried(file.write_all_at(&[0; SIZE], offset), what)?;
    }
    tried(file.sync_all(), format!("flush {}", path.display()))
}

fn size_of(mut file: &File) -> Result<u64, Failure> {
    use std::io::Seek;
    tried(file.seek(io::SeekFrom::End(0)), "find the size of a device")
}

fn superblock_of(file: &File) -> Result<Option<Superblock>, Failure> {
    let size = size_of(file)?;
    tried(Superblock::read(file, size), "read a superblock")
}

/// Why pools are impossible on this machine.
pub fn lacks() -> Option<String> {
    let systems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let has = |name: &str| systems.lines().any(|line| line.trim() == name);
    if !has("btrfs") && !Path::new("/sys/module/btrfs").exists() {
        return Some("the kernel has no btrfs: load its module (modprobe btrfs)".to_owned());
    }
    let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    let has_mkfs = folders.iter().any(|folder| Path::new(folder).join("mkfs.btrfs").exists());
    (!has_mkfs).then(|| "mkfs.btrfs is not installed: install btrfs-progs".to_owned())
}

#[cfg(test)]
mod tests;
