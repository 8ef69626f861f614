//! A disk that loses at a crash what was not flushed to it, with a real file system on it: a loop
//! device over a file of [`ForgetFs`]. For what FUSE cannot do itself (CLONE), and to see real
//! journals at work.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use sim::forget::{self, ForgetFs, Mounted};

use crate::process::{DEADLINE, run};
use crate::scratch::Scratch;

/// Size of the disk: mkfs.xfs takes no less than 300 MiB.
const SIZE: u64 = 512 << 20;

/// ioctl_xfs_goingdown(2), and not to write the log before.
const XFS_IOC_GOINGDOWN: libc::Ioctl = 0x8004_587d_u32 as libc::Ioctl;
const XFS_NO_LOG_FLUSH: u32 = 2;

/// The disk with its file system, mounted.
pub struct Disk {
    /// Where the file system is.
    place: PathBuf,
    device: Option<String>,
    below: Mounted,
    kind: &'static str,
    /// What is mounted, after the power was cut.
    dying: Option<File>,
    _scratch: Scratch,
}

impl Disk {
    /// Makes a file system of this kind on a new disk, and mounts it.
    ///
    /// # Errors
    /// Why that cannot be done here, for a SKIP line.
    pub fn new(kind: &'static str) -> Result<Self, String> {
        forget::available()?;
        let scratch = Scratch::new(kind);
        let below =
            ForgetFs::mount(&scratch.folder("below", None)).map_err(|e| format!("FUSE: {e}"))?;
        let place = scratch.folder("disk", None);
        let image = below.path().join("image");
        let file = File::create(&image).map_err(|e| e.to_string())?;
        file.set_len(SIZE).and_then(|()| file.sync_all()).map_err(|e| e.to_string())?;
        let top = File::open(below.path()).map_err(|e| e.to_string())?;
        top.sync_all().map_err(|e| e.to_string())?;
        let mut disk = Self { place, device: None, below, kind, dying: None, _scratch: scratch };
        let device = disk.attach()?;
        tool(Command::new(format!("mkfs.{kind}")).args(["-q", &device]))?;
        disk.mount()?;
        Ok(disk)
    }

    /// Where the file system is mounted.
    pub fn path(&self) -> &Path {
        &self.place
    }

    /// Power lost: from now on nothing reaches the disk. [`Self::crash`] must follow when the
    /// server has ended. Right after an acknowledgement no other program has time to have the
    /// journal written, as sync(2) does for all file systems.
    ///
    /// # Panics
    /// When what is mounted cannot be opened.
    pub fn cut_power(&mut self) {
        if self.dying.is_none() {
            self.dying = Some(File::open(&self.place).expect("opening what is mounted"));
            self.below.set_write_failure(true);
            self.below.crash();
        }
    }

    /// Power lost and back: what was not flushed is gone, and the file system comes back by its
    /// journal. Processes that used it must be gone before.
    ///
    /// # Panics
    /// When it does not come back.
    pub fn crash(&mut self) {
        self.cut_power();
        self.shut_down();
        self.detach().expect("detaching the dead disk");
        self.below.set_write_failure(false);
        self.attach().expect("attaching the disk");
        self.mount().expect("the file system comes back");
    }

    fn image(&self) -> PathBuf {
        self.below.path().join("image")
    }

    fn attach(&mut self) -> Result<String, String> {
        let said = tool(Command::new("losetup").args(["--find", "--show"]).arg(self.image()))?;
        let device = said.trim().to_owned();
        self.device = Some(device.clone());
        Ok(device)
    }

    fn mount(&self) -> Result<(), String> {
        let device = self.device.as_deref().unwrap_or_default();
        let mut command = Command::new("mount");
        command.args(["-t", self.kind, device]).arg(&self.place);
        if self.kind == "xfs" {
            // What has crashed may still be mounted elsewhere.
            command.args(["-o", "nouuid"]);
        }
        tool(&mut command).map(|_| ())
    }

    /// Ends all writing of a file system that has crashed. A mount namespace that was made
    /// meanwhile has it still mounted: XFS would retry its writes when they succeed again, onto
    /// what the file system has come back from. btrfs stops writing at the first failure.
    fn shut_down(&mut self) {
        let Some(top) = self.dying.take().filter(|_| self.kind == "xfs") else { return };
        let flags = XFS_NO_LOG_FLUSH;
        // SAFETY: the request reads one number, to which the pointer leads.
        let done = unsafe { libc::ioctl(top.as_raw_fd(), XFS_IOC_GOINGDOWN, &raw const flags) };
        assert_eq!(done, 0, "XFS does not shut down: {}", std::io::Error::last_os_error());
    }

    fn detach(&mut self) -> Result<(), String> {
        tool(Command::new("umount").arg(&self.place))?;
        if let Some(device) = self.device.take() {
            tool(Command::new("losetup").args(["--detach", &device]))?;
        }
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(why) = self.detach() {
            println!("the disk stays: {why}");
        }
    }
}

/// Runs a tool of the system; what it printed.
///
/// # Errors
/// It is not here, or fails: with its standard error.
pub fn tool(command: &mut Command) -> Result<String, String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let program = command.get_program().to_string_lossy().into_owned();
    if !crate::has(&program) {
        return Err(format!("{program} is not here"));
    }
    let output = run(command.env("PATH", path), DEADLINE);
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
