//! What not every back end can do: holes, room, copies, extended attributes, access control lists,
//! the way up; and the change attribute, which every one must have.

use super::{As, Bench, changed, done, mode, refused, root, user};
use crate::acl::{Acl, AclEntry, AclKind, Tag};
use crate::attr::SetAttr;
use crate::fs::{Context, CreateHow, Seek, SetXattr, Stable, access};
use crate::handle::Handle;
use crate::status::Status;

pub fn run(bench: &Bench) {
    change_attribute(bench);
    the_way_up(bench);
    masked_modes(bench);
    let features = bench.fs.features();
    if features.sparse {
        holes(bench);
    }
    if features.allocate {
        room(bench);
    }
    copies(bench);
    clones(bench);
    if features.xattrs {
        xattrs(bench);
        xattr_rights(bench);
    }
    if features.acls && bench.privileged {
        lists(bench);
        inherited(bench);
    }
}

/// Another number after each change, in whatever tick of the clock it comes.
fn change_attribute(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "change");
    let (mut seen, file) = (me.attr(&dir).change, me.create(&dir, "file", 0o644));
    let mut moved = |handle: &Handle, what: &str| {
        let now = me.attr(handle).change;
        assert!(now > seen, "{what}: {now} after {seen}");
        assert_eq!(me.attr(handle).change, now, "{what}: asking is no change");
        seen = now;
    };
    moved(&dir, "CREATE");
    for n in 0..10_u32 {
        let name = format!("n{n}");
        let other = me.create(&dir, &name, 0o644);
        moved(&dir, "CREATE");
        done(me.fs.link(me.cx(), &other, &dir, b"link"));
        moved(&dir, "LINK");
        me.rename((&dir, "link"), (&dir, "moved"));
        moved(&dir, "RENAME");
        me.remove(&dir, "moved").expect("there");
        moved(&dir, "REMOVE");
    }
    seen = me.attr(&file).change;
    let mut moved = |what: &str| {
        let now = me.attr(&file).change;
        assert!(now > seen, "{what}: {now} after {seen}");
        seen = now;
    };
    for n in 0..10 {
        let wrote = changed(me.fs.write(me.cx(), &file, n, b"x", Stable::Unstable));
        let (before, after) = (wrote.wcc.before.expect("known"), wrote.wcc.after.expect("known"));
        assert!(before.change < after.change);
        assert_eq!(me.attr(&file).change, after.change, "the reply told the last one");
        moved("WRITE");
        done(me.fs.setattr(me.cx(), &file, &mode(0o600 + n as u32 % 8), None));
        moved("SETATTR");
        done(me.fs.setattr(me.cx(), &file, &SetAttr { size: Some(n), ..SetAttr::default() }, None));
        moved("a new size");
        done(me.fs.link(me.cx(), &file, &dir, b"second"));
        moved("LINK");
        me.remove(&dir, "second").expect("there");
        moved("REMOVE of one of two names");
    }
    assert_eq!(me.lookup(&dir, b"file").expect("there").attr.change, me.attr(&file).change);
}

fn the_way_up(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "up");
    let below = me.mkdir(&dir, "below");
    let file = me.create(&dir, "file", 0o644);
    let up = |of: &Handle| me.fs.lookup_parent(me.cx(), of).map(|entry| entry.handle);
    assert_eq!(up(&below), Ok(dir));
    assert_eq!(up(&dir), Ok(me.fs.root()));
    assert_eq!(up(&me.fs.root()), Err(Status::NotFound));
    assert_eq!(up(&file), Err(Status::NotDirectory));
}

fn masked_modes(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "umask");
    let set = SetAttr { umask: Some(0o027), ..mode(0o777) };
    let file = done(me.fs.create(me.cx(), &dir, b"file", CreateHow::Guarded(set)));
    assert_eq!(file.attr.mode, 0o750);
    assert_eq!(done(me.fs.mkdir(me.cx(), &dir, b"dir", &set)).attr.mode & 0o777, 0o750);
    // The next one is not masked.
    assert_eq!(me.attr(&me.create(&dir, "plain", 0o777)).mode, 0o777);
}

