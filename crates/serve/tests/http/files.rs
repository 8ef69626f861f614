//! Files down and up: whole, in parts, under conditions.

use serve::http::date;

use crate::stand::{Client, Stand, open};

fn stored(stand: &Stand, target: &str, body: &[u8]) -> (Client, String) {
    let mut client = stand.client();
    let reply = client.put(target, &[], body);
    assert_eq!(reply.status, 201, "{reply:?}");
    let etag = reply.header("etag").to_owned();
    (client, etag)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 + n / 251) as u8).collect()
}

#[test]
fn what_was_put_is_got_back_whatever_its_length() {
    let stand = Stand::new(open());
    for (n, secure) in [
        (0, false),
        (1, false),
        (65_536, true),
        (65_537, true),
        (3_000_001, false),
        (3_000_001, true),
    ] {
        let mut client = if secure { stand.secure_client() } else { stand.client() };
        let target = format!("/share/file%20{n}{secure}");
        let body = pattern(n);
        let put = client.put(&target, &[], &body);
        assert_eq!((put.status, put.header("etag").is_empty()), (201, false));
        let got = client.get(&target, &[]);
        assert_eq!((got.status, got.body == body), (200, true), "{n}");
        assert_eq!(got.header("etag"), put.header("etag"));
        let head = client.ask(&format!("HEAD {target}"), &[], b"");
        assert_eq!((head.status, head.header("content-length")), (200, n.to_string().as_str()));
        assert_eq!(client.put(&target, &[], b"again").status, 204);
        assert_eq!(client.get(&target, &[]).body, b"again");
    }
}

#[test]
fn a_body_in_chunks_is_stored_as_it_comes() {
    let stand = Stand::new(open());
    let mut client = stand.client();
    let head = format!(
        "PUT /share/c HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        client.host
    );
    let mut whole = Vec::new();
    client.raw(&head);
    for n in 0..100 {
        let part = pattern(n * 131 + 1);
        client.raw([format!("{:x}\r\n", part.len()).as_bytes(), &part, b"\r\n"].concat());
        whole.extend(part);
    }
    client.raw("0\r\nTrailer: x\r\n\r\n");
    assert_eq!(client.reply(false).status, 201);
    assert_eq!(client.get("/share/c", &[]).body, whole);
}

#[test]
fn parts_of_a_file_come_alone_or_together() {
    let stand = Stand::new(open());
    let body = pattern(100_000);
    let (mut client, etag) = stored(&stand, "/share/f.png", &body);
    let one = client.get("/share/f.png", &["Range: bytes=10-19"]);
    assert_eq!((one.status, one.header("content-range")), (206, "bytes 10-19/100000"));
    assert_eq!(one.body, body[10..20]);
    let last = client.get("/share/f.png", &["Range: bytes=-5"]);
    assert_eq!(last.body, body[99_995..]);
    let none = client.get("/share/f.png", &["Range: bytes=100000-"]);
    assert_eq!((none.status, none.header("content-range")), (416, "bytes */100000"));
    let held = format!("If-Range: {etag}");
    assert_eq!(client.get("/share/f.png", &["Range: bytes=0-0", &held]).status, 206);
    assert_eq!(
        client.get("/share/f.png", &["Range: bytes=0-0", "If-Range: \"other\""]).status,
        200
    );
    let both = client.get("/share/f.png", &["Range: bytes=0-9,50000-50009"]);
    let boundary = both.header("content-type").split_once("boundary=").unwrap().1.to_owned();
    let text = String::from_utf8_lossy(&both.body).into_owned();
    let parts: Vec<_> = text.split(&format!("--{boundary}")).collect();
    assert_eq!((both.status, parts.len(), parts[3]), (206, 4, "--\r\n"));
    assert!(parts[2].contains("Content-Range: bytes 50000-50009/100000"));
    assert!(both.body.windows(10).any(|w| w == &body[50_000..50_010]));
}

