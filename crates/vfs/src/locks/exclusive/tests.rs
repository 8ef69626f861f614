//! Tests of the set of files that no share shows.

use super::{ExclusiveFiles, of};

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
fn names_are_retained_once_for_each_request() {
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

/// A folder of this test with a file in it.
fn folder(name: &str) -> (std::path::PathBuf, std::path::PathBuf) {
    let path =
        std::env::temp_dir().join(format!("plimsoll-exclusive-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a folder");
    let file = path.join("file");
    std::fs::write(&file, "data").expect("a file");
    (path, file)
}

#[test]
fn a_file_is_looked_up_again_where_it_lies() {
    let (dir, path) = folder("again");
    let files = ExclusiveFiles::default();
    let entry = files.enter(&path, true).expect("a file").expect("it is new");
    let (device, before) = of(&path).expect("a file");
    assert!(files.contains(device, before) && files.keeps_name(device, of(&dir).expect("it").1));
    assert!(files.enter(&path, true).expect("a file").is_none(), "it is in the set");
    // As after a remount: another inode is at the path.
    std::fs::rename(&path, dir.join("other")).expect("moved");
    std::fs::write(&path, "data").expect("another file");
    let now = of(&path).expect("a file").1;
    files.renew(&dir.join("none")).expect_err("no directory");
    assert!(!files.contains(device, now));
    files.renew(&dir).expect("a directory");
    assert!(files.contains(device, now) && !files.contains(device, before));
    // It has gone, and another file may have its numbers.
    std::fs::remove_file(&path).expect("removed");
    files.renew_elsewhere(&dir).expect("a directory");
    assert!(files.contains(device, now), "that is about others");
    files.renew_elsewhere(std::path::Path::new("/proc")).expect("a directory");
    assert!(files.contains(device, now), "on another device");
    files.renew(&dir).expect("a directory");
    assert!(!files.contains(device, now));
    // It is back.
    std::fs::rename(dir.join("other"), &path).expect("moved");
    files.renew(&dir).expect("a directory");
    assert!(files.contains(device, before));
    files.leave(&entry);
    assert!(files.is_empty() && !files.keeps_name(device, of(&dir).expect("it").1));
    std::fs::remove_dir_all(&dir).expect("removed");
}
