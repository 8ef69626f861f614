//! The attribute that SMB reads at each open: without a disk access after the first one, and as it
//! is now whatever changes it.

use std::path::Path;

use vfs::conformance::{cx, root, user};
use vfs::cred::Cred;
use vfs::dos::{self, Dos};
use vfs::fs::{Context, FileSystem};
use vfs::handle::Handle;
use vfs::host::HostFs;
use vfs::status::Status;

use super::{Scratch, disk, memory};

const NAME: &[u8] = b"DOSATTRIB";

fn find(fs: &HostFs, name: &[u8]) -> Handle {
    fs.lookup(cx(&root()), &fs.root(), name).expect("there").0.handle
}

fn inline<'a>(cred: &'a Cred) -> Context<'a> {
    Context { cred, may_block: false }
}

/// Reads it until it is answered inline: what changed a moment ago is not cached.
fn settled(fs: &HostFs, file: &Handle) -> Option<Dos> {
    let who = root();
    loop {
        let read = dos::get(fs, cx(&who), file).expect("read");
        match dos::get(fs, inline(&who), file) {
            Err(Status::WouldBlock) => std::thread::yield_now(),
            cached => {
                assert_eq!(cached.expect("read"), read);
                return read;
            }
        }
    }
}

fn is_as_it_is_now(base: &Path, name: &str) {
    let (scratch, who) = (Scratch::new(base, name), root());
    std::fs::write(scratch.share().join("file"), b"content").expect("written");
    let fs = scratch.open(true);
    if !fs.features().xattrs {
        println!("SKIP {name}: this file system has no extended attributes");
        return;
    }
    let file = find(&fs, b"file");
    assert_eq!(settled(&fs, &file), None);
    // Another program changes it.
    let aside = Scratch::new(base, &format!("{name}-aside"));
    let options = aside.options(true);
    let other = HostFs::open(&scratch.share(), options).expect("can be served");
    let theirs = find(&other, b"file");
    let mut changes: Vec<_> =
        (1..4).map(|bits| Dos { attributes: Some(bits), created: None }).collect();
    changes.push(Dos { attributes: Some(4), created: Some(5) });
    for (change, own) in changes.iter().zip([false, true, false, false]) {
        let (fs_of, file_of) = if own { (&fs, &file) } else { (&other, &theirs) };
        dos::set(&**fs_of, cx(&who), file_of, change).expect("set");
        assert_eq!(dos::get(&*fs, cx(&who), &file), Ok(Some(*change)));
        assert_eq!(settled(&fs, &file), Some(*change));
    }
    // A user that may not read the file gets nothing of what the server has read.
    let path = scratch.share().join("file");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .expect("ours to change");
    assert!(settled(&fs, &file).is_some());
    let stranger = user(4_711, 4_711);
    assert!(!fs.privileged() || fs.get_xattr(inline(&stranger), &file, NAME).is_err());
    other.remove_xattr(cx(&who), &theirs, NAME).expect("removed");
    assert_eq!(dos::get(&*fs, cx(&who), &file), Ok(None));
    assert_eq!(settled(&fs, &file), None);
    std::fs::remove_file(path).expect("removed");
    assert_eq!(fs.get_xattr(inline(&who), &file, NAME), Err(Status::Stale));
}

#[test]
fn a_cached_attribute_is_as_it_is_now_on_disk() {
    is_as_it_is_now(&disk(), "dos-disk");
}

#[test]
fn a_cached_attribute_is_as_it_is_now_on_tmpfs() {
    is_as_it_is_now(&memory(), "dos-tmpfs");
}
