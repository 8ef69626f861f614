//! Nothing leads outside the share, whatever is done to the tree behind our back.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use vfs::conformance::{cx, root};
use vfs::fs::FileSystem;
use vfs::handle::Handle;
use vfs::host::{HostFs, HostOptions};
use vfs::status::Status;

use super::{Scratch, disk, memory};

fn find(fs: &dyn FileSystem, path: &str) -> Result<Handle, Status> {
    let who = root();
    path.split('/').try_fold(fs.root(), |dir, name| {
        fs.lookup(cx(&who), &dir, name.as_bytes()).map(|f| f.0.handle).map_err(|f| f.status)
    })
}

/// Drops the kernel's caches of names and inodes, so that it knows no path of a handle.
fn drop_caches() {
    if let Err(error) = std::fs::write("/proc/sys/vm/drop_caches", "2") {
        println!("SKIP dropping the kernel's caches: {error}");
    }
}

fn moved_out(base: &Path, name: &str, kernel_handles: bool) {
    let scratch = Scratch::new(base, name);
    let (share, outside) = (scratch.share(), scratch.0.join("outside"));
    std::fs::create_dir_all(share.join("dir/below")).expect("made");
    std::fs::create_dir(&outside).expect("made");
    for file in ["file", "stays", "dir/below/inner"] {
        std::fs::write(share.join(file), file).expect("written");
    }
    let fs = scratch.open(kernel_handles);
    let paths = ["file", "dir", "dir/below", "dir/below/inner"];
    let gone: Vec<_> = paths.iter().map(|path| find(&*fs, path).expect("there")).collect();
    let stays = find(&*fs, "stays").expect("there");
    // While the directory is held, its parent must not be the outside.
    std::fs::rename(share.join("dir"), outside.join("dir")).expect("moved");
    assert!(fs.lookup(cx(&root()), &gone[1], b"..").is_err(), "the way up leads outside");
    std::fs::rename(share.join("file"), outside.join("file")).expect("moved");
    drop(fs);
    drop_caches();
    let fs = scratch.open(kernel_handles);
    for (path, handle) in paths.iter().zip(&gone) {
        let got = fs.getattr(cx(&root()), handle).err();
        assert_eq!(got, Some(Status::Stale), "{path} has left the share");
    }
    assert!(fs.getattr(cx(&root()), &stays).is_ok());
    assert_eq!(fs.counts().cold_stale, 4);
    drop(fs);
    // What comes back is there again.
    std::fs::rename(outside.join("dir"), share.join("dir")).expect("moved");
    let fs = scratch.open(kernel_handles);
    assert!(fs.getattr(cx(&root()), &gone[3]).is_ok());
}

#[test]
fn moved_out_is_stale_on_disk() {
    moved_out(&disk(), "moved-disk", true);
}

#[test]
fn moved_out_is_stale_on_tmpfs() {
    moved_out(&memory(), "moved-tmpfs", true);
}

#[test]
fn moved_out_is_stale_without_kernel_handles() {
    moved_out(&disk(), "moved-table", false);
}

/// The kernel's caches are cold, so the file must be found in the directory of its handle.
#[test]
fn cold_caches_find_files() {
    let scratch = Scratch::new(&disk(), "cold");
    let share = scratch.share();
    std::fs::create_dir_all(share.join("a/b")).expect("made");
    for n in 0..50 {
        std::fs::write(share.join(format!("a/b/{n}")), "x").expect("written");
    }
    let fs = scratch.open(true);
    let held: Vec<_> = (0..50).map(|n| find(&*fs, &format!("a/b/{n}")).expect("there")).collect();
    drop(fs);
    for n in 0..50 {
        // Renamed while no server was running.
        let (old, new) = (format!("a/b/{n}"), format!("a/b/new-{n}"));
        std::fs::rename(share.join(old), share.join(new)).expect("renamed");
    }
    drop_caches();
    let fs = scratch.open(true);
    for handle in &held {
        assert!(fs.getattr(cx(&root()), handle).is_ok());
    }
}

#[test]
fn a_hidden_directory_is_not_there() {
    let scratch = Scratch::new(&disk(), "hidden");
    let state = scratch.share().join("a/state");
    std::fs::create_dir_all(&state).expect("made");
    std::fs::write(state.join("key"), "secret").expect("written");
    let meta = std::fs::metadata(&state).expect("there");
    let open = |hide| {
        let options = HostOptions { hide, ..HostOptions::new(1, [1; 32]) };
        HostFs::open(&scratch.share(), options).expect("can be served")
    };
    let fs = open(vec![]);
    let (dir, key) = (find(&*fs, "a/state"), find(&*fs, "a/state/key"));
    let (dir, key) = (dir.expect("not hidden yet"), key.expect("not hidden yet"));
    drop(fs);
    let fs: Arc<dyn FileSystem> = open(vec![(meta.dev(), meta.ino())]);
    let who = root();
    let a = find(&*fs, "a").expect("there");
    assert_eq!(find(&*fs, "a/state").err(), Some(Status::NotFound));
    let mut names = Vec::new();
    let listed = fs.list(cx(&who), &a, 0, [0; 8], true, &mut |entry| {
        names.push(entry.name.to_vec());
        true
    });
    assert!(listed.is_ok() && names.len() == 2, "{names:?}");
    let moved = fs.rename(cx(&who), (&a, b"state"), (&fs.root(), b"x"));
    assert_eq!(moved.err().map(|f| f.status), Some(Status::NotFound));
    let gone = fs.rmdir(cx(&who), &a, b"state");
    assert_eq!(gone.err().map(|f| f.status), Some(Status::NotFound));
    for handle in [dir, key] {
        assert_eq!(fs.getattr(cx(&who), &handle).err(), Some(Status::Stale));
    }
}
