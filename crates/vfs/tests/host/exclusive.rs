//! A file that becomes a logical unit while it is served: no way leads to it any more, by its name,
//! its second name, a handle or an open from before, or another share; and all is as before when
//! it is none any more.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use vfs::attr::{SetAttr, Wcc};
use vfs::conformance::{cx, root};
use vfs::fs::{CreateHow, FileSystem, Stable};
use vfs::handle::Handle;
use vfs::host::{HostFs, HostOptions, key_of};
use vfs::locks::{ClientKey, LockTable, Owner, Protocol, Share};
use vfs::lun::{Claim, ClaimError};
use vfs::share::tag;
use vfs::status::Status;

use super::{Scratch, disk, memory};

fn open(dir: &Path, name: &str, locks: &Arc<LockTable>) -> Arc<HostFs> {
    let exclusive = Arc::clone(locks.exclusive());
    let options = HostOptions { exclusive, ..HostOptions::new(tag(name), [7; 32]) };
    HostFs::open(dir, options).expect("can be served")
}

fn find(fs: &HostFs, dir: &Handle, name: &[u8]) -> Result<Handle, Status> {
    let found = fs.lookup(cx(&root()), dir, name);
    found.map(|(entry, _)| entry.handle).map_err(|failed| failed.status)
}

fn names(fs: &HostFs) -> Vec<String> {
    let mut names = Vec::new();
    let listed = fs.list(cx(&root()), &fs.root(), 0, [0; 8], true, &mut |entry| {
        names.push(String::from_utf8_lossy(entry.name).into_owned());
        true
    });
    listed.expect("listed");
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

/// Every operation that a handle from before could be used for.
fn refused_by_handle(fs: &HostFs, file: &Handle) {
    let (me, mut buffer) = (root(), [0; 8]);
    let stale = Some(Status::Stale);
    assert_eq!(fs.getattr(cx(&me), file).err(), stale);
    assert_eq!(fs.access(cx(&me), file, 0x3f).err(), stale);
    assert_eq!(fs.read(cx(&me), file, 0, &mut buffer).err(), stale);
    assert_eq!(fs.stretch(cx(&me), file, 0, 8).err(), stale);
    assert!(fs.extent(cx(&me), file, 0, 8).is_none());
    let status = |done: vfs::fs::Change<()>| done.err().map(|failed| failed.status);
    let wrote = fs.write(cx(&me), file, 0, b"x", Stable::Unstable);
    assert_eq!(wrote.err().map(|failed| failed.status), stale);
    let shorter = SetAttr { size: Some(0), ..SetAttr::default() };
    assert_eq!(status(fs.setattr(cx(&me), file, &shorter, None)), stale);
    assert_eq!(status(fs.commit(cx(&me), file)), stale);
    assert_eq!(status(fs.allocate(cx(&me), file, 0, 8)), stale);
    assert_eq!(status(fs.deallocate(cx(&me), file, 0, 8)), stale);
    let link = fs.link(cx(&me), file, &fs.root(), b"third");
    assert_eq!(link.err().map(|failed| failed.status), stale);
    assert_eq!(fs.file_key(cx(&me), file).err(), stale);
    assert_eq!(fs.retain(cx(&me), file).err(), stale);
    assert_eq!(fs.get_xattr(cx(&me), file, b"user.a").err(), stale);
}

fn refused_by_name(fs: &HostFs, name: &[u8]) {
    let (me, dir) = (root(), fs.root());
    let not_found = Some(Status::NotFound);
    assert_eq!(find(fs, &dir, name).err(), not_found);
    let gone = fs.remove(cx(&me), &dir, name);
    assert_eq!(gone.err().map(|failed| failed.status), not_found);
    let moved = fs.rename(cx(&me), (&dir, name), (&dir, b"moved"));
    assert_eq!(moved.err().map(|failed| failed.status), not_found);
    let over = fs.rename(cx(&me), (&dir, b"other"), (&dir, name));
    assert_eq!(over.err().map(|failed| failed.status), Some(Status::Access));
    let how = CreateHow::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
    let made = fs.create(cx(&me), &dir, name, how);
    assert_eq!(made.err().map(|failed| failed.status), Some(Status::Exists));
}

fn hidden(base: &Path, name: &str) {
    let scratch = Scratch::new(base, name);
    let at = scratch.share().join("disk");
    std::fs::write(&at, b"blocks").expect("written");
    std::fs::hard_link(&at, scratch.share().join("second")).expect("linked");
    std::fs::write(scratch.share().join("other"), b"other").expect("written");
    let locks: Arc<LockTable> = Arc::default();
    let fs = open(&scratch.share(), "test", &locks);
    // What lies above shows the same files.
    let above = open(scratch.share().parent().expect("a folder"), "above", &locks);
    let below = find(&above, &above.root(), b"share").expect("there");
    let before = find(&fs, &fs.root(), b"disk").expect("there");
    let elsewhere = find(&above, &below, b"second").expect("there");
    let _retained = fs.retain(cx(&root()), &before).expect("open from before");
    let mut buffer = [0; 8];
    assert!(fs.read(cx(&root()), &before, 0, &mut buffer).is_ok());

    let claim = Claim::take(&locks, &at, "default/disk").expect("claimed");
    assert!(matches!(
        Claim::take(&locks, &scratch.share().join("second"), "x"),
        Err(ClaimError::InUse)
    ));
    let key = key_of(&at).expect("there");
    let client = ClientKey { protocol: Protocol::Nfs4, id: 1 };
    let owner = Owner::new(client, b"o").expect("short");
    assert!(locks.open(key, &owner, Share { access: 1, deny: 0 }).is_err(), "in the table as well");
    assert!(!locks.may_rename(key));
    refused_by_handle(&fs, &before);
    refused_by_handle(&above, &elsewhere);
    refused_by_name(&fs, b"disk");
    refused_by_name(&fs, b"second");
    assert_eq!(names(&fs), ["other"]);
    assert_eq!(find(&above, &below, b"disk").err(), Some(Status::NotFound));
    let meta = std::fs::metadata(&at).expect("there");
    assert_eq!((meta.nlink(), meta.len()), (2, 6), "nothing has changed");

    drop(claim);
    assert!(fs.read(cx(&root()), &before, 0, &mut buffer).is_ok());
    assert_eq!(names(&fs), ["disk", "other", "second"]);
    assert!(locks.open(key, &owner, Share { access: 1, deny: 0 }).is_ok());
    assert!(matches!(Claim::take(&locks, &at, "x"), Err(ClaimError::Open(_))), "it is open");
    assert_eq!(names(&fs), ["disk", "other", "second"], "and is shown as before");
}

#[test]
fn what_clients_may_reclaim_becomes_no_unit() {
    let scratch = Scratch::new(&memory(), "exclusive-grace");
    let locks: Arc<LockTable> = Arc::default();
    let at = scratch.share().join("disk");
    std::fs::write(&at, "data").expect("a file");
    for holder in [Protocol::Nfs4, Protocol::Nlm] {
        locks.begin_grace(holder);
        let refused = Claim::take(&locks, &at, "x");
        assert!(matches!(refused, Err(ClaimError::Grace)), "{holder:?}");
        // A unit from before the restart has its file at once.
        drop(Claim::retake(&locks, &at, "x").expect("its own"));
        locks.end_grace(holder);
        drop(Claim::take(&locks, &at, "x").expect("it is over"));
    }
}

#[test]
fn no_way_leads_to_the_file_of_a_logical_unit() {
    hidden(&disk(), "exclusive-disk");
    hidden(&memory(), "exclusive-memory");
}

/// By what the table knows a file is the same from a share and from its path.
#[test]
fn keys_are_the_same_by_path_and_by_share() {
    for (base, name) in [(disk(), "key-disk"), (memory(), "key-memory")] {
        let scratch = Scratch::new(&base, name);
        let at = scratch.share().join("f");
        std::fs::write(&at, b"f").expect("written");
        let fs = open(&scratch.share(), "test", &Arc::default());
        let file = find(&fs, &fs.root(), b"f").expect("there");
        assert_eq!(fs.file_key(cx(&root()), &file).ok(), key_of(&at).ok(), "{name}");
    }
}

/// Directories and links by which the file of a unit is found, in this share and above it.
fn keeps_its_way(base: &Path, name: &str) {
    let scratch = Scratch::new(base, name);
    let share = scratch.share();
    std::fs::create_dir_all(share.join("a/b")).expect("directories");
    std::fs::create_dir(share.join("aside")).expect("a directory");
    std::fs::write(share.join("a/b/disk"), b"blocks").expect("written");
    std::os::unix::fs::symlink("a", share.join("link")).expect("a link");
    let locks: Arc<LockTable> = Arc::default();
    let fs = open(&share, "test", &locks);
    let above = open(share.parent().expect("a folder"), "above", &locks);
    let (me, dir) = (root(), fs.root());
    let status = |done: vfs::fs::Change<Wcc>| done.err().map(|failed| failed.status);
    let claim = Claim::take(&locks, &share.join("link/b/disk"), "default/disk").expect("claimed");
    let kept = Some(Status::Access);
    for name in [&b"a"[..], b"link"] {
        let moved = fs.rename(cx(&me), (&dir, name), (&dir, b"moved"));
        assert_eq!(status(moved), kept, "{name:?}");
    }
    let inner = find(&fs, &dir, b"a").expect("there");
    assert_eq!(status(fs.rename(cx(&me), (&inner, b"b"), (&dir, b"moved"))), kept);
    assert_eq!(status(fs.rename(cx(&me), (&dir, b"aside"), (&dir, b"link"))), kept, "over it");
    assert_eq!(fs.remove(cx(&me), &dir, b"link").err().map(|failed| failed.status), kept);
    let top = above.root();
    assert_eq!(status(above.rename(cx(&me), (&top, b"share"), (&top, b"moved"))), kept);
    // Entries next to it can be moved, into its directories as well.
    assert_eq!(status(fs.rename(cx(&me), (&dir, b"aside"), (&inner, b"moved"))), None);
    assert_eq!(std::fs::read(share.join("link/b/disk")).expect("there"), b"blocks");

    drop(claim);
    assert_eq!(status(fs.rename(cx(&me), (&inner, b"b"), (&dir, b"moved"))), None);
    assert_eq!(status(fs.rename(cx(&me), (&dir, b"link"), (&dir, b"other"))), None);
}

#[test]
fn what_lies_above_the_file_of_a_logical_unit_keeps_its_name() {
    keeps_its_way(&disk(), "above-disk");
    keeps_its_way(&memory(), "above-memory");
}
