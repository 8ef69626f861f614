//! File systems with limits, for the errors that a server reports at a limit: one of little memory
//! and one with a quota.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::disk::{Disk, tool};
use crate::is_root;
use crate::scratch::Scratch;

/// A file system in memory, mounted; dropping it unmounts.
pub struct Memory {
    path: PathBuf,
    _scratch: Scratch,
}

impl Memory {
    /// Mounts one with these options (`size=…,nr_inodes=…`).
    ///
    /// # Errors
    /// Why that cannot be done here, for a SKIP line.
    pub fn new(options: &str) -> Result<Self, String> {
        if !is_root() {
            return Err("only root may mount".to_owned());
        }
        let scratch = Scratch::new("memory");
        let path = scratch.folder("mount", None);
        tool(Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path))?;
        Ok(Self { path, _scratch: scratch })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it read-only.
    ///
    /// # Errors
    /// The error of mount(8): EBUSY while a file is open for writing.
    pub fn make_read_only(&self) -> Result<(), String> {
        tool(Command::new("mount").args(["-o", "remount,ro"]).arg(&self.path)).map(|_| ())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Err(why) = tool(Command::new("umount").arg(&self.path)) {
            println!("it stays mounted: {why}");
        }
    }
}

/// A folder with a limit on its bytes: a subvolume of btrfs, since its quotas work without the
/// tools of the kernel's other quotas.
pub struct Limited {
    path: PathBuf,
    _disk: Disk,
}

impl Limited {
    /// Makes one.
    ///
    /// # Errors
    /// Why that cannot be done here, for a SKIP line.
    pub fn new(bytes: u64) -> Result<Self, String> {
        let disk = Disk::new("btrfs")?;
        let path = disk.path().join("limited");
        let btrfs = |args: &[&str], path: &Path| tool(Command::new("btrfs").args(args).arg(path));
        btrfs(&["quota", "enable"], disk.path())?;
        btrfs(&["subvolume", "create"], &path)?;
        btrfs(&["qgroup", "limit", &bytes.to_string()], &path)?;
        Ok(Self { path, _disk: disk })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
