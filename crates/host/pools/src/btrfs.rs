//! A mounted btrfs, by the ioctls of `linux/btrfs.h`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use linux_raw_sys::btrfs::{
    BTRFS_BALANCE_ARGS_CONVERT, BTRFS_BALANCE_ARGS_SOFT, BTRFS_BALANCE_ARGS_USAGE,
    BTRFS_BALANCE_CTL_CANCEL, BTRFS_BALANCE_DATA, BTRFS_BALANCE_FORCE, BTRFS_BALANCE_METADATA,
    BTRFS_BALANCE_STATE_RUNNING, BTRFS_BALANCE_SYSTEM, BTRFS_DEVICE_SPEC_BY_ID,
    BTRFS_IOCTL_DEV_REPLACE_CMD_CANCEL, BTRFS_IOCTL_DEV_REPLACE_CMD_START,
    BTRFS_IOCTL_DEV_REPLACE_CMD_STATUS,
    BTRFS_IOCTL_DEV_REPLACE_CONT_READING_FROM_SRCDEV_MODE_AVOID,
    BTRFS_IOCTL_DEV_REPLACE_STATE_STARTED, btrfs_ioctl_balance_args, btrfs_ioctl_dev_info_args,
    btrfs_ioctl_dev_replace_args, btrfs_ioctl_fs_info_args, btrfs_ioctl_get_dev_stats,
    btrfs_ioctl_scrub_args, btrfs_ioctl_vol_args, btrfs_ioctl_vol_args_v2,
};
use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::state::{Errors, Member, Space};
use crate::subvolume::put;
use crate::superblock::uuid;
use crate::sys::{self, Plain, READ, WRITE};

/// The reserve of metadata, which takes no chunks of its own (`BTRFS_SPACE_INFO_GLOBAL_RSV`).
const GLOBAL_RESERVE: u64 = 1 << 49;
/// Kinds and profiles of chunks that a file system has at the same time: three kinds, each of two
/// profiles during a conversion.
const SPACES_MAX: usize = 64;
/// Highest number of a device that is looked for: each replacement takes a further one.
const DEVID_MAX: u64 = 4_096;
const BOTH: u32 = READ | WRITE;

/// A mounted btrfs.
#[derive(Debug)]
pub struct Volume {
    folder: File,
    path: PathBuf,
}

/// What a scrub of a device has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrubbed {
    /// Bytes of data and metadata that were read.
    pub bytes: u64,
    /// Blocks that could not be read.
    pub read_errors: u64,
    /// Blocks with a wrong checksum, header or generation.
    pub wrong: u64,
    /// Blocks that were rewritten from another copy.
    pub corrected: u64,
    /// Blocks without a right copy.
    pub uncorrectable: u64,
}

impl Scrubbed {
    /// With what was done on another device.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            read_errors: self.read_errors.saturating_add(other.read_errors),
            wrong: self.wrong.saturating_add(other.wrong),
            corrected: self.corrected.saturating_add(other.corrected),
            uncorrectable: self.uncorrectable.saturating_add(other.uncorrectable),
        }
    }

    fn of(arguments: &btrfs_ioctl_scrub_args) -> Self {
        let progress = &arguments.progress;
        Self {
            bytes: progress.data_bytes_scrubbed.saturating_add(progress.tree_bytes_scrubbed),
            read_errors: progress.read_errors,
            wrong: progress.csum_errors.saturating_add(progress.verify_errors),
            corrected: progress.corrected_errors,
            uncorrectable: progress.uncorrectable_errors,
        }
    }
}

