//! A disk for one test: a file system on a loop device, of which the counters count nothing else.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scratch::Scratch;
use crate::{patience, process};

/// Size of the file system, unless another one is given.
const SIZE: u64 = 512 << 20;

/// A loop device with a file system, mounted. It goes with this value.
pub struct LoopDisk {
    device: String,
    place: PathBuf,
    _scratch: Scratch,
}

/// Runs a tool of the system; what it printed.
///
/// # Errors
/// It fails: with what it printed.
pub fn tool(command: &mut Command) -> Result<String, String> {
    let output = process::run_with_stdin(command, patience(60));
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{command:?}: {why}")),
    }
}

impl LoopDisk {
    /// Makes and mounts one with ext4.
    ///
    /// # Errors
    /// Why that cannot be done here, for a SKIP line.
    pub fn new() -> Result<Self, String> {
        Self::with("ext4")
    }

    /// The same with a file system of this kind.
    ///
    /// # Errors
    /// Why that cannot be done here, for a SKIP line.
    pub fn with(kind: &str) -> Result<Self, String> {
        Self::of_size(kind, SIZE)
    }

    /// The same with a file system of this many bytes, which take space as they are written.
    ///
    /// # Errors
    /// Why that cannot be done here, for a SKIP line.
    pub fn of_size(kind: &str, bytes: u64) -> Result<Self, String> {
        let scratch = Scratch::new("loop");
        let place = scratch.folder("mounted", None);
        let image = scratch.path().join("image");
        let file = std::fs::File::create(&image).map_err(|e| e.to_string())?;
        file.set_len(bytes).map_err(|e| e.to_string())?;
        let device = tool(Command::new("losetup").args(["--find", "--show"]).arg(&image))?;
        let disk = Self { device, place, _scratch: scratch };
        tool(Command::new(format!("mkfs.{kind}")).args(["-q", &disk.device]))?;
        tool(Command::new("mount").arg(&disk.device).arg(&disk.place))?;
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.place
    }

    /// Name of the device.
    pub fn name(&self) -> String {
        self.device.trim_start_matches("/dev/").to_owned()
    }

    /// `MAJOR:MINOR`.
    ///
    /// # Panics
    /// When the device is gone.
    pub fn number(&self) -> String {
        let path = format!("/sys/block/{}/dev", self.name());
        std::fs::read_to_string(path).expect("a number").trim().to_owned()
    }

    /// Writes back and drops what this machine has cached.
    ///
    /// # Panics
    /// When that is not permitted.
    pub fn drop_cache(&self) {
        tool(Command::new("sync").arg("--file-system").arg(&self.place)).expect("sync");
        std::fs::write("/proc/sys/vm/drop_caches", "3").expect("drop_caches");
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let _gone = tool(Command::new("umount").arg("-l").arg(&self.place));
        let _gone = tool(Command::new("losetup").args(["--detach", &self.device]));
    }
}
