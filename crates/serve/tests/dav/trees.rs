//! Trees that are deeper than the longest path, and copies that would have no end.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use serve::files::{Caller, Links, VPath};
use serve::http::select::Validators;
use vfs::fs::FileSystem;
use vfs::host::{HostFs, HostOptions};
use vfs::share::tag;

use crate::scene::Scratch;
use crate::scripted::Scripted;
use crate::site::{Site, over, with_site};

/// Nested directories: a path of them is as long as PATH_MAX with their names alone.
const LEVELS: usize = 2_000;

/// Makes `levels` nested directories, each by a call relative to the one around it, and a file in
/// the last one.
fn dig(top: &Path, levels: usize) {
    let mut at = File::open(top).expect("a folder");
    for _ in 0..levels {
        let inner = format!("/proc/self/fd/{}/dd", at.as_raw_fd());
        std::fs::create_dir(&inner).expect("one more");
        at = File::open(&inner).expect("opened");
    }
    std::fs::write(format!("/proc/self/fd/{}/file", at.as_raw_fd()), "at the end").expect("a file");
}

/// The number of nested directories, and the content of the file in the last one.
fn depth(top: &Path) -> (usize, String) {
    let (mut at, mut levels) = (File::open(top).expect("a folder"), 0);
    while let Ok(inner) = File::open(format!("/proc/self/fd/{}/dd", at.as_raw_fd())) {
        (at, levels) = (inner, levels + 1);
    }
    let file = format!("/proc/self/fd/{}/file", at.as_raw_fd());
    (levels, std::fs::read_to_string(file).unwrap_or_default())
}

pub async fn symlink(site: &Site, who: &Caller, path: &str, target: &str) {
    let path = VPath::parse(path.as_bytes()).expect("a path");
    let spot = site.core.spot(who, &path, Links::Keep).await.expect("a place");
    site.core.symlink(who, &spot, target.as_bytes()).await.expect("a link");
}

