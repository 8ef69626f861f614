//! The back end over a Linux directory, held to the conformance suite: as root on the disk and on
//! tmpfs, with and without kernel handles, and as an unprivileged process.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs::conformance::{self, Bench};
use vfs::fs::FileSystem;
use vfs::host::{HostFs, HostOptions};

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(base: &Path, name: &str) -> Self {
        let path = base.join(format!("plimsoll-test-vfs-{name}-{}-0", std::process::id()));
        std::fs::create_dir(&path).expect("a fresh directory");
        for below in ["share", "state"] {
            std::fs::create_dir(path.join(below)).expect("a fresh directory");
        }
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(path.join("share"), open).expect("ours to change");
        Self(path)
    }
    fn share(&self) -> PathBuf {
        self.0.join("share")
    }
    fn options(&self, kernel_handles: bool) -> HostOptions {
        HostOptions {
            state_dir: Some(self.0.join("state")),
            kernel_handles,
            ..HostOptions::new(vfs::share::tag("test"), [7; 32])
        }
    }
    fn open(&self, kernel_handles: bool) -> Arc<HostFs> {
        HostFs::open(&self.share(), self.options(kernel_handles)).expect("can be served")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What a failed test leaves behind is in the temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn disk() -> PathBuf {
    std::env::temp_dir()
}

fn memory() -> PathBuf {
    PathBuf::from("/dev/shm")
}

fn suite(base: &Path, name: &str, kernel_handles: bool) {
    let scratch = Scratch::new(base, name);
    let fs = scratch.open(kernel_handles);
    println!("{name}: {}, kernel handles: {}", fs.acting_as(), fs.has_kernel_handles());
    let (privileged, has) = (fs.privileged(), fs.features());
    let skipped = [(has.xattrs, "xattrs"), (has.acls && privileged, "acls"), (has.clone, "clones")];
    skipped.iter().filter(|(has, _)| !has).for_each(|(_, what)| {
        println!("SKIP {name} {what}: this file system has none, or not without privilege");
    });
    conformance::run(&Bench { fs, privileged, reopen: None });
}

/// As the server does it: inline first.
fn inline_first(base: &Path, name: &str) {
    let scratch = Scratch::new(base, name);
    let fs = scratch.open(true);
    let privileged = fs.privileged();
    let fs = conformance::InlineFirst::new(fs);
    conformance::run(&Bench { fs: fs.clone(), privileged, reopen: None });
    let (inline, pooled) = fs.counts();
    println!("{name}: {inline} operations inline, {pooled} on the pool");
    assert!(inline > 0);
}

fn restart(base: &Path, name: &str, kernel_handles: bool) {
    let scratch = Scratch::new(base, name);
    let fs: Arc<dyn FileSystem> = scratch.open(kernel_handles);
    let (share, options) = (scratch.share(), scratch.options(kernel_handles));
    let reopen = move || -> Arc<dyn FileSystem> {
        HostFs::open(&share, options.clone()).expect("can be served again")
    };
    conformance::run_restart(Bench { fs, privileged: true, reopen: Some(Box::new(reopen)) });
}

#[test]
fn conforms_on_disk() {
    suite(&disk(), "disk", true);
}

#[test]
fn conforms_on_tmpfs() {
    suite(&memory(), "tmpfs", true);
}

#[test]
fn conforms_inline_first_on_disk() {
    inline_first(&disk(), "inline-disk");
}

#[test]
fn conforms_inline_first_on_tmpfs() {
    inline_first(&memory(), "inline-tmpfs");
}

#[test]
fn conforms_without_kernel_handles() {
    suite(&disk(), "table", false);
}

#[test]
fn handles_survive_restart_on_disk() {
    restart(&disk(), "restart-disk", true);
}

#[test]
fn handles_survive_restart_on_tmpfs() {
    restart(&memory(), "restart-tmpfs", true);
}

#[test]
fn handles_survive_restart_without_kernel_handles() {
    restart(&disk(), "restart-table", false);
}

#[path = "host/drop_cache.rs"]
mod drop_cache;
#[path = "host/exclusive.rs"]
mod exclusive;
#[path = "host/inside.rs"]
mod inside;
#[path = "host/lists.rs"]
mod lists;
#[path = "host/media.rs"]
mod media;
#[path = "host/nobody.rs"]
mod nobody;
#[path = "host/retain.rs"]
mod retain;
#[path = "host/snapshots.rs"]
mod snapshots;
#[path = "host/turns.rs"]
mod turns;
#[path = "host/upkeep.rs"]
mod upkeep;
#[path = "host/xattr_cache.rs"]
mod xattr_cache;
