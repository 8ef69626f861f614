//! What is known of a directory, and when it is not.

use super::*;
use crate::attr::{Attr, Before};

fn wcc(before: u64, after: u64) -> Wcc {
    let attr = Attr { change: before, fileid: 5, ..Attr::of_shares() };
    let after = Attr { change: after, ..attr };
    Wcc { before: Some(Before::from(&attr)), after: Some(after) }
}

fn fill(index: &FoldIndex, dir: FileKey, names: &[&[u8]]) {
    let mut filling = index.filling();
    names.iter().for_each(|name| filling.add(name));
    index.fill(dir, 1, Some(filling));
}

fn names(names: &[&str]) -> FoldedNames {
    FoldedNames::Names(names.iter().map(|name| name.as_bytes().to_vec()).collect())
}

#[test]
fn changes_keep_a_directory_known() {
    let index = FoldIndex::default();
    let dir = FileKey::from(&Attr { fileid: 5, ..Attr::of_shares() });
    assert_eq!(index.known(dir, 1, b"a"), FoldedNames::Nothing);
    fill(&index, dir, &[b"One", b"ONE", b"two"]);
    assert_eq!(index.known(dir, 1, b"one"), names(&["One", "ONE"]));
    assert_eq!(index.known(dir, 1, b"three"), names(&[]));
    assert_eq!(index.known(dir, 2, b"three"), FoldedNames::Nothing);
    index.changed(&wcc(1, 2), Some(b"One"), Some(b"Three"));
    assert_eq!(index.known(dir, 2, b"three"), names(&["Three"]));
    // The other one is still there.
    assert_eq!(index.known(dir, 2, b"one"), names(&["ONE"]));
    index.changed(&wcc(2, 3), Some(b"ONE"), None);
    assert_eq!(index.known(dir, 3, b"one"), names(&[]));
    // It was changed otherwise.
    index.changed(&wcc(4, 5), None, Some(b"new"));
    assert_eq!(index.known(dir, 5, b"new"), FoldedNames::Nothing);
    let dirs = index.dirs();
    assert_eq!((dirs.total, dirs.uses.len()), (0, 0));
}

#[test]
fn too_many_names_are_known_until_one_goes() {
    let index = FoldIndex::default();
    let dir = FileKey::from(&Attr { fileid: 5, ..Attr::of_shares() });
    index.fill(dir, 1, None);
    assert_eq!(index.known(dir, 1, b"a"), FoldedNames::TooMany);
    index.changed(&wcc(1, 2), None, Some(b"a"));
    assert_eq!(index.known(dir, 2, b"a"), FoldedNames::TooMany);
    index.changed(&wcc(2, 3), Some(b"a"), None);
    assert_eq!(index.known(dir, 3, b"a"), FoldedNames::Nothing);
}

#[test]
fn what_is_not_used_is_forgotten_and_bytes_are_counted() {
    let index = FoldIndex::default();
    let dir = |fileid| FileKey::from(&Attr { fileid, ..Attr::of_shares() });
    // Directories without names take room too.
    let most = (SMB_FOLD_INDEX_BYTES / SMB_FOLD_DIR_BYTES) as u64;
    for fileid in 0..most {
        fill(&index, dir(fileid), &[]);
    }
    assert_eq!(index.dirs().known.len() as u64, most);
    assert_eq!(index.known(dir(0), 1, b"x"), names(&[]));
    fill(&index, dir(most), &[b"name"]);
    assert_eq!(index.known(dir(0), 1, b"x"), names(&[]), "it was used");
    assert_eq!(index.known(dir(1), 1, b"x"), FoldedNames::Nothing);
    assert_eq!(index.known(dir(most), 1, b"NAME"), names(&["name"]));
    let dirs = index.dirs();
    assert!(dirs.total <= SMB_FOLD_INDEX_BYTES);
    assert_eq!(dirs.total, dirs.known.values().map(|names| names.bytes).sum::<usize>());
}
