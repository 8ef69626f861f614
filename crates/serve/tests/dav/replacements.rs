//! COPY and MOVE onto what is there already: the same thing by another path, what is around the
//! source, and what is replaced.

use std::sync::Arc;

use serve::files::{Caller, Links, VPath};
use vfs::attr::{FileType, SetAttr};
use vfs::fs::{Context, CreateHow, FileSystem, Special, Stable};

use crate::planted::Planted;
use crate::scene::Scratch;
use crate::site::{Site, over, with_site};
use crate::trees::{overlapping, symlink};

async fn to(site: &Site, who: &Caller, line: &str, destination: &str) -> u16 {
    site.status(who, line, &[&format!("destination: {destination}")], "").await
}

/// The names in a directory.
async fn names(site: &Site, who: &Caller, path: &str) -> Vec<String> {
    let answer = site.ask(who, &format!("PROPFIND {path}"), &["depth: 1"], "").await;
    let mut names = answer.hrefs().split_off(1);
    names.sort();
    names
}

/// A FIFO, which WebDAV does not copy.
async fn fifo(site: &Site, who: &Caller, path: &str) {
    let path = VPath::parse(path.as_bytes()).expect("a path");
    let spot = site.core.spot(who, &path, Links::Keep).await.expect("a place");
    let cx = Context { cred: &spot.reached.cred, may_block: true };
    let special = Special { kind: FileType::Fifo, rdev: (0, 0) };
    let fs = &spot.reached.share.fs;
    fs.mknod(cx, &spot.dir, &spot.name, special, &SetAttr::default()).expect("a FIFO");
}

/// A caller with no more than the rights of all users.
fn anonymous_caller(who: &Caller) -> Caller {
    let mut anonymous_caller = who.clone();
    let cred = vfs::cred::Cred { uid: 1_000, gid: 1_000, groups: Vec::new() };
    let person = (*anonymous_caller.person).clone();
    anonymous_caller.person = Arc::new(vfs::identity::Person { cred, anonymous: true, ..person });
    anonymous_caller
}

#[test]
fn nothing_replaces_itself_through_a_link() {
    with_site(|site, alice, _| async move {
        for path in ["/share/d", "/share/d/a", "/share/d/a/b"] {
            site.status(&alice, &format!("MKCOL {path}"), &[], "").await;
        }
        site.put(&alice, "/share/d/a/b/file", &[], "precious").await;
        symlink(&site, &alice, "/share/l", "d").await;
        for method in ["COPY", "MOVE"] {
            for (from, destination) in [
                ("/share/d/a", "/share/l/a"),
                ("/share/l/a", "/share/d/a"),
                ("/share/d/a/b/file", "/share/l/a/b/file"),
                // What is around the source.
                ("/share/l/a/b", "/share/d/a"),
                ("/share/l/a/b", "/share/d"),
                ("/share/l/a/b/file", "/share/d/a/b"),
                ("/share/l/a/b/file", "/share/d"),
            ] {
                let status = to(&site, &alice, &format!("{method} {from}"), destination).await;
                assert_eq!(status, 403, "{method} {from} to {destination}");
                assert_eq!(site.data(&alice, "/share/d/a/b/file").await, "precious");
            }
        }
        // The link itself is another thing than where it leads.
        assert_eq!(to(&site, &alice, "COPY /share/l", "/share/d").await, 403);
        assert_eq!(to(&site, &alice, "COPY /share/d/a", "/share/l").await, 204);
        assert_eq!(site.data(&alice, "/share/l/b/file").await, "precious");
        assert_eq!(site.data(&alice, "/share/d/a/b/file").await, "precious");
    });
}

#[test]
fn nothing_replaces_itself_through_another_share() {
    let scratch = Scratch::new();
    let shares = overlapping(&scratch);
    let inner = scratch.0.join("share/sub/dir/inner");
    std::fs::create_dir_all(&inner).expect("folders");
    std::fs::write(inner.join("file"), "precious").expect("a file");
    over(&shares, move |site, alice, _| async move {
        for method in ["COPY", "MOVE"] {
            for (from, destination) in [
                ("/share/sub/dir", "/sub/dir"),
                ("/sub/dir", "/share/sub/dir"),
                ("/share/sub/dir/inner/file", "/sub/dir/inner/file"),
                ("/share/sub/dir/inner", "/sub/dir"),
                ("/sub/dir/inner", "/share/sub"),
                ("/sub/dir/inner/file", "/share/sub"),
            ] {
                let status = to(&site, &alice, &format!("{method} {from}"), destination).await;
                assert_eq!(status, 403, "{method} {from} to {destination}");
                let file = std::fs::read_to_string(inner.join("file"));
                assert_eq!(file.expect("the file"), "precious", "{method} {from}");
            }
        }
    });
}

