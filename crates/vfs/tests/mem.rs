//! The back end in memory, held to the conformance suite.

use vfs::attr::SetAttr;
use vfs::conformance::{self, Bench};
use vfs::cred::Cred;
use vfs::fs::{CreateHow, FileSystem};
use vfs::mem::MemFs;
use vfs::status::Status;

#[test]
fn conforms() {
    let fs = MemFs::new(vfs::share::tag("test"), 1 << 30);
    conformance::run(&Bench { fs, privileged: true, reopen: None });
}

#[test]
fn names_come_to_an_end_of_room() {
    let fs = MemFs::bounded(vfs::share::tag("test"), 1 << 30, 3);
    let who = Cred::root();
    let cx = conformance::cx(&who);
    let files = || fs.space(cx).expect("known").free_files;
    let before = files();
    let (root, how) = (fs.root(), CreateHow::Guarded(SetAttr::default()));
    let made = fs.create(cx, &root, b"a", how).expect("room").value.handle;
    fs.link(cx, &made, &root, b"b").expect("room");
    fs.rename(cx, (&root, b"a"), (&root, b"c")).expect("no more names than before");
    assert_eq!(files(), before - 2);
    fs.create(cx, &root, b"d", how).expect("room");
    fs.rename(cx, (&root, b"d"), (&root, b"c")).expect("one name fewer");
    assert_eq!(files(), before - 2);
    fs.create(cx, &root, b"e", how).expect("the last");
    let full = |status: Option<vfs::fs::Failed>| {
        assert_eq!(status.expect("full").status, Status::NoSpace);
    };
    full(fs.create(cx, &root, b"f", how).err());
    full(fs.mkdir(cx, &root, b"f", &SetAttr::default()).err());
    full(fs.link(cx, &made, &root, b"f").err());
    fs.rename(cx, (&root, b"e"), (&root, b"f")).expect("takes no room");
    fs.remove(cx, &root, b"f").expect("there");
    fs.remove(cx, &root, b"b").expect("there");
    fs.remove(cx, &root, b"c").expect("there");
    assert_eq!(files(), before);
}