fn holes(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "sparse");
    let file = me.create(&dir, "file", 0o644);
    let mib = 1 << 20;
    me.write(&file, 0, &[1; 1 << 20]);
    me.write(&file, 4 * mib, &[2; 1 << 20]);
    let seek = |at, what| me.fs.seek(me.cx(), &file, at, what);
    assert_eq!(seek(0, Seek::Data), Ok(Some(0)));
    assert_eq!(seek(5 * mib, Seek::Data), Err(Status::TooLarge));
    assert_eq!(seek(5 * mib - 1, Seek::Hole), Ok(Some(5 * mib)), "the end is a hole");
    // Some file systems keep data in larger pieces.
    assert!(matches!(seek(0, Seek::Hole), Ok(Some(at)) if (mib..=4 * mib).contains(&at)));
    assert!(matches!(seek(2 * mib, Seek::Data), Ok(Some(at)) if (2 * mib..=4 * mib).contains(&at)));
    match me.fs.deallocate(me.cx(), &file, mib / 2, mib) {
        Err(failed) if failed.status == Status::NotSupported => return,
        other => done(other),
    }
    let mut buf = [9; 4];
    me.fs.read(me.cx(), &file, mib / 2 - 2, &mut buf).expect("read");
    assert_eq!(buf, [1, 1, 0, 0], "exactly from there on");
    done(me.fs.deallocate(me.cx(), &file, 4 * mib, 10 * mib));
    assert_eq!(me.attr(&file).size, 5 * mib, "the size stays");
    assert_eq!(seek(3 * mib, Seek::Data), Ok(None), "nothing but a hole to the end");
    done(me.fs.deallocate(me.cx(), &file, 9 * mib, mib));
    assert_eq!(me.attr(&file).size, 5 * mib);
    assert_eq!(refused(me.fs.deallocate(me.cx(), &file, u64::MAX, 2)), Status::Invalid);
    assert_eq!(refused(me.fs.deallocate(me.cx(), &dir, 0, 2)), Status::IsDirectory);
}

fn room(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "room");
    let file = me.create(&dir, "file", 0o644);
    me.write(&file, 0, b"data");
    match me.fs.allocate(me.cx(), &file, 0, 1 << 20) {
        Err(failed) if failed.status == Status::NotSupported => return,
        other => done(other),
    }
    let attr = me.attr(&file);
    assert!(attr.size == 1 << 20 && attr.used >= 1 << 20, "{} of {}", attr.used, attr.size);
    let mut buf = [9; 6];
    me.fs.read(me.cx(), &file, 0, &mut buf).expect("read");
    assert_eq!(&buf, b"data\0\0");
    let much = me.fs.allocate(me.cx(), &file, 0, 1 << 60);
    assert!(matches!(refused(much), Status::NoSpace | Status::TooLarge));
    assert_eq!(refused(me.fs.allocate(me.cx(), &file, u64::MAX, 1)), Status::Invalid);
}

fn copies(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "copies");
    let (from, to) = (me.create(&dir, "from", 0o644), me.create(&dir, "to", 0o644));
    let data: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    me.write(&from, 0, &data);
    let copy = |at, dest, len| me.fs.copy_range(me.cx(), (&from, at), (&to, dest), len);
    let copied = changed(copy(1000, 5, 200_000));
    assert_eq!(copied.value, 200_000);
    assert_eq!(copied.wcc.after.map(|attr| attr.size), Some(200_005));
    let mut buf = vec![9; 200_005];
    me.fs.read(me.cx(), &to, 0, &mut buf).expect("read");
    assert!(buf[..5] == [0; 5] && buf[5..] == data[1000..201_000]);
    assert_eq!(done(copy(299_990, 0, 0)), 10, "to the end");
    assert_eq!(refused(copy(299_990, 0, 11)), Status::Invalid);
    assert_eq!(refused(copy(300_001, 0, 0)), Status::Invalid);
    let within = |at, dest, len| me.fs.copy_range(me.cx(), (&from, at), (&from, dest), len);
    assert_eq!(refused(within(0, 100, 101)), Status::Invalid, "ranges overlap");
    assert_eq!(done(within(0, 100, 100)), 100);
    let other = As::new(bench, user(1000, 100));
    if bench.privileged {
        let denied = other.fs.copy_range(other.cx(), (&from, 0), (&to, 0), 10);
        assert_eq!(refused(denied), Status::Access, "the target is not its own");
        let program = me.create(&dir, "program", 0o711);
        me.write(&program, 0, b"program");
        let to = me.create(&dir, "anybodys", 0o666);
        let denied = other.fs.copy_range(other.cx(), (&program, 0), (&to, 0), 7);
        assert_eq!(refused(denied), Status::Access, "it may only be executed");
    }
}

fn clones(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "clones");
    let (from, to) = (me.create(&dir, "from", 0o644), me.create(&dir, "to", 0o644));
    me.write(&from, 0, &[7; 128 << 10]);
    let cloned = me.fs.clone_range(me.cx(), (&from, 0), (&to, 0), 0);
    if !bench.fs.features().clone {
        assert!(matches!(refused(cloned), Status::NotSupported | Status::Invalid));
        assert_eq!(me.attr(&to).size, 0, "nothing was done");
        return;
    }
    if cloned.as_ref().err().map(|failed| failed.status) == Some(Status::NotSupported) {
        return;
    }
    done(cloned);
    assert_eq!(me.read(&to), vec![7; 4096]);
    assert_eq!(me.attr(&to).size, 128 << 10);
    me.write(&from, 0, b"changed");
    assert_eq!(me.read(&to), vec![7; 4096], "a clone stays as it was");
}