#[test]
fn conditions_hold() {
    let stand = Stand::new(open());
    let (mut client, etag) = stored(&stand, "/share/f", b"one");
    let same = format!("If-None-Match: {etag}");
    let got = client.get("/share/f", &[&same]);
    assert_eq!((got.status, got.header("etag")), (304, etag.as_str()));
    let modified = client.get("/share/f", &[]).header("last-modified").to_owned();
    assert!(date::parse(&modified).is_some());
    assert_eq!(client.get("/share/f", &[&format!("If-Modified-Since: {modified}")]).status, 304);
    assert_eq!(client.put("/share/f", &["If-None-Match: *"], b"two").status, 412);
    assert_eq!(client.put("/share/f", &["If-Match: \"other\""], b"two").status, 412);
    assert_eq!(client.put("/share/f", &[&format!("If-Match: {etag}")], b"two").status, 204);
    assert_eq!(client.get("/share/f", &[&same]).body, b"two");
    assert_eq!(client.put("/share/new", &["If-Match: *"], b"x").status, 412);
    assert_eq!(client.put("/share/new", &["If-None-Match: *"], b"x").status, 201);
}

/// Sends the head of a PUT; the server waits for its body when this returns.
fn begin_put(stand: &Stand, target: &str, field: &str, length: usize) -> Client {
    let mut client = stand.client();
    client.raw(format!(
        "PUT {target} HTTP/1.1\r\nHost: {}\r\n{field}\r\nExpect: 100-continue\r\n\
         Content-Length: {length}\r\n\r\n",
        client.host
    ));
    assert_eq!(client.reply(false).status, 100);
    client
}

#[test]
fn conditions_hold_when_the_file_takes_its_name() {
    let stand = Stand::new(open());
    // In one operation with its name, and in pieces.
    for size in [5, 700_000] {
        let body = pattern(size);
        let (mut other, etag) = stored(&stand, &format!("/share/f{size}"), b"before");
        let of = format!("If-Match: {etag}");
        for (name, field) in [("f", of.as_str()), ("new", "If-None-Match: *")] {
            let target = format!("/share/{name}{size}");
            let mut client = begin_put(&stand, &target, field, size);
            assert!(matches!(other.put(&target, &[], b"between").status, 201 | 204));
            client.raw(&body);
            assert_eq!(client.reply(false).status, 412, "{target}");
            assert_eq!(other.get(&target, &[]).body, b"between", "{target}");
        }
        let target = format!("/share/none{size}");
        let mut client = begin_put(&stand, &target, "If-None-Match: *", size);
        client.raw(&body);
        assert_eq!(client.reply(false).status, 201);
        assert!(client.get(&target, &[]).body == body);
    }
    let list = stand.client().get("/share/", &["Accept: application/json"]);
    assert_eq!(list.text().matches("\"name\"").count(), 6, "{}", list.text());
}

#[test]
fn a_put_that_breaks_off_leaves_nothing() {
    let stand = Stand::new(open());
    let (mut other, _) = stored(&stand, "/share/f", b"before");
    let mut client = stand.client();
    let head = format!(
        "PUT /share/f HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000000\r\n\r\n",
        client.host
    );
    client.raw([head.as_bytes(), &pattern(700_000)].concat());
    drop(client);
    assert_eq!(other.get("/share/f", &[]).body, b"before");
    let list = other.get("/share/", &["Accept: application/json"]);
    assert_eq!(list.text().matches("\"name\"").count(), 1, "{}", list.text());
}

#[test]
fn an_upload_resumes_where_it_broke_off() {
    let stand = Stand::new(open());
    let body = pattern(500_000);
    let (mut client, _) = stored(&stand, "/share/f", &body[..200_000]);
    let wrong =
        client.put("/share/f", &["Content-Range: bytes 300000-499999/500000"], &body[300_000..]);
    assert_eq!((wrong.status, wrong.header("content-range")), (416, "bytes */200000"));
    let rest =
        client.put("/share/f", &["Content-Range: bytes 200000-499999/500000"], &body[200_000..]);
    assert_eq!(rest.status, 204, "{rest:?}");
    assert!(client.get("/share/f", &[]).body == body);
}