/// Two shares: a folder, and the folder `sub` within it.
pub fn overlapping(scratch: &Scratch) -> [(&'static str, Arc<dyn FileSystem>); 2] {
    let sub = scratch.0.join("share/sub");
    std::fs::create_dir(&sub).expect("a folder");
    let inner = HostFs::open(&sub, HostOptions::new(tag("sub"), [7; 32])).expect("a share");
    [("share", scratch.share()), ("sub", inner)]
}

#[test]
fn trees_deeper_than_any_path_are_copied_and_removed() {
    let scratch = Scratch::in_memory();
    let share = scratch.0.join("share");
    std::fs::create_dir(share.join("deep")).expect("a folder");
    dig(&share.join("deep"), LEVELS);
    over(&[("share", scratch.share())], |site, alice, _| async move {
        let to = ["destination: /share/copy"];
        assert_eq!(site.status(&alice, "COPY /share/deep", &to, "").await, 201);
        assert_eq!(depth(&share.join("copy")), (LEVELS, "at the end".to_owned()));
        for tree in ["deep", "copy"] {
            let answer = site.ask(&alice, &format!("DELETE /share/{tree}"), &[], "").await;
            assert_eq!(answer.status, 204, "{tree}: {}", answer.body);
            assert!(!share.join(tree).exists(), "{tree}");
        }
    });
}

#[test]
fn what_is_too_deep_is_reported_and_the_server_continues() {
    let scratch = Scratch::in_memory();
    let share = scratch.0.join("share");
    std::fs::create_dir(share.join("deep")).expect("a folder");
    let levels = base::limits::DAV_TREE_DEPTH_MAX + 20;
    dig(&share.join("deep"), levels);
    over(&[("share", scratch.share())], move |site, alice, _| async move {
        let to = ["destination: /share/copy"];
        let answer = site.ask(&alice, "COPY /share/deep", &to, "").await;
        assert_eq!(answer.status, 207, "{}", answer.body);
        // As far down as a client can name anything.
        let hrefs = answer.hrefs();
        assert_eq!(hrefs.len(), 1, "{hrefs:?}");
        let href = hrefs.first().expect("one");
        let most = base::limits::TRANSFER_PATH_MAX;
        assert!(href.starts_with("/share/copy/dd/dd/") && href.len() <= most + 1, "{href}");
        let removed = site.ask(&alice, "DELETE /share/copy", &[], "").await;
        assert_eq!(removed.status, 204, "{}", removed.body);
        assert_eq!(site.status(&alice, "DELETE /share/deep", &[], "").await, 207);
        assert_eq!(depth(&share.join("deep")).0, levels);
        // With some of it out of the way, the rest goes.
        std::fs::rename(share.join("deep/dd".to_owned() + &"/dd".repeat(99)), share.join("rest"))
            .expect("moved");
        for tree in ["deep", "rest"] {
            assert_eq!(site.status(&alice, &format!("DELETE /share/{tree}"), &[], "").await, 204);
        }
    });
}

#[test]
fn wide_trees_are_copied_whole() {
    with_site(|site, alice, _| async move {
        // More entries at each level than a walk keeps over all of them.
        let (wide, levels) = (700, 5);
        let mut path = "/share/wide".to_owned();
        site.status(&alice, &format!("MKCOL {path}"), &[], "").await;
        for _ in 0..levels {
            for n in 0..wide {
                let made = site.status(&alice, &format!("MKCOL {path}/d{n}"), &[], "").await;
                assert_eq!(made, 201);
            }
            path = format!("{path}/d350");
        }
        let to = ["destination: /other/wide"];
        assert_eq!(site.status(&alice, "COPY /share/wide", &to, "").await, 201);
        let mut path = "/other/wide".to_owned();
        for _ in 0..levels {
            for n in 0..wide {
                assert!(site.node(&alice, &format!("{path}/d{n}")).await.is_some(), "{path}/d{n}");
            }
            path = format!("{path}/d350");
        }
        assert_eq!(site.status(&alice, "DELETE /other/wide", &[], "").await, 204);
        assert!(site.node(&alice, "/other/wide").await.is_none());
    });
}

#[test]
fn nothing_is_copied_into_itself_through_a_link() {
    with_site(|site, alice, _| async move {
        site.status(&alice, "MKCOL /share/d", &[], "").await;
        site.status(&alice, "MKCOL /share/d/e", &[], "").await;
        site.put(&alice, "/share/d/f", &[], "one").await;
        symlink(&site, &alice, "/share/l", "d").await;
        symlink(&site, &alice, "/share/d/up", "..").await;
        for (from, to) in [
            ("/share/d", "/share/l/x"),
            ("/share/d", "/share/l/e/x"),
            ("/share/d", "/share/l/up/d/x"),
            ("/share/l", "/share/d/x"),
        ] {
            let header = [format!("destination: {to}")];
            let header = [header[0].as_str()];
            let status = site.status(&alice, &format!("COPY {from}"), &header, "").await;
            assert_eq!(status, 403, "COPY {from} to {to}");
        }
        let to = ["destination: /share/l/x"];
        assert_eq!(site.status(&alice, "MOVE /share/d", &to, "").await, 403);
        for gone in ["/share/d/x", "/share/d/e/x"] {
            assert!(site.node(&alice, gone).await.is_none(), "{gone}");
        }
        // Without what is in it there is no danger.
        let flat = ["depth: 0", "destination: /share/l/x"];
        assert_eq!(site.status(&alice, "COPY /share/d", &flat, "").await, 201);
        assert_eq!(site.data(&alice, "/share/d/f").await, "one");
    });
}

#[test]
fn nothing_is_copied_into_itself_through_another_share() {
    let scratch = Scratch::in_memory();
    let shares = overlapping(&scratch);
    let share = scratch.0.join("share");
    std::fs::create_dir_all(share.join("sub/in")).expect("folders");
    over(&shares, move |site, alice, _| async move {
        for (from, to) in [("/share/sub", "/sub/x"), ("/share/sub", "/sub/in/x")] {
            for method in ["COPY", "MOVE"] {
                let header = format!("destination: {to}");
                let line = format!("{method} {from}");
                let status = site.status(&alice, &line, &[&header], "").await;
                assert_eq!(status, 403, "{method} {from} to {to}");
            }
        }
        assert!(!share.join("sub/x").exists() && !share.join("sub/in/x").exists());
        // To a path next to it, the copy succeeds.
        let beside = ["destination: /sub/copy"];
        assert_eq!(site.status(&alice, "COPY /share/sub/in", &beside, "").await, 201);
    });
}

#[test]
fn a_mount_is_a_member_and_is_not_copied_in_silence() {
    let fs: Arc<dyn FileSystem> = Scripted::with_mount();
    let other: Arc<dyn FileSystem> = vfs::mem::MemFs::new(tag("other"), 1 << 20);
    over(&[("share", fs), ("other", other)], |site, alice, _| async move {
        assert_eq!(site.put(&alice, "/share/f", &[], "data").await, 201);
        let find = site.ask(&alice, "PROPFIND /share", &["Depth: 1"], "").await;
        assert_eq!(find.status, 207);
        assert!(find.hrefs().contains(&"/share/mounted/".to_owned()), "{:?}", find.hrefs());
        let denied = site.status(&alice, "PROPFIND /share/mounted", &["Depth: 0"], "").await;
        assert_eq!(denied, 403);
        let to = "Destination: http://server:8080/other/copy";
        let copied = site.ask(&alice, "COPY /share", &[to], "").await;
        assert_eq!(copied.status, 207);
        assert_eq!(copied.hrefs(), ["/other/copy/mounted/"], "{}", copied.body);
        assert!(copied.body.contains(" 403 "), "{}", copied.body);
        assert_eq!(site.data(&alice, "/other/copy/f").await, "data");
    });
}

#[test]
fn conditions_hold_for_all_methods() {
    with_site(|site, alice, _| async move {
        let set = "<D:propertyupdate xmlns:D='DAV:'><D:set><D:prop><p xmlns='u:'>v</p></D:prop>\
                   </D:set></D:propertyupdate>";
        let info = "<lockinfo xmlns='DAV:'><lockscope><exclusive/></lockscope><locktype><write/>\
                    </locktype></lockinfo>";
        let to = "destination: /share/g";
        site.put(&alice, "/share/f", &[], "one").await;
        let attr = site.node(&alice, "/share/f").await.expect("there").attr;
        let old = format!("if-match: {}", Validators::of(&attr).etag);
        site.put(&alice, "/share/f", &[], "two").await;
        for (method, body) in
            [("MOVE", ""), ("COPY", ""), ("PROPPATCH", set), ("LOCK", info), ("DELETE", "")]
        {
            for field in [old.as_str(), "if-none-match: *"] {
                let line = format!("{method} /share/f");
                let status = site.status(&alice, &line, &[to, field], body).await;
                assert_eq!(status, 412, "{method} with {field}");
            }
            assert_eq!(site.data(&alice, "/share/f").await, "two", "{method}");
            assert!(site.node(&alice, "/share/g").await.is_none(), "{method}");
        }
        assert!(site.dav.locks.is_empty());
        let attr = site.node(&alice, "/share/f").await.expect("there").attr;
        let now = format!("if-match: {}", Validators::of(&attr).etag);
        assert_eq!(site.status(&alice, "MOVE /share/f", &[to, &now], "").await, 201);
        // What is not there yet.
        let never = "if-match: *";
        assert_eq!(site.status(&alice, "LOCK /share/new", &[never], info).await, 412);
        assert_eq!(site.status(&alice, "MKCOL /share/d", &[never], "").await, 412);
        let new = "if-none-match: *";
        assert_eq!(site.status(&alice, "LOCK /share/new", &[new], info).await, 201);
        assert_eq!(site.status(&alice, "MKCOL /share/d", &[new], "").await, 201);
        // A collection has no entity tag, but it is there.
        let any = "if-match: \"any\"";
        assert_eq!(site.status(&alice, "DELETE /share/d", &[any], "").await, 412);
        assert_eq!(site.status(&alice, "DELETE /share/d", &[new], "").await, 412);
        assert_eq!(site.status(&alice, "PROPFIND /share/d", &[new, "depth: 0"], "").await, 207);
        let to = "destination: /share/e";
        assert_eq!(site.status(&alice, "MOVE /share/d", &[to, never], "").await, 201);
        let then = "if-unmodified-since: Sun, 09 Sep 2001 01:46:40 GMT";
        assert_eq!(site.status(&alice, "DELETE /share/e", &[then], "").await, 204);
    });
}
