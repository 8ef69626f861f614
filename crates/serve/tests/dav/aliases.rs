//! Locks follow what they are on, by whatever path it is reached: a symbolic link, a share that
//! overlaps, a second name.

use serve::files::{Caller, Links, VPath};

use crate::scene::Scratch;
use crate::site::{Site, over, with_site};
use crate::trees::{overlapping, symlink};

/// What `who` may do to the file `/share/d/f` by the path `alias` of its directory, and to the
/// directory by `dir`: without the token nothing.
async fn all_refused(site: &Site, who: &Caller, alias: &str, dir: &str) {
    let set = "<D:propertyupdate xmlns:D='DAV:'><D:set><D:prop><p xmlns='u:'>v</p></D:prop>\
               </D:set></D:propertyupdate>";
    let file = format!("{alias}/f");
    let to = [&*format!("destination: {alias}/g")];
    assert_eq!(site.put(who, &file, &[], "x").await, 423, "PUT {file}");
    for (line, body) in [("DELETE", ""), ("MOVE", ""), ("PROPPATCH", set)] {
        let status = site.status(who, &format!("{line} {file}"), &to, body).await;
        assert_eq!(status, 423, "{line} {file}");
    }
    let onto = [&*format!("destination: {file}")];
    site.put(who, "/share/other", &[], "x").await;
    for line in ["COPY", "MOVE"] {
        let status = site.status(who, &format!("{line} /share/other"), &onto, "").await;
        assert_eq!(status, 423, "{line} onto {file}");
    }
    for shared in [true, false] {
        assert_eq!(site.lock(who, &file, &[], shared).await.status, 423, "LOCK {file}");
    }
    // What is around it would go or move with it.
    let away = ["destination: /share/away"];
    for line in ["DELETE", "MOVE"] {
        let status = site.status(who, &format!("{line} {dir}"), &away, "").await;
        assert!([207, 423].contains(&status), "{line} {dir}: {status}");
    }
    assert_eq!(site.data(who, "/share/d/f").await, "one");
}

/// By its token the holder may do everything by the other path too.
async fn holder_may(site: &Site, who: &Caller, token: &str, (own, alias): (&str, &str)) {
    let (with, file) = (format!("if: (<{token}>)"), format!("{alias}/f"));
    assert_eq!(site.put(who, &file, &[&with], "two").await, 204);
    assert_eq!(site.put(who, own, &[], "x").await, 423, "it is locked still");
    assert_eq!(site.put(who, &file, &[&with], "three").await, 204);
    let ask = "<propfind xmlns='DAV:'><prop><lockdiscovery/></prop></propfind>";
    for (path, depth) in [(file.as_str(), "depth: 0"), (alias, "depth: 1")] {
        let found = site.ask(who, &format!("PROPFIND {path}"), &[depth], ask).await;
        assert!(found.body.contains(token), "PROPFIND {path}");
    }
    assert_eq!(site.status(who, &format!("LOCK {file}"), &[&with], "").await, 200, "a refresh");
    assert_eq!(site.status(who, &format!("DELETE {file}"), &[&with], "").await, 204);
    assert!(site.dav.locks.is_empty(), "it has ended with its file");
}

#[test]
fn a_link_leads_past_no_lock() {
    with_site(|site, alice, otto| async move {
        site.status(&alice, "MKCOL /share/d", &[], "").await;
        symlink(&site, &alice, "/share/l", "d").await;
        symlink(&site, &alice, "/share/up", ".").await;
        site.put(&alice, "/share/d/f", &[], "one").await;
        let token = site.lock(&alice, "/share/d/f", &[], false).await.token();
        for who in [&alice, &otto] {
            all_refused(&site, who, "/share/l", "/share/up/d").await;
        }
        holder_may(&site, &alice, &token, ("/share/d/f", "/share/l")).await;
    });
}

#[test]
fn a_share_that_overlaps_leads_past_no_lock() {
    let scratch = Scratch::new();
    let shares = overlapping(&scratch);
    over(&shares, |site, alice, otto| async move {
        // `/share/d` of the checks is `/sub/d`.
        site.status(&alice, "MKCOL /sub/d", &[], "").await;
        symlink(&site, &alice, "/share/d", "sub/d").await;
        site.put(&alice, "/sub/d/f", &[], "one").await;
        let token = site.lock(&alice, "/share/sub/d/f", &[], false).await.token();
        for who in [&alice, &otto] {
            all_refused(&site, who, "/sub/d", "/sub/d").await;
        }
        holder_may(&site, &alice, &token, ("/share/sub/d/f", "/sub/d")).await;
    });
}

#[test]
fn a_collection_is_locked_with_its_members_by_every_path() {
    let scratch = Scratch::new();
    let shares = overlapping(&scratch);
    over(&shares, |site, alice, otto| async move {
        site.status(&alice, "MKCOL /sub/d", &[], "").await;
        site.put(&alice, "/sub/d/f", &[], "one").await;
        symlink(&site, &alice, "/sub/l", "d").await;
        // Above the root of the share that the others come by.
        let lock = site.lock(&alice, "/share/sub", &[], false).await;
        for path in ["/sub/d/f", "/sub/l/f", "/sub/d/new", "/sub/l/new"] {
            assert_eq!(site.put(&otto, path, &[], "x").await, 423, "{path}");
        }
        assert_eq!(site.status(&otto, "MKCOL /sub/l/e", &[], "").await, 423);
        assert_eq!(site.status(&otto, "DELETE /sub/l/f", &[], "").await, 423);
        assert_eq!(site.lock(&otto, "/sub/l/f", &[], true).await.status, 423);
        let token = format!("lock-token: <{}>", lock.token());
        assert_eq!(site.status(&alice, "UNLOCK /sub/l/f", &[&token], "").await, 204);
        // Depth 0: only what makes or removes names in it.
        site.lock(&alice, "/share/sub/d", &["depth: 0"], false).await;
        assert_eq!(site.put(&otto, "/sub/l/f", &[], "two").await, 204);
        assert_eq!(site.put(&otto, "/sub/l/new", &[], "x").await, 423);
        assert_eq!(site.status(&otto, "DELETE /sub/l/f", &[], "").await, 423);
    });
}

#[test]
fn a_file_of_two_names_is_locked_by_both() {
    with_site(|site, alice, otto| async move {
        site.put(&alice, "/share/a", &[], "one").await;
        let node = site.node(&alice, "/share/a").await.expect("there");
        let path = VPath::parse(b"/share/b").expect("a path");
        let spot = site.core.spot(&alice, &path, Links::Keep).await.expect("a place");
        site.core.link(&alice, &node, &spot).await.expect("a second name");
        let token = site.lock(&alice, "/share/a", &[], false).await.token();
        assert_eq!(site.put(&otto, "/share/b", &[], "x").await, 423);
        assert_eq!(site.status(&otto, "DELETE /share/b", &[], "").await, 423);
        let with = format!("if: (<{token}>)");
        assert_eq!(site.status(&alice, "DELETE /share/b", &[&with], "").await, 204);
        // The other name, and the lock on it, stay.
        assert_eq!(site.put(&otto, "/share/a", &[], "x").await, 423);
        assert_eq!(site.put(&alice, "/share/a", &[&with], "two").await, 204);
    });
}