#[test]
fn one_file_of_two_names_is_not_moved_onto_itself() {
    with_site(|site, alice, _| async move {
        site.put(&alice, "/share/a", &[], "one").await;
        let node = site.node(&alice, "/share/a").await.expect("there");
        let path = VPath::parse(b"/share/b").expect("a path");
        let spot = site.core.spot(&alice, &path, Links::Keep).await.expect("a place");
        site.core.link(&alice, &node, &spot).await.expect("a second name");
        for method in ["COPY", "MOVE"] {
            assert_eq!(to(&site, &alice, &format!("{method} /share/a"), "/share/b").await, 403);
        }
        assert_eq!(site.data(&alice, "/share/a").await, "one");
        assert_eq!(site.data(&alice, "/share/b").await, "one");
    });
}

/// Another client makes a file in a directory of this file system.
fn make(fs: &dyn FileSystem, dir: &[&[u8]], name: &[u8]) {
    let cred = vfs::cred::Cred::root();
    let cx = Context { cred: &cred, may_block: true };
    let step = |at, name: &&[u8]| fs.lookup(cx, &at, name).expect("there").0.handle;
    let dir = dir.iter().fold(fs.root(), step);
    let set = SetAttr { mode: Some(0o644), ..SetAttr::default() };
    let file = fs.create(cx, &dir, name, CreateHow::Guarded(set)).expect("made").value.handle;
    fs.write(cx, &file, 0, b"theirs", Stable::FileSync).expect("written");
}

#[test]
fn what_is_made_meanwhile_is_not_replaced_without_overwrite() {
    let inner = vfs::mem::MemFs::new(vfs::share::tag("share"), 1 << 20);
    let fs = Planted::over(inner.clone());
    over(&[("share", fs.clone())], move |site, alice, _| async move {
        site.put(&alice, "/share/a", &[], "ours").await;
        site.status(&alice, "MKCOL /share/d", &[], "").await;
        site.put(&alice, "/share/d/f", &[], "ours").await;
        let other = inner.clone();
        fs.before("commit", move || make(&*other, &[], b"b"));
        let keep = ["destination: /share/b", "overwrite: F"];
        assert_eq!(site.status(&alice, "COPY /share/a", &keep, "").await, 412);
        assert_eq!(site.data(&alice, "/share/b").await, "theirs");
        // A member of a tree.
        fs.before("commit", move || make(&*inner, &[b"e"], b"f"));
        let keep = ["destination: /share/e", "overwrite: F"];
        let answer = site.ask(&alice, "COPY /share/d", &keep, "").await;
        assert_eq!((answer.status, answer.hrefs()), (207, vec!["/share/e/f".to_owned()]));
        assert_eq!(site.data(&alice, "/share/e/f").await, "theirs");
        let keep = ["destination: /share/c", "overwrite: F"];
        assert_eq!(site.status(&alice, "COPY /share/a", &keep, "").await, 201);
        assert_eq!(site.status(&alice, "MOVE /share/d", &keep, "").await, 412);
        let keep = ["destination: /share/g", "overwrite: F"];
        assert_eq!(site.status(&alice, "MOVE /share/d", &keep, "").await, 201);
        assert_eq!(names(&site, &alice, "/share/g").await, ["/share/g/f"]);
    });
}

/// A destination with a path that leads through what is replaced: it is gone by that path
/// afterwards, but the response is that of the completed operation.
#[test]
fn a_folder_is_replaced_by_a_path_that_leads_through_it() {
    with_site(|site, alice, _| async move {
        for method in ["COPY", "MOVE"] {
            site.status(&alice, "MKCOL /share/d", &[], "").await;
            symlink(&site, &alice, "/share/d/up", "..").await;
            site.put(&alice, "/share/f", &[], "new").await;
            let line = format!("{method} /share/f");
            assert_eq!(to(&site, &alice, &line, "/share/d/up/d").await, 204, "{method}");
            assert_eq!(site.data(&alice, "/share/d").await, "new");
            site.status(&alice, "DELETE /share/d", &[], "").await;
        }
    });
}

