//! Uploads in parts.

use std::sync::Arc;

use serve::files::{Links, VPath};
use vfs::attr::SetAttr;
use vfs::cred::Cred;
use vfs::fs::{Context, CreateHow, FileSystem, SetXattr};
use vfs::mem::MemFs;
use vfs::share::rules::Rules;
use vfs::share::{Service, tag};
use wire::dav::header::lock_token;

use crate::scene::{NoLookup, Scene};
use crate::stand::{Client, Stand, closed, open};

const ALICE: &str = "Authorization: Basic YWxpY2U6c2VjcmV0";
const BOB: &str = "Authorization: Basic Ym9iOnNlY3JldA==";

#[test]
fn an_upload_in_parts_survives_its_connection_and_is_there_when_it_is_whole() {
    let stand = Stand::new(open());
    let body: Vec<u8> = (0..700_000).map(|n| (n % 251) as u8).collect();
    let mut client = stand.client();
    let fields = ["Upload-Length: 700000", "Upload-Modified: 1000000000"];
    let begun = client.ask("POST /share/f?upload", &fields, b"");
    assert_eq!(begun.status, 201, "{begun:?}");
    let place = begun.header("location").to_owned();
    let first = client.ask(&format!("PATCH {place}"), &["Upload-Offset: 0"], &body[..100_000]);
    assert_eq!((first.status, first.header("upload-offset")), (204, "100000"));
    assert_eq!(client.get("/share/f", &[]).status, 404);
    assert_eq!(
        client.get("/share/", &["Accept: application/json"]).text().matches("\"name\"").count(),
        0
    );

    // A part breaks off: what of it was received counts.
    let mut broken = stand.client();
    let head = format!(
        "PATCH {place} HTTP/1.1\r\nHost: h\r\nUpload-Offset: 100000\r\n\
         Content-Length: 600000\r\n\r\n"
    );
    broken.raw([head.as_bytes(), &body[100_000..400_000]].concat());
    drop(broken);
    let offset = loop {
        let asked = client.ask(&format!("HEAD {place}"), &[], b"");
        assert_eq!((asked.status, asked.header("upload-length")), (204, "700000"));
        let offset: usize = asked.header("upload-offset").parse().unwrap();
        if offset > 100_000 {
            break offset;
        }
    };
    let wrong = client.ask(&format!("PATCH {place}"), &["Upload-Offset: 5"], &body[..10]);
    assert_eq!((wrong.status, wrong.header("upload-offset")), (409, offset.to_string().as_str()));
    let at = format!("Upload-Offset: {offset}");
    let long = [&body[offset..], b"x"].concat();
    assert_eq!(client.ask(&format!("PATCH {place}"), &[&at], &long).status, 413);
    let mut client = stand.client();
    let last = client.ask(&format!("PATCH {place}"), &[&at], &body[offset..]);
    assert_eq!(last.status, 201, "{last:?}");
    let got = client.get("/share/f", &[]);
    assert!(got.body == body);
    assert_eq!(got.header("last-modified"), "Sun, 09 Sep 2001 01:46:40 GMT");
    assert_eq!(got.header("etag"), last.header("etag"));
    assert_eq!(client.ask(&format!("HEAD {place}"), &[], b"").status, 404);
}

