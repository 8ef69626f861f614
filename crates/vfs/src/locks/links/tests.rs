//! A name is removed once, after its last close, wherever it is by then; and no open keeps a name
//! that is to be removed.

use super::*;
use crate::locks::{ClientKey, Protocol, SHARE_READ, SHARE_WRITE, Share};

const KEY: FileKey = FileKey { fsid: 1, fileid: 2, generation: 3 };
const DIR: FileKey = FileKey { fsid: 1, fileid: 9, generation: 0 };
const OTHER_DIR: FileKey = FileKey { fsid: 1, fileid: 10, generation: 0 };
const DENY_WRITE: Share = Share { access: SHARE_READ, deny: SHARE_WRITE };

fn handle(name: &[u8]) -> Handle {
    Handle::new(name).expect("a handle")
}

fn at(name: &str) -> Location {
    Location { dir: handle(b"directory"), dir_key: DIR, name: name.into(), link: None }
}

fn owner(n: u8) -> Owner {
    Owner::new(ClientKey { protocol: Protocol::Smb, id: n.into() }, &[n]).expect("short")
}

fn nfs() -> Owner {
    Owner::new(ClientKey { protocol: Protocol::Nfs4, id: 1 }, b"nfs").expect("short")
}

/// The name that is removed.
fn removed_name(closed: Option<Location>) -> Option<String> {
    closed.map(|at| String::from_utf8(at.name).expect("a name"))
}

#[test]
fn the_last_close_removes() {
    let (table, one) = (LockTable::default(), owner(1));
    let link = table.open_link(KEY, at("a"), &one, false).expect("an open");
    assert_eq!(table.open_link(KEY, at("a"), &owner(2), false), Ok(link));
    table.mark_link(KEY, link, &one).expect("free");
    assert!(table.is_marked(KEY, link) && table.is_marked_at(KEY, &at("a")));
    let third = table.open_link(KEY, at("a"), &owner(3), false);
    assert_eq!(third, Err(LinkRefused::DeletePending));
    assert_eq!(removed_name(table.close_link(KEY, link, &one)), None);
    assert_eq!(removed_name(table.close_link(KEY, link, &owner(2))), Some("a".into()));
    assert_eq!(removed_name(table.close_link(KEY, link, &one)), None);
    assert!(!table.has_links());
}

#[test]
fn a_removal_can_be_taken_back() {
    let (table, one) = (LockTable::default(), owner(1));
    let link = table.open_link(KEY, at("a"), &one, true).expect("an open");
    table.mark_link(KEY, link, &one).expect("free");
    table.unmark_link(KEY, link, &one);
    assert_eq!(removed_name(table.close_link(KEY, link, &one)), None);
    // What is not open is not marked.
    table.mark_link(KEY, link, &one).expect("nothing");
    assert!(!table.is_marked(KEY, link));
}

#[test]
fn each_name_of_a_file_is_removed_separately() {
    let (table, one) = (LockTable::default(), owner(1));
    let [a, b] = ["a", "b"].map(|name| table.open_link(KEY, at(name), &one, false).expect("open"));
    table.mark_link(KEY, a, &one).expect("free");
    assert!(!table.is_marked(KEY, b) && !table.is_marked_at(KEY, &at("b")));
    assert_eq!(removed_name(table.close_link(KEY, a, &one)), Some("a".into()));
    assert_eq!(removed_name(table.close_link(KEY, b, &one)), None);
}

#[test]
fn delete_on_close_marks_with_the_close() {
    let table = LockTable::default();
    let link = table.open_link(KEY, at("a"), &owner(1), true).expect("an open");
    table.open_link(KEY, at("a"), &owner(2), false).expect("not yet to be removed");
    assert_eq!(removed_name(table.close_link(KEY, link, &owner(1))), None);
    assert!(table.is_marked(KEY, link));
    assert_eq!(removed_name(table.close_link(KEY, link, &owner(2))), Some("a".into()));
}

