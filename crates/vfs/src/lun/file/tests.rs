//! Tests of what only files have: snapshots, and identities.

use std::os::fd::AsFd;

use base::memory::cached_pages;

use crate::lun::Medium;
use crate::lun::file::{FileMedium, Space, sync_name};
use crate::lun::tests::Folder;

#[test]
fn a_snapshot_is_a_copy_or_refused() {
    let folder = Folder::new("snapshot");
    let medium = FileMedium::create(&folder.0.join("lun"), 1 << 20, Space::Sparse).expect("create");
    medium.write(0, b"before", true).expect("write");
    let path = folder.0.join("copy");
    match medium.snapshot(&path) {
        Ok(()) => {
            medium.write(0, b"after!", true).expect("write");
            let mut bytes = [0; 6];
            let copy = FileMedium::open(&path, false).expect("open");
            copy.read(0, &mut bytes, true).expect("read");
            assert_eq!((&bytes, copy.size()), (b"before", 1 << 20));
        }
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
            assert!(!path.exists(), "nothing is left behind");
        }
    }
}

#[test]
fn a_file_has_a_stable_identity() {
    let folder = Folder::new("identity");
    let path = folder.0.join("lun");
    let medium = FileMedium::create(&path, 4096, Space::Sparse).expect("create");
    sync_name(&path).expect("sync");
    let again = FileMedium::open(&path, false).expect("open");
    assert_eq!(medium.identity().expect("identity"), again.identity().expect("identity"));
}

#[test]
fn what_is_in_memory_can_be_sent_from_there() {
    let folder = Folder::new("slice");
    let path = folder.0.join("lun");
    let medium = FileMedium::create(&path, 1 << 20, Space::Sparse).expect("create");
    medium.write(0, &[7; 128 << 10], true).expect("write");
    // A mapping is made when it is asked for again.
    let _first = medium.slice(0, 128 << 10);
    let Some(slice) = medium.slice(0, 128 << 10) else {
        println!("SKIP lun-slice: the kernel does not say what is in its cache");
        return;
    };
    assert_eq!(slice.raw().1, 128 << 10);
    let part = slice.part(4096..8192).expect("within");
    assert_eq!(part.raw(), (slice.raw().0.wrapping_add(4096), 4096));
    assert!(slice.part(0..(128 << 10) + 1).is_none());
    assert!(medium.slice(0, 256 << 10).is_none(), "a hole is not looked at");
    assert!(medium.slice(0, 0).is_none());
}

#[test]
fn a_unit_out_of_the_page_cache_is_on_the_disk() {
    let path = std::env::temp_dir().join(format!("plimsoll-lun-drop-{}", std::process::id()));
    let medium = FileMedium::create(&path, 1 << 20, Space::Sparse).expect("made");
    std::fs::remove_file(&path).expect("unlinked");
    medium.write(4096, &[7; 65_536], true).expect("written");
    let before = cached_pages(medium.file.as_fd(), 0, 0);
    if medium.is_memory || !before.is_ok_and(|pages| pages.resident > 0) {
        println!("SKIP lun-drop: no disk here, or a kernel that does not count pages");
        return;
    }
    for _ in 0..2 {
        let _slice = medium.slice(4096, 65_536);
    }
    let found = medium.drop_cache();
    assert_eq!((found.files, found.after, found.failed), (1, 0, 0), "{found:?}");
    assert!(found.before >= 65_536, "{found:?}");
    let mut back = vec![0; 65_536];
    medium.read(4096, &mut back, true).expect("read");
    assert!(back.iter().all(|byte| *byte == 7));
}