fn names(me: &As<'_>, file: &Handle, step: usize) -> Vec<Vec<u8>> {
    let (mut names, mut cookie, mut eof) = (Vec::new(), 0, false);
    while !eof {
        let mut left = step;
        eof = me
            .fs
            .list_xattrs(me.cx(), file, cookie, &mut |name, next| {
                if left == 0 {
                    return false;
                }
                left -= 1;
                names.push(name.to_vec());
                cookie = next;
                true
            })
            .expect("can be listed");
    }
    names
}

fn xattrs(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "xattrs");
    for at in [dir, me.create(&dir, "file", 0o644)] {
        let get = |name: &[u8]| me.fs.get_xattr(me.cx(), &at, name);
        let set = |name: &[u8], value: &[u8], how| me.fs.set_xattr(me.cx(), &at, name, value, how);
        assert_eq!(get(b"a"), Err(Status::NotFound));
        assert_eq!(refused(set(b"a", b"1", SetXattr::Replace)), Status::NotFound);
        let before = me.attr(&at).change;
        done(set(b"a", b"1", SetXattr::Create));
        assert!(me.attr(&at).change > before);
        assert_eq!(refused(set(b"a", b"2", SetXattr::Create)), Status::Exists);
        done(set(b"a", b"2", SetXattr::Either));
        done(set(b"a", b"3", SetXattr::Replace));
        assert_eq!(get(b"a"), Ok(b"3".to_vec()));
        done(set(b"empty", b"", SetXattr::Either));
        assert_eq!(get(b"empty"), Ok(Vec::new()));
        done(set(b"long", &[5; 1000], SetXattr::Either));
        assert_eq!(get(b"long"), Ok(vec![5; 1000]));
        let all: [&[u8]; 3] = [b"a", b"empty", b"long"];
        (1..4).for_each(|step| assert_eq!(names(&me, &at, step), all));
        done(me.fs.remove_xattr(me.cx(), &at, b"empty"));
        assert_eq!(refused(me.fs.remove_xattr(me.cx(), &at, b"empty")), Status::NotFound);
        assert_eq!(refused(set(b"", b"x", SetXattr::Either)), Status::Invalid);
        assert_eq!(refused(set(&[b'n'; 251], b"x", SetXattr::Either)), Status::NameTooLong);
        let huge = refused(set(b"huge", &vec![0; (64 << 10) + 1], SetXattr::Either));
        assert_eq!(huge, Status::TooLarge);
    }
    let link = done(me.fs.symlink(me.cx(), &dir, b"link", b"file", &mode(0o777))).handle;
    assert_eq!(names(&me, &link, 9), Vec::<Vec<u8>>::new());
    assert_eq!(me.fs.get_xattr(me.cx(), &link, b"a"), Err(Status::NotFound));
    // By their names in the directory.
    let at = |name: &[u8], which: &[u8]| me.fs.get_xattr_at(me.cx(), (&dir, name), which);
    assert_eq!(at(b"file", b"a"), Ok(b"3".to_vec()));
    assert_eq!(at(b"file", b"long"), Ok(vec![5; 1000]));
    for (name, which) in [(b"file".as_slice(), b"b"), (b"none", b"a"), (b"link", b"a")] {
        assert_eq!(at(name, which), Err(Status::NotFound), "{name:?}");
    }
    assert!(at(b"..", b"a").is_err() && at(b"file/x", b"a").is_err());
    let (mut values, entries) = (Vec::new(), [b"file".as_slice(), b"none", b"link", b"file"]);
    let mut few = |value| {
        values.push(value);
        values.len() < 3
    };
    me.fs.get_xattrs_at(me.cx(), (&dir, &entries), b"a", &mut few).expect("the directory is there");
    assert_eq!(values, [Ok(b"3".to_vec()), Err(Status::NotFound), Err(Status::NotFound)]);
    let on_link = me.fs.set_xattr(me.cx(), &link, b"a", b"1", SetXattr::Either);
    assert_eq!(refused(on_link), Status::NotOwner);
}

