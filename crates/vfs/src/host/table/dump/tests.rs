//! What was written is shown, and what is no table is refused.

use super::super::Table;
use super::*;

fn inode(ino: u64) -> Ident {
    Ident::Inode { ino, birth: 7 }
}

#[test]
fn rows_are_shown_while_the_table_is_open() {
    let dir = std::env::temp_dir().join(format!("plimsoll-dump-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("handles-1-table.redb");
    let table = Table::open(Some(&path), false).unwrap();
    let empty = dump_table(&std::fs::read(&path).unwrap(), false).unwrap();
    assert_eq!(empty, TableDump::default());
    table.note_dir(&inode(12), inode(2), b"papers");
    table.note_moved(&inode(40), inode(12), &[inode(12), inode(13)]);
    table.write_out().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    table.close();
    std::fs::remove_dir_all(&dir).unwrap();
    let dump = dump_table(&bytes, false).unwrap();
    let line = "inode 12 (born 7) is \"papers\" in inode 2; its handle says inode 2";
    assert_eq!(dump.dirs, [line]);
    assert_eq!(dump.moved, ["inode 40 first met in inode 12, then in inode 13"]);
    assert_eq!(dump.unknown, 0);
}

#[test]
fn what_is_no_table_is_refused() {
    assert!(dump_table(b"not a database", false).is_err());
    assert!(dump_table(&[0; 8192], true).is_err());
}
