//! Handles: valid as long as the file exists, whatever its name; clients cannot forge one.

use std::sync::Arc;

use super::{As, Bench, done, mode, root, user};
use crate::fs::{CreateHow, FileName, FileSystem};
use crate::handle::Handle;
use crate::locks::FileKey;
use crate::status::Status;

pub fn run(bench: &Bench) {
    forged(bench);
    ids(bench);
    keys(bench);
}

fn forged(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "forged");
    let good = me.create(&dir, "file", 0o644);
    let bytes = good.as_bytes();
    for at in 0..bytes.len() {
        let mut bad = bytes.to_vec();
        bad[at] ^= 0x40;
        let bad = Handle::new(&bad).expect("of that length");
        assert_eq!(me.fs.getattr(me.cx(), &bad).err(), Some(Status::BadHandle), "byte {at}");
        let _ = me.fs.file_id(&bad);
    }
    for len in 1..bytes.len() {
        let short = Handle::new(&bytes[..len]).expect("not empty");
        assert_eq!(me.fs.getattr(me.cx(), &short).err(), Some(Status::BadHandle), "{len} bytes");
        let _ = me.fs.file_id(&short);
    }
    let all = Handle::new(&[0xff; 64]).expect("64 bytes");
    assert_eq!(me.fs.getattr(me.cx(), &all).err(), Some(Status::BadHandle));
}

fn ids(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "ids");
    let (a, b) = (me.create(&dir, "a", 0o644), me.create(&dir, "b", 0o644));
    let id = |handle: &Handle| me.fs.file_id(handle);
    assert!(id(&a) != id(&b) && id(&a) != 0 && id(&dir) != id(&a));
    assert_eq!(me.fs.path_of(id(&a)), Some(b"ids/a".to_vec()));
    assert_eq!(me.fs.path_of(id(&me.fs.root())), Some(Vec::new()));
    assert_eq!(me.fs.path_of(12345), None);
    let key = FileKey::from(&me.fs.getattr(me.cx(), &b).expect("attributes"));
    let named = Some(FileName::Path(b"ids/b".to_vec()));
    assert_eq!(me.fs.describe_key(key), named, "as locks know it");
    assert_eq!(me.fs.describe_key(FileKey { fsid: !key.fsid, ..key }), None, "another's");
}

/// What locks know a file by is what its attributes say, however it is found out.
fn keys(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "keys");
    for handle in [me.create(&dir, "a", 0o644), me.create(&dir, "b", 0o644), dir] {
        let attr = me.fs.getattr(me.cx(), &handle).expect("attributes");
        assert_eq!(me.fs.file_key(me.cx(), &handle), Ok(FileKey::from(&attr)));
    }
    // Whichever operation returns the attributes.
    let made = done(me.fs.create(me.cx(), &dir, b"c", CreateHow::Guarded(mode(0o644))));
    let below = done(me.fs.mkdir(me.cx(), &dir, b"d", &mode(0o755)));
    let link = done(me.fs.symlink(me.cx(), &dir, b"e", b"c", &mode(0o777)));
    for (name, entry) in [("c", made), ("d", below), ("e", link)] {
        let key = me.fs.file_key(me.cx(), &entry.handle).expect("a key");
        let met = me.lookup(&dir, name.as_bytes()).expect("there");
        let (_, asked) = me.fs.access(me.cx(), &entry.handle, 0).expect("attributes");
        for attr in [entry.attr, met.attr, asked] {
            assert_eq!(FileKey::from(&attr), key, "{name}");
        }
    }
    let nobodys = Handle::new(&[0xff; 64]).expect("64 bytes");
    assert_eq!(me.fs.file_key(me.cx(), &nobodys), Err(Status::BadHandle));
}

/// What a client holds over a restart.
struct RetainedHandle {
    what: &'static str,
    handle: Handle,
    content: Option<&'static [u8]>,
}

