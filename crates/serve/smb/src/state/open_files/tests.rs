//! A file is removed once, after its last close.

use super::*;

#[test]
fn the_last_close_removes() {
    let (files, key) = (OpenFiles::default(), FileKey { fsid: 1, fileid: 2, generation: 3 });
    assert!(files.open(key, None) && files.open(key, None));
    files.set_removal(key, Some("gone"));
    assert!(files.is_to_be_removed(key) && !files.open(key, None));
    assert_eq!(files.close(key), None);
    assert_eq!(files.close(key), Some("gone"));
    assert_eq!((files.close(key), files.count()), (None, 0));
}

#[test]
fn a_removal_can_be_taken_back() {
    let (files, key) = (OpenFiles::default(), FileKey { fsid: 1, fileid: 2, generation: 3 });
    assert!(files.open(key, None));
    files.set_removal(key, Some(()));
    files.set_removal(key, None);
    assert!(files.open(key, None));
    assert_eq!((files.close(key), files.close(key)), (None, None));
    // What nobody has open is not marked.
    files.set_removal(key, Some(()));
    assert!(!files.is_to_be_removed(key));
}

#[test]
fn a_change_time_is_remembered() {
    let files = OpenFiles::<()>::default();
    let key = |fileid| FileKey { fsid: 1, fileid, generation: 3 };
    let ctime = vfs::attr::Time { sec: 5, nsec: 0 };
    let shown = |fileid| files.times(key(fileid), |times| times.change_at(ctime)).flatten();
    for fileid in 0..=SMB_CHANGE_TIMES_MAX as u64 {
        assert!(files.open(key(fileid), None));
        files.times(key(fileid), |times| times.set_change(fileid, ctime));
        assert_eq!(files.close(key(fileid)), None);
    }
    // The first is forgotten: there is room for no more.
    assert_eq!((shown(0), shown(1)), (None, Some(1)));
    assert!(files.open(key(1), None));
    assert_eq!(shown(1), Some(1));
    let last = SMB_CHANGE_TIMES_MAX as u64;
    assert_eq!(shown(last), Some(last));
}
