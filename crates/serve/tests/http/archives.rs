//! A directory as an archive, read by somebody else.

use std::process::Command;

use crate::stand::{Stand, open};

/// Reads an archive, checks all of it, and prints names, sizes and first bytes.
const READ: &str = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\n\
                    assert z.testzip() is None\n\
                    for i in z.infolist(): print(i.filename, i.file_size, z.read(i)[:5])";

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
    let file = std::env::temp_dir().join(format!("plimsoll-archive-{}.zip", std::process::id()));
    std::fs::write(&file, &zip.body).unwrap();
    let read = Command::new("python3").arg("-c").arg(READ).arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let mut lines: Vec<_> = std::str::from_utf8(&read.stdout).unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["empty 0 b''", "ä/ 0 b''", "ä/large 1000000 b'LLLLL'"]);
}
