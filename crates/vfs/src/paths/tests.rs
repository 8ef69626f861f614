//! Paths from memories, which are bounded and may be wrong, but never endless.

use super::*;

#[test]
fn follows_parents_to_the_root() {
    let paths = Paths::default();
    paths.note(2, 1, b"a");
    paths.note(3, 2, b"b");
    paths.note(3, 2, b".");
    assert_eq!(paths.path_of(3, 1), Some(b"a/b".to_vec()));
    paths.note(2, 1, b"renamed");
    assert_eq!(paths.path_of(3, 1), Some(b"renamed/b".to_vec()));
    assert_eq!(paths.path_of(1, 1), Some(vec![]));
    assert_eq!(paths.path_of(9, 1), None);
}

#[test]
fn a_circle_has_no_path() {
    let paths = Paths::default();
    paths.note(2, 3, b"a");
    paths.note(3, 2, b"b");
    assert_eq!(paths.path_of(3, 1), None);
}

#[test]
fn the_oldest_is_forgotten() {
    let paths = Paths::with_capacity(SHARDS * 4);
    (2..1_000).for_each(|id| paths.note(id, 1, b"name"));
    assert_eq!(paths.last(2), None);
    assert!(paths.last(999).is_some());
    let kept = (2..1_000).filter(|id| paths.last(*id).is_some()).count();
    assert!(kept <= SHARDS * 4);
}
