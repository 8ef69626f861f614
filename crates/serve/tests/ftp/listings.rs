//! Directories, names, attributes, listings.

use std::time::Instant;

use serve::ftp::Settings;
use vfs::share::Service;
use wire::ftp::facts::{self, Kind};
use wire::ftp::request::Site;
use wire::ftp::{Request, Verb};

use crate::client::{Client, PATIENCE, Running};
use crate::scene::{Scene, Scratch};
use crate::scripted::Scripted;

fn text(verb: Verb, path: &[u8]) -> Request<'_> {
    Request::Text(verb, path)
}

fn lines(c: &mut Client, verb: Verb, path: Option<&[u8]>) -> Vec<Vec<u8>> {
    let all = c.fetch(&Request::Maybe(verb, path));
    let mut lines: Vec<_> = all.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    assert_eq!(lines.pop().as_deref(), Some(&b""[..]), "every line has its end");
    lines.into_iter().map(|line| line.strip_suffix(b"\r").expect("CR LF").to_vec()).collect()
}

#[test]
fn names_of_any_bytes() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    let names: [&[u8]; 6] =
        [b" a b ", b"quo\"te", b"caf\xe9", b"iac\xff\xff", b"-la", "gr\u{fc}\u{df}".as_bytes()];
    for name in names {
        assert_eq!(c.store(&text(Verb::Stor, name), name), 226);
        assert_eq!(c.fetch(&text(Verb::Retr, name)), name);
        assert_eq!(c.request(&text(Verb::Rnfr, name)).code, 350);
        let renamed = [name, b"2"].concat();
        assert_eq!(c.request(&text(Verb::Rnto, &renamed)).code, 250);
        assert_eq!(c.request(&text(Verb::Size, name)).code, 550);
        assert_eq!(c.request(&text(Verb::Rnfr, &renamed)).code, 350);
        assert_eq!(c.request(&text(Verb::Rnto, name)).code, 250);
    }
    let mut listed = lines(&mut c, Verb::Mlsd, None);
    listed.sort_by_key(|line| facts::entry(line).expect("facts").name.to_vec());
    let mut sorted = names;
    sorted.sort_unstable();
    let got: Vec<_> = listed.iter().map(|line| facts::entry(line).expect("facts").name).collect();
    assert_eq!(got, sorted);
    for name in names {
        assert_eq!(c.request(&text(Verb::Dele, name)).code, 250);
    }
    let dir = b"in \"quotes\"";
    assert_eq!(c.request(&text(Verb::Mkd, dir)).lines[0], b"\"/share/in \"\"quotes\"\"\" created.");
    assert_eq!(c.request(&text(Verb::Cwd, dir)).code, 250);
    assert!(c.text("PWD").starts_with("\"/share/in \"\"quotes\"\"\""));
    // No name can make one file look like several.
    assert_eq!(c.store(&text(Verb::Stor, b"a\rb"), b""), 226);
    assert_eq!(lines(&mut c, Verb::Nlst, None), [b"a?b"]);
}

#[test]
fn directories_are_made_and_removed() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    assert_eq!(c.code_of("MKD a"), 257);
    assert_eq!(c.code_of("MKD a"), 550);
    assert_eq!(c.code_of("XMKD a/b"), 257);
    assert_eq!(c.code_of("RMD a"), 550, "not empty");
    c.put("a/file", b"x");
    assert_eq!(c.code_of("RMD a/file"), 550);
    assert_eq!(c.code_of("DELE a/b"), 550);
    assert_eq!(c.code_of("CWD a/file"), 550);
    assert_eq!(c.code_of("CWD a/b"), 250);
    assert_eq!(c.code_of("CDUP"), 250);
    assert_eq!(c.text("XPWD"), "\"/share/a\" is the current directory.");
    assert_eq!(c.code_of("RNTO x"), 503);
    assert_eq!(c.code_of("RNFR b"), 350);
    assert_eq!(c.code_of("NOOP"), 200);
    assert_eq!(c.code_of("RNTO c"), 503, "RNTO comes right after RNFR");
    assert_eq!(c.code_of("RNFR none"), 550);
    for path in ["/", "/share"] {
        assert_eq!(c.code_of(&format!("RMD {path}")), 550);
        assert_eq!(c.code_of(&format!("RNFR {path}")), 550);
        assert_eq!(c.code_of(&format!("STOR {path}")), 550);
    }
    assert_eq!(c.code_of("MKD /other"), 550, "there are shares, and nothing beside them");
}

