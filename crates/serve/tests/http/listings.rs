//! Directories as pages and as JSON.

use base::limits::{HTTP_LISTING_PAGE, HTTP_LISTING_SORTED_MAX};
use serve::http::Settings;
use vfs::share::Service;

use crate::scene::{Scene, Scratch};
use crate::scripted::Scripted;
use crate::stand::{Client, Stand, open};

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
    let page = client.get("/share/", &["Accept: application/json"]);
    assert_eq!(page.header("transfer-encoding"), "chunked");
    assert_eq!(page.text().matches("\"kind\":\"directory\"").count(), 3000);
}

/// The names in a page, and the address behind a link of its pages, as a browser would go there.
fn names_and_link(client: &mut Client, target: &str, rel: &str) -> (Vec<String>, Option<String>) {
    let page = client.get(target, &[]);
    assert_eq!(page.status, 200);
    let rows = page.text().split("<tr class=\"file\"><td class=\"name\"><a href=\"./").skip(1);
    let names = rows.map(|row| row.split('"').next().unwrap().to_owned()).collect();
    let link = page.text().split_once(&format!("rel=\"{rel}\" href=\""));
    let link = link.map(|(_, rest)| rest.split('"').next().unwrap().replace("&amp;", "&"));
    (names, link.map(|query| format!("/share/{query}")))
}

fn with_files(count: usize) -> Scratch {
    let folder = Scratch::in_memory();
    for n in 0..count {
        std::fs::File::create(folder.0.join(format!("share/{n:05}"))).unwrap();
    }
    folder
}

#[test]
fn a_long_listing_comes_in_sorted_pages() {
    let folder = with_files(5_000);
    let stand = Stand::of(&folder);
    let mut client = stand.client();
    let all: Vec<_> = (0..5_000).map(|n| format!("{n:05}")).collect();
    let (mut seen, mut at) = (Vec::new(), Some("/share/".to_owned()));
    while let Some(target) = at {
        let (names, next) = names_and_link(&mut client, &target, "next");
        assert!(names.len() <= HTTP_LISTING_PAGE && !names.is_empty());
        seen.extend(names);
        at = next;
    }
    assert_eq!(seen, all);
    let (down, last) = names_and_link(&mut client, "/share/?sort=name&order=down", "last");
    assert_eq!(down[0], "04999");
    let (names, back) = names_and_link(&mut client, &last.unwrap(), "prev");
    assert_eq!(names.last().unwrap(), "00000");
    assert_eq!(names_and_link(&mut client, &back.unwrap(), "first").0[0], "02951");
    assert_eq!(names_and_link(&mut client, "/share/?page=99", "next").0.last().unwrap(), "04999");
    // Where all is on one page there is nothing to go to.
    assert_eq!(names_and_link(&mut client, "/?page=2", "next").1, None);
}

#[test]
fn a_listing_that_is_too_long_to_be_sorted_comes_in_pages_too() {
    let count = HTTP_LISTING_SORTED_MAX + 700;
    let folder = with_files(count);
    let stand = Stand::of(&folder);
    let mut client = stand.client();
    let (mut seen, mut at) = (Vec::new(), Some("/share/".to_owned()));
    while let Some(target) = at {
        let (names, next) = names_and_link(&mut client, &target, "next");
        assert!(names.len() <= HTTP_LISTING_PAGE);
        seen.extend(names);
        at = next;
    }
    assert_eq!(seen.len(), count);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count, "each once");
    let page = client.get("/share/", &[]);
    assert!(page.text().contains("in the order of the file system"));
    assert!(!page.text().contains("?sort="), "it cannot be sorted");
    let json = client.get("/share/", &["Accept: application/json"]);
    assert_eq!(json.text().matches("\"href\"").count(), count);
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
