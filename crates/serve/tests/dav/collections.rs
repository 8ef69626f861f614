//! MKCOL, DELETE, COPY and MOVE.

use std::sync::Arc;

use vfs::fs::FileSystem;
use vfs::mem::MemFs;
use vfs::share::tag;

use crate::site::{over, with_site};
use crate::trees::symlink;

#[test]
fn mkcol_reports_why_not() {
    with_site(|site, alice, _| async move {
        for (line, body, expected) in [
            ("MKCOL /share/a", "", 201),
            ("MKCOL /share/a", "", 405),
            ("MKCOL /share/a/b/", "", 201),
            ("MKCOL /share/x/y", "", 409),
            ("MKCOL /share/c", "<x/>", 415),
            ("MKCOL /share", "", 405),
            ("MKCOL /", "", 405),
            ("MKCOL /new", "", 403),
        ] {
            assert_eq!(site.status(&alice, line, &[], body).await, expected, "{line}");
        }
        assert_eq!(site.put(&alice, "/share/f", &[], "x").await, 201);
        assert_eq!(site.status(&alice, "MKCOL /share/f/a", &[], "").await, 409);
        assert!(site.node(&alice, "/share/c").await.is_none());
    });
}

#[test]
fn a_slash_is_at_the_end_of_collections_only() {
    with_site(|site, alice, _| async move {
        site.put(&alice, "/share/f", &[], "one").await;
        site.status(&alice, "MKCOL /share/d/", &[], "").await;
        symlink(&site, &alice, "/share/to-f", "f").await;
        symlink(&site, &alice, "/share/to-d", "d").await;
        let set = "<D:propertyupdate xmlns:D='DAV:'><D:set><D:prop><p xmlns='u:'>v</p></D:prop>\
                   </D:set></D:propertyupdate>";
        for name in ["f", "to-f"] {
            for (method, body) in
                [("DELETE", ""), ("MOVE", ""), ("COPY", ""), ("PROPFIND", ""), ("PROPPATCH", set)]
            {
                let line = format!("{method} /share/{name}/");
                let headers = ["destination: /share/x", "depth: infinity"];
                let headers = if method == "PROPFIND" { &["depth: 0"][..] } else { &headers };
                assert_eq!(site.status(&alice, &line, headers, body).await, 404, "{line}");
            }
            let line = format!("/share/{name}/");
            assert_eq!(site.lock(&alice, &line, &[], false).await.status, 404, "LOCK {line}");
        }
        assert_eq!(site.status(&alice, "MKCOL /share/f/", &[], "").await, 405);
        assert_eq!(site.data(&alice, "/share/f").await, "one");
        assert_eq!(site.status(&alice, "PROPFIND /share/to-d/", &["depth: 0"], "").await, 207);
        // The link goes, and not what it leads to.
        assert_eq!(site.status(&alice, "DELETE /share/to-d/", &[], "").await, 204);
        assert!(site.node(&alice, "/share/to-d").await.is_none());
        assert_eq!(site.status(&alice, "DELETE /share/d/", &[], "").await, 204);
    });
}

#[test]
fn delete_takes_whole_trees() {
    with_site(|site, alice, _| async move {
        for path in ["/share/a", "/share/a/b", "/share/a/b/c"] {
            site.status(&alice, &format!("MKCOL {path}"), &[], "").await;
            for n in 0..20 {
                site.put(&alice, &format!("{path}/f{n}"), &[], "x").await;
            }
        }
        assert_eq!(site.status(&alice, "DELETE /share/a", &["depth: 0"], "").await, 400);
        assert_eq!(site.status(&alice, "DELETE /share/a/", &[], "").await, 204);
        assert!(site.node(&alice, "/share/a").await.is_none());
        assert_eq!(site.status(&alice, "DELETE /share/a", &[], "").await, 404);
        assert_eq!(site.status(&alice, "DELETE /share", &[], "").await, 403);
        site.put(&alice, "/share/f", &[], "x").await;
        let changed = ["if-match: \"other\""];
        assert_eq!(site.status(&alice, "DELETE /share/f", &changed, "").await, 412);
        assert_eq!(site.status(&alice, "DELETE /share/f", &[], "").await, 204);
    });
}

#[test]
fn copies_replace_only_when_they_may() {
    with_site(|site, alice, _| async move {
        site.put(&alice, "/share/a", &[], "one").await;
        let to = |path: &str| format!("destination: http://server:8080{path}");
        let b = to("/share/b%20c");
        assert_eq!(site.status(&alice, "COPY /share/a", &[&b], "").await, 201);
        assert_eq!(site.data(&alice, "/share/b c").await, "one");
        assert_eq!(site.status(&alice, "COPY /share/a", &[&b, "overwrite: F"], "").await, 412);
        site.put(&alice, "/share/a", &[], "two").await;
        assert_eq!(site.status(&alice, "COPY /share/a", &[&b, "overwrite: T"], "").await, 204);
        assert_eq!(site.data(&alice, "/share/b c").await, "two");
        for (destination, expected) in [
            ("destination: /share/x/y", 409),
            ("destination: /share/a", 403),
            ("destination: http://elsewhere/share/d", 502),
            ("destination: nonsense", 400),
            ("destination: /share", 403),
            ("destination: /new", 403),
            ("x: y", 400),
        ] {
            let status = site.status(&alice, "COPY /share/a", &[destination], "").await;
            assert_eq!(status, expected, "{destination}");
        }
        assert_eq!(site.status(&alice, "COPY /share/none", &[&b], "").await, 404);
    });
}