#[test]
fn every_kind_of_listing() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    c.put("file", b"12345");
    c.put(".hidden", b"");
    assert_eq!(c.code_of("MKD dir"), 257);
    assert_eq!(c.code_of("MFMT 20200102030405 file"), 213);
    assert_eq!(c.text("MDTM file"), "20200102030405");
    assert_eq!(c.request(&Request::Site(Site::Chmod(0o640, b"file"))).code, 200);
    assert_eq!(c.code_of("SITE UTIME 20200102030406 file"), 200);
    assert_eq!(lines(&mut c, Verb::Nlst, None), [&b".hidden"[..], b"dir", b"file"]);
    assert_eq!(lines(&mut c, Verb::Nlst, Some(b"/share/f*")), [b"/share/file"]);
    assert_eq!(lines(&mut c, Verb::Nlst, Some(b"x*")), Vec::<Vec<u8>>::new());
    let people = lines(&mut c, Verb::List, Some(b"-la file"));
    let line = String::from_utf8(people[0].clone()).expect("text");
    assert!(
        line.starts_with("-rw-r-----   1 ") && line.ends_with(" 5 Jan  2  2020 file"),
        "{line}"
    );
    let listed = lines(&mut c, Verb::Mlsd, Some(b"/share"));
    let listed: Vec<_> = listed.iter().map(|line| facts::entry(line).expect("facts")).collect();
    let file = listed.iter().find(|entry| entry.name == b"file").expect("listed");
    assert_eq!((file.kind, file.size, file.mode), (Some(Kind::File), Some(5), Some(0o640)));
    assert_eq!((file.modify, file.perm), (Some(1_577_934_246), Some("adfrw")));
    let dir = listed.iter().find(|entry| entry.name == b"dir").expect("listed");
    assert_eq!((dir.kind, dir.size, dir.perm), (Some(Kind::Dir), None, Some("cdeflmp")));
    let one = c.ask("MLST file");
    assert_eq!((one.code, one.lines.len()), (250, 3));
    assert_eq!(facts::entry(&one.lines[1]).expect("facts").name, b"/share/file");
    let status = c.ask("STAT /share");
    assert_eq!((status.code, status.lines.len()), (213, 5));
    c.passive();
    assert_eq!(c.code_of("MLSD file"), 501);
    assert_eq!(c.code_of("LIST none"), 550);
    assert_eq!(c.code_of("CWD /"), 250);
    assert_eq!(c.names(), ["share"]);
    assert!(lines(&mut c, Verb::List, None)[0].starts_with(b"d"));
    assert_eq!(facts::entry(&c.ask("MLST").lines[1]).expect("facts").kind, Some(Kind::Dir));
}

#[test]
fn digests_of_files_and_parts_of_them() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    c.put("file", b"abc");
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(c.text("HASH file"), format!("SHA-256 0-2 {sha256} file"));
    assert_eq!(c.code_of("OPTS HASH sha-1"), 200);
    assert_eq!(c.code_of("RANG 1 1"), 350);
    assert_eq!(c.text("HASH file"), "SHA-1 1-1 e9d71f5ee7c92d6dc9e92ffdad17b8bd49418f98 file");
    assert!(c.text("HASH file").starts_with("SHA-1 0-2 a9993e36"), "a range holds once");
    assert_eq!(c.code_of("HASH ."), 550);
}

/// Hashing takes hours where a file has a large hole; the result is not needed any more when the
/// client has disconnected, or its user is removed.
#[test]
fn a_digest_ends_with_its_client_and_its_user() {
    let folder = Scratch::new();
    folder.set_len("share/large", 1 << 40);
    folder.set_len("share/small", 1 << 20);
    let scene = Scene::in_folder(Service::Ftp, &folder, PATIENCE);
    let running = Running::over(scene, Settings::default());
    let open = || running.scene.files.engine.budgets.connections();
    let mut c = running.signed_in();
    assert_eq!(c.code_of("HASH small"), 213);
    c.send(b"HASH large\r\n");
    drop(c);
    let deadline = Instant::now() + PATIENCE;
    while open() > 0 {
        assert!(Instant::now() < deadline, "it goes on without its client");
    }
    let mut c = running.signed_in();
    c.send(b"HASH large\r\n");
    running.scene.users.remove("alice");
    assert_eq!(c.reply().code, 421);
    assert!(c.next().is_none());
}

