//! POSIX access control lists: decided by the kernel, inline as on the pool. Needs root and
//! setfacl; skipped with a message otherwise.

use std::path::Path;
use std::process::Command;

use vfs::conformance::{cx, root, user};
use vfs::cred::Cred;
use vfs::fs::{Context, FileSystem, access};
use vfs::status::Status;

use super::{Scratch, disk, memory};

fn set_list(path: &Path, entry: &str) -> Result<(), String> {
    let done = Command::new("setfacl").args(["-m", entry]).arg(path).output();
    let done = done.map_err(|error| format!("setfacl cannot be run: {error}"))?;
    if done.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&done.stderr).into_owned())
    }
}

/// Reads as the server does it: inline, then on the pool. Gives the data or why not.
fn read(fs: &dyn FileSystem, cred: &Cred, file: &vfs::handle::Handle) -> Result<usize, Status> {
    let mut buf = [0; 16];
    let inline = fs.read(Context { cred, may_block: false }, file, 0, &mut buf);
    match inline {
        Err(Status::WouldBlock) => fs.read(cx(cred), file, 0, &mut buf).map(|done| done.count),
        other => other.map(|done| done.count),
    }
}

fn lists(base: &Path, name: &str) {
    let scratch = Scratch::new(base, name);
    let fs = scratch.open(true);
    if !fs.privileged() {
        return println!("SKIP {name}: not privileged, so the serving user's rights decide");
    }
    let path = scratch.share().join("file");
    std::fs::write(&path, "secret").expect("written");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, closed).expect("ours");
    let (me, other) = (user(1000, 1000), user(1001, 1001));
    let file = fs.lookup(cx(&root()), &fs.root(), b"file").expect("there").0.handle;
    assert_eq!(read(&*fs, &me, &file), Err(Status::Access));
    if let Err(why) = set_list(&path, "u:1000:r") {
        return println!("SKIP {name}: {why}");
    }
    for _ in 0..3 {
        assert_eq!(read(&*fs, &me, &file), Ok(6), "the list lets this user read");
        // The group bits of the mode are the list's mask and say r: they must not be taken for
        // the group's rights.
        let in_group = Cred { uid: 1001, gid: 0, groups: vec![] };
        assert_eq!(read(&*fs, &in_group, &file), Err(Status::Access));
        assert_eq!(read(&*fs, &other, &file), Err(Status::Access));
    }
    let (granted, _) = fs.access(cx(&me), &file, access::READ | access::MODIFY).expect("asked");
    assert_eq!(granted, access::READ);
    let inline = fs.access(Context { cred: &me, may_block: false }, &file, access::READ);
    assert!(matches!(inline, Err(Status::WouldBlock)), "only the kernel knows: {inline:?}");
    // What was granted by the list goes with it, although a descriptor is kept.
    set_list(&path, "u:1000:-").expect("as before");
    assert_eq!(read(&*fs, &me, &file), Err(Status::Access));
    let many: Vec<u32> = (3000..3016).collect();
    set_list(&path, "g:3015:r").expect("as before");
    let member = Cred { uid: 1002, gid: 1002, groups: many };
    assert_eq!(read(&*fs, &member, &file), Ok(6), "the sixteenth group counts");
}

#[test]
fn decide_on_disk() {
    lists(&disk(), "lists-disk");
}

#[test]
fn decide_on_tmpfs() {
    lists(&memory(), "lists-tmpfs");
}
