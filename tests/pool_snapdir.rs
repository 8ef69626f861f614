//! `.snapshot` of a share on a pool over FTP, SFTP and WebDAV: listed where the share shows it,
//! read, and read-only, each with the protocol's own code.

use std::net::SocketAddr;

use e2e::api::Api;
use e2e::ftp::Ftp;
use e2e::pool_disk::{PoolDisk, change};
use e2e::server::Server;
use e2e::sftp::{Came, Sftp};
use e2e::tcp::HERE;
use e2e::{http, skip};
use serde_json::{Value, json};
use wire::nfs3::{CreateHow, Sattr3, StableHow};
use wire::sftp::request::{OfHandle, OfPath};
use wire::sftp::{HandleBytes, OpenFlags, PacketType, PathBytes, Reply, Request, StatusCode};
use wire::xdr::Reader;

use crate::pool_mount::Mounted;

const SHARE: &str = "docs";
const USER: (&str, &str) = ("anna", "correct horse battery");
const FILE: &str = "/docs/.snapshot/monday/dir/file";
const DIR: &str = "/docs/.snapshot/monday/dir";
const NEW: &str = "/docs/.snapshot/monday/dir/new";
const ROOT: &str = "/docs/.snapshot/monday";
const ALL: &str = "/docs/.snapshot";
const LIVE: &str = "/docs/dir/file";

/// A directory with a file that every user may change.
fn fill(mounted: &mut Mounted) -> Vec<u8> {
    let mode = |mode| Sattr3 { mode: Some(mode), ..Sattr3::default() };
    let root = mounted.root.clone();
    let dir = mounted.client.mkdir(&root, "dir", mode(0o777)).expect("created").handle;
    let how = CreateHow::Guarded(mode(0o666));
    let file = mounted.client.create(&dir, "file", how).expect("created").handle;
    mounted.client.write(&file, 0, b"old", StableHow::FILE_SYNC).expect("written");
    file
}

fn services(api: &Api) {
    let on = |property: &str, value: Value| json!({ "set": "/configuration/services/http", "property": property, "value": value });
    let user = json!({ "create": "/configuration/users", "name": USER.0,
        "properties": { "password": USER.1, "uid": 4321, "gid": 4322 } });
    let all = [
        on("enabled", json!(true)),
        on("webdav", json!(true)),
        on("plain", json!("serve")),
        on("basic_over_plain", json!(true)),
        user,
    ];
    change(api, &json!(all));
}

fn ftp(server: &Server) -> Ftp {
    let mut ftp = Ftp::connect(HERE, server.at(21)).expect("FTP");
    assert_eq!(ftp.sign_in(USER.0, USER.1).expect("signed in"), 230);
    assert_eq!(ftp.code("TYPE I"), 200);
    ftp
}

/// The last parts of the names that a listing has.
fn ftp_names(ftp: &mut Ftp, path: &str) -> Vec<String> {
    let (code, text) = ftp.data(format!("NLST {path}"), None).expect("a listing");
    assert_eq!(code, 226, "{path}");
    let text = String::from_utf8_lossy(&text);
    let last = |line: &str| line.rsplit('/').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = text.lines().map(last).collect();
    names.sort();
    names
}

fn ftp_refuses(ftp: &mut Ftp) {
    assert_eq!(ftp_names(ftp, ALL), ["monday"]);
    assert_eq!(ftp_names(ftp, DIR), ["file"]);
    let (code, read) = ftp.data(format!("RETR {FILE}"), None).expect("a transfer");
    assert_eq!((code, &read[..]), (226, &b"old"[..]));
    for line in [format!("STOR {FILE}"), format!("STOR {NEW}"), format!("APPE {FILE}")] {
        let (code, _) = ftp.data(&line, Some(b"x")).expect("a reply");
        assert_eq!(code, 550, "{line}");
    }
    let lines = [
        format!("DELE {FILE}"),
        format!("MKD {NEW}"),
        format!("MKD {ALL}/new"),
        format!("RMD {DIR}"),
        format!("RMD {ROOT}"),
        format!("RMD {ALL}"),
        format!("MFMT 20200101000000 {FILE}"),
        format!("SITE CHMOD 600 {FILE}"),
    ];
    for line in lines {
        let (code, text) = ftp.say(&line).expect("a reply");
        assert_eq!(code, 550, "{line}: {text}");
    }
    let all = format!("{ALL}/tuesday");
    for (from, to) in
        [(FILE, NEW), (FILE, "/docs/moved"), (LIVE, NEW), (ROOT, &all), (ALL, "/docs/moved")]
    {
        let asked = ftp.code(format!("RNFR {from}"));
        let code = if asked == 350 { ftp.code(format!("RNTO {to}")) } else { asked };
        assert_eq!(code, 550, "{from} to {to}");
    }
}