#[test]
fn a_large_directory_comes_whole() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    let mut names = Vec::new();
    for n in 0..2_000 {
        let name = format!("file-{n:05}");
        assert_eq!(c.code_of(&format!("MKD {name}")), 257);
        names.push(name);
    }
    let mut listed = c.names();
    listed.sort();
    assert_eq!(listed, names);
}

#[test]
fn a_mount_is_listed_and_not_entered() {
    let scene = Scene::over(Service::Ftp, &[("share", Scripted::with_mount())]);
    let running = Running::over(scene, Settings::default());
    let mut c = running.signed_in();
    assert_eq!(c.names(), ["mounted"]);
    let people = lines(&mut c, Verb::List, None);
    assert!(people.len() == 1 && people[0].starts_with(b"drwxr-xr-x"), "{people:?}");
    let listed = lines(&mut c, Verb::Mlsd, None);
    let entry = facts::entry(&listed[0]).expect("facts");
    assert_eq!((entry.name, entry.kind, entry.perm), (&b"mounted"[..], Some(Kind::Dir), Some("")));
    let pattern = lines(&mut c, Verb::Nlst, Some(b"mount*"));
    assert_eq!(pattern, [b"mounted"]);
    for line in ["CWD mounted", "MLST mounted", "STAT mounted", "RMD mounted"] {
        let reply = c.ask(line);
        assert_eq!(reply.code, 550, "{line}");
        let text = String::from_utf8_lossy(&reply.lines[0]).into_owned();
        assert!(text.to_lowercase().contains("permission denied"), "{line}: {text}");
    }
}

#[test]
fn a_slash_at_the_end_names_a_directory_only() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    c.put("f", b"data");
    running.link("l", "f");
    for line in [
        "DELE f/",
        "RNFR f/",
        "SIZE f/",
        "MDTM f/",
        "HASH f/",
        "MLST f/",
        "STAT f/",
        "CWD f/",
        "MFMT 20200101000000 f/",
        "SITE CHMOD 600 f/",
        "RMD f/",
        "DELE f/.",
        "DELE f//",
        "DELE l/",
        "RNFR l/",
        "SIZE l/",
        "DELE /share/f/",
    ] {
        assert_eq!(c.code_of(line), 550, "{line}");
    }
    for line in ["RETR f/", "STOR f/", "APPE f/", "STOR new/", "LIST f/", "NLST f/", "MLSD f/"] {
        assert_eq!(c.code_of("PASV"), 227);
        assert_eq!(c.code_of(line), 550, "{line}");
    }
    assert_eq!((c.code_of("RNFR f"), c.code_of("RNTO g/")), (350, 550));
    assert_eq!(c.get("f"), b"data");
    // Directories may be named so, also before they are there.
    assert_eq!(c.code_of("MKD d/"), 257);
    assert_eq!((c.code_of("RNFR d/"), c.code_of("RNTO e/")), (350, 250));
    c.put("e/f", b"data");
    assert_eq!(c.fetch(&Request::Maybe(Verb::Nlst, Some(b"e/"))), b"f\r\n");
    assert_eq!(c.code_of("DELE e/f"), 250);
    assert_eq!(c.code_of("RMD e/"), 250);
    assert_eq!(c.names(), ["f", "l"]);
}

#[test]
fn spaces_in_front_of_a_name_are_a_part_of_it() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    for name in [b" lead".as_slice(), b"  two", b" -la"] {
        assert_eq!(c.store(&text(Verb::Stor, name), b"x"), 226);
        assert_eq!(lines(&mut c, Verb::Nlst, Some(name)), [name]);
        let people = lines(&mut c, Verb::List, Some(name));
        assert!(people.len() == 1 && people[0].ends_with(name), "{people:?}");
        assert_eq!(c.request(&Request::Maybe(Verb::Stat, Some(name))).lines.len(), 3);
    }
    // What some clients send for the current directory.
    for nothing in [b" ".as_slice(), b"-la", b"-l -a", b"-la "] {
        assert_eq!(lines(&mut c, Verb::Nlst, Some(nothing)).len(), 3);
    }
}

#[test]
fn the_time_that_was_set_is_returned() {
    let folder = Scratch::new();
    let scene = Scene::in_folder(Service::Ftp, &folder, PATIENCE);
    let running = Running::over(scene, Settings::default());
    let mut c = running.signed_in();
    c.put("f", b"x");
    // Some file systems end before that.
    for time in ["20200229120000", "99991231235959", "19000101000000"] {
        let listed = c.text(&format!("MFMT {time} f"));
        let now = c.text("MDTM f");
        assert_eq!(listed, format!("Modify={now}; f"));
    }
}