pub fn run_restart(bench: Bench) {
    let reopen = bench.reopen.expect("a restart needs a way to open again");
    let held = prepare(&*bench.fs);
    let root_handle = bench.fs.root();
    assert_eq!(Arc::strong_count(&bench.fs), 1, "the old server is gone");
    drop(bench.fs);
    for round in 0..2 {
        let fs = reopen();
        assert_eq!(fs.root(), root_handle);
        check(&*fs, &held, round);
        drop(fs);
    }
    // Once more, and looked up by name first: the same handles come out.
    let fs = reopen();
    let who = root();
    let cx = super::cx(&who);
    let mut walk = fs.root();
    for name in ["restart", "b", "moved-dir", "inner"] {
        walk = fs.lookup(cx, &walk, name.as_bytes()).expect("there").0.handle;
    }
    let inner = held.iter().find(|held| held.what == "below a moved directory");
    assert_eq!(inner.map(|held| held.handle), Some(walk));
    check(&*fs, &held, 3);
}

fn prepare(fs: &dyn FileSystem) -> Vec<RetainedHandle> {
    let me = As { fs, cred: user(1000, 1000) };
    let top = me.mkdir(&fs.root(), "restart");
    let (a, b) = (me.mkdir(&top, "a"), me.mkdir(&top, "b"));
    let file = |dir: &Handle, name: &str, content: &'static [u8]| {
        let file = me.create(dir, name, 0o644);
        me.write(&file, 0, content);
        file
    };
    let plain = file(&a, "plain", b"plain");
    let renamed = file(&a, "renamed", b"renamed");
    me.rename((&a, "renamed"), (&a, "renamed-2"));
    let moved = file(&a, "moved", b"moved");
    me.rename((&a, "moved"), (&b, "moved-2"));
    let twice = file(&a, "twice", b"twice");
    me.rename((&a, "twice"), (&b, "twice-2"));
    me.rename((&b, "twice-2"), (&top, "twice-3"));
    let linked = file(&a, "linked", b"linked");
    done(fs.link(me.cx(), &linked, &b, b"linked-2"));
    done(fs.remove(me.cx(), &a, b"linked"));
    let dir = me.mkdir(&a, "dir");
    let inner = file(&dir, "inner", b"inner");
    me.rename((&a, "dir"), (&b, "moved-dir"));
    let deep = (0..40).fold(a, |dir, n| me.mkdir(&dir, &format!("level-{n}")));
    let deepest = file(&deep, "deepest", b"deepest");
    let link = done(fs.symlink(me.cx(), &a, b"link", b"target", &super::mode(0o777))).handle;
    let file_of = |what, handle, content| RetainedHandle { what, handle, content: Some(content) };
    let other = |what, handle| RetainedHandle { what, handle, content: None };
    vec![
        file_of("untouched", plain, b"plain"),
        file_of("renamed in its directory", renamed, b"renamed"),
        file_of("moved to another directory", moved, b"moved"),
        file_of("moved twice", twice, b"twice"),
        file_of("linked elsewhere, first name removed", linked, b"linked"),
        file_of("below a moved directory", inner, b"inner"),
        file_of("deep down", deepest, b"deepest"),
        other("a directory", a),
        other("a moved directory", dir),
        other("a deep directory", deep),
        other("a symbolic link", link),
    ]
}

fn check(fs: &dyn FileSystem, held: &[RetainedHandle], round: usize) {
    let me = As { fs, cred: user(1000, 1000) };
    // Another order each time, so that each handle is once the first to be looked for.
    for n in 0..held.len() {
        let RetainedHandle { what, handle, content } = &held[(n + round * 5) % held.len()];
        let attr = fs.getattr(me.cx(), handle);
        assert!(attr.is_ok(), "{what}: {attr:?} in round {round}");
        if let Some(content) = content {
            assert_eq!(me.try_read(handle).as_deref(), Ok(*content), "{what}");
        }
    }
}
