//! LOCK, UNLOCK and `If`, alone and with other protocols.

use std::time::Duration;

use serve::files::upload::How;
use vfs::attr::SetAttr;
use vfs::locks::{ClientKey, Owner, Protocol, SHARE_WRITE, Share};
use wire::dav::DAV;

use crate::site::with_site;

#[test]
fn a_lock_keeps_others_out_and_lets_its_holder_in() {
    with_site(|site, alice, otto| async move {
        site.put(&alice, "/share/f", &[], "one").await;
        let answer =
            site.lock(&alice, "/share/f", &["timeout: Second-100", "depth: 0"], false).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body.contains("<D:timeout>Second-100</D:timeout>"), "{}", answer.body);
        assert!(answer.body.contains("<owner xmlns=\"DAV:\">me</owner>"));
        assert!(answer.body.contains("<D:lockroot><D:href>/share/f</D:href></D:lockroot>"));
        let with = format!("if: (<{}>)", answer.token());
        let set = "<D:propertyupdate xmlns:D='DAV:'><D:set><D:prop><p xmlns='u:'>v</p></D:prop>\
                   </D:set></D:propertyupdate>";
        for who in [&alice, &otto] {
            // Without the token no user may, not even the holder.
            assert_eq!(site.put(who, "/share/f", &[], "x").await, 423);
            assert_eq!(site.status(who, "DELETE /share/f", &[], "").await, 423);
            assert_eq!(site.status(who, "PROPPATCH /share/f", &[], set).await, 423);
            let to = ["destination: /share/g"];
            assert_eq!(site.status(who, "MOVE /share/f", &to, "").await, 423);
            assert_eq!(site.lock(who, "/share/f", &[], true).await.status, 423);
        }
        // The token is not enough (§6.4).
        assert_eq!(site.put(&otto, "/share/f", &[&with], "x").await, 423);
        assert_eq!(site.put(&alice, "/share/f", &[&with], "two").await, 204);
        // The file is another one now, and locked still.
        assert_eq!(site.put(&alice, "/share/f", &[], "x").await, 423);
        assert_eq!(site.put(&alice, "/share/f", &[&with], "three").await, 204);
        assert_eq!(site.status(&alice, "PROPPATCH /share/f", &[&with], set).await, 207);
        assert_eq!(site.data(&otto, "/share/f").await, "three");
        // A copy is not locked, and any user may make one.
        let to = ["destination: /share/copy"];
        assert_eq!(site.status(&otto, "COPY /share/f", &to, "").await, 201);
        assert_eq!(site.put(&otto, "/share/copy", &[], "x").await, 204);
        let token = format!("lock-token: <{}>", answer.token());
        assert_eq!(site.status(&otto, "UNLOCK /share/f", &[&token], "").await, 403);
        assert_eq!(site.status(&alice, "UNLOCK /share/copy", &[&token], "").await, 409);
        assert_eq!(site.status(&alice, "UNLOCK /share/f", &[&token], "").await, 204);
        assert_eq!(site.status(&alice, "UNLOCK /share/f", &[&token], "").await, 409);
        assert_eq!(site.put(&otto, "/share/f", &[], "x").await, 204);
    });
}

#[test]
fn locks_end_unless_they_are_refreshed() {
    with_site(|site, alice, otto| async move {
        site.put(&alice, "/share/f", &[], "one").await;
        let answer = site.lock(&alice, "/share/f", &["timeout: Second-100"], false).await;
        let with = format!("if: (<{}>)", answer.token());
        site.clock.advance(Duration::from_secs(90));
        assert_eq!(site.status(&otto, "LOCK /share/f", &[&with], "").await, 412);
        let answer = site.ask(&alice, "LOCK /share/f", &[&with, "timeout: Second-50"], "").await;
        assert_eq!(answer.status, 200);
        assert!(answer.body.contains("<D:timeout>Second-50</D:timeout>"));
        assert!(answer.header("lock-token").is_none());
        site.clock.advance(Duration::from_secs(49));
        assert_eq!(site.put(&otto, "/share/f", &[], "x").await, 423);
        site.clock.advance(Duration::from_secs(1));
        assert_eq!(site.put(&otto, "/share/f", &[], "x").await, 204);
        assert_eq!(site.status(&alice, "LOCK /share/f", &[&with], "").await, 412);
    });
}

