//! Ends the former process of a resource, if it is on this machine: the one of a head that has died
//! without it, or of another head here.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Fence, OwnerFile, boot_id};

/// Kills the process that the file `owner` names, if it has that file open.
#[derive(Debug, Default, Clone, Copy)]
pub struct ProcessFence;

impl Fence for ProcessFence {
    fn name(&self) -> &'static str {
        "process"
    }

    fn fence(&self, _resource: &str, former: &OwnerFile, path: &Path) -> Result<bool, String> {
        if former.pid == 0 || former.boot.is_empty() || former.boot != boot_id() {
            return Ok(false);
        }
        // The number may belong to another process by now.
        if !has_open(former.pid, path) {
            return Ok(false);
        }
        let pid = i32::try_from(former.pid).map_err(|e| e.to_string())?;
        match kill(Pid::from_raw(pid), Signal::SIGKILL) {
            Ok(()) | Err(Errno::ESRCH) => Ok(true),
            Err(e) => Err(format!("cannot kill process {pid}: {e}")),
        }
    }
}

/// Whether a process has this file open.
pub(super) fn has_open(pid: u32, path: &Path) -> bool {
    let Ok(file) = path.metadata() else { return false };
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    entries.flatten().any(|entry| {
        let open = std::fs::metadata(entry.path());
        open.is_ok_and(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()))
    })
}