#[test]
fn an_upload_is_its_users_own_and_can_be_abandoned() {
    let stand = Stand::new(closed());
    stand.scene.users.add("bob", "secret", vfs::cred::Cred::root());
    let mut client = stand.client();
    let begun = client.ask("POST /share/f?upload", &[ALICE, "Upload-Length: 5"], b"");
    let place = begun.header("location").to_owned();
    assert_eq!(client.ask(&format!("HEAD {place}"), &[BOB], b"").status, 404);
    assert_eq!(
        client.ask(&format!("PATCH {place}"), &[BOB, "Upload-Offset: 0"], b"evil!").status,
        404
    );
    assert_eq!(client.ask(&format!("DELETE {place}"), &[BOB], b"").status, 404);
    assert_eq!(client.ask(&format!("DELETE {place}"), &[ALICE], b"").status, 204);
    assert_eq!(client.ask(&format!("HEAD {place}"), &[ALICE], b"").status, 404);
    assert_eq!(stand.http.uploads.count(), 0);
    let empty = client.ask("POST /share/e?upload", &[ALICE, "Upload-Length: 0"], b"");
    let place = empty.header("location").to_owned();
    assert_eq!(
        client.ask(&format!("PATCH {place}"), &[ALICE, "Upload-Offset: 0"], b"").status,
        201
    );
    assert_eq!(client.get("/share/e", &[ALICE]).body, b"");
    let there =
        client.ask("POST /share/e?upload", &[ALICE, "Upload-Length: 5", "If-None-Match: *"], b"");
    assert_eq!(there.status, 412);
}

#[test]
fn what_an_upload_in_parts_expects_must_be_so_when_it_is_whole() {
    let stand = Stand::new(closed());
    stand.scene.users.add("bob", "secret", Cred::root());
    let mut client = stand.client();
    let begin = |client: &mut Client, field: &str| {
        let begun = client.ask("POST /share/f?upload", &[ALICE, "Upload-Length: 1", field], b"");
        assert_eq!(begun.status, 201, "{begun:?}");
        begun.header("location").to_owned()
    };
    let finish = |client: &mut Client, place: &str| {
        client.ask(&format!("PATCH {place}"), &[ALICE, "Upload-Offset: 0"], b"A").status
    };
    let place = begin(&mut client, "If-None-Match: *");
    let made = client.ask("PUT /share/f", &[BOB], b"Bob's");
    assert_eq!(made.status, 201);
    assert_eq!(finish(&mut client, &place), 412);
    assert_eq!(client.get("/share/f", &[BOB]).body, b"Bob's");
    // The part is kept.
    let asked = client.ask(&format!("HEAD {place}"), &[ALICE], b"");
    assert_eq!((asked.status, asked.header("upload-offset")), (204, "0"));
    assert_eq!(client.ask("DELETE /share/f", &[BOB], b"").status, 204);
    assert_eq!(finish(&mut client, &place), 201);
    let etag = client.get("/share/f", &[ALICE]).header("etag").to_owned();
    let place = begin(&mut client, &format!("If-Match: {etag}"));
    assert_eq!(client.ask("PUT /share/f", &[BOB], b"Bob's").status, 204);
    assert_eq!(finish(&mut client, &place), 412);
    assert_eq!(client.get("/share/f", &[BOB]).body, b"Bob's");
    let place = begin(&mut client, "Upload-Modified: 5");
    assert_eq!(client.ask("PUT /share/f", &[BOB], b"again").status, 204);
    assert_eq!(finish(&mut client, &place), 201, "it expects nothing");
}

#[test]
fn a_collection_that_was_locked_meanwhile_gets_no_member() {
    let stand = Stand::new(closed());
    stand.scene.users.add("bob", "secret", Cred::root());
    let mut client = stand.client();
    assert_eq!(client.ask("MKCOL /share/d", &[ALICE], b"").status, 201);
    let begun = client.ask("POST /share/d/a?upload", &[ALICE, "Upload-Length: 1"], b"");
    let part = format!("PATCH {}", begun.header("location"));
    let mut puts = [5, 700_000].map(|size: usize| {
        let mut client = stand.client();
        let fields = format!("{ALICE}\r\nExpect: 100-continue\r\nContent-Length: {size}");
        client.raw(format!(
            "PUT /share/d/f{size} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n\r\n",
            client.host
        ));
        assert_eq!(client.reply(false).status, 100);
        (size, client)
    });
    let info = "<lockinfo xmlns='DAV:'><lockscope><exclusive/></lockscope><locktype><write/>\
                </locktype></lockinfo>";
    let locked = client.ask("LOCK /share/d", &[BOB, "Depth: infinity"], info.as_bytes());
    assert_eq!(locked.status, 200);
    assert_eq!(client.ask(&part, &[ALICE, "Upload-Offset: 0"], b"A").status, 423);
    for (size, client) in &mut puts {
        client.raw(vec![b'x'; *size]);
        assert_eq!(client.reply(false).status, 423, "{size}");
        assert_eq!(client.get(&format!("/share/d/f{size}"), &[ALICE]).status, 404);
    }
    assert_eq!(client.get("/share/d/a", &[ALICE]).status, 404);
    let token = format!("Lock-Token: {}", locked.header("lock-token"));
    assert_eq!(client.ask("UNLOCK /share/d", &[BOB, &token], b"").status, 204);
    assert_eq!(client.ask(&part, &[ALICE, "Upload-Offset: 0"], b"A").status, 201);
}