#[test]
fn a_name_that_is_free_becomes_an_empty_file() {
    with_site(|site, alice, otto| async move {
        let answer = site.lock(&alice, "/share/new", &[], false).await;
        assert_eq!(answer.status, 201);
        assert_eq!(site.data(&alice, "/share/new").await, "");
        assert_eq!(site.put(&otto, "/share/new", &[], "x").await, 423);
        let with = format!("if: (<{}>)", answer.token());
        assert_eq!(site.put(&alice, "/share/new", &[&with], "x").await, 204);
        assert_eq!(site.lock(&alice, "/share/x/y", &[], false).await.status, 409);
        assert_eq!(site.lock(&alice, "/", &[], false).await.status, 403);
        // It goes with its lock.
        assert_eq!(site.status(&alice, "DELETE /share/new", &[&with], "").await, 204);
        assert!(site.dav.locks.is_empty());
    });
}

#[test]
fn collections_are_locked_with_what_is_in_them() {
    with_site(|site, alice, otto| async move {
        site.status(&alice, "MKCOL /share/d", &[], "").await;
        site.put(&alice, "/share/d/f", &[], "x").await;
        let inner = site.lock(&otto, "/share/d/f", &[], false).await;
        // Something in it is locked: 207 lists it (§9.10.9).
        let answer = site.lock(&alice, "/share/d", &[], false).await;
        assert_eq!((answer.status, answer.hrefs()[0].as_str()), (207, "/share/d/f"));
        let delete = site.ask(&alice, "DELETE /share/d", &[], "").await;
        assert_eq!((delete.status, delete.hrefs()), (207, vec!["/share/d/f".to_owned()]));
        assert!(site.node(&alice, "/share/d/f").await.is_some());
        let token = format!("lock-token: <{}>", inner.token());
        assert_eq!(site.status(&otto, "UNLOCK /share/d/f", &[&token], "").await, 204);
        let answer = site.lock(&alice, "/share/d", &[], false).await;
        assert_eq!(answer.status, 200);
        assert_eq!(site.put(&otto, "/share/d/f", &[], "y").await, 423);
        assert_eq!(site.put(&otto, "/share/d/new", &[], "y").await, 423);
        assert_eq!(site.status(&otto, "MKCOL /share/d/e", &[], "").await, 423);
        // A member is refreshed and unlocked by the lock that covers it.
        let with = format!("if: (<{}>)", answer.token());
        assert_eq!(site.status(&alice, "LOCK /share/d/f", &[&with], "").await, 200);
        let tagged = format!("if: </share/d> (<{}>)", answer.token());
        assert_eq!(site.put(&alice, "/share/d/new", &[&tagged], "y").await, 201);
        let to = ["destination: /share/e", &tagged];
        assert_eq!(site.status(&alice, "MOVE /share/d", &to, "").await, 201);
        // Locks do not go with what is moved (§7.6).
        assert_eq!(site.put(&otto, "/share/e/f", &[], "y").await, 204);
        assert!(site.dav.locks.is_empty());
    });
}

#[test]
fn shared_locks_are_for_several() {
    with_site(|site, alice, otto| async move {
        site.put(&alice, "/share/f", &[], "one").await;
        let first = site.lock(&alice, "/share/f", &[], true).await;
        let second = site.lock(&otto, "/share/f", &[], true).await;
        assert_eq!((first.status, second.status), (200, 200));
        assert_ne!(first.token(), second.token());
        assert_eq!(site.lock(&alice, "/share/f", &[], false).await.status, 423);
        for (who, answer) in [(&alice, &first), (&otto, &second)] {
            let with = format!("if: (<{}>)", answer.token());
            assert_eq!(site.put(who, "/share/f", &[], "x").await, 423);
            assert_eq!(site.put(who, "/share/f", &[&with], "x").await, 204);
        }
        let ask = "<propfind xmlns='DAV:'><prop><lockdiscovery/></prop></propfind>";
        let answer = site.ask(&alice, "PROPFIND /share/f", &["depth: 0"], ask).await;
        assert_eq!(answer.body.matches("<D:activelock>").count(), 2);
    });
}

