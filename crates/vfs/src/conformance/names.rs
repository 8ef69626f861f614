//! Names: what may be looked up, made, renamed and removed; links; special files; ways out.

use super::{As, Bench, changed, cx, done, is_dir, mode, refused, root};
use crate::attr::{FileType, SetAttr};
use crate::fs::{CreateHow, Special};
use crate::handle::Handle;
use crate::status::Status;

pub fn run(bench: &Bench) {
    bad_names(bench);
    strange_names(bench);
    dots(bench);
    create_ways(bench);
    exclusive(bench);
    links(bench);
    symlinks_lead_nowhere(bench);
    special_files(bench);
    renames(bench);
    renames_of_nothing(bench);
    removals(bench);
    before_and_after(bench);
}

fn bad_names(bench: &Bench) {
    let me = As::new(bench, root());
    let top = me.fs.root();
    let long = vec![b'n'; 256];
    let cases: [(&[u8], Status); 4] = [
        (b"", Status::Invalid),
        (b"a/b", Status::Invalid),
        (b"a\0b", Status::Invalid),
        (&long, Status::NameTooLong),
    ];
    for (name, status) in cases {
        let how = CreateHow::Unchecked(mode(0o644));
        assert_eq!(me.lookup(&top, name).err(), Some(status), "{name:?}");
        assert_eq!(refused(me.fs.create(me.cx(), &top, name, how)), status);
        assert_eq!(refused(me.fs.mkdir(me.cx(), &top, name, &mode(0o755))), status);
        assert_eq!(refused(me.fs.symlink(me.cx(), &top, name, b"x", &mode(0o777))), status);
        assert_eq!(refused(me.fs.remove(me.cx(), &top, name)), status);
        assert_eq!(refused(me.fs.rename(me.cx(), (&top, name), (&top, b"y"))), status);
    }
    for dots in [&b"."[..], b".."] {
        let how = CreateHow::Unchecked(mode(0o644));
        assert_eq!(refused(me.fs.create(me.cx(), &top, dots, how)), Status::Exists);
        assert_eq!(refused(me.fs.mkdir(me.cx(), &top, dots, &mode(0o755))), Status::Exists);
        assert_eq!(refused(me.fs.remove(me.cx(), &top, dots)), Status::Invalid);
        assert_eq!(refused(me.fs.rmdir(me.cx(), &top, dots)), Status::Invalid);
        assert_eq!(refused(me.fs.rename(me.cx(), (&top, dots), (&top, b"y"))), Status::Invalid);
    }
}

fn strange_names(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "strange");
    let longest = vec![0xff; 255];
    for name in [&b"\xff\xfe"[..], b"a b\n", "日本".as_bytes(), b"-rf", &longest] {
        let how = CreateHow::Guarded(mode(0o644));
        let made = done(me.fs.create(me.cx(), &dir, name, how));
        assert_eq!(me.lookup(&dir, name).map(|e| e.handle), Ok(made.handle));
        assert!(me.list(&dir, 1, |_| {}).iter().any(|listed| listed == name));
        assert!(me.fs.path_of(me.fs.file_id(&made.handle)).is_some_and(|p| p.ends_with(name)));
    }
}

fn dots(bench: &Bench) {
    let me = As::new(bench, root());
    let top = me.fs.root();
    let a = me.mkdir(&top, "dots");
    let b = me.mkdir(&a, "below");
    assert_eq!(me.lookup(&b, b".").map(|e| e.handle), Ok(b));
    assert_eq!(me.lookup(&b, b"..").map(|e| e.handle), Ok(a));
    assert_eq!(me.lookup(&a, b"..").map(|e| e.handle), Ok(top));
    assert_eq!(me.lookup(&top, b"..").map(|e| e.handle), Ok(top), "the root is its own parent");
    let key = |dir: &Handle| me.fs.file_key(me.cx(), dir).expect("its key");
    let above = me.fs.ancestors(me.cx(), &b).expect("those above");
    for (found, dir) in above.iter().zip([b, a, top]) {
        assert!(found.is_same_inode(&key(&dir)), "{found:?}");
    }
    assert!(above.len() >= 3, "{above:?}");
    let file = me.create(&a, "file", 0o644);
    assert_eq!(me.lookup(&file, b"x").err(), Some(Status::NotDirectory));
    assert_eq!(me.lookup(&a, b"missing").err(), Some(Status::NotFound));
}