fn xattr_rights(bench: &Bench) {
    if !bench.privileged {
        return;
    }
    let (owner, other) = (As::new(bench, user(1000, 100)), As::new(bench, user(1001, 200)));
    let dir = owner.mkdir(&owner.fs.root(), "xattr-rights");
    let file = owner.create(&dir, "file", 0o640);
    done(owner.fs.set_xattr(owner.cx(), &file, b"a", b"1", SetXattr::Either));
    assert_eq!(other.fs.get_xattr(other.cx(), &file, b"a"), Err(Status::Access));
    let set = other.fs.set_xattr(other.cx(), &file, b"a", b"2", SetXattr::Either);
    assert_eq!(refused(set), Status::Access);
    assert_eq!(refused(other.fs.remove_xattr(other.cx(), &file, b"a")), Status::Access);
    done(owner.fs.setattr(owner.cx(), &file, &mode(0o644), None));
    assert_eq!(other.fs.get_xattr(other.cx(), &file, b"a"), Ok(b"1".to_vec()));
}

fn with_user(uid: u32, perm: u8, mask: u8) -> Acl {
    let entry = |tag, perm| AclEntry { tag, perm };
    let (named, mask) = (entry(Tag::User(uid), perm), entry(Tag::Mask, mask));
    let fixed = [entry(Tag::UserObj, 6), entry(Tag::GroupObj, 0), entry(Tag::Other, 0)];
    Acl::new([&fixed[..], &[named, mask]].concat()).expect("makes sense")
}

fn lists(bench: &Bench) {
    let (owner, other) = (As::new(bench, user(1000, 100)), As::new(bench, user(1001, 200)));
    let dir = owner.mkdir(&owner.fs.root(), "lists");
    let file = owner.create(&dir, "file", 0o600);
    owner.write(&file, 0, b"secret");
    let set =
        |who: &As<'_>, acl: Option<&Acl>| who.fs.set_acl(who.cx(), &file, AclKind::Access, acl);
    let get = || owner.fs.get_acl(owner.cx(), &file, AclKind::Access).expect("asked");
    assert_eq!(get(), None);
    assert_eq!(other.try_read(&file), Err(Status::Access));
    let list = with_user(1001, 6, 6);
    done(set(&owner, Some(&list)));
    assert_eq!(get(), Some(list));
    assert_eq!(owner.attr(&file).mode, 0o660, "the group's bits show the mask");
    assert_eq!(other.read(&file), b"secret");
    assert!(other.try_write(&file, b"S").is_ok());
    let may = |who: &As<'_>| {
        let pool = Context { may_block: true, ..who.cx() };
        who.fs.access(pool, &file, access::READ | access::MODIFY).expect("asked").0
    };
    assert_eq!(may(&other), access::READ | access::MODIFY);
    // At once, though the clock may not have moved.
    done(set(&owner, Some(&with_user(1001, 4, 4))));
    assert_eq!((may(&other), other.try_write(&file, b"x")), (access::READ, Err(Status::Access)));
    assert_eq!(refused(set(&other, Some(&with_user(1001, 7, 7)))), Status::NotOwner);
    done(set(&owner, None));
    assert_eq!((get(), other.try_read(&file)), (None, Err(Status::Access)));
    done(set(&owner, None));
    let plain = Acl::from_mode(0o644);
    done(set(&owner, Some(&plain)));
    assert_eq!((get(), owner.attr(&file).mode), (None, 0o644), "no more than a mode says");
    let on_file = owner.fs.set_acl(owner.cx(), &file, AclKind::Default, Some(&plain));
    assert_eq!(refused(on_file), Status::Invalid);
    assert_eq!(owner.fs.get_acl(owner.cx(), &file, AclKind::Default), Ok(None));
}

fn inherited(bench: &Bench) {
    let owner = As::new(bench, user(1000, 100));
    let dir = owner.mkdir(&owner.fs.root(), "inherited");
    let list = with_user(1001, 6, 6);
    done(owner.fs.set_acl(owner.cx(), &dir, AclKind::Default, Some(&list)));
    assert_eq!(owner.fs.get_acl(owner.cx(), &dir, AclKind::Default), Ok(Some(list.clone())));
    // The umask is for directories without a default list (RFC 8275).
    let set = SetAttr { umask: Some(0o077), ..mode(0o666) };
    let how = CreateHow::Guarded(set);
    let file = done(owner.fs.create(owner.cx(), &dir, b"file", how)).handle;
    let got = owner.fs.get_acl(owner.cx(), &file, AclKind::Access).expect("asked");
    assert_eq!(got.expect("inherited").perm(Tag::User(1001)), Some(6));
    assert_eq!(owner.attr(&file).mode & 0o070, 0o060);
    done(owner.fs.set_acl(owner.cx(), &dir, AclKind::Default, None));
    assert_eq!(owner.fs.get_acl(owner.cx(), &dir, AclKind::Default), Ok(None));
}