#[test]
fn conditions_are_judged_before_locks() {
    with_site(|site, alice, _| async move {
        site.put(&alice, "/share/f", &[], "one").await;
        let answer = site.lock(&alice, "/share/f", &[], false).await;
        let token = answer.token();
        let ask = "<propfind xmlns='DAV:'><prop><getetag/></prop></propfind>";
        let found = site.ask(&alice, "PROPFIND /share/f", &["depth: 0"], ask).await;
        let etag = found.body.split("getetag>").nth(1).expect("etag").trim_end_matches("</D:");
        let etag = etag.replace("&quot;", "\"");
        for (header, expected) in [
            (format!("if: (<{token}> [{etag}])"), 204),
            (format!("if: (<{token}> [\"other\"])"), 412),
            ("if: (<DAV:no-lock>)".to_owned(), 412),
            // What holds without its token is locked all the same.
            ("if: (Not <DAV:no-lock>)".to_owned(), 423),
            (format!("if: (<{token}x>) (Not <DAV:no-lock>)"), 423),
            (format!("if: (<DAV:no-lock>) (<{token}>)"), 204),
            (format!("if: (<{token}> [\"other\"]) (Not <DAV:no-lock>)"), 204),
            (format!("if: <http://elsewhere/share/f> (<{token}>)"), 412),
            (format!("if: <http://server:8080/share/f> (<{token}>)"), 204),
            ("if: nonsense".to_owned(), 400),
        ] {
            // The entity tag is that of the first line only.
            assert_eq!(site.put(&alice, "/share/f", &[&header], "x").await, expected, "{header}");
        }
    });
}

#[test]
fn a_lock_is_one_with_those_of_other_protocols() {
    with_site(|site, alice, otto| async move {
        site.put(&alice, "/share/f", &[], "one").await;
        let key = site.node(&alice, "/share/f").await.expect("there").key();
        let opens = &site.core.files.locks;
        let nfs = ClientKey { protocol: Protocol::Nfs4, id: 7 };
        let owner = Owner::new(nfs, b"nfs").expect("short");
        let writing = Share { access: SHARE_WRITE, deny: 0 };
        opens.open(key, &owner, writing).expect("free");
        assert_eq!(site.lock(&alice, "/share/f", &[], false).await.status, 423);
        opens.close(key, &owner);
        let answer = site.lock(&alice, "/share/f", &[], false).await;
        assert!(opens.open(key, &owner, writing).is_err(), "NFS may not write now");
        // Nor may an upload over FTP or SFTP, which knows no tokens.
        let path = serve::files::VPath::parse(b"/share/f").expect("path");
        let spot = site.core.spot(&otto, &path, serve::files::Links::Keep).await.expect("there");
        let upload = site.core.upload(&otto, &spot, How::Atomic(SetAttr::default())).await;
        assert!(upload.is_err());
        // After the holder has written it, the lock is on the new file.
        let with = format!("if: (<{}>)", answer.token());
        assert_eq!(site.put(&alice, "/share/f", &[&with], "two").await, 204);
        let now = site.node(&alice, "/share/f").await.expect("there").key();
        assert_ne!(now, key);
        assert!(opens.open(now, &owner, writing).is_err());
        let rows = opens.list(None, 10);
        assert_eq!(rows.len(), 1);
        let shown = String::from_utf8_lossy(rows[0].owner.id()).into_owned();
        assert!(shown.ends_with(" alice"), "{shown}");
        let token = format!("lock-token: <{}>", answer.token());
        assert_eq!(site.status(&alice, "UNLOCK /share/f", &[&token], "").await, 204);
        assert!(opens.open(now, &owner, writing).is_ok());
    });
}

#[test]
fn nothing_is_locked_while_clients_reclaim() {
    with_site(|site, alice, _| async move {
        site.put(&alice, "/share/f", &[], "one").await;
        site.core.files.locks.begin_grace(Protocol::Nfs4);
        let answer = site.lock(&alice, "/share/f", &[], false).await;
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
        site.core.files.locks.end_grace(Protocol::Nfs4);
        assert_eq!(site.lock(&alice, "/share/f", &[], false).await.status, 200);
    });
}

#[test]
fn refusals_name_the_lock() {
    with_site(|site, alice, otto| async move {
        site.put(&alice, "/share/f", &[], "one").await;
        site.lock(&alice, "/share/f", &[], false).await;
        let answer = site.ask(&otto, "DELETE /share/f", &[], "").await;
        let error = answer.xml();
        assert!(error.name.is(DAV, "error"));
        let submitted = error.dav("lock-token-submitted").expect("condition");
        assert_eq!(submitted.dav("href").expect("href").text(), "/share/f");
        let answer = site.lock(&otto, "/share/f", &[], false).await;
        assert!(answer.xml().dav("no-conflicting-lock").is_some());
    });
}