fn sftp_names(sftp: &mut Sftp, path: &str) -> Vec<String> {
    let Came::Handle(handle) =
        sftp.call(&Request::Opendir(OfPath { path: PathBytes(path.as_bytes()) })).expect("OPENDIR")
    else {
        panic!("{path} is not opened");
    };
    let of = || OfHandle { handle: HandleBytes(&handle) };
    let mut names = Vec::new();
    while let Came::Other(body) = sftp.call(&Request::Readdir(of())).expect("READDIR") {
        let mut reader = Reader::new(&body);
        reader.u32("id").expect("an id");
        let Ok(Some(Reply::Name(some))) = Reply::decode(PacketType::NAME, &mut reader) else {
            panic!("{path}: no names");
        };
        let text = |name: &PathBytes<'_>| String::from_utf8_lossy(name.0).into_owned();
        names.extend(some.0.iter().map(|one| text(&one.filename)));
    }
    sftp.close(&handle).expect("closed");
    names.retain(|name| name != "." && name != "..");
    names.sort();
    names
}

fn sftp_refuses(sftp: &mut Sftp) {
    assert_eq!(sftp_names(sftp, ALL), ["monday"]);
    assert_eq!(sftp_names(sftp, DIR), ["file"]);
    let file = sftp.open(FILE, OpenFlags::READ).expect("a reply").expect("opened");
    assert_eq!(sftp.read(&file, 0, 64).expect("a reply").expect("read"), b"old");
    // A handle for reading takes no data.
    assert_ne!(sftp.write(&file, 0, b"x").expect("a reply"), StatusCode::OK);
    sftp.close(&file).expect("closed");
    let write = OpenFlags::WRITE;
    for (path, flags) in [
        (FILE, write),
        (FILE, write.with(OpenFlags::CREAT).with(OpenFlags::TRUNC)),
        (NEW, write.with(OpenFlags::CREAT)),
    ] {
        let refused = sftp.open(path, flags).expect("a reply").err();
        assert_eq!(refused, Some(StatusCode::PERMISSION_DENIED), "{path}");
    }
    let all = format!("{ALL}/tuesday");
    let moved = "/docs/moved";
    let codes = [
        ("remove", sftp.remove(FILE)),
        ("mkdir", sftp.mkdir(NEW)),
        ("mkdir of a snapshot", sftp.mkdir(&all)),
        ("rmdir", sftp.rmdir(DIR)),
        ("rmdir of a snapshot", sftp.rmdir(ROOT)),
        ("rmdir of all", sftp.rmdir(ALL)),
        ("rename", sftp.rename(FILE, NEW)),
        ("rename of a snapshot", sftp.rename(ROOT, &all)),
        ("rename of all", sftp.rename(ALL, moved)),
        ("rename into", sftp.rename(LIVE, NEW)),
        ("posix-rename", sftp.posix_rename(LIVE, FILE)),
        ("chmod", sftp.chmod(FILE, 0o600)),
        ("symlink", sftp.symlink("file", NEW)),
        ("hardlink", sftp.hardlink(FILE, NEW)),
    ];
    for (what, code) in codes {
        assert_eq!(code.expect("a reply"), StatusCode::PERMISSION_DENIED, "{what}");
    }
    // Out of it a file is only copied: between file systems nothing is moved.
    for code in [sftp.rename(FILE, moved), sftp.hardlink(FILE, moved)] {
        let code = code.expect("a reply");
        assert!([StatusCode::FAILURE, StatusCode::PERMISSION_DENIED].contains(&code), "{code:?}");
    }
}

fn dav(at: SocketAddr, line: &str, fields: &[&str], body: &[u8]) -> (u16, String) {
    http::ask(at, USER, line, fields, body)
}

/// The hrefs of the members of a collection.
fn dav_names(at: SocketAddr, path: &str) -> Vec<String> {
    let (status, text) = dav(at, &format!("PROPFIND {path}/"), &["depth: 1"], b"");
    assert_eq!(status, 207, "{path}: {text}");
    let hrefs = text.split("href>").filter(|part| part.starts_with('/'));
    let names = hrefs.map(|part| part.split('<').next().unwrap_or_default().trim_end_matches('/'));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.retain(|name| name != path);
    names.sort();
    names
}

