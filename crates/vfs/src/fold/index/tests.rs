//! What is known of a directory, and when it is not.

use super::*;
use crate::attr::{Attr, Before};

fn wcc(before: u64, after: u64) -> Wcc {
    let attr = Attr { change: before, fileid: 5, ..Attr::of_shares() };
    let after = Attr { change: after, ..attr };
    Wcc { before: Some(Before::from(&attr)), after: Some(after) }
}

#[test]
fn changes_keep_a_directory_known() {
    let index = FoldIndex::default();
    let dir = FileKey::from(&Attr { fileid: 5, ..Attr::of_shares() });
    assert_eq!(index.may_have(dir, 1, b"a"), None);
    index.fill(dir, 1, vec![index.hash(b"One"), index.hash(b"ONE"), index.hash(b"two")]);
    assert_eq!(index.may_have(dir, 1, b"one"), Some(true));
    assert_eq!(index.may_have(dir, 1, b"three"), Some(false));
    assert_eq!(index.may_have(dir, 2, b"three"), None);
    index.changed(&wcc(1, 2), Some(b"One"), Some(b"Three"));
    assert_eq!(index.may_have(dir, 2, b"three"), Some(true));
    // The other one is still there.
    assert_eq!(index.may_have(dir, 2, b"one"), Some(true));
    index.changed(&wcc(2, 3), Some(b"ONE"), None);
    assert_eq!(index.may_have(dir, 3, b"one"), Some(false));
    // Somebody else has changed it.
    index.changed(&wcc(4, 5), None, Some(b"new"));
    assert_eq!(index.may_have(dir, 5, b"new"), None);
    assert_eq!(index.dirs().total, 0);
}

#[test]
fn what_is_not_used_is_forgotten() {
    let index = FoldIndex::default();
    let dir = |fileid| FileKey::from(&Attr { fileid, ..Attr::of_shares() });
    let half = SMB_FOLD_INDEX_NAMES as u64 / 2;
    index.fill(dir(1), 1, (0..half).collect());
    index.fill(dir(2), 1, (0..half).collect());
    assert!(index.may_have(dir(1), 1, b"x").is_some());
    index.fill(dir(3), 1, vec![0, 1]);
    assert_eq!(index.may_have(dir(2), 1, b"x"), None);
    assert!(index.may_have(dir(1), 1, b"x").is_some());
    assert_eq!(index.dirs().total, half as usize + 2);
}
