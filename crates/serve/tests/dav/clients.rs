//! What clients are known to do, each under its name.

use crate::site::with_site;

/// Windows' redirector sets its properties after each upload, and needs them to be taken; the times
/// are those of the file.
#[test]
fn windows_sets_times_and_attributes() {
    with_site(|site, alice, _| async move {
        site.put(&alice, "/share/f.docx", &[], "x").await;
        let body = "<?xml version=\"1.0\" encoding=\"utf-8\" ?><D:propertyupdate xmlns:D=\"DAV:\" \
            xmlns:Z=\"urn:schemas-microsoft-com:\"><D:set><D:prop>\
            <Z:Win32CreationTime>Wed, 19 Jul 2006 18:13:45 GMT</Z:Win32CreationTime>\
            <Z:Win32LastAccessTime>Wed, 19 Jul 2006 18:13:46 GMT</Z:Win32LastAccessTime>\
            <Z:Win32LastModifiedTime>Wed, 19 Jul 2006 18:13:47 GMT</Z:Win32LastModifiedTime>\
            <Z:Win32FileAttributes>00000020</Z:Win32FileAttributes></D:prop></D:set>\
            </D:propertyupdate>";
        let answer = site.ask(&alice, "PROPPATCH /share/f.docx", &[], body).await;
        assert_eq!(answer.status, 207);
        assert!(answer.body.contains("200 OK") && !answer.body.contains("403"), "{}", answer.body);
        let attr = site.node(&alice, "/share/f.docx").await.expect("there").attr;
        assert_eq!((attr.atime.sec, attr.mtime.sec), (1_153_332_826, 1_153_332_827));
        let answer = site.ask(&alice, "PROPFIND /share/f.docx", &["depth: 0"], "").await;
        let modified = "<D:getlastmodified>Wed, 19 Jul 2006 18:13:47 GMT</D:getlastmodified>";
        assert!(answer.body.contains(modified));
        assert!(answer.body.contains("00000020</Win32FileAttributes>"));
        let ask = "<propfind xmlns='DAV:'><prop><Win32LastModifiedTime \
                   xmlns='urn:schemas-microsoft-com:'/></prop></propfind>";
        let answer = site.ask(&alice, "PROPFIND /share/f.docx", &["depth: 0"], ask).await;
        assert!(answer.body.contains("18:13:47 GMT</Win32LastModifiedTime>"), "{}", answer.body);
    });
}

/// Windows queries every directory above the one that it wants, up to the root, without a slash at
/// the end and with an empty body.
#[test]
fn windows_walks_down_from_the_root() {
    with_site(|site, alice, _| async move {
        site.status(&alice, "MKCOL /share/d", &[], "").await;
        for path in ["/", "/share", "/share/d", "/share/d/"] {
            let headers = ["depth: 0", "translate: f", "user-agent: Microsoft-WebDAV-MiniRedir/10"];
            let answer = site.ask(&alice, &format!("PROPFIND {path}"), &headers, "").await;
            assert_eq!(answer.status, 207);
            assert!(answer.hrefs()[0].ends_with('/'), "{:?}", answer.hrefs());
        }
    });
}

/// macOS locks a name before it writes there, for the file and for `._` next to it; then it writes,
/// unlocks, and reads the properties in between.
#[test]
fn macos_locks_before_it_writes() {
    with_site(|site, alice, _| async move {
        for name in ["f.txt", "._f.txt", ".DS_Store"] {
            let path = format!("/share/{name}");
            let lock = site.lock(&alice, &path, &["depth: 0", "timeout: Second-600"], false).await;
            assert_eq!(lock.status, 201);
            let with = format!("if: (<{}>)", lock.token());
            let put = ["x-expected-entity-length: 5", &with];
            assert_eq!(site.put(&alice, &path, &put, "12345").await, 204);
            let find = site.status(&alice, &format!("PROPFIND {path}"), &["depth: 0"], "").await;
            assert_eq!(find, 207);
            let token = format!("lock-token: <{}>", lock.token());
            assert_eq!(site.status(&alice, &format!("UNLOCK {path}"), &[&token], "").await, 204);
        }
    });
}