fn create_ways(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "create");
    let file = me.create(&dir, "file", 0o640);
    assert_eq!(me.attr(&file).mode, 0o640, "no umask takes bits away");
    me.write(&file, 0, b"0123456789");
    let again = CreateHow::Guarded(mode(0o644));
    assert_eq!(refused(me.fs.create(me.cx(), &dir, b"file", again)), Status::Exists);
    let open = CreateHow::Unchecked(SetAttr::default());
    let same = done(me.fs.create(me.cx(), &dir, b"file", open));
    assert_eq!((same.handle, same.attr.size), (file, 10));
    let cut = CreateHow::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
    assert_eq!(done(me.fs.create(me.cx(), &dir, b"file", cut)).attr.size, 0);
    me.mkdir(&dir, "dir");
    assert_eq!(refused(me.fs.create(me.cx(), &dir, b"dir", open)), Status::Exists);
    assert_eq!(refused(me.fs.mkdir(me.cx(), &dir, b"dir", &mode(0o755))), Status::Exists);
    let wide = done(me.fs.mkdir(me.cx(), &dir, b"wide", &mode(0o1777)));
    assert_eq!(wide.attr.mode & 0o1777, 0o1777);
}

fn exclusive(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "exclusive");
    let how = CreateHow::Exclusive(*b"\xf1verifie");
    let first = done(me.fs.create(me.cx(), &dir, b"file", how));
    let replay = done(me.fs.create(me.cx(), &dir, b"file", how));
    assert_eq!(first.handle, replay.handle);
    let other = CreateHow::Exclusive(*b"anotherv");
    assert_eq!(refused(me.fs.create(me.cx(), &dir, b"file", other)), Status::Exists);
}

fn links(bench: &Bench) {
    let me = As::new(bench, root());
    let top = me.fs.root();
    let (a, b) = (me.mkdir(&top, "links-a"), me.mkdir(&top, "links-b"));
    let file = me.create(&a, "one", 0o644);
    me.write(&file, 0, b"shared");
    let attr = done(me.fs.link(me.cx(), &file, &b, b"two"));
    assert_eq!(attr.map(|attr| attr.nlink), Some(2));
    assert_eq!(me.lookup(&b, b"two").map(|e| e.handle), Ok(file), "one file, one handle");
    assert_eq!(refused(me.fs.link(me.cx(), &file, &b, b"two")), Status::Exists);
    assert!(me.fs.link(me.cx(), &a, &b, b"dir").is_err(), "directories have one name");
    me.remove(&a, "one").expect("can be removed");
    assert_eq!((me.read(&file), me.attr(&file).nlink), (b"shared".to_vec(), 1));
    me.remove(&b, "two").expect("can be removed");
    assert_eq!(me.fs.getattr(me.cx(), &file).err(), Some(Status::Stale));
}

fn symlinks_lead_nowhere(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "symlinks");
    for (name, target) in [("out", &b"/etc"[..]), ("up", b"../../.."), ("odd", b"\xff//\x01")] {
        let link = done(me.fs.symlink(me.cx(), &dir, name.as_bytes(), target, &mode(0o777)));
        assert_eq!(link.attr.kind, FileType::Symlink);
        assert_eq!(me.fs.readlink(me.cx(), &link.handle).map(|l| l.0), Ok(target.to_vec()));
        assert_eq!(me.lookup(&link.handle, b"passwd").err(), Some(Status::NotDirectory));
        assert_eq!(me.try_read(&link.handle).err(), Some(Status::Invalid));
        assert!(me.fs.list(me.cx(), &link.handle, 0, [0; 8], false, &mut |_| true).is_err());
        let how = CreateHow::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
        assert_eq!(refused(me.fs.create(me.cx(), &dir, name.as_bytes(), how)), Status::Exists);
        assert!(me.fs.mkdir(me.cx(), &link.handle, b"x", &mode(0o755)).is_err());
    }
    let file = me.create(&dir, "file", 0o644);
    assert_eq!(me.fs.readlink(me.cx(), &file).err(), Some(Status::Invalid));
}

fn special_files(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "special");
    for (name, kind) in [("fifo", FileType::Fifo), ("socket", FileType::Socket)] {
        let special = Special { kind, rdev: (0, 0) };
        let made = done(me.fs.mknod(me.cx(), &dir, name.as_bytes(), special, &mode(0o600)));
        assert_eq!((made.attr.kind, made.attr.mode), (kind, 0o600));
        // Must not hang: the other end is not open.
        assert!(me.try_read(&made.handle).is_err() && me.try_write(&made.handle, b"x").is_err());
        assert_eq!(me.lookup(&dir, name.as_bytes()).map(|e| e.attr.kind), Ok(kind));
    }
    let special = Special { kind: FileType::Regular, rdev: (0, 0) };
    let made = me.fs.mknod(me.cx(), &dir, b"regular", special, &mode(0o600));
    assert_eq!(refused(made), Status::BadType);
    if bench.privileged {
        let null = Special { kind: FileType::Character, rdev: (1, 3) };
        let made = done(me.fs.mknod(me.cx(), &dir, b"null", null, &mode(0o666)));
        assert_eq!((made.attr.kind, made.attr.rdev), (FileType::Character, (1, 3)));
        assert!(me.try_read(&made.handle).is_err(), "devices are not ours to open");
    }
}