impl Volume {
    /// The one that is mounted here.
    ///
    /// # Errors
    /// The operating system's; another kind of file system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let folder = File::open(path)?;
        let volume = Self { folder, path: path.to_owned() };
        volume.info()?;
        Ok(volume)
    }

    fn info(&self) -> io::Result<btrfs_ioctl_fs_info_args> {
        let mut info = btrfs_ioctl_fs_info_args::zeroed();
        sys::call(&self.folder, READ, 31, &mut info)?;
        Ok(info)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its top folder.
    pub(crate) fn folder(&self) -> &File {
        &self.folder
    }

    /// UUID of the file system.
    ///
    /// # Errors
    /// The kernel's.
    pub fn uuid(&self) -> io::Result<String> {
        Ok(uuid(&self.info()?.fsid))
    }

    /// Its devices, those that are missing included. Reads no disk.
    ///
    /// # Errors
    /// The kernel's.
    pub fn members(&self) -> io::Result<Vec<Member>> {
        let info = self.info()?;
        let mut members = Vec::new();
        // Number 0 is the target of a replacement that runs.
        for devid in 0..=info.max_id.min(DEVID_MAX) {
            let mut device = btrfs_ioctl_dev_info_args::zeroed();
            device.devid = devid;
            match sys::call(&self.folder, BOTH, 30, &mut device) {
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => continue,
                done => done?,
            }
            let name = device.path.split(|byte| *byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            // The kernel names a missing device by nothing or in words.
            let missing = !name.starts_with('/') || !Path::new(&name).exists();
            members.push(Member {
                devid,
                missing,
                device: if missing { String::new() } else { name },
                size: device.total_bytes,
                allocated: device.bytes_used,
                errors: self.errors(devid)?,
            });
        }
        Ok(members)
    }

    fn errors(&self, devid: u64) -> io::Result<Errors> {
        let mut stats = btrfs_ioctl_get_dev_stats::zeroed();
        (stats.devid, stats.nr_items) = (devid, stats.values.len() as u64);
        match sys::call(&self.folder, BOTH, 52, &mut stats) {
            // Of a missing device: none were read.
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) => return Ok(Errors::default()),
            done => done?,
        }
        let [write, read, flush, corruption, generation] = stats.values;
        Ok(Errors { write, read, flush, corruption, generation })
    }

    /// Space by kind and profile of chunks, without the global reserve. Reads no disk.
    ///
    /// # Errors
    /// The kernel's.
    pub fn spaces(&self) -> io::Result<Vec<Space>> {
        let mut words = [0; 2 + 3 * SPACES_MAX];
        sys::spaces(&self.folder, &mut words)?;
        let [_, count, entries @ ..] = &words;
        let (entries, _) = entries.as_chunks::<3>();
        let all = entries.iter().take(usize::try_from(*count).unwrap_or(usize::MAX));
        let all =
            all.map(|[flags, total, used]| Space { flags: *flags, total: *total, used: *used });
        Ok(all.filter(|space| space.flags & GLOBAL_RESERVE == 0).collect())
    }

    /// Scrubs a device, and returns at its end.
    ///
    /// # Errors
    /// The kernel's: `ECANCELED` after [`Self::cancel_scrub`], with what was done until then lost.
    pub fn scrub(&self, devid: u64) -> io::Result<Scrubbed> {
        let mut arguments = btrfs_ioctl_scrub_args::zeroed();
        (arguments.devid, arguments.end) = (devid, u64::MAX);
        sys::call(&self.folder, BOTH, 27, &mut arguments)?;
        Ok(Scrubbed::of(&arguments))
    }

    /// What a running scrub of a device has done; none if no scrub runs.
    ///
    /// # Errors
    /// The kernel's.
    pub fn scrub_progress(&self, devid: u64) -> io::Result<Option<Scrubbed>> {
        let mut arguments = btrfs_ioctl_scrub_args::zeroed();
        arguments.devid = devid;
        match sys::call(&self.folder, BOTH, 29, &mut arguments) {
            Ok(()) => Ok(Some(Scrubbed::of(&arguments))),
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOTCONN | libc::ENODEV)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Stops the scrubs of all devices.
    ///
    /// # Errors
    /// The kernel's: `ENOTCONN` if none runs.
    pub fn cancel_scrub(&self) -> io::Result<()> {
        sys::call_plain(&self.folder, 28, 0)
    }

    /// Replaces a device by another one, and returns at the end. The target must be empty.
    ///
    /// # Errors
    /// The kernel's.
    pub fn replace(&self, devid: u64, target: &Path) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt;
        let mut arguments = btrfs_ioctl_dev_replace_args::zeroed();
        arguments.cmd = BTRFS_IOCTL_DEV_REPLACE_CMD_START.into();
        let name = target.as_os_str().as_bytes();
        let mut target = [0; 1025];
        let slots = target.get_mut(..name.len()).filter(|_| name.len() < 1024);
        slots.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(name);
        let start = linux_raw_sys::btrfs::btrfs_ioctl_dev_replace_start_params {
            srcdevid: devid,
            cont_reading_from_srcdev_mode:
                BTRFS_IOCTL_DEV_REPLACE_CONT_READING_FROM_SRCDEV_MODE_AVOID.into(),
            srcdev_name: [0; 1025],
            tgtdev_name: target,
        };
        arguments.__bindgen_anon_1.start = start;
        sys::call(&self.folder, BOTH, 53, &mut arguments)?;
        match arguments.result {
            0 => Ok(()),
            2 => Err(io::Error::other("another replacement runs")),
            3 => Err(io::Error::other("a scrub runs: stop it first")),
            other => Err(io::Error::other(format!("the kernel answers {other}"))),
        }
    }

    /// How much of a replacement is done, in thousandths; none if no replacement runs.
    ///
    /// # Errors
    /// The kernel's.
    pub fn replace_progress(&self) -> io::Result<Option<u64>> {
        let mut arguments = btrfs_ioctl_dev_replace_args::zeroed();
        arguments.cmd = BTRFS_IOCTL_DEV_REPLACE_CMD_STATUS.into();
        sys::call(&self.folder, BOTH, 53, &mut arguments)?;
        // SAFETY: the kernel has filled the status, and all bit patterns are valid.
        let status = unsafe { arguments.__bindgen_anon_1.status };
        let runs = status.replace_state == u64::from(BTRFS_IOCTL_DEV_REPLACE_STATE_STARTED);
        Ok(runs.then_some(status.progress_1000))
    }

    /// Stops a replacement: the pool is as before it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn cancel_replace(&self) -> io::Result<()> {
        let mut arguments = btrfs_ioctl_dev_replace_args::zeroed();
        arguments.cmd = BTRFS_IOCTL_DEV_REPLACE_CMD_CANCEL.into();
        sys::call(&self.folder, BOTH, 53, &mut arguments)
    }

    /// Converts chunks that have fewer copies than the profile, and returns at the end. Nothing
    /// for a profile without copies.
    ///
    /// # Errors
    /// The kernel's.
    pub fn convert(&self, profile: Profile) -> io::Result<()> {
        let Some(target) = profile.target() else { return Ok(()) };
        let mut arguments = btrfs_ioctl_balance_args::zeroed();
        // Forced: chunks of the system are converted only then.
        arguments.flags = u64::from(
            BTRFS_BALANCE_DATA
                | BTRFS_BALANCE_SYSTEM
                | BTRFS_BALANCE_METADATA
                | BTRFS_BALANCE_FORCE,
        );
        for kind in [&mut arguments.data, &mut arguments.meta, &mut arguments.sys] {
            kind.flags = u64::from(BTRFS_BALANCE_ARGS_CONVERT | BTRFS_BALANCE_ARGS_SOFT);
            kind.target = target;
        }
        match sys::call(&self.folder, BOTH, 32, &mut arguments) {
            // One is left that was paused when its process was killed.
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {
                self.cancel_convert()?;
                sys::call(&self.folder, BOTH, 32, &mut arguments)
            }
            done => done,
        }
    }

    /// Moves what is in chunks of data that are used to less than `percent` to others, and frees
    /// them; with 0 those that are empty. Returns at the end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn compact(&self, percent: u64) -> io::Result<()> {
        let mut arguments = btrfs_ioctl_balance_args::zeroed();
        arguments.flags = u64::from(BTRFS_BALANCE_DATA);
        arguments.data.flags = u64::from(BTRFS_BALANCE_ARGS_USAGE);
        arguments.data.__bindgen_anon_1.usage = percent;
        sys::call(&self.folder, BOTH, 32, &mut arguments)
    }

    /// Chunks of a running conversion: done, and expected altogether; none if none runs.
    ///
    /// # Errors
    /// The kernel's.
    pub fn convert_progress(&self) -> io::Result<Option<(u64, u64)>> {
        let mut arguments = btrfs_ioctl_balance_args::zeroed();
        match sys::call(&self.folder, READ, 34, &mut arguments) {
            Ok(()) if arguments.state & u64::from(BTRFS_BALANCE_STATE_RUNNING) == 0 => Ok(None),
            Ok(()) => Ok(Some((arguments.stat.completed, arguments.stat.expected))),
            Err(e) if e.raw_os_error() == Some(libc::ENOTCONN) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Stops a conversion.
    ///
    /// # Errors
    /// The kernel's: `ENOTCONN` if none runs.
    pub fn cancel_convert(&self) -> io::Result<()> {
        sys::call_plain(&self.folder, 33, BTRFS_BALANCE_CTL_CANCEL.into())
    }

    /// Gives a file system all of a device, after a replacement by a larger one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn grow(&self, devid: u64) -> io::Result<()> {
        self.named(3, &format!("{devid}:max"))
    }

    /// Adds a device, which must be empty.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add(&self, device: &Path) -> io::Result<()> {
        self.named(10, device.to_str().ok_or(io::ErrorKind::InvalidInput)?)
    }

    fn named(&self, number: u32, name: &str) -> io::Result<()> {
        let mut arguments = btrfs_ioctl_vol_args::zeroed();
        put(&mut arguments.name, name.as_bytes())?;
        sys::call(&self.folder, WRITE, number, &mut arguments)
    }

    /// Moves the data of a device to the others and removes it, and returns at the end.
    ///
    /// # Errors
    /// The kernel's: `ECANCELED` after [`Self::cancel_remove`].
    pub fn remove(&self, devid: u64) -> io::Result<()> {
        let mut arguments = btrfs_ioctl_vol_args_v2::zeroed();
        arguments.flags = BTRFS_DEVICE_SPEC_BY_ID.into();
        arguments.__bindgen_anon_2.devid = devid;
        sys::call(&self.folder, WRITE, 58, &mut arguments)
    }

    /// Stops the removal of a device: the pool is as before it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn cancel_remove(&self) -> io::Result<()> {
        let mut arguments = btrfs_ioctl_vol_args_v2::zeroed();
        // SAFETY: the union was filled with zeros, and the name is bytes.
        put(unsafe { &mut arguments.__bindgen_anon_2.name }, b"cancel")?;
        sys::call(&self.folder, WRITE, 58, &mut arguments)
    }

    /// Writes back all of it.
    ///
    /// # Errors
    /// The operating system's.
    pub fn sync(&self) -> io::Result<()> {
        sys::sync_file_system(&self.folder)
    }
}