#[test]
fn what_an_upload_in_parts_replaces_leaves_it_all_that_is_not_data() {
    let stand = Stand::new(closed());
    let mut client = stand.client();
    assert_eq!(client.ask("PUT /share/f", &[ALICE], b"before").status, 201);
    let who = stand.scene.caller("alice");
    let path = VPath::parse(b"/share/f").expect("a path");
    let (asked, user) = (path.clone(), who.clone());
    stand.scene.run(move |core| async move {
        let found = core.find(&user, &asked, Links::Keep).await.expect("there");
        let node = found.node().expect("a file");
        let file = node.handle;
        let set = move |fs: &dyn FileSystem, cx: Context<'_>| {
            fs.set_xattr(cx, &file, b"color", b"blue", SetXattr::Create)
        };
        core.alter(&user, &node.reached, set).await.expect("set");
        let owner = SetAttr { uid: Some(7), gid: Some(8), mode: Some(0o640), ..SetAttr::default() };
        core.set_attr(&user, &node, owner).await.expect("given away");
    });
    let begun = client.ask("POST /share/f?upload", &[ALICE, "Upload-Length: 5"], b"");
    let place = begun.header("location").to_owned();
    let part = |client: &mut crate::stand::Client, at: &str, data: &[u8]| {
        client.ask(&format!("PATCH {place}"), &[ALICE, at], data).status
    };
    assert_eq!(part(&mut client, "Upload-Offset: 0", b"af"), 204);
    assert_eq!(client.get("/share/f", &[ALICE]).body, b"before");
    assert_eq!(part(&mut client, "Upload-Offset: 2", b"ter"), 201);
    assert_eq!(client.get("/share/f", &[ALICE]).body, b"after");
    stand.scene.run(move |core| async move {
        let found = core.find(&who, &path, Links::Keep).await.expect("there");
        let node = found.node().expect("a file");
        assert_eq!((node.attr.uid, node.attr.gid, node.attr.mode & 0o777), (7, 8, 0o640));
        let (fs, file) = (Arc::clone(&node.reached.share.fs), node.handle);
        let get = move |cx: Context<'_>| fs.get_xattr(cx, &file, b"color");
        let color = core.look(&who, &node.reached.cred, get).await;
        assert_eq!(color.as_deref(), Ok(&b"blue"[..]));
    });
}

