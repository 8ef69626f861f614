//! `--read-only`: every change is refused with ROFS, and nothing changes.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use e2e::api::Api;
use e2e::nfs3::Client;
use e2e::server::{Options, Server};
use wire::nfs3::{CreateHow, Nfsstat3, Sattr3, StableHow};

use super::{Scene, mode, status};

/// Bits of ACCESS (RFC 1813 §3.3.4): MODIFY, EXTEND, DELETE.
const CHANGES: u32 = 4 | 8 | 16;
/// READ and LOOKUP.
const LOOKS: u32 = 1 | 2;

/// Every procedure that changes something, in every form.
fn changes(client: &mut Client, root: &[u8]) -> Vec<(&'static str, Nfsstat3)> {
    let file = client.lookup(root, "file").expect("file").handle;
    let dir = client.lookup(root, "dir").expect("dir").handle;
    let truncate = Sattr3 { size: Some(0), ..Sattr3::default() };
    let mut write = |stable| status(client.write(&file, 0, b"changed", stable));
    let mut all = vec![
        ("WRITE UNSTABLE", write(StableHow::UNSTABLE)),
        ("WRITE DATA_SYNC", write(StableHow::DATA_SYNC)),
        ("WRITE FILE_SYNC", write(StableHow::FILE_SYNC)),
    ];
    all.push(("SETATTR mode", status(client.setattr(&file, mode(0o600)))));
    all.push(("SETATTR size", status(client.setattr(&file, truncate))));
    for (what, how) in [
        ("CREATE UNCHECKED", CreateHow::Unchecked(mode(0o644))),
        ("CREATE GUARDED", CreateHow::Guarded(mode(0o644))),
        ("CREATE EXCLUSIVE", CreateHow::Exclusive(*b"verifier")),
    ] {
        all.push((what, status(client.create(root, "new", how))));
    }
    let over = CreateHow::Unchecked(truncate);
    all.push(("CREATE over a file", status(client.create(root, "file", over))));
    all.push(("MKDIR", status(client.mkdir(root, "new", mode(0o755)))));
    all.push(("SYMLINK", status(client.symlink(root, "new", "file"))));
    all.push(("MKNOD", status(client.mkfifo(root, "new", mode(0o644)))));
    all.push(("REMOVE", status(client.remove(root, "file", false))));
    all.push(("RMDIR", status(client.remove(root, "dir", true))));
    all.push(("RENAME", status(client.rename((root, "file"), (&dir, "moved")))));
    all.push(("LINK", status(client.link(&file, &dir, "linked"))));
    all
}

/// What a directory looks like, recursively: name, inode, mode, size, times of change.
fn picture(dir: &Path) -> Vec<(String, u64, u32, u64, i64, i64)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let m = fs::symlink_metadata(&path).expect("attributes");
        let name = path.display().to_string();
        all.push((name, m.ino(), m.mode(), m.size(), m.mtime_nsec(), m.ctime_nsec()));
        if m.is_dir() {
            all.extend(picture(&path));
        }
    }
    all.sort();
    all
}

#[test]
fn read_only_refuses_every_change() {
    let scene = Scene::new("read-only");
    fs::write(scene.dir.join("file"), "as it was").expect("a file");
    fs::create_dir(scene.dir.join("dir")).expect("a directory");
    symlink("file", scene.dir.join("link")).expect("a link");
    let before = picture(&scene.dir);
    let options = Options { args: vec!["--read-only".into()], ..scene.options() };
    let mut server = Server::start(&options);
    let (mut client, root) = server.mount(0, 0);

    for (what, status) in changes(&mut client, &root) {
        assert_eq!(status, Nfsstat3::ROFS, "{what}");
    }
    let file = client.lookup(&root, "file").expect("file").handle;
    assert_eq!(client.read_all(&file).as_deref(), Ok(&b"as it was"[..]));
    let link = client.lookup(&root, "link").expect("link").handle;
    assert_eq!(client.readlink(&link).as_deref(), Ok(&b"file"[..]));
    assert_eq!(client.access(&file, LOOKS | CHANGES), Ok(1), "ACCESS of a file");
    assert_eq!(client.access(&root, LOOKS | CHANGES), Ok(LOOKS), "ACCESS of a directory");
    assert_eq!(client.names(&root).expect("names").len(), 3);
    assert_eq!(Api::new(&scene.state).status()["shares"][0]["read_only"], true);
    assert!(server.stop().success());
    assert_eq!(picture(&scene.dir), before);

    // The same calls do change something without the option, or this test shows nothing.
    let server = scene.start();
    let (mut client, root) = server.mount(0, 0);
    let refused = changes(&mut client, &root).into_iter().filter(|(_, s)| *s == Nfsstat3::ROFS);
    assert_eq!(refused.collect::<Vec<_>>(), []);
    assert_ne!(picture(&scene.dir), before);
}
