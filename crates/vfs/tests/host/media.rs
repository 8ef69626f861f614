//! Other file systems, on loop devices, and a mount inside the share. Needs root and the tools that
//! make them; skipped with a message otherwise.

use std::path::{Path, PathBuf};
use std::process::Command;

use vfs::attr::FileType;
use vfs::conformance::{cx, root};
use vfs::fs::FileSystem;
use vfs::host::HostFs;
use vfs::status::Status;

use super::{Scratch, disk, inline_first, restart, suite};

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let done = Command::new(program).args(args).output();
    let done = done.map_err(|error| format!("{program} cannot be run: {error}"))?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.success() { Ok(()) } else { Err(format!("{program}: {said}")) }
}

/// Moves the calling thread, and what it starts, into a mount namespace of its own. A process that
/// makes a namespace for mounts meanwhile has a copy of all that it sees mounted: what this test
/// unmounts would stay in use there. Without privilege nothing can be mounted, and no copy made.
fn own_mounts() {
    // SAFETY: a bare system call that concerns the calling thread alone.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0 {
        run("mount", &["--make-rprivate", "/"]).expect("a namespace for mounts");
    }
}

/// A mounted file system that goes away with the test.
struct Mounted {
    place: PathBuf,
}

impl Mounted {
    fn new(kind: &str, source: &str, options: &str, place: PathBuf) -> Result<Self, String> {
        std::fs::create_dir_all(&place).expect("made");
        let at = place.to_str().expect("our own name");
        run("mount", &["-t", kind, "-o", options, source, at])?;
        Ok(Self { place })
    }
    fn image(kind: &str, scratch: &Scratch) -> Result<Self, String> {
        let image = scratch.0.join("image");
        let file = std::fs::File::create(&image).expect("made");
        // The least that mkfs.xfs takes is 300 MiB. btrfs gives a tenth of a small file system to
        // metadata at a time, and a transaction that fills this with what many removed files still
        // pin is aborted for lack of space; from 50 GiB on it takes 1 GiB. The file is sparse.
        file.set_len(if kind == "btrfs" { 64 << 30 } else { 2 << 30 }).expect("sparse");
        let image = image.to_str().expect("our own name");
        run(&format!("mkfs.{kind}"), &["-q", image])?;
        Self::new(kind, image, "loop", scratch.0.join("mounted"))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let at = self.place.to_str().unwrap_or_default().to_owned();
        if let Err(error) = run("umount", &[&at]) {
            println!("left mounted: {error}");
        }
    }
}

fn on(kind: &str) {
    own_mounts();
    let scratch = Scratch::new(&disk(), kind);
    let mounted = match Mounted::image(kind, &scratch) {
        Ok(mounted) => mounted,
        Err(why) => return println!("SKIP {kind}: {why}"),
    };
    let base: &Path = &mounted.place;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(base, open).expect("ours");
    suite(base, &format!("{kind}-pool"), true);
    inline_first(base, &format!("{kind}-inline"));
    restart(base, &format!("{kind}-restart"), true);
}

#[test]
fn conforms_on_xfs() {
    on("xfs");
}

#[test]
fn conforms_on_btrfs() {
    on("btrfs");
}

/// Inodes of 128 bytes have room for whole seconds only.
#[test]
fn coarse_times_are_known() {
    let scratch = Scratch::new(&disk(), "coarse");
    assert_eq!(scratch.open(true).abilities().time_delta_ns, 1);
    let image = scratch.0.join("image");
    std::fs::File::create(&image).and_then(|f| f.set_len(64 << 20)).expect("sparse");
    let image = image.to_str().expect("our own name");
    let made = run("mkfs.ext4", &["-q", "-F", "-I", "128", image]);
    let place = scratch.0.join("mounted");
    let mounted = made.and_then(|()| Mounted::new("ext4", image, "loop", place.clone()));
    let _mounted = match mounted {
        Ok(mounted) => mounted,
        Err(why) => return println!("SKIP coarse times: {why}"),
    };
    let fs = HostFs::open(&place, scratch.options(true)).expect("can be served");
    assert_eq!(fs.abilities().time_delta_ns, 1_000_000_000);
    // Of long ago: its number is the last of its second's.
    let attr = fs.getattr(cx(&root()), &fs.root()).expect("the root");
    assert!([0, 999_999_999].contains(&(attr.change % 1_000_000_000)), "{}", attr.change);
}