#[test]
fn an_open_that_comes_to_nothing_marks_nothing() {
    let table = LockTable::default();
    let link = table.open_link(KEY, at("a"), &owner(1), false).expect("an open");
    table.open_link(KEY, at("a"), &owner(2), true).expect("another");
    assert_eq!(removed_name(table.abandon_link(KEY, link, &owner(2))), None);
    assert!(!table.is_marked(KEY, link));
    assert_eq!(removed_name(table.close_link(KEY, link, &owner(1))), None);
    assert!(!table.has_links());
}

#[test]
fn the_last_open_of_a_marked_name_removes_it_also_if_it_comes_to_nothing() {
    let table = LockTable::default();
    let link = table.open_link(KEY, at("a"), &owner(1), true).expect("an open");
    table.open_link(KEY, at("a"), &owner(2), false).expect("not yet to be removed");
    assert_eq!(removed_name(table.close_link(KEY, link, &owner(1))), None);
    assert_eq!(removed_name(table.abandon_link(KEY, link, &owner(2))), Some("a".into()));
    assert!(!table.has_links());
}

#[test]
fn a_rename_of_any_protocol_is_followed() {
    let (table, one) = (LockTable::default(), owner(1));
    let link = table.open_link(KEY, at("a"), &one, false).expect("an open");
    table.mark_link(KEY, link, &one).expect("free");
    let other = handle(b"another share");
    table.renamed((DIR, b"x"), (&other, OTHER_DIR, b"y"));
    assert_eq!(table.location(KEY, link).expect("open").name, b"a");
    table.renamed((DIR, b"a"), (&other, OTHER_DIR, b"b"));
    table.renamed((OTHER_DIR, b"b"), (&other, OTHER_DIR, b"c"));
    let gone = table.close_link(KEY, link, &one).expect("to be removed");
    assert_eq!((gone.dir, gone.dir_key, gone.name), (other, OTHER_DIR, b"c".to_vec()));
    table.renamed((OTHER_DIR, b"c"), (&other, OTHER_DIR, b"d"));
}

#[test]
fn opens_that_keep_names_and_removals_exclude_each_other() {
    let (table, one) = (LockTable::default(), owner(1));
    table.open(KEY, &nfs(), DENY_WRITE).expect("free");
    let kept = table.open_link(KEY, at("a"), &one, true);
    assert_eq!(kept, Err(LinkRefused::NameInUse(nfs())), "delete on close");
    let link = table.open_link(KEY, at("a"), &one, false).expect("an open");
    assert_eq!(table.mark_link(KEY, link, &one), Err(Refused::Shared(nfs())), "disposition");
    assert!(!table.is_marked(KEY, link));
    table.close(KEY, &nfs());
    table.mark_link(KEY, link, &one).expect("it was closed");
    let denied = table.open(KEY, &nfs(), DENY_WRITE);
    assert_eq!(denied, Err(Refused::Shared(one.clone())), "to be removed");
    table.open(KEY, &nfs(), Share { access: SHARE_READ, deny: 0 }).expect("keeps no name");
    table.unmark_link(KEY, link, &one);
    table.open(KEY, &nfs(), DENY_WRITE).expect("it stays");
    table.close(KEY, &nfs());
    table.close_link(KEY, link, &one);
    let link = table.open_link(KEY, at("a"), &one, true).expect("delete on close");
    let denied = table.open(KEY, &nfs(), DENY_WRITE);
    assert_eq!(denied, Err(Refused::Shared(one.clone())), "its close removes the file");
    assert_eq!(removed_name(table.close_link(KEY, link, &one)), Some("a".into()));
}

#[test]
fn what_is_open_is_known_by_its_directory() {
    let (table, one) = (LockTable::default(), owner(1));
    assert!(!table.is_open_by_name(KEY));
    let id = table.open_link(KEY, at("a"), &one, false).expect("an open");
    let name = OpenName { key: KEY, id, dir: at("a").dir };
    assert_eq!(table.open_names(KEY.fsid), std::slice::from_ref(&name));
    assert!(table.open_names(KEY.fsid + 1).is_empty(), "another file system");
    assert!(table.is_open_by_name(KEY) && table.is_open_name(&name));
    table.close_link(KEY, id, &one);
    assert!(!table.is_open_by_name(KEY) && !table.is_open_name(&name));
}
