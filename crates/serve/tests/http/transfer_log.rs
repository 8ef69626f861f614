//! The transfer log of HTTP: the bodies of files, whichever request moves them.

use vfs::transfers::Outcome;

use crate::stand::{Stand, open};

#[test]
fn uploaded_and_downloaded_files_are_reported() {
    let stand = Stand::new(open());
    let transfers = &stand.scene.transfers;
    let mut client = stand.client();
    assert_eq!(client.put("/share/small", &[], b"4 KB").status, 201);
    assert_eq!(transfers.take(1), ["http upload complete /share/small 4@0"]);
    assert_eq!(client.put("/share/large", &[], &vec![7; 3_000_000]).status, 201);
    assert_eq!(transfers.take(1), ["http upload complete /share/large 3000000@0"]);
    let whole = client.get("/share/large", &[]);
    assert_eq!(transfers.take(1), ["http download complete /share/large 3000000@0"]);
    assert_eq!(client.get("/share/large", &["Range: bytes=2999000-"]).status, 206);
    assert_eq!(transfers.take(1), ["http download complete /share/large 1000@2999000"]);
    let two = client.get("/share/large", &["Range: bytes=500-599,100-109"]);
    assert_eq!(two.status, 206);
    assert_eq!(transfers.take(1), ["http download complete /share/large 110@100"]);
    // Nothing of these is a transfer.
    let etag = format!("If-None-Match: {}", whole.header("etag"));
    assert_eq!(client.get("/share/large", &[&etag]).status, 304);
    assert_eq!(client.get("/share/large", &["Range: bytes=9000000-"]).status, 416);
    assert_eq!(client.ask("HEAD /share/large", &[], b"").status, 200);
    assert_eq!(client.get("/share/none", &[]).status, 404);
    assert_eq!(client.get("/share/", &[]).status, 200);
    assert_eq!(client.put("/share/small", &["If-None-Match: *"], b"x").status, 412);
    assert_eq!(transfers.take(1), ["http upload refused /share/small 0@0"]);
}

#[test]
fn a_folder_is_reported_once_and_webdav_by_its_name() {
    let stand = Stand::new(open());
    let transfers = &stand.scene.transfers;
    let mut client = stand.client();
    assert_eq!(client.ask("MKCOL /share/d", &[], b"").status, 201);
    assert_eq!(client.put("/share/d/a", &[], b"a").status, 201);
    assert_eq!(client.put("/share/d/b", &[], b"b").status, 201);
    transfers.take(2);
    let zip = client.get("/share/d/?archive", &[]);
    let size = zip.body.len();
    assert_eq!(transfers.take(1), [format!("http download complete /share/d {size}@0")]);
    assert_eq!(client.ask("PROPFIND /share/d/", &["Depth: 0"], b"").status, 207);
    assert_eq!(client.get("/share/d/a", &[]).status, 200);
    assert_eq!(transfers.take(1), ["webdav download complete /share/d/a 1@0"]);
    // A copy stays here.
    let to = ["Destination: /share/d/c"];
    assert_eq!(client.ask("COPY /share/d/a", &to, b"").status, 201);
    let mut secure = stand.secure_client();
    assert_eq!(secure.get("/share/d/a", &[]).status, 200);
    let last = transfers.taken(1).remove(0);
    let security = last.security.expect("TLS");
    assert_eq!((last.protocol.name(), security.version), ("https", "TLSv1.3"));
    assert!(security.cipher.starts_with("TLS13_"), "{security:?}");
}

#[test]
fn bodies_that_break_off_are_cut() {
    let stand = Stand::new(open());
    let transfers = &stand.scene.transfers;
    for (path, length, sent) in [("small", 1000, 10), ("large", 9_000_000, 3_000_000)] {
        let mut client = stand.client();
        let head =
            format!("PUT /share/{path} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
        client.raw([head.as_bytes(), &vec![7; sent]].concat());
        drop(client);
        let cut = transfers.taken(1).remove(0);
        assert_eq!(
            (cut.outcome, &*cut.why),
            (Outcome::Cut, "the connection ended within the body")
        );
        assert!(cut.bytes <= sent as u64, "{cut:?}");
    }
    let mut client = stand.client();
    assert_eq!(client.put("/share/f", &[], &vec![7; 30_000_000]).status, 201);
    transfers.take(1);
    client.raw("GET /share/f HTTP/1.1\r\nHost: h\r\n\r\n");
    drop(client);
    let cut = transfers.taken(1).remove(0);
    assert_eq!((cut.outcome, cut.direction.name()), (Outcome::Cut, "download"));
    assert!(cut.bytes < 30_000_000);
}

#[test]
fn an_upload_in_parts_is_reported_when_it_ends() {
    let stand = Stand::new(open());
    let transfers = &stand.scene.transfers;
    let mut client = stand.client();
    let mut begin = |path: &str| {
        let begun = client.ask(&format!("POST /share/{path}?upload"), &["Upload-Length: 10"], b"");
        begun.header("location").to_owned()
    };
    let (place, other) = (begin("f"), begin("given-up"));
    let patch = |client: &mut crate::stand::Client, place: &str, offset: usize| {
        let at = format!("Upload-Offset: {offset}");
        client.ask(&format!("PATCH {place}"), &[&at], b"01234").status
    };
    assert_eq!(patch(&mut client, &place, 0), 204);
    assert_eq!(patch(&mut client, &other, 0), 204);
    assert_eq!(patch(&mut client, &place, 5), 201);
    assert_eq!(transfers.take(1), ["http upload complete /share/f 10@0"]);
    assert_eq!(client.ask(&format!("DELETE {other}"), &[], b"").status, 204);
    assert_eq!(transfers.take(1), ["http upload cut /share/given-up 5@0"]);
}