/// Office opens with an exclusive lock, refreshes it, writes with the token in a tagged list of the
/// whole URL, and queries the owner of a conflicting lock.
#[test]
fn office_keeps_a_document_for_itself() {
    with_site(|site, alice, otto| async move {
        site.put(&alice, "/share/My Letter.docx", &[], "old").await;
        let path = "/share/My%20Letter.docx";
        let lock = site.lock(&alice, path, &["depth: 0", "timeout: Second-3600"], false).await;
        let tagged = format!("if: <http://server:8080{path}> (<{}>)", lock.token());
        assert_eq!(site.status(&alice, &format!("LOCK {path}"), &[&tagged], "").await, 200);
        assert_eq!(site.put(&alice, "/share/My Letter.docx", &[&tagged], "new").await, 204);
        let other = site.lock(&otto, path, &["depth: 0"], false).await;
        assert_eq!(other.status, 423);
        let ask = "<propfind xmlns='DAV:'><prop><lockdiscovery/></prop></propfind>";
        let found = site.ask(&otto, &format!("PROPFIND {path}"), &["depth: 0"], ask).await;
        assert!(found.body.contains("<owner xmlns=\"DAV:\">me</owner>"), "{}", found.body);
    });
}

/// LibreOffice keeps its lock in a separate file next to the document, too.
#[test]
fn libreoffice_has_lock_files() {
    with_site(|site, alice, _| async move {
        assert_eq!(site.put(&alice, "/share/.~lock.a.odt#", &[], "me").await, 201);
        let find = site.ask(&alice, "PROPFIND /share/.~lock.a.odt%23", &["depth: 0"], "").await;
        assert_eq!(find.hrefs(), ["/share/.~lock.a.odt%23"]);
        let line = "DELETE /share/.~lock.a.odt%23";
        assert_eq!(site.status(&alice, line, &[], "").await, 204);
    });
}

/// davfs2 locks with an owner as text, for as long as can be, and refreshes by `If`; it makes files
/// by locking them.
#[test]
fn davfs2_locks_for_ever() {
    with_site(|site, alice, _| async move {
        let headers = ["depth: 0", "timeout: Infinite"];
        let lock = site.lock(&alice, "/share/f", &headers, false).await;
        assert_eq!(lock.status, 201);
        assert!(lock.body.contains("<D:timeout>Second-86400</D:timeout>"), "{}", lock.body);
    });
}

/// cadaver and davfs2 send a Destination of the whole URL; behind a proxy that is another name and
/// scheme than ours.
#[test]
fn destinations_behind_a_proxy() {
    with_site(|site, alice, _| async move {
        site.put(&alice, "/share/a", &[], "x").await;
        let to = ["destination: https://files.example.com/share/b", "x: y"];
        assert_eq!(site.status(&alice, "MOVE /share/a", &to, "").await, 502);
        let to = [to[0], "x-forwarded-host: files.example.com"];
        assert_eq!(site.status(&alice, "MOVE /share/a", &to, "").await, 201);
        let to = ["destination: https://SERVER:8080/share/c"];
        assert_eq!(site.status(&alice, "MOVE /share/b", &to, "").await, 201);
    });
}

/// rclone requests a handful of properties, lists with depth 1, and moves whole directories.
#[test]
fn rclone_lists_and_moves() {
    with_site(|site, alice, _| async move {
        site.status(&alice, "MKCOL /share/d/", &[], "").await;
        site.put(&alice, "/share/d/f", &[], "x").await;
        let ask = "<?xml version=\"1.0\"?><d:propfind xmlns:d=\"DAV:\" \
            xmlns:oc=\"http://owncloud.org/ns\"><d:prop><d:displayname/><d:getlastmodified/>\
            <d:getcontentlength/><d:resourcetype/><d:getcontenttype/><oc:checksums/></d:prop>\
            </d:propfind>";
        let answer = site.ask(&alice, "PROPFIND /share/d/", &["depth: 1"], ask).await;
        assert_eq!(answer.hrefs(), ["/share/d/", "/share/d/f"]);
        assert!(answer.body.contains("<D:displayname>f</D:displayname>"));
        let to = ["destination: http://server:8080/share/e/", "overwrite: T"];
        assert_eq!(site.status(&alice, "MOVE /share/d/", &to, "").await, 201);
        assert_eq!(site.data(&alice, "/share/e/f").await, "x");
    });
}
