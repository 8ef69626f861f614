//! The audit log: user, time, values before and after; it grows, rotates, and survives a torn line.

use std::sync::Arc;

use base::clock::ManualClock;
use base::limits::{AUDIT_FILE_BYTES_MAX, AUDIT_FILES_MAX};
use serde_json::json;

use super::disk::MemoryDisk;
use super::{NOW_S, actor, commit, create, open, rooms, set, tree};
use crate::tree::audit::{Audit, AuditFilter, Record};
use crate::tree::store::Disk;

fn all() -> AuditFilter {
    AuditFilter { limit: usize::MAX, ..AuditFilter::default() }
}

#[test]
fn changes_are_recorded_with_their_values() {
    let tree = tree();
    commit(&tree, json!([set("/services/nfs", "lease", 60)])).unwrap();
    commit(&tree, json!([set("/services/nfs", "lease", 30)])).unwrap();
    commit(&tree, json!([create("/users", "anna", json!({ "password": "top secret" }))])).unwrap();
    tree.audit().note(&actor(), "sign-in", "refused").unwrap();
    let records = tree.audit().read(&all()).unwrap();
    let [note, password, user, lease, first] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((note.action.as_str(), note.detail.as_str()), ("sign-in", "refused"));
    assert_eq!((&password.before, &password.after), (&json!(null), &json!("(secret)")));
    assert_eq!((user.path.as_str(), &user.after), ("/users/anna", &json!(true)));
    assert_eq!((&lease.before, &lease.after), (&json!(60), &json!(30)));
    assert_eq!((lease.who.as_str(), lease.from.as_str(), lease.when), ("anna", "10.0.0.7", NOW_S));
    assert_eq!((first.action.as_str(), first.revision), ("set", Some(1)));
    let nfs =
        AuditFilter { path: Some("/services".to_owned()), limit: 1, ..AuditFilter::default() };
    assert_eq!(tree.audit().read(&nfs).unwrap(), std::slice::from_ref(lease));
    assert!(tree.audit().read(&AuditFilter { to: Some(NOW_S), ..all() }).unwrap().is_empty());
}

#[test]
fn nothing_changes_that_cannot_be_recorded() {
    let disk = MemoryDisk::default();
    let tree = open(&disk);
    let rooms = rooms::Recorders::default();
    tree.join(rooms::branches(&rooms));
    for file in ["audit.log", "configuration/", "secrets.json"] {
        disk.fail(Some(file));
        let change = json!([create("/users", "anna", json!({ "password": "long" }))]);
        let problems = commit(&tree, change).unwrap_err();
        assert!(problems[0].sentence.contains("no space left"), "{file}: {problems:?}");
        assert_eq!(tree.current().revision.number, 0, "{file}");
        let taken = rooms.taken("users").is_none_or(|taken| taken.nodes().next().is_none());
        assert!(taken, "{file}: the room must have the old one");
        disk.fail(None);
        assert_eq!(open(&disk).current().revision.number, 0, "{file}");
    }
    assert_eq!(commit(&tree, json!([create("/users", "anna", json!({}))])).unwrap().revision, 1);
}

#[test]
fn a_torn_line_is_passed_over() {
    let disk = MemoryDisk::default();
    disk.append("audit.log", b"{\"when\":1,\"who\":\"a\",\"from\":\"b\",\"action\":\"c\"}\n{\"wh")
        .unwrap();
    let audit = Audit::open(Arc::new(disk), Arc::new(ManualClock::default())).unwrap();
    audit.note(&actor(), "next", "").unwrap();
    let records = audit.read(&all()).unwrap();
    let actions: Vec<&str> = records.iter().map(|record| record.action.as_str()).collect();
    assert_eq!(actions, ["next", "c"]);
}

#[test]
fn a_record_after_one_that_the_disk_took_in_part_can_be_read() {
    let disk = MemoryDisk::default();
    let clock = Arc::new(ManualClock::default());
    let audit = Audit::open(Arc::new(disk.clone()), clock).unwrap();
    audit.note(&actor(), "first", "").unwrap();
    disk.fail(Some("audit.log"));
    audit.note(&actor(), "lost", "").unwrap_err();
    disk.fail(None);
    disk.append("audit.log", b"{\"when\":1,\"who\":\"a\",\"fr").unwrap();
    audit.note(&actor(), "next", "").unwrap();
    audit.note(&actor(), "last", "").unwrap();
    let records = audit.read(&all()).unwrap();
    let actions: Vec<&str> = records.iter().map(|record| record.action.as_str()).collect();
    assert_eq!(actions, ["last", "next", "first"]);
    // Lines are ended once.
    let empty = |text: String| text.lines().filter(|line| line.is_empty()).count();
    assert_eq!(disk.file("audit.log").map(empty), Some(0));
}

#[test]
fn full_files_turn_over_and_the_oldest_goes() {
    let disk = MemoryDisk::default();
    let audit = Audit::open(Arc::new(disk.clone()), Arc::new(ManualClock::default())).unwrap();
    let long = "x".repeat(900);
    let batch: Vec<Record> = (0..1_000)
        .map(|_| Record { detail: long.clone(), ..Record::new(&actor(), "fill") })
        .collect();
    audit.note(&actor(), "first", "").unwrap();
    let batches = (AUDIT_FILES_MAX as u64 + 2) * AUDIT_FILE_BYTES_MAX / 900_000;
    for _ in 0..batches {
        audit.write(&batch).unwrap();
    }
    audit.note(&actor(), "last", "").unwrap();
    let files = |name: &str| disk.file(name).map(|text| text.len() as u64);
    assert!(files("audit.log").is_some_and(|size| size <= AUDIT_FILE_BYTES_MAX));
    assert!(files(&format!("audit.log.{}", AUDIT_FILES_MAX - 1)).is_some());
    assert_eq!(files(&format!("audit.log.{AUDIT_FILES_MAX}")), None);
    let records = audit.read(&all()).unwrap();
    assert_eq!(records[0].action, "last");
    assert!(records.iter().all(|record| record.action != "first"), "the oldest has gone");
}
