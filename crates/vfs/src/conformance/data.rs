//! Data and attributes: reads, writes, holes, truncation, times, guards.

use super::{As, Bench, changed, done, mode, refused, root};
use crate::attr::{SetAttr, SetTime, Time};
use crate::fs::Stable;
use crate::status::Status;

pub fn run(bench: &Bench) {
    reads_and_writes(bench);
    holes_and_sizes(bench);
    attributes(bench);
    commit(bench);
    space(bench);
}

fn reads_and_writes(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "data");
    let file = me.create(&dir, "file", 0o644);
    let mut buf = [0; 8];
    let empty = me.fs.read(me.cx(), &file, 0, &mut buf).expect("empty");
    assert_eq!((empty.count, empty.eof), (0, true));
    me.write(&file, 0, b"hello world");
    let head = me.fs.read(me.cx(), &file, 0, &mut buf).expect("head");
    assert_eq!((&buf[..head.count], head.eof, head.attr.size), (&b"hello wo"[..], false, 11));
    let tail = me.fs.read(me.cx(), &file, 8, &mut buf).expect("tail");
    assert_eq!((&buf[..tail.count], tail.eof), (&b"rld"[..], true));
    let beyond = me.fs.read(me.cx(), &file, 1 << 40, &mut buf).expect("beyond");
    assert_eq!((beyond.count, beyond.eof), (0, true));
    assert_eq!(me.try_read(&dir).err(), Some(Status::IsDirectory));
    assert_eq!(me.try_write(&dir, b"x").err(), Some(Status::IsDirectory));
    let far = me.fs.write(me.cx(), &file, u64::MAX - 1, b"xyz", Stable::Unstable);
    assert_eq!(refused(far), Status::TooLarge);
    for stable in [Stable::Unstable, Stable::DataSync, Stable::FileSync] {
        assert_eq!(changed(me.fs.write(me.cx(), &file, 0, b"J", stable)).value, 1);
    }
    assert_eq!(me.read(&file), b"Jello world");
}

fn holes_and_sizes(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "holes");
    let file = me.create(&dir, "file", 0o644);
    me.write(&file, 3 << 30, b"end");
    let attr = me.attr(&file);
    assert_eq!(attr.size, (3 << 30) + 3);
    assert!(attr.used < 1 << 20, "a hole takes no room: {}", attr.used);
    let mut buf = [1; 16];
    let hole = me.fs.read(me.cx(), &file, 1 << 30, &mut buf).expect("hole");
    assert_eq!((hole.count, buf), (16, [0; 16]));
    for size in [2, 0, 100] {
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        done(me.fs.setattr(me.cx(), &file, &set, None));
        assert_eq!(me.attr(&file).size, size);
    }
    assert_eq!(me.read(&file), vec![0; 100]);
    let set = SetAttr { size: Some(1), ..SetAttr::default() };
    assert_eq!(refused(me.fs.setattr(me.cx(), &dir, &set, None)), Status::IsDirectory);
}

fn attributes(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "attributes");
    let file = me.create(&dir, "file", 0o644);
    let was = me.attr(&file);
    let (old, new) = (Time { sec: -5, nsec: 7 }, Time { sec: 1_700_000_000, nsec: 123_456_789 });
    let set = SetAttr {
        mode: Some(0o751),
        atime: SetTime::At(old),
        mtime: SetTime::At(new),
        ..SetAttr::default()
    };
    let wcc = changed(me.fs.setattr(me.cx(), &file, &set, Some(was.ctime))).wcc;
    assert_eq!(wcc.before.map(|before| before.ctime), Some(was.ctime));
    let now = me.attr(&file);
    assert_eq!((now.mode, now.atime, now.mtime), (0o751, old, new));
    assert!(now.ctime > was.ctime);
    let late = me.fs.setattr(me.cx(), &file, &mode(0o600), Some(was.ctime));
    assert_eq!(refused(late), Status::NotSync);
    assert_eq!(me.attr(&file).mode, 0o751, "a guarded change did nothing");
    let touch = SetAttr { mtime: SetTime::Now, ..SetAttr::default() };
    done(me.fs.setattr(me.cx(), &file, &touch, None));
    assert!(me.attr(&file).mtime > new && me.attr(&file).atime == old);
    assert_eq!(me.attr(&file).fileid, me.lookup(&dir, b"file").expect("there").attr.fileid);
    assert_eq!(me.attr(&file).fsid, me.attr(&dir).fsid);
}

fn commit(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "commit");
    let file = me.create(&dir, "file", 0o644);
    let wrote = changed(me.fs.write(me.cx(), &file, 0, b"unstable", Stable::Unstable));
    assert!(wrote.flush.is_empty(), "nothing waits for an unstable write");
    done(me.fs.commit(me.cx(), &file));
    assert!(changed(me.fs.commit(me.cx(), &file)).flush.is_empty(), "all is on disk already");
    assert_eq!(refused(me.fs.commit(me.cx(), &dir)), Status::IsDirectory);
}

fn space(bench: &Bench) {
    let me = As::new(bench, root());
    let space = me.fs.space(me.cx()).expect("known");
    assert!(space.total_bytes >= space.free_bytes && space.free_bytes >= space.avail_bytes);
    assert!(space.avail_bytes > 0);
    assert_eq!(me.fs.abilities().name_max, 255);
}