#[test]
fn nothing_is_written_outside_the_range_of_a_part() {
    let stand = Stand::new(open());
    let body = pattern(100);
    let (mut client, _) = stored(&stand, "/share/f", &body);
    let part = |client: &mut Client, data: &[u8]| {
        client.raw(format!(
            "PUT /share/f HTTP/1.1\r\nHost: {}\r\nContent-Range: bytes 0-3/100\r\n\
             Transfer-Encoding: chunked\r\n\r\n{:x}\r\n",
            client.host,
            data.len()
        ));
        client.raw([data, b"\r\n0\r\n\r\n"].concat());
        client.reply(false).status
    };
    assert_eq!(part(&mut stand.client(), &[b'x'; 50]), 400);
    assert_eq!(client.get("/share/f", &[]).body[4..], body[4..]);
    assert_eq!(part(&mut stand.client(), b"four"), 204);
    assert_eq!(client.get("/share/f", &[]).body, [b"four", &body[4..]].concat());
    // Longer than a piece that is received at once.
    let long = pattern(base::limits::TRANSFER_PIECE + 1);
    assert_eq!(part(&mut stand.client(), &long), 400);
    assert_eq!(client.get("/share/f", &[]).body[4..], body[4..]);
}

#[test]
fn no_path_leaves_its_share() {
    let stand = Stand::new(open());
    let (mut client, _) = stored(&stand, "/share/f", b"x");
    for target in [
        "/share/../../etc/passwd",
        "/share/%2e%2e/%2e%2e/etc/passwd",
        "/share/..%2f..%2fetc/passwd",
        "/share/f%00",
        "/share/.%2e/etc",
        "/share/\\..\\etc",
        "/nothing/f",
        "/share/f/",
        "/share/f/g",
        "/etc/passwd",
    ] {
        let reply = client.get(target, &[]);
        assert!(matches!(reply.status, 400 | 404), "{target} {}", reply.status);
        if reply.header("connection") == "close" {
            client = stand.client();
        }
    }
    assert_eq!(client.put("/share/none/f", &[], b"x").status, 409);
    assert_eq!(client.put("/share", &[], b"x").status, 405);
    assert_eq!(client.put("/x", &[], b"x").status, 409);
}

#[test]
fn names_are_bytes() {
    let stand = Stand::new(open());
    for name in
        ["a%20b", "%22q%22", "100%25", "%ff%fe", "%C3%A4", "a%3Fb%23c", "a+b", "-%3Cscript%3E"]
    {
        let target = format!("/share/{name}");
        let (mut client, _) = stored(&stand, &target, name.as_bytes());
        assert_eq!(client.get(&target, &[]).body, name.as_bytes(), "{name}");
        let list = client.get("/share/", &[]);
        assert!(!list.text().contains("<script>"));
    }
}

#[test]
fn nothing_that_is_served_acts_on_our_origin() {
    let stand = Stand::new(open());
    for (name, shown) in
        [("a.html", false), ("a.svg", false), ("a.png", true), ("a.txt", true), ("a.xml", false)]
    {
        let target = format!("/share/{name}");
        let (mut client, _) = stored(&stand, &target, b"<script>alert(1)</script>");
        let got = client.get(&target, &[]);
        assert_eq!(got.header("x-content-type-options"), "nosniff");
        assert!(got.header("content-security-policy").contains("sandbox"), "{name}");
        assert_eq!(got.header("content-disposition").is_empty(), shown, "{name}");
        let saved = client.get(&format!("{target}?download"), &[]);
        assert!(saved.header("content-disposition").starts_with("attachment"));
    }
}

#[test]
fn things_are_made_moved_and_removed() {
    let stand = Stand::new(open());
    let (mut client, _) = stored(&stand, "/share/f", b"x");
    assert_eq!(client.ask("MKCOL /share/d/", &[], b"").status, 201);
    assert_eq!(client.ask("MKCOL /share/d/", &[], b"").status, 405);
    assert_eq!(client.ask("MKCOL /share/none/d", &[], b"").status, 409);
    let to = format!("Destination: http://{}/share/d/g", client.host);
    assert_eq!(client.ask("MOVE /share/f", &[&to], b"").status, 201);
    assert_eq!(client.get("/share/f", &[]).status, 404);
    assert_eq!(client.get("/share/d/g", &[]).body, b"x");
    let away = "Destination: http://other/share/d/h";
    assert_eq!(client.ask("MOVE /share/d/g", &[away], b"").status, 502);
    assert_eq!(client.ask("DELETE /share/d/g", &[], b"").status, 204);
    assert_eq!(client.ask("DELETE /share/d/g", &[], b"").status, 404);
    assert_eq!(client.ask("DELETE /share/d/", &[], b"").status, 204);
}