#[test]
fn a_lock_is_on_what_an_upload_in_parts_has_put_there() {
    let stand = Stand::new(closed());
    let mut client = stand.client();
    assert_eq!(client.ask("PUT /share/f", &[ALICE], b"before").status, 201);
    let info = "<lockinfo xmlns='DAV:'><lockscope><exclusive/></lockscope><locktype><write/>\
                </locktype></lockinfo>";
    let locked = client.ask("LOCK /share/f", &[ALICE, "Depth: 0"], info.as_bytes());
    assert_eq!(locked.status, 200);
    let token = lock_token(locked.header("lock-token")).expect("a token").to_owned();
    let with = format!("If: (<{token}>)");
    let begin = "POST /share/f?upload";
    assert_eq!(client.ask(begin, &[ALICE, "Upload-Length: 5"], b"").status, 423);
    let begun = client.ask(begin, &[ALICE, "Upload-Length: 5", &with], b"");
    let place = format!("PATCH {}", begun.header("location"));
    // Its holder shows the token again when the file takes its name.
    assert_eq!(client.ask(&place, &[ALICE, "Upload-Offset: 0"], b"after").status, 423);
    assert_eq!(client.ask(&place, &[ALICE, "Upload-Offset: 0", &with], b"after").status, 201);
    let lock = stand.http.dav.locks.get(&token).expect("it is held still");
    let path = VPath::parse(b"/share/f").expect("a path");
    let who = stand.scene.caller("alice");
    stand.scene.run(move |core| async move {
        let found = core.find(&who, &path, Links::Keep).await.expect("there");
        assert_eq!(found.node().expect("a file").key(), lock.file, "and on this file");
    });
    assert_eq!(client.ask("PUT /share/f", &[ALICE], b"x").status, 423);
}

#[test]
fn an_upload_in_parts_follows_the_rules_of_its_share() {
    let stand = Stand::new(open());
    let table = stand.scene.files.shares.load();
    let share = table.by_name("share").expect("the share");
    let mut client = stand.client();
    let begun = client.ask("POST /share/f?upload", &["Upload-Length: 5"], b"");
    let place = format!("PATCH {}", begun.header("location"));
    assert_eq!(client.ask(&place, &["Upload-Offset: 0"], b"af").status, 204);
    for taken in ["*(ro)", "10.0.0.1(rw)"] {
        share.rules_for(Service::Http).set(Rules::parse(taken, &NoLookup).expect("rules"));
        assert_eq!(client.ask(&place, &["Upload-Offset: 2"], b"ter").status, 403, "{taken}");
    }
    share.rules_for(Service::Http).set(Rules::default());
    assert_eq!(client.get("/share/f", &[]).status, 404);
    assert_eq!(client.ask(&place, &["Upload-Offset: 2"], b"ter").status, 201);
}

#[test]
fn in_a_sticky_directory_a_file_of_others_is_written_in_place() {
    let fs = MemFs::new(tag("share"), 1 << 30);
    let cred = Cred::root();
    let (cx, top) = (Context { cred: &cred, may_block: true }, fs.root());
    let set = |mode| SetAttr { mode: Some(mode), ..SetAttr::default() };
    let dir = fs.mkdir(cx, &top, b"st", &set(0o1777)).unwrap().value.handle;
    let made = fs.create(cx, &dir, b"f", CreateHow::Guarded(set(0o666))).unwrap().value;
    let share: Arc<dyn FileSystem> = fs.clone();
    let stand = Stand::over(Scene::over(Service::Http, &[("share", share)]), open());
    let mut client = stand.client();
    // Small, large, and in parts.
    let body: Vec<u8> = (0..700_000).map(|n| (n % 251) as u8).collect();
    assert_eq!(client.put("/share/st/f", &[], b"small").status, 204);
    assert_eq!(client.get("/share/st/f", &[]).body, b"small");
    assert_eq!(client.put("/share/st/f", &[], &body).status, 204);
    assert!(client.get("/share/st/f", &[]).body == body);
    let begun = client.ask("POST /share/st/f?upload", &["Upload-Length: 300000"], b"");
    let place = format!("PATCH {}", begun.header("location"));
    let whole = client.ask(&place, &["Upload-Offset: 0"], &body[..300_000]);
    assert_eq!(whole.status, 201, "{whole:?}");
    let got = client.get("/share/st/f", &[]);
    assert!(got.body == body[..300_000]);
    assert_eq!(got.header("etag"), whole.header("etag"));
    let now = fs.lookup(cx, &dir, b"f").unwrap().0.attr;
    assert_eq!((now.fileid, now.uid), (made.attr.fileid, 0), "the same file");
    let all = client.get("/share/st/", &["Accept: application/json"]);
    assert_eq!(all.text().matches("\"name\"").count(), 1, "nothing is left beside it");
}
