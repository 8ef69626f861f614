//! A table that is in use, one that was left by a crash, and what is none.

use std::path::PathBuf;

use super::super::Table;
use super::*;

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("plimsoll-table-{name}-{}.redb", std::process::id()))
}

#[test]
fn a_table_in_use_is_read_as_text() {
    let path = file("inspect");
    // Left by a test that was killed.
    drop(std::fs::remove_file(&path));
    let table = Table::open(Some(&path), false).expect("a table");
    let root = Ident::Inode { ino: 2, birth: 0 };
    let dir = Ident::Inode { ino: 12, birth: 77 };
    table.note_dir(&dir, root, b"a\xffb");
    assert_eq!(table.len(), 1);
    table.write_out().expect("written");
    // Not closed: the server holds its lock, and the file looks as after a crash.
    let bytes = std::fs::read(&path).expect("a file");
    let content = read(&bytes, false).expect("readable");
    let row = DirRow {
        ino: 12,
        birth: 77,
        parent: "inode 2".into(),
        hint: "inode 2".into(),
        name: "a\u{fffd}b".into(),
    };
    assert_eq!(content, Content { dirs: vec![row], ..Content::default() });
    drop(table);
    std::fs::remove_file(&path).expect("removed");
}

#[test]
fn what_is_no_table_is_refused() {
    assert!(read(b"not a database at all", false).is_err());
    assert!(read(&[0; 8192], true).is_err());
}
