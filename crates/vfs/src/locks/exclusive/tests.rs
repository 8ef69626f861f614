//! Tests of the set of files that no share shows.

use super::ExclusiveFiles;

#[test]
fn files_are_known_by_device_and_inode() {
    let files = ExclusiveFiles::default();
    assert!(files.is_empty() && !files.contains(1, 7));
    assert!(files.insert((1, 7)) && !files.insert((1, 7)));
    assert!(files.insert((1, 7 + 64)), "the same residue");
    assert!(files.contains(1, 7) && files.contains(1, 71));
    assert!(!files.contains(2, 7) && !files.contains(1, 8) && !files.contains(1, 7 + 128));
    files.remove((1, 7));
    assert!(!files.contains(1, 7) && files.contains(1, 71) && !files.is_empty());
    files.remove((1, 71));
    assert!(files.is_empty());
}

#[test]
fn names_are_kept_as_often_as_they_are_asked_for() {
    let files = ExclusiveFiles::default();
    files.keep_names(&[(1, 2), (1, 3)]);
    files.keep_names(&[(1, 2)]);
    assert!(files.keeps_name(1, 2) && files.keeps_name(1, 3) && !files.keeps_name(2, 2));
    assert!(!files.contains(1, 2), "they are shown");
    files.let_go_names(&[(1, 2), (1, 3)]);
    assert!(files.keeps_name(1, 2) && !files.keeps_name(1, 3));
    files.let_go_names(&[(1, 2)]);
    assert!(!files.keeps_name(1, 2));
}
