//! No way leads out of a tree of this machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use wire::dsync::Kind;

use super::{HostTree, Tree};
use crate::error::SyncError;

fn scratch(name: &str) -> PathBuf {
    let place = std::env::temp_dir().join(format!("plimsoll-host-{name}-{}", std::process::id()));
    let _none = fs::remove_dir_all(&place);
    fs::create_dir_all(place.join("in/a")).expect("folders");
    fs::create_dir_all(place.join("out")).expect("folders");
    fs::write(place.join("out/secret"), b"secret").expect("a file");
    place
}

#[test]
fn links_are_not_followed_wherever_they_stand() {
    let place = scratch("links");
    symlink(place.join("out"), place.join("in/away")).expect("a link");
    symlink("../../out", place.join("in/a/up")).expect("a link");
    symlink("a", place.join("in/inner")).expect("a link");
    symlink(place.join("out/secret"), place.join("in/file")).expect("a link");
    let tree = HostTree::open(&place.join("in")).expect("the tree");
    for path in [&b"away"[..], b"a/up", b"inner", b"..", b"a/../..", b"/"] {
        assert!(tree.dir(path).is_err(), "{}", String::from_utf8_lossy(path));
    }
    let top = tree.dir(b"").expect("the top");
    assert!(tree.open(&top, b"file").is_err());
    assert_eq!(tree.look(&top, b"file").expect("the link").meta.kind, Kind::SYMLINK);
    assert!(tree.create(&top, b"file").is_err(), "a link is no new name");
    assert_eq!(fs::read(place.join("out/secret")).expect("the file"), b"secret");
    fs::remove_dir_all(place).expect("cleaning up");
}

#[test]
fn one_run_writes_to_a_directory() {
    let place = scratch("locked");
    let first = HostTree::open_for_change(&place.join("in")).expect("the first");
    let second = HostTree::open_for_change(&place.join("in"));
    assert!(matches!(second, Err(SyncError::Busy(_))));
    // What a child has that another thread has forked and that has not started its program yet.
    let copy = first.top().expect("it is there").try_clone_to_owned().expect("a copy");
    drop(first);
    assert!(HostTree::open_for_change(&place.join("in")).is_ok());
    drop(copy);
    assert!(HostTree::open_for_change(&place.join("new")).is_ok(), "it is made");
    assert!(matches!(HostTree::open(&place.join("none")), Err(SyncError::Place { .. })));
    fs::remove_dir_all(place).expect("cleaning up");
}