/// Where a loop device is attached to this file: at another number than any that is in use.
struct Loop(String);

impl Loop {
    fn new(image: &str) -> Result<Self, String> {
        let done = Command::new("losetup").args(["--find", "--show", image]).output();
        let done = done.map_err(|error| format!("losetup cannot be run: {error}"))?;
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        match done.status.success() {
            true => Ok(Self(String::from_utf8_lossy(&done.stdout).trim().to_owned())),
            false => Err(format!("losetup: {said}")),
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if let Err(error) = run("losetup", &["--detach", &self.0]) {
            println!("left attached: {error}");
        }
    }
}

fn on_another_device(kind: &str) -> Result<(), String> {
    let scratch = Scratch::new(&disk(), &format!("{kind}-moves"));
    let image = scratch.0.join("image");
    std::fs::File::create(&image).and_then(|f| f.set_len(512 << 20)).expect("sparse");
    let image = image.to_str().expect("our own name");
    run(&format!("mkfs.{kind}"), &["-q", image])?;
    let place = scratch.0.join("mounted");
    let first = Loop::new(image)?;
    let before = {
        let _mounted = Mounted::new(kind, &first.0, "defaults", place.clone())?;
        std::fs::write(place.join("file"), "content").expect("written");
        let fs = HostFs::open(&place, scratch.options(true)).expect("can be served");
        fs.lookup(cx(&root()), &fs.root(), b"file").expect("the file").0
    };
    // The second is attached while the first still has its number.
    let second = Loop::new(image)?;
    drop(first);
    let _mounted = Mounted::new(kind, &second.0, "defaults", place.clone())?;
    let fs = HostFs::open(&place, scratch.options(true)).expect("can be served again");
    let after = fs.getattr(cx(&root()), &before.handle).expect("by its old handle");
    assert_eq!((after.fileid, after.fsid), (before.attr.fileid, before.attr.fsid));
    Ok(())
}

#[test]
fn handles_outlive_another_device_number() {
    own_mounts();
    for kind in ["xfs", "btrfs", "ext4"] {
        if let Err(why) = on_another_device(kind) {
            println!("SKIP {kind} moves: {why}");
        }
    }
}

#[test]
fn a_mount_inside_is_shown_and_not_entered() {
    let scratch = Scratch::new(&disk(), "mount-inside");
    std::fs::create_dir(scratch.share().join("inner")).expect("made");
    let inner = scratch.share().join("inner");
    let _mounted = match Mounted::new("tmpfs", "none", "size=1m", inner.clone()) {
        Ok(mounted) => mounted,
        Err(why) => return println!("SKIP mount-inside: {why}"),
    };
    std::fs::write(inner.join("secret"), "other file system").expect("written");
    let fs = scratch.open(true);
    let (me, top) = (root(), fs.root());
    let found = fs.lookup(cx(&me), &top, b"inner").err().map(|failed| failed.status);
    assert_eq!(found, Some(Status::Access), "another file system is another share");
    let mut names = Vec::new();
    let listed = fs.list(cx(&me), &top, 0, [0; 8], true, &mut |entry| {
        let mounted = entry.mounted.map(|attr| attr.kind);
        names.push((entry.name.to_vec(), entry.entry.is_some(), mounted));
        true
    });
    let shown = (b"inner".to_vec(), false, Some(FileType::Directory));
    assert!(listed.is_ok() && names.contains(&shown), "{names:?}");
    let gone = fs.rmdir(cx(&me), &top, b"inner").err().map(|failed| failed.status);
    assert_eq!(gone, Some(Status::Access));
    let moved = fs.rename(cx(&me), (&top, b"inner"), (&top, b"x"));
    assert_eq!(moved.err().map(|failed| failed.status), Some(Status::Access));
}
