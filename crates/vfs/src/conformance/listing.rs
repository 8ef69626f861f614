//! Listings: complete, without doubles, from any cookie, while the directory changes.

use std::collections::HashSet;

use super::{As, Bench, root};
use crate::attr::Attr;
use crate::fs::FileSystem;
use crate::handle::Handle;
use crate::status::Status;

/// Names that are there all the time, and that come and go.
const STABLE: usize = 50_000;
const PASSING: usize = 50_000;

pub fn run(bench: &Bench) {
    small(bench);
    plus(bench);
    large_and_changing(bench);
}

fn small(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "listing");
    assert!(me.list(&dir, 1, |_| {}).is_empty());
    for n in 0..20 {
        me.create(&dir, &format!("n{n}"), 0o644);
    }
    for step in [1, 3, 22, 100] {
        let names: HashSet<_> = me.list(&dir, step, |_| {}).into_iter().collect();
        assert_eq!(names.len(), 20, "{step} at a time");
    }
    let mut dots = Vec::new();
    let listed = me.fs.list(me.cx(), &dir, 0, [0; 8], false, &mut |entry| {
        if matches!(entry.name, b"." | b"..") {
            dots.push((entry.name.to_vec(), entry.fileid));
        }
        true
    });
    assert!(listed.expect("listed").eof);
    dots.sort();
    let (here, above) = (me.attr(&dir).fileid, me.attr(&me.fs.root()).fileid);
    assert_eq!(dots, [(b".".to_vec(), here), (b"..".to_vec(), above)]);
    let file = me.lookup(&dir, b"n0").expect("there").handle;
    let not = me.fs.list(me.cx(), &file, 0, [0; 8], false, &mut |_| true);
    assert_eq!(not.err(), Some(Status::NotDirectory));
}

fn plus(bench: &Bench) {
    let me = As::new(bench, root());
    let dir = me.mkdir(&me.fs.root(), "plus");
    let below = me.mkdir(&dir, "below");
    let file = me.create(&dir, "file", 0o640);
    me.write(&file, 0, b"12345");
    let mut seen = 0;
    let listed = me.fs.list(me.cx(), &dir, 0, [0; 8], true, &mut |entry| {
        let found = entry.entry.expect("handle and attributes");
        let expected = match entry.name {
            b"." => dir,
            b".." => me.fs.root(),
            b"below" => below,
            _ => file,
        };
        // The birth time is returned where it costs nothing.
        let attr = Attr { birth: None, ..found.attr };
        let asked = Attr { birth: None, ..me.attr(&expected) };
        assert_eq!((found.handle, attr), (expected, asked));
        assert_eq!(found.attr.fileid, entry.fileid);
        seen += 1;
        true
    });
    assert!(listed.expect("listed").eof && seen == 4);
}

fn make(me: &As<'_>, dir: &Handle, name: &str) {
    let how = crate::fs::CreateHow::Guarded(super::mode(0o644));
    // Not flushed: this is about names, and a hundred thousand of them.
    assert!(me.fs.create(me.cx(), dir, name.as_bytes(), how).is_ok());
}

fn large_and_changing(bench: &Bench) {
    let me = As::new(bench, root());
    let fs: &dyn FileSystem = &*bench.fs;
    let dir = me.mkdir(&fs.root(), "large");
    for n in 0..STABLE {
        make(&me, &dir, &format!("stable-{n}"));
        make(&me, &dir, &format!("passing-{n}"));
    }
    let (mut gone, mut new) = (0, 0);
    let names = me.list(&dir, 700, |_| {
        // Between any two calls some names go and some come.
        for _ in 0..300 {
            if gone < PASSING {
                let name = format!("passing-{gone}");
                let removed = fs.remove(me.cx(), &dir, name.as_bytes());
                assert!(removed.is_ok(), "{name}: {:?}", removed.err().map(|e| e.status));
                gone += 1;
            }
            make(&me, &dir, &format!("new-{new}"));
            new += 1;
        }
    });
    let unique: HashSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len(), "no name comes twice");
    let stable = names.iter().filter(|name| name.starts_with(b"stable-")).count();
    assert_eq!(stable, STABLE, "no name that was there all the time is missed");
    assert!(gone > 10_000 && new > 10_000, "the directory did change: {gone} {new}");
}
