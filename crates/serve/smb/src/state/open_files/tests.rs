//! What it takes to remove a name is kept until its last close, and times a little longer.

use super::*;

#[test]
fn a_change_time_is_remembered() {
    let files = OpenFiles::<()>::default();
    let key = |fileid| FileKey { fsid: 1, fileid, generation: 3 };
    let ctime = vfs::attr::Time { sec: 5, nsec: 0 };
    let shown = |fileid| files.times(key(fileid), |times| times.change_at(ctime)).flatten();
    for fileid in 0..=SMB_CHANGE_TIMES_MAX as u64 {
        files.open(key(fileid));
        files.times(key(fileid), |times| times.set_change(fileid, ctime));
        assert!(files.close(key(fileid), None).is_none());
    }
    // The first is forgotten: there is room for no more.
    assert_eq!((shown(0), shown(1)), (None, Some(1)));
    files.open(key(1));
    assert_eq!(shown(1), Some(1));
    let last = SMB_CHANGE_TIMES_MAX as u64;
    assert_eq!(shown(last), Some(last));
}