fn dav_refuses(at: SocketAddr) {
    assert_eq!(dav_names(at, ALL), [ROOT]);
    assert_eq!(dav_names(at, DIR), [FILE]);
    let (status, text) = dav(at, &format!("GET {FILE}"), &[], b"");
    assert!(status == 200 && text.ends_with("old"), "{status} {text}");
    let to = |path: &str| format!("destination: http://{at}{path}");
    let patch = br#"<?xml version="1.0"?><propertyupdate xmlns="DAV:"><set><prop>
        <a xmlns="urn:x">b</a></prop></set></propertyupdate>"#;
    let all = format!("{ALL}/tuesday");
    let (new, moved, tuesday, over) = (to(NEW), to("/docs/moved"), to(&all), to(FILE));
    let cases: [(String, &[&str], &[u8]); 15] = [
        (format!("PUT {FILE}"), &[], b"x"),
        (format!("PUT {NEW}"), &[], b"x"),
        (format!("PUT {all}"), &[], b"x"),
        (format!("DELETE {FILE}"), &[], b""),
        (format!("DELETE {DIR}/"), &[], b""),
        (format!("DELETE {ROOT}/"), &[], b""),
        (format!("DELETE {ALL}/"), &[], b""),
        (format!("MKCOL {NEW}/"), &[], b""),
        (format!("MKCOL {all}/"), &[], b""),
        (format!("MOVE {FILE}"), &[&new], b""),
        (format!("MOVE {FILE}"), &[&moved], b""),
        (format!("MOVE {LIVE}"), &[&new], b""),
        (format!("MOVE {ROOT}/"), &[&tuesday], b""),
        (format!("COPY {LIVE}"), &[&new], b""),
        (format!("COPY {LIVE}"), &[&over, "overwrite: T"], b""),
    ];
    for (line, fields, body) in cases {
        let (status, text) = dav(at, &line, fields, body);
        // With a member that fails it is the status of that (RFC 4918 §9.6.1).
        let refused = status == 403 || (status == 207 && text.contains("403 "));
        assert!(refused && !text.contains("200 OK"), "{line} {fields:?}: {text}");
    }
    let (status, text) = dav(at, &format!("PROPPATCH {FILE}"), &[], patch);
    assert!(status == 403 || text.contains("403 "), "PROPPATCH: {status} {text}");
    // Copies out of a snapshot are how files are restored.
    let (status, text) = dav(at, &format!("COPY {FILE}"), &[&to("/docs/dir/restored")], b"");
    assert_eq!(status, 201, "{text}");
    let (_, text) = dav(at, "GET /docs/dir/restored", &[], b"");
    assert!(text.ends_with("old"), "{text}");
    assert_eq!(dav(at, "DELETE /docs/dir/restored", &[], b"").0, 204);
}

#[test]
fn snapshots_are_read_only_over_ftp_sftp_and_webdav() {
    let bed = match PoolDisk::new("snapdir", 256) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-snapdir", "{why}"),
    };
    let (server, api) = bed.start();
    bed.create(&api, SHARE);
    services(&api);
    let mut mounted = Mounted::new(&server, SHARE);
    let live = fill(&mut mounted);
    bed.snapshot(&api, SHARE, "monday");
    mounted.client.write(&live, 0, b"new", StableHow::FILE_SYNC).expect("written");
    let (mut ftp, at) = (ftp(&server), server.at(80));
    let mut sftp = Sftp::connect(HERE, server.at(218), USER).expect("SFTP");
    ftp_refuses(&mut ftp);
    sftp_refuses(&mut sftp);
    dav_refuses(at);
    // Nothing has changed, in the snapshot or in the share.
    let root = mounted.root.clone();
    assert_eq!(mounted.client.names(&root).expect("listed"), ["dir"]);
    let paths = [("dir/file", b"new"), (".snapshot/monday/dir/file", b"old")];
    for (path, content) in paths {
        let file = mounted.find(path).expect(path);
        assert_eq!(mounted.read(&file).expect(path), content);
    }
    let names = |ftp: &mut Ftp, sftp: &mut Sftp| {
        let dav = dav_names(at, "/docs");
        let last = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
        [ftp_names(ftp, "/docs"), sftp_names(sftp, "/docs"), dav.iter().map(last).collect()]
    };
    assert!(names(&mut ftp, &mut sftp).iter().all(|names| *names == ["dir"]));
    let visible = json!([{ "set": format!("/shares/default/{SHARE}"), "property": "snapdir",
        "value": "visible" }]);
    change(&api, &visible);
    for names in names(&mut ftp, &mut sftp) {
        assert_eq!(names, [".snapshot", "dir"]);
    }
}
