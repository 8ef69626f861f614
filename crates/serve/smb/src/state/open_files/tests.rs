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