#[test]
fn what_is_there_stays_until_it_can_be_replaced() {
    with_site(|site, alice, _| async move {
        for path in ["/share/new", "/share/old", "/share/old/in"] {
            site.status(&alice, &format!("MKCOL {path}"), &[], "").await;
        }
        site.put(&alice, "/share/old/in/file", &[], "precious").await;
        site.put(&alice, "/share/new/file", &[], "new").await;
        site.put(&alice, "/share/plain", &[], "plain").await;
        fifo(&site, &alice, "/share/new/fifo").await;
        fifo(&site, &alice, "/share/fifo").await;
        let before = names(&site, &alice, "/share").await;
        // The FIFO cannot be copied, and with it the whole.
        assert_eq!(to(&site, &alice, "COPY /share/new", "/share/old").await, 207);
        assert_eq!(to(&site, &alice, "COPY /share/new", "/share/plain").await, 207);
        assert_eq!(to(&site, &alice, "COPY /share/fifo", "/share/old").await, 403);
        assert_eq!(site.data(&alice, "/share/old/in/file").await, "precious");
        assert_eq!(site.data(&alice, "/share/plain").await, "plain");
        assert_eq!(names(&site, &alice, "/share").await, before, "nothing is left");
        // A move within the share needs no copy; between shares it does.
        site.status(&alice, "MKCOL /other/old", &[], "").await;
        site.put(&alice, "/other/old/file", &[], "precious").await;
        assert_eq!(to(&site, &alice, "MOVE /share/new", "/other/old").await, 207);
        assert_eq!(site.data(&alice, "/other/old/file").await, "precious");
        assert_eq!(names(&site, &alice, "/other").await, ["/other/old/"]);
        assert_eq!(to(&site, &alice, "MOVE /share/new", "/share/old").await, 204);
        assert_eq!(site.data(&alice, "/share/old/file").await, "new");
        assert!(site.node(&alice, "/share/old/in").await.is_none());
    });
}

#[test]
fn what_cannot_be_removed_is_not_replaced() {
    with_site(|site, alice, _| async move {
        for path in ["/share/new", "/share/old", "/share/old/kept"] {
            site.status(&alice, &format!("MKCOL {path}"), &[], "").await;
        }
        site.put(&alice, "/share/old/kept/file", &[], "precious").await;
        site.put(&alice, "/share/new/file", &[], "new").await;
        for (path, mode) in [("/share", 0o777), ("/share/old", 0o777), ("/share/new", 0o777)] {
            let node = site.node(&alice, path).await.expect("there");
            let mode = SetAttr { mode: Some(mode), ..SetAttr::default() };
            site.core.set_attr(&alice, &node, mode).await.expect("set");
        }
        let before = names(&site, &alice, "/share").await;
        for method in ["COPY", "MOVE"] {
            let line = format!("{method} /share/new");
            let header = ["destination: /share/old"];
            let answer = site.ask(&anonymous_caller(&alice), &line, &header, "").await;
            assert_eq!(answer.status, 207, "{method}: {}", answer.body);
            assert_eq!(answer.hrefs(), ["/share/old/kept/file"]);
            assert_eq!(site.data(&alice, "/share/old/kept/file").await, "precious");
            assert_eq!(site.data(&alice, "/share/new/file").await, "new");
            assert_eq!(names(&site, &alice, "/share").await, before, "{method}");
        }
    });
}

async fn plant(site: &Site, who: &Caller, path: &str, kind: &str) {
    match kind {
        "file" => assert_eq!(site.put(who, path, &[], "x").await, 201),
        "link" => symlink(site, who, path, "nowhere").await,
        _ => {
            assert_eq!(site.status(who, &format!("MKCOL {path}"), &[], "").await, 201);
            assert_eq!(site.put(who, &format!("{path}/in"), &[], "x").await, 201);
        }
    }
}

#[test]
fn anything_replaces_anything() {
    with_site(|site, alice, _| async move {
        for from in ["file", "tree"] {
            for over in ["file", "tree", "link"] {
                for (method, share) in [("COPY", "share"), ("MOVE", "share"), ("MOVE", "other")] {
                    let old = format!("/{share}/old");
                    plant(&site, &alice, "/share/new", from).await;
                    plant(&site, &alice, &old, over).await;
                    let line = format!("{method} /share/new");
                    assert_eq!(to(&site, &alice, &line, &old).await, 204, "{line} {from} {over}");
                    let node = site.node(&alice, &old).await.expect("there");
                    assert_eq!(node.is_dir(), from == "tree");
                    assert_eq!(node.is_file(), from == "file");
                    let all = names(&site, &alice, &format!("/{share}")).await;
                    assert!(all.iter().all(|name| !name.contains("plimsoll")), "{all:?}");
                    for path in ["/share/new", &old] {
                        site.status(&alice, &format!("DELETE {path}"), &[], "").await;
                    }
                }
            }
        }
    });
}