#[test]
fn trees_are_copied_and_moved_between_shares() {
    with_site(|site, alice, _| async move {
        site.status(&alice, "MKCOL /share/a", &[], "").await;
        site.status(&alice, "MKCOL /share/a/b", &[], "").await;
        let long = "x".repeat(50_000);
        site.put(&alice, "/share/a/b/f", &[], &long).await;
        let flat = ["depth: 0", "destination: /share/flat"];
        assert_eq!(site.status(&alice, "COPY /share/a", &flat, "").await, 201);
        assert!(site.node(&alice, "/share/flat/b").await.is_none());
        let into = ["destination: /share/a/b/c"];
        assert_eq!(site.status(&alice, "COPY /share/a", &into, "").await, 403);
        assert_eq!(site.status(&alice, "MOVE /share/a", &into, "").await, 403);
        for (method, left) in [("COPY", true), ("MOVE", false)] {
            let to = format!("destination: /other/{method}");
            let line = format!("{method} /share/a");
            assert_eq!(site.status(&alice, &line, &[&to], "").await, 201);
            assert_eq!(site.data(&alice, &format!("/other/{method}/b/f")).await, long);
            assert_eq!(site.node(&alice, "/share/a").await.is_some(), left);
        }
        // A collection that is in the way goes as a whole.
        site.put(&alice, "/other/COPY/old", &[], "x").await;
        let over = ["destination: /other/COPY", "overwrite: T"];
        assert_eq!(site.status(&alice, "MOVE /other/MOVE", &over, "").await, 204);
        assert!(site.node(&alice, "/other/COPY/old").await.is_none());
        assert_eq!(site.data(&alice, "/other/COPY/b/f").await, long);
        // What is above the source cannot be replaced by it.
        let above = ["destination: /other/COPY"];
        assert_eq!(site.status(&alice, "MOVE /other/COPY/b/f", &above, "").await, 403);
    });
}

#[test]
fn a_move_keeps_the_file_and_its_properties() {
    with_site(|site, alice, _| async move {
        site.put(&alice, "/share/a", &[], "one").await;
        let set = "<D:propertyupdate xmlns:D='DAV:'><D:set><D:prop><p xmlns='u:'>v</p></D:prop>\
                   </D:set></D:propertyupdate>";
        assert_eq!(site.status(&alice, "PROPPATCH /share/a", &[], set).await, 207);
        let before = site.node(&alice, "/share/a").await.expect("there").key();
        let to = ["destination: /share/b"];
        assert_eq!(site.status(&alice, "MOVE /share/a", &to, "").await, 201);
        assert_eq!(site.node(&alice, "/share/b").await.expect("there").key(), before);
        let to = ["destination: /other/c"];
        assert_eq!(site.status(&alice, "COPY /share/b", &to, "").await, 201);
        site.put(&alice, "/share/b", &[], "changed").await;
        for path in ["/share/b", "/other/c"] {
            let answer = site.ask(&alice, &format!("PROPFIND {path}"), &["depth: 0"], "").await;
            assert!(answer.body.contains("<p xmlns=\"u:\">v</p>"), "{path}: {}", answer.body);
        }
    });
}

#[test]
fn what_cannot_be_changed_is_not() {
    let shares: [(&str, Arc<dyn FileSystem>); 1] = [("share", MemFs::new(tag("share"), 1 << 30))];
    over(&shares, |site, alice, _| async move {
        site.put(&alice, "/share/a", &[], "one").await;
        let root = site.node(&alice, "/share").await.expect("there");
        let mode = vfs::attr::SetAttr { mode: Some(0o755), ..Default::default() };
        site.core.set_attr(&alice, &root, mode).await.expect("root may");
        let mut nobody = alice.clone();
        let cred = vfs::cred::Cred { uid: 1_000, gid: 1_000, groups: Vec::new() };
        let person = (*nobody.person).clone();
        nobody.person = Arc::new(vfs::identity::Person { cred, ..person });
        for (line, header) in [
            ("DELETE /share/a", "x: y"),
            ("MKCOL /share/b", "x: y"),
            ("COPY /share/a", "destination: /share/b"),
            ("MOVE /share/a", "destination: /share/b"),
        ] {
            assert_eq!(site.status(&nobody, line, &[header], "").await, 403, "{line}");
        }
        assert_eq!(site.lock(&nobody, "/share/a", &[], false).await.status, 403);
        assert_eq!(site.lock(&nobody, "/share/new", &[], false).await.status, 403);
        assert!(site.dav.locks.is_empty());
    });
}
