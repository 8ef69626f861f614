//! Files that are retained: usable by their handles until the last release, whatever removes their
//! names.

use super::{As, Bench, changed, done, mode, root};
use crate::attr::SetAttr;
use crate::fs::Stable;
use crate::status::Status;

pub fn run(bench: &Bench) {
    removed(bench);
    replaced(bench);
}

fn removed(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "retained");
    let file = me.create(&dir, "file", 0o644);
    me.write(&file, 0, b"before");
    let key = me.fs.file_key(me.cx(), &file);
    let retain = || me.fs.retain(me.cx(), &file).expect("retained");
    let (first, second) = (retain(), retain());
    me.remove(&dir, "file").expect("can be removed");
    assert_eq!(me.lookup(&dir, b"file").err(), Some(Status::NotFound), "it has no name");
    drop(first);
    assert_eq!((me.read(&file), me.attr(&file).nlink), (b"before".to_vec(), 0));
    let third = retain();
    drop(second);
    me.write(&file, 2, b"hind");
    let unstable = me.fs.write(me.cx(), &file, 6, b"!", Stable::Unstable);
    assert_eq!(done(unstable), 1);
    changed(me.fs.commit(me.cx(), &file));
    done(me.fs.setattr(me.cx(), &file, &mode(0o600), None));
    let cut = SetAttr { size: Some(3), ..SetAttr::default() };
    let attr = me.attr(&file);
    assert_eq!((me.read(&file), attr.size, attr.mode), (b"behind!".to_vec(), 7, 0o600));
    done(me.fs.setattr(me.cx(), &file, &cut, None));
    assert_eq!(me.read(&file), b"beh");
    assert_eq!(me.fs.file_key(me.cx(), &file), key);
    // The name is free for another file.
    let other = me.create(&dir, "file", 0o644);
    assert!(other != file && me.fs.file_key(me.cx(), &other) != key);
    drop(third);
    assert_eq!(me.fs.getattr(me.cx(), &file).err(), Some(Status::Stale));
    assert_eq!(me.fs.retain(me.cx(), &file).err(), Some(Status::Stale));
    assert_eq!(me.read(&other), b"");
}

fn replaced(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "replaced");
    let (old, new) = (me.create(&dir, "old", 0o644), me.create(&dir, "new", 0o644));
    me.write(&old, 0, b"old");
    me.write(&new, 0, b"new");
    let retained = me.fs.retain(me.cx(), &old).expect("retained");
    me.rename((&dir, "new"), (&dir, "old"));
    assert_eq!((me.read(&old), me.read(&new)), (b"old".to_vec(), b"new".to_vec()));
    drop(retained);
    assert_eq!(me.fs.getattr(me.cx(), &old).err(), Some(Status::Stale));
    assert_eq!(me.lookup(&dir, b"old").map(|entry| entry.handle), Ok(new));
}
