//! Directories as pages and as JSON.

use serve::http::Settings;
use vfs::share::Service;

use crate::scene::Scene;
use crate::scripted::Scripted;
use crate::stand::{Stand, open};

#[test]
fn a_directory_is_listed_in_the_order_that_was_asked_for() {
    let stand = Stand::new(open());
    let mut client = stand.client();
    for (name, size) in [("b", 3), ("file%2010", 1), ("file%209", 2)] {
        assert_eq!(client.put(&format!("/share/{name}"), &[], &vec![b'x'; size]).status, 201);
    }
    assert_eq!(client.ask("MKCOL /share/z", &[], b"").status, 201);
    let mut names = |target: &str| -> Vec<String> {
        let page = client.get(target, &[]);
        assert_eq!(page.status, 200);
        let rows = page.text().split("<td class=\"name\"><a href=\"").skip(2);
        rows.map(|row| row.split('"').next().unwrap().to_owned()).collect()
    };
    assert_eq!(names("/share/"), ["./z/", "./b", "./file%209", "./file%2010"]);
    assert_eq!(names("/share/?sort=name&order=down"), ["./z/", "./file%2010", "./file%209", "./b"]);
    assert_eq!(names("/share/?sort=size"), ["./z/", "./file%2010", "./file%209", "./b"]);
    let top = client.get("/", &[]);
    assert!(top.text().contains("href=\"./share/\""));
    let moved = client.get("/share?sort=size", &[]);
    assert_eq!((moved.status, moved.header("location")), (308, "/share/?sort=size"));
    let json = client.get("/share/", &["Accept: application/json"]);
    assert_eq!(json.header("content-type"), "application/json");
    assert!(
        json.text()
            .contains("{\"name\":\"file 9\",\"href\":\"./file%209\",\"kind\":\"file\",\"size\":2,")
    );
}

#[test]
fn many_entries_come_in_a_stream() {
    let stand = Stand::new(open());
    let mut client = stand.client();
    let host = client.host.clone();
    for batch in 0..30 {
        let mut all = String::new();
        for n in 0..100 {
            all.push_str(&format!(
                "MKCOL /share/{batch:02}-{n:02} HTTP/1.1\r\nHost: {host}\r\n\r\n"
            ));
        }
        client.raw(all);
        for _ in 0..100 {
            assert_eq!(client.reply(false).status, 201);
        }
    }
    let page = client.get("/share/", &[]);
    assert_eq!(page.header("transfer-encoding"), "chunked");
    assert_eq!(page.text().matches("<tr class=\"directory\">").count(), 3000);
}

#[test]
fn a_script_runs_only_with_the_nonce_of_its_page() {
    let stand = Stand::new(open());
    let mut client = stand.client();
    let (one, two) = (client.get("/share/", &[]), client.get("/share/", &[]));
    let nonce = |policy: &str| {
        policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned()
    };
    let first = nonce(one.header("content-security-policy"));
    assert!(one.text().contains(&format!("<script nonce=\"{first}\" src=\"/.plimsoll/page.js\"")));
    assert_ne!(first, nonce(two.header("content-security-policy")));
    assert!(one.header("content-security-policy").starts_with("default-src 'none'"));
    let script = client.get("/.plimsoll/page.js", &[]);
    assert_eq!(
        (script.status, script.header("content-type")),
        (200, "text/javascript; charset=utf-8")
    );
    let known = format!("If-None-Match: {}", script.header("etag"));
    assert_eq!(client.get("/.plimsoll/page.js", &[&known]).status, 304);
}

#[test]
fn nothing_is_listed_if_it_is_set_so() {
    let stand = Stand::new(Settings { listing: false, ..open() });
    let mut client = stand.client();
    assert_eq!(client.put("/share/f", &[], b"x").status, 201);
    assert_eq!(client.get("/share/", &[]).status, 403);
    assert_eq!(client.get("/", &[]).status, 403);
    assert_eq!(client.get("/share/f", &[]).status, 200);
}

#[test]
fn a_mount_is_listed_and_not_entered() {
    let scene = Scene::over(Service::Http, &[("share", Scripted::with_mount())]);
    let stand = Stand::over(scene, open());
    let mut client = stand.client();
    let json = client.get("/share/", &["Accept: application/json"]);
    assert!(json.text().contains("\"href\":\"./mounted/\",\"kind\":\"directory\""), "{json:?}");
    assert!(client.get("/share/", &[]).text().contains("<a href=\"./mounted/\">mounted/</a>"));
    assert_eq!(client.get("/share/mounted/", &[]).status, 403);
}
