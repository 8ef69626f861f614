//! Files of clients do not meet, and lie on the disk.

use super::*;

fn set(client: u32) -> FileSet {
    FileSet { client, files: 3, size: 10_000 }
}

#[test]
fn files_lie_one_behind_the_other() {
    let size = 12_288 * 3 * 2;
    let (first, second) = (Layout::new(&set(0), size), Layout::new(&set(1), size));
    let (first, second) = (first.expect("room"), second.expect("room"));
    assert_eq!((first.start(), first.at(2), first.end()), (0, 24_576, 36_864));
    assert_eq!((second.start(), second.at(0), second.end()), (36_864, 36_864, size));
    assert!(Layout::new(&set(2), size).is_err() && Layout::new(&set(u32::MAX), u64::MAX).is_ok());
}

#[test]
fn a_disk_has_no_names_and_whole_blocks() {
    let shape = |kind, block| Shape { kind, block, files: 1, file_size: 1 << 20, own_files: false };
    for kind in [Kind::SeqRead, Kind::RandRead, Kind::SeqWrite, Kind::SyncWrite] {
        assert!(check(&shape(kind, 4096), 512).is_ok() && check(&shape(kind, 100), 512).is_err());
    }
    for kind in [Kind::Create, Kind::Getattr, Kind::Lookup] {
        assert!(check(&shape(kind, 4096), 512).is_err());
    }
    assert!(check(&shape(Kind::Null, 1), 512).is_ok());
}
