//! Rights of users to the files of an owner. Without privilege there is one user, and only what
//! concerns an owner is checked.

use super::{As, Bench, done, mode, refused, root, user};
use crate::attr::SetAttr;
use crate::cred::Cred;
use crate::fs::{CreateHow, access};
use crate::status::Status;

pub fn run(bench: &Bench) {
    owner_without_bits(bench);
    if bench.privileged {
        matrix(bench);
        new_files_belong_to_their_maker(bench);
        revocation(bench);
        giving_away(bench);
        directories(bench);
        set_id_bits(bench);
    }
}

/// NFSv3 has no OPEN: an untar makes a file without write permission and then writes to it.
fn owner_without_bits(bench: &Bench) {
    let me = As::new(bench, user(1000, 1000));
    let dir = me.mkdir(&me.fs.root(), "own-0000");
    let file = me.create(&dir, "file", 0o000);
    me.write(&file, 0, b"mine");
    assert_eq!(me.read(&file), b"mine");
    let cut = SetAttr { size: Some(2), ..SetAttr::default() };
    done(me.fs.setattr(me.cx(), &file, &cut, None));
    assert_eq!(me.read(&file), b"mi");
    if bench.privileged {
        let (granted, _) = me.fs.access(me.cx(), &file, access::READ).expect("asked");
        assert_eq!(granted, 0, "ACCESS tells what the bits say");
    }
}

fn matrix(bench: &Bench) {
    let owner = As::new(bench, user(1000, 100));
    let dir = owner.mkdir(&owner.fs.root(), "matrix");
    let extra = Cred { uid: 1002, gid: 200, groups: vec![300, 100] };
    let callers = [
        (user(1000, 999), 6, true),
        (user(1001, 100), 3, false),
        (extra, 3, false),
        (user(1003, 200), 0, false),
    ];
    for bits in [0o000, 0o400, 0o200, 0o100, 0o040, 0o020, 0o010, 0o004, 0o002, 0o001, 0o777] {
        let name = format!("f{bits:o}");
        let file = owner.create(&dir, &name, bits);
        for (cred, shift, owns) in &callers {
            let who = As::new(bench, cred.clone());
            let class = bits >> shift & 7;
            let want = access::READ | access::MODIFY | access::EXTEND | access::EXECUTE;
            let (granted, _) = who.fs.access(who.cx(), &file, want).expect("asked");
            let mut expected = if class & 4 != 0 { access::READ } else { 0 };
            expected |= if class & 2 != 0 { access::MODIFY | access::EXTEND } else { 0 };
            expected |= if class & 1 != 0 { access::EXECUTE } else { 0 };
            assert_eq!(granted, expected, "{cred:?} on {bits:o}");
            // Twice: the second time from the cache of open files.
            for _ in 0..2 {
                let readable = class & 4 != 0 || *owns;
                assert_eq!(who.try_read(&file).is_ok(), readable, "{cred:?} reads {bits:o}");
                let writable = class & 2 != 0 || *owns;
                let wrote = who.try_write(&file, b"x").is_ok();
                assert_eq!(wrote, writable, "{cred:?} writes {bits:o}");
            }
        }
        let su = As::new(bench, root());
        assert!(su.try_read(&file).is_ok() && su.try_write(&file, b"x").is_ok());
        let (granted, _) = su.fs.access(su.cx(), &file, access::EXECUTE).expect("asked");
        assert_eq!(granted != 0, bits & 0o111 != 0, "root runs what somebody may run");
    }
}

fn new_files_belong_to_their_maker(bench: &Bench) {
    let su = As::new(bench, root());
    let dir = su.mkdir(&su.fs.root(), "makers");
    for cred in [user(1000, 100), user(1001, 200), root(), user(1000, 100)] {
        let who = As::new(bench, cred.clone());
        let name = format!("by-{}-{}", cred.uid, who.list(&dir, 100, |_| {}).len());
        let attr = who.attr(&who.create(&dir, &name, 0o644));
        assert_eq!((attr.uid, attr.gid), (cred.uid, cred.gid));
        let attr = who.attr(&who.mkdir(&dir, &format!("{name}.d")));
        assert_eq!((attr.uid, attr.gid), (cred.uid, cred.gid));
        let link = format!("{name}.l");
        let link = who.fs.symlink(who.cx(), &dir, link.as_bytes(), b"t", &mode(0o777));
        assert_eq!(done(link).attr.uid, cred.uid);
    }
}

