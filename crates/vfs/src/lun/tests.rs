//! Tests of media: the conformance suite on each, and flushes through the group.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::conformance::{SIZE, run};
use super::file::{FileMedium, Space};
use super::mem::MemMedium;
use super::{Medium, Written, flush};
use crate::flush::FlushSite;
use crate::status::Status;

/// A folder that is removed at the end.
pub(super) struct Folder(pub std::path::PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plimsoll-lun-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn memory_is_a_medium() {
    let medium: Arc<dyn Medium> = Arc::new(MemMedium::new(SIZE));
    run(&medium);
}

#[test]
fn slow_memory_is_a_medium() {
    let medium = MemMedium::new(SIZE);
    medium.faults.slow.store(true, Ordering::Relaxed);
    let medium: Arc<dyn Medium> = Arc::new(medium);
    run(&medium);
}

#[test]
fn a_file_is_a_medium() {
    let folder = Folder::new("file");
    for (name, space) in [("sparse", Space::Sparse), ("reserved", Space::Reserved)] {
        let path = folder.0.join(name);
        let medium = FileMedium::create(&path, SIZE, space).expect("create");
        assert_eq!(medium.status().allocated >= SIZE, space == Space::Reserved);
        let medium: Arc<dyn Medium> = Arc::new(medium);
        run(&medium);
        drop(medium);
        let again = FileMedium::open(&path, true).expect("open");
        assert_eq!(again.size(), 2 * SIZE);
        assert_eq!(again.write(0, b"x", true), Err(Status::ReadOnly));
        assert_eq!(again.write_durable(0, b"x"), Err(Status::ReadOnly));
        assert_eq!(again.discard(0, 1), Err(Status::ReadOnly));
    }
    assert!(FileMedium::create(&folder.0.join("sparse"), 1, Space::Sparse).is_err(), "there");
    assert!(FileMedium::open(&folder.0, false).is_err(), "a folder");
}

#[test]
fn a_file_that_was_cut_short_is_an_error() {
    let folder = Folder::new("short");
    let path = folder.0.join("lun");
    let medium = FileMedium::create(&path, SIZE, Space::Sparse).expect("create");
    std::fs::OpenOptions::new().write(true).open(&path).and_then(|f| f.set_len(100)).expect("cut");
    assert_eq!(medium.read(0, &mut [0; 4096], true), Err(Status::Io));
}

#[test]
fn a_lost_write_is_reported_to_its_writer() {
    let mem = Arc::new(MemMedium::new(SIZE));
    let medium: Arc<dyn Medium> = Arc::clone(&mem) as _;
    let write = || medium.ledger().noted(|| medium.write(0, b"x", true).expect("write")).1;
    let ask = |written| flush(&medium, FlushSite::LunSync, written).wait();
    let (first, second) = (write(), write());
    mem.faults.flush.store(true, Ordering::Relaxed);
    assert_eq!(ask(first), Err(Status::Io));
    mem.faults.flush.store(false, Ordering::Relaxed);
    let third = write();
    // The flush itself goes well now; the second write is lost all the same.
    assert_eq!(ask(second), Err(Status::Io));
    assert_eq!(ask(third), Ok(()));
    assert_eq!(ask(Written::NONE), Ok(()));
    let mut all = second;
    all.join(third);
    assert_eq!(ask(all), Err(Status::Io));
    all.settle(all);
    assert!(all.is_empty());
    assert_eq!(medium.status().flush_failures, 1);
}

#[test]
fn a_durable_write_that_fails_loses_what_was_before_it() {
    let mem = Arc::new(MemMedium::new(SIZE));
    let medium: Arc<dyn Medium> = Arc::clone(&mem) as _;
    let before = medium.ledger().noted(|| medium.write(0, b"x", true)).1;
    mem.faults.flush.store(true, Ordering::Relaxed);
    assert_eq!(medium.ledger().noted(|| medium.write_durable(0, b"y")).0, Err(Status::Io));
    mem.faults.flush.store(false, Ordering::Relaxed);
    assert_eq!(flush(&medium, FlushSite::LunSync, before).wait(), Err(Status::Io));
}
