//! Folders that are in use, and leftovers of programs that are gone.

use super::*;
use std::time::{Duration, SystemTime};

/// A folder as a program leaves it that was killed so long ago.
fn left(dir: &Path, name: &str, ago: Duration) -> PathBuf {
    let path = dir.join(name);
    fs::create_dir(&path).unwrap();
    fs::write(path.join("link.sock"), "").unwrap();
    let held = File::create_new(path.join(HELD)).unwrap();
    held.set_modified(SystemTime::now() - ago).unwrap();
    path
}

#[test]
fn what_a_killed_program_has_left_is_put_away_and_nothing_else() {
    let scratch = Folder::new("folder-tests").unwrap();
    let dir = scratch.path();
    let long = Duration::from_secs(3_600);
    let gone = left(dir, "plimsoll-link-1", long);
    let young = left(dir, "plimsoll-link-2", Duration::ZERO);
    let other = left(dir, "plimsoll-sweep-1", long);
    let strange = left(dir, "somebody-link-1", long);
    let bare = dir.join("plimsoll-link-3");
    fs::create_dir(&bare).unwrap();
    let lives = Folder::within(dir, "link").unwrap();
    lives._held.set_modified(SystemTime::now() - long).unwrap();
    assert!(!gone.exists(), "nobody has it");
    let next = Folder::within(dir, "link").unwrap();
    for path in [lives.path(), &young, &other, &strange, &bare, next.path()] {
        assert!(path.exists(), "{path:?}");
    }
    let path = lives.path().to_owned();
    drop(lives);
    assert!(!path.exists());
}

#[test]
fn a_link_in_its_place_leads_nowhere() {
    let scratch = Folder::new("folder-tests").unwrap();
    let dir = scratch.path();
    let elsewhere = left(dir, "elsewhere", Duration::from_secs(3_600));
    std::os::unix::fs::symlink(&elsewhere, dir.join("plimsoll-link-1")).unwrap();
    drop(Folder::within(dir, "link").unwrap());
    assert!(elsewhere.join("link.sock").exists());
}