fn revocation(bench: &Bench) {
    let owner = As::new(bench, user(1000, 100));
    let other = As::new(bench, user(1001, 200));
    let dir = owner.mkdir(&owner.fs.root(), "revocation");
    let file = owner.create(&dir, "file", 0o666);
    assert!(other.try_write(&file, b"yes").is_ok() && other.try_read(&file).is_ok());
    done(owner.fs.setattr(owner.cx(), &file, &mode(0o600), None));
    assert_eq!(other.try_read(&file).err(), Some(Status::Access), "an open file is no excuse");
    assert_eq!(other.try_write(&file, b"no").err(), Some(Status::Access));
    done(owner.fs.setattr(owner.cx(), &file, &mode(0o604), None));
    assert_eq!(other.read(&file), b"yes");
    assert_eq!(refused(other.fs.setattr(other.cx(), &file, &mode(0o666), None)), Status::NotOwner);
}

fn giving_away(bench: &Bench) {
    let owner = As::new(bench, user(1000, 100));
    let su = As::new(bench, root());
    let dir = owner.mkdir(&owner.fs.root(), "giving");
    let file = owner.create(&dir, "file", 0o600);
    owner.write(&file, 0, b"mine");
    let give = SetAttr { uid: Some(1001), ..SetAttr::default() };
    assert_eq!(refused(owner.fs.setattr(owner.cx(), &file, &give, None)), Status::NotOwner);
    done(su.fs.setattr(su.cx(), &file, &give, None));
    assert_eq!(owner.try_read(&file).err(), Some(Status::Access));
    assert_eq!(As::new(bench, user(1001, 5)).read(&file), b"mine");
}

fn directories(bench: &Bench) {
    let owner = As::new(bench, user(1000, 100));
    let other = As::new(bench, user(1001, 200));
    let dir = owner.mkdir(&owner.fs.root(), "private");
    owner.create(&dir, "file", 0o666);
    let set = |bits| done(owner.fs.setattr(owner.cx(), &dir, &mode(bits), None));
    set(0o700);
    let how = CreateHow::Unchecked(mode(0o644));
    assert_eq!(other.lookup(&dir, b"file").err(), Some(Status::Access));
    assert_eq!(other.lookup(&dir, b"missing").err(), Some(Status::Access));
    let listed = other.fs.list(other.cx(), &dir, 0, [0; 8], false, &mut |_| true);
    assert_eq!(listed.err(), Some(Status::Access));
    assert_eq!(refused(other.fs.create(other.cx(), &dir, b"new", how)), Status::Access);
    assert_eq!(other.remove(&dir, "file"), Err(Status::Access));
    set(0o711);
    assert!(other.lookup(&dir, b"file").is_ok());
    set(0o755);
    assert_eq!(other.list(&dir, 10, |_| {}), [b"file"]);
    assert_eq!(refused(other.fs.create(other.cx(), &dir, b"new", how)), Status::Access);
    set(0o1777);
    assert_eq!(other.remove(&dir, "file"), Err(Status::NotOwner), "the sticky bit protects");
    assert!(other.fs.create(other.cx(), &dir, b"new", how).is_ok());
    other.remove(&dir, "new").expect("one's own");
}

fn set_id_bits(bench: &Bench) {
    let owner = As::new(bench, user(1000, 100));
    let other = As::new(bench, user(1001, 200));
    let dir = owner.mkdir(&owner.fs.root(), "set-id");
    let file = owner.create(&dir, "file", 0o4777);
    assert_eq!(owner.attr(&file).mode, 0o4777);
    assert!(other.try_write(&file, b"replaced").is_ok());
    assert_eq!(other.attr(&file).mode, 0o777, "a stranger's program must not run as the owner");
}
