//! A name is removed once, after its last close, wherever it is by then.

use super::*;

const KEY: FileKey = FileKey { fsid: 1, fileid: 2, generation: 3 };

fn at(name: &str) -> Option<Location> {
    let dir = Handle::new(b"directory").expect("a handle");
    Some(Location { dir, name: name.into(), link: None })
}

/// What is removed, and by which name.
fn told(closed: Option<(&'static str, Location)>) -> Option<(&'static str, String)> {
    closed.map(|(what, at)| (what, String::from_utf8(at.name).expect("a name")))
}

#[test]
fn the_last_close_removes() {
    let files = OpenFiles::default();
    let name = files.open(KEY, at("a")).expect("an open");
    assert_eq!(files.open(KEY, at("a")), Ok(name));
    files.set_removal(KEY, name, Some("gone"));
    assert!(files.is_to_be_removed(KEY, name));
    assert!(files.is_to_be_removed_at(KEY, at("a").as_ref()));
    assert_eq!(files.open(KEY, at("a")), Err(NtStatus::DELETE_PENDING));
    assert_eq!(told(files.close(KEY, name)), None);
    assert_eq!(told(files.close(KEY, name)), Some(("gone", "a".into())));
    assert_eq!((told(files.close(KEY, name)), files.count()), (None, 0));
}

#[test]
fn a_removal_can_be_taken_back() {
    let files = OpenFiles::default();
    let name = files.open(KEY, at("a")).expect("an open");
    files.set_removal(KEY, name, Some("gone"));
    files.set_removal(KEY, name, None);
    assert_eq!(files.open(KEY, at("a")), Ok(name));
    assert_eq!((told(files.close(KEY, name)), told(files.close(KEY, name))), (None, None));
    // What nobody has open is not marked.
    files.set_removal(KEY, name, Some("gone"));
    assert!(!files.is_to_be_removed(KEY, name));
}

#[test]
fn each_name_of_a_file_is_removed_by_itself() {
    let files = OpenFiles::default();
    let [one, other] = ["a", "b"].map(|name| files.open(KEY, at(name)).expect("an open"));
    files.set_removal(KEY, one, Some("one"));
    assert!(!files.is_to_be_removed(KEY, other));
    assert_eq!(files.open(KEY, at("b")), Ok(other));
    files.set_removal(KEY, other, Some("other"));
    assert_eq!(told(files.close(KEY, one)), Some(("one", "a".into())));
    assert_eq!((told(files.close(KEY, other)), files.count()), (None, 1));
    assert_eq!(told(files.close(KEY, other)), Some(("other", "b".into())));
    assert_eq!(files.count(), 0);
}

#[test]
fn a_renamed_file_is_removed_where_it_is() {
    let files = OpenFiles::default();
    let name = files.open(KEY, at("a")).expect("an open");
    assert_eq!(files.open(KEY, at("a")), Ok(name));
    files.moved(KEY, name, at("b").expect("a place"));
    assert_eq!(files.location(KEY, name).expect("a place").name, b"b");
    assert_eq!(files.open(KEY, at("b")), Ok(name));
    assert_eq!((told(files.close(KEY, name)), told(files.close(KEY, name))), (None, None));
    files.set_removal(KEY, name, Some("gone"));
    assert_eq!(told(files.close(KEY, name)), Some(("gone", "b".into())));
}

#[test]
fn every_directory_of_an_open_name_is_known() {
    let files = OpenFiles::<()>::default();
    let dirs = [b"one", b"two"].map(|dir| Handle::new(dir).expect("a handle"));
    for dir in dirs {
        let place = Location { dir, name: b"a".into(), link: None };
        assert!(files.open(KEY, Some(place)).is_ok());
    }
    assert_eq!(files.dirs(KEY.fsid), HashSet::from(dirs));
    assert_eq!(files.dirs(7), HashSet::new());
}

#[test]
fn a_change_time_is_remembered() {
    let files = OpenFiles::<()>::default();
    let key = |fileid| FileKey { fsid: 1, fileid, generation: 3 };
    let ctime = vfs::attr::Time { sec: 5, nsec: 0 };
    let shown = |fileid| files.times(key(fileid), |times| times.change_at(ctime)).flatten();
    for fileid in 0..=SMB_CHANGE_TIMES_MAX as u64 {
        assert_eq!(files.open(key(fileid), None), Ok(None));
        files.times(key(fileid), |times| times.set_change(fileid, ctime));
        assert!(files.close(key(fileid), None).is_none());
    }
    // The first is forgotten: there is room for no more.
    assert_eq!((shown(0), shown(1)), (None, Some(1)));
    assert_eq!(files.open(key(1), None), Ok(None));
    assert_eq!(shown(1), Some(1));
    let last = SMB_CHANGE_TIMES_MAX as u64;
    assert_eq!(shown(last), Some(last));
}