fn renames(bench: &Bench) {
    let me = As::new(bench, root());
    let top = me.fs.root();
    let (a, b) = (me.mkdir(&top, "rename-a"), me.mkdir(&top, "rename-b"));
    let file = me.create(&a, "file", 0o644);
    me.write(&file, 0, b"kept");
    me.rename((&a, "file"), (&a, "file2"));
    me.rename((&a, "file2"), (&b, "file3"));
    assert_eq!(me.lookup(&b, b"file3").map(|e| e.handle), Ok(file), "the handle stays");
    assert_eq!(me.read(&file), b"kept");
    assert_eq!(me.lookup(&a, b"file").err(), Some(Status::NotFound));
    let victim = me.create(&a, "victim", 0o644);
    me.rename((&b, "file3"), (&a, "victim"));
    assert_eq!(me.fs.getattr(me.cx(), &victim).err(), Some(Status::Stale));
    let dir = me.mkdir(&a, "dir");
    let inner = me.create(&dir, "inner", 0o644);
    me.rename((&a, "dir"), (&b, "moved"));
    assert_eq!(me.lookup(&dir, b"..").map(|e| e.handle), Ok(b));
    assert_eq!(me.lookup(&dir, b"inner").map(|e| e.handle), Ok(inner));
    let into_itself = me.fs.rename(me.cx(), (&b, b"moved"), (&dir, b"x"));
    assert_eq!(refused(into_itself), Status::Invalid);
    let missing = me.fs.rename(me.cx(), (&b, b"missing"), (&a, b"x"));
    assert_eq!(refused(missing), Status::NotFound);
    let full = me.fs.rename(me.cx(), (&top, b"rename-a"), (&b, b"moved"));
    assert!(matches!(refused(full), Status::NotEmpty | Status::Exists));
    assert!(me.fs.path_of(me.fs.file_id(&dir)).is_some_and(|p| p == b"rename-b/moved"));
}

/// RFC 1813 §3.3.14: two names of one file, nothing happens.
fn renames_of_nothing(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "rename-nothing");
    let file = me.create(&dir, "file", 0o644);
    done(me.fs.link(me.cx(), &file, &dir, b"link"));
    me.mkdir(&dir, "below");
    let before = me.fs.getattr(me.cx(), &dir).expect("attributes").change;
    for (from, to) in [("file", "file"), ("file", "link"), ("below", "below")] {
        me.rename((&dir, from), (&dir, to));
        let after = me.fs.getattr(me.cx(), &dir).expect("attributes").change;
        assert_eq!(after, before, "{from} to {to}");
    }
    assert_eq!(me.lookup(&dir, b"file").map(|e| e.handle), Ok(file));
    assert_eq!(me.lookup(&dir, b"link").map(|e| e.attr.nlink), Ok(2));
}

fn removals(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "remove");
    let below = me.mkdir(&dir, "below");
    let file = me.create(&below, "file", 0o644);
    assert_eq!(refused(me.fs.rmdir(me.cx(), &dir, b"below")), Status::NotEmpty);
    let wrong = refused(me.fs.remove(me.cx(), &dir, b"below"));
    assert!(matches!(wrong, Status::IsDirectory | Status::NotOwner), "{wrong:?}");
    assert_eq!(refused(me.fs.rmdir(me.cx(), &below, b"file")), Status::NotDirectory);
    me.remove(&below, "file").expect("can be removed");
    assert_eq!(me.remove(&below, "file"), Err(Status::NotFound));
    assert_eq!(me.fs.getattr(me.cx(), &file).err(), Some(Status::Stale));
    done(me.fs.rmdir(me.cx(), &dir, b"below"));
    assert_eq!(me.fs.getattr(me.cx(), &below).err(), Some(Status::Stale));
    let how = CreateHow::Guarded(mode(0o644));
    assert!(me.fs.create(me.cx(), &below, b"late", how).is_err());
}

fn before_and_after(bench: &Bench) {
    let who = root();
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "wcc");
    let was = me.attr(&dir);
    let made = changed(me.fs.mkdir(cx(&who), &dir, b"new", &mode(0o755)));
    let before = made.wcc.before.expect("known before");
    let after = made.wcc.after.expect("known after");
    assert_eq!((before.mtime, before.ctime, before.size), (was.mtime, was.ctime, was.size));
    // Directories of btrfs count no links: theirs is always 1.
    let counted = after.nlink == was.nlink + 1 || (after.nlink == 1 && was.nlink == 1);
    assert!(after.mtime >= before.mtime && counted && is_dir(&after));
    assert_eq!(after, me.attr(&dir));
    let failed = me.fs.mkdir(cx(&who), &dir, b"new", &mode(0o755)).expect_err("is there");
    assert_eq!(failed.wcc.after, Some(after), "an error tells the attributes as well");
    let file = me.create(&dir, "file", 0o644);
    let was = me.attr(&file);
    let wrote = me.fs.write(cx(&who), &file, 5, b"abc", crate::fs::Stable::FileSync);
    let wcc = changed(wrote).wcc;
    assert_eq!(wcc.before.map(|b| (b.size, b.ctime)), Some((0, was.ctime)));
    assert_eq!(wcc.after.map(|a| a.size), Some(8));
}
