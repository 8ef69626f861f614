//! A directory as an archive, read by another program.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use vfs::share::Service;

use crate::scene::{Scene, Scratch};
use crate::scripted::Scripted;
use crate::stand::{Stand, open};

/// Reads an archive, checks all of it, and prints names, sizes and first bytes.
const READ: &str = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\n\
                    assert z.testzip() is None\n\
                    for i in z.infolist(): print(i.filename, i.file_size, z.read(i)[:5])";

/// What another program finds in an archive.
fn read(zip: &[u8]) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("plimsoll-archive-{}-{number}.zip", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, zip).unwrap();
    let read = Command::new("python3").arg("-c").arg(READ).arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    String::from_utf8(read.stdout).unwrap()
}

#[test]
fn a_directory_is_one_archive() {
    let stand = Stand::new(open());
    let mut client = stand.client();
    assert_eq!(client.ask("MKCOL /share/d", &[], b"").status, 201);
    assert_eq!(client.ask("MKCOL /share/d/%C3%A4", &[], b"").status, 201);
    assert_eq!(client.put("/share/d/empty", &[], b"").status, 201);
    assert_eq!(client.put("/share/d/%C3%A4/large", &[], &vec![b'L'; 1_000_000]).status, 201);
    let zip = client.get("/share/d/?archive", &[]);
    assert_eq!((zip.status, zip.header("content-type")), (200, "application/zip"));
    assert!(zip.header("content-disposition").contains("filename=\"d.zip\""));
    let text = read(&zip.body);
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["empty 0 b''", "ä/ 0 b''", "ä/large 1000000 b'LLLLL'"]);
}

#[test]
fn the_table_of_many_long_names_comes_in_pieces() {
    let stand = Stand::new(open());
    let mut client = stand.client();
    let mut path = "/share/d".to_owned();
    assert_eq!(client.ask(&format!("MKCOL {path}"), &[], b"").status, 201);
    for _ in 0..3 {
        path = format!("{path}/{}", "n".repeat(250));
        assert_eq!(client.ask(&format!("MKCOL {path}"), &[], b"").status, 201);
    }
    for n in 0..300 {
        assert_eq!(client.put(&format!("{path}/f{n}"), &[], b"x").status, 201);
    }
    let zip = client.get("/share/d/?archive", &[]);
    assert_eq!(read(&zip.body).lines().count(), 303);
}

#[test]
fn a_member_that_is_replaced_while_it_is_sent_comes_to_its_end() {
    let scratch = Scratch::new();
    let stand = Stand::of(&scratch);
    std::fs::create_dir(scratch.0.join("share/d")).unwrap();
    // More than the sockets hold.
    scratch.file("share/d/f", &vec![b'L'; 40 << 20]);
    scratch.file("new", b"new");
    let mut client = stand.client();
    client.send("GET /share/d/?archive", &[], b"");
    client.begin();
    std::fs::rename(scratch.0.join("new"), scratch.0.join("share/d/f")).unwrap();
    let zip = client.reply(false);
    assert_eq!(read(&zip.body), format!("f {} b'LLLLL'\n", 40 << 20));
}

#[test]
fn what_is_mounted_in_a_directory_is_named_as_missing() {
    let scene = Scene::over(Service::Http, &[("share", Scripted::with_mount())]);
    let stand = Stand::over(scene, open());
    let mut client = stand.client();
    assert_eq!(client.put("/share/f", &[], b"data").status, 201);
    let zip = client.get("/share/?archive", &[]);
    let text = read(&zip.body);
    assert!(text.contains("f 4 b'data'"), "{text}");
    assert!(text.contains("NOT-IN-THIS-ARCHIVE.txt"), "{text}");
    let missing = b"mounted: on another file system\n";
    assert!(zip.body.windows(missing.len()).any(|part| part == missing));
}
