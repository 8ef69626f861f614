//! A control group of a test's own with a limit on CPU or memory, by whichever version of control
//! groups this machine has.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Length of a scheduling period, µs. Much shorter than a window of a job, or each window would
/// see another part of it.
const PERIOD_US: u32 = 10_000;
/// How long the members of a group may take to be gone after they were signalled to end.
const EMPTY_WITHIN: Duration = Duration::from_secs(5);

/// Where version 2 is mounted.
const V2: &str = "/sys/fs/cgroup";

/// Whether version 2 offers this controller to groups below its root.
fn has_controller(name: &str) -> bool {
    let list = Path::new(V2).join("cgroup.subtree_control");
    fs::read_to_string(list).unwrap_or_default().split_whitespace().any(|c| c == name)
}

/// A control group with a limit. Dropping it removes it; its members must have been signalled to
/// end before.
pub struct Group {
    dir: PathBuf,
}

impl Group {
    /// Makes a group that may use `cores` cores.
    ///
    /// # Errors
    /// Why it is not available here, for a SKIP line.
    pub fn with_cores(cores: f64) -> Result<Self, String> {
        let quota_us = (cores * f64::from(PERIOD_US)) as u32;
        let v1 = PathBuf::from("/sys/fs/cgroup/cpu");
        if v1.join("cpu.cfs_quota_us").exists() {
            let group = Self::make(&v1)?;
            group.set("cpu.cfs_period_us", PERIOD_US.to_string())?;
            group.set("cpu.cfs_quota_us", quota_us.to_string())?;
            Ok(group)
        } else if has_controller("cpu") {
            let group = Self::make(V2.as_ref())?;
            group.set("cpu.max", format!("{quota_us} {PERIOD_US}"))?;
            Ok(group)
        } else {
            Err("no CPU controller of control groups".to_owned())
        }
    }

    /// Makes a group with a limit of `bytes` of memory.
    ///
    /// # Errors
    /// Why it is not available here, for a SKIP line.
    pub fn with_memory(bytes: u64) -> Result<Self, String> {
        let v1 = PathBuf::from("/sys/fs/cgroup/memory");
        if v1.join("memory.use_hierarchy").exists() {
            let group = Self::make(&v1)?;
            group.set("memory.limit_in_bytes", bytes.to_string())?;
            Ok(group)
        } else if has_controller("memory") {
            let group = Self::make(V2.as_ref())?;
            group.set("memory.max", bytes.to_string())?;
            Ok(group)
        } else {
            Err("no memory controller of control groups".to_owned())
        }
    }

    fn make(below: &Path) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = below.join(format!("plimsoll-test-{}-{number}", std::process::id()));
        fs::create_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        Ok(Self { dir })
    }

    fn set(&self, name: &str, value: String) -> Result<(), String> {
        fs::write(self.dir.join(name), value).map_err(|e| format!("{name}: {e}"))
    }

    /// Makes `command` start in this group.
    ///
    /// # Panics
    /// When the group's list of members cannot be opened.
    pub fn enter(&self, command: &mut Command) {
        let list = self.dir.join("cgroup.procs");
        let list = OpenOptions::new().write(true).open(list).expect("the group's members");
        // "0" is the process that writes.
        let enter = move || (&list).write_all(b"0");
        // SAFETY: between fork and exec there is one write to an open descriptor, which allocates
        // nothing.
        unsafe { command.pre_exec(enter) };
    }

    /// Moves a running process with all its threads into this group.
    ///
    /// # Panics
    /// When the kernel refuses.
    pub fn take(&self, pid: u32) {
        self.set("cgroup.procs", pid.to_string()).expect("moving a process into the group");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let deadline = Instant::now() + EMPTY_WITHIN;
        // There is no event for "the last member is gone" in version 1; the group's removal is
        // refused until then.
        while fs::remove_dir(&self.dir).is_err() && self.dir.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
