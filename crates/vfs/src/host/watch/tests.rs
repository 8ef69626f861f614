//! Changes of watched files are reported, whatever makes them and however; others are not.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::*;

/// Longest wait for word of a change.
const WORD: Duration = Duration::from_secs(60);

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("plimsoll-watch-{name}-{}", std::process::id()));
        fs::create_dir(&path).expect("a fresh directory");
        Self(path)
    }
    fn file(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, "before").expect("written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn watcher() -> (Arc<Watcher>, Receiver<Changed>) {
    let (say, hear) = channel();
    let say = Mutex::new(say);
    let watcher = Arc::<Watcher>::default();
    watcher.set_listener(Box::new(move |key| {
        let _gone = lock(&say).send(key);
    }));
    (watcher, hear)
}

fn key(fileid: u64) -> FileKey {
    FileKey { fsid: 1, fileid, generation: 0 }
}

fn watch(watcher: &Arc<Watcher>, path: &Path, n: u64) -> Guard {
    watcher
        .watch(File::open(path).expect("opens").as_fd(), (key(n), path.is_dir()))
        .expect("watched")
}

#[test]
fn every_kind_of_change_is_reported() {
    let (folder, (watcher, hear)) = (Folder::new("kinds"), watcher());
    let path = folder.file("a");
    let _watch = watch(&watcher, &path, 7);
    let heard = |what: &str| {
        assert_eq!(hear.recv_timeout(WORD), Ok(Changed::File(key(7))), "{what}");
        while hear.try_recv().is_ok() {}
    };
    let mut file = File::options().append(true).open(&path).expect("opens");
    file.write_all(b"more").expect("written");
    heard("a write");
    file.set_len(2).expect("cut");
    heard("a truncation");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("changed");
    heard("other rights");
    fs::rename(&path, folder.0.join("b")).expect("renamed");
    heard("another name");
    drop(file);
    fs::remove_file(folder.0.join("b")).expect("removed");
    heard("no name any more");
}

#[test]
fn reads_and_other_files_report_no_change() {
    let (folder, (watcher, hear)) = (Folder::new("others"), watcher());
    let (path, other) = (folder.file("a"), folder.file("b"));
    let _watch = watch(&watcher, &path, 1);
    fs::read(&path).expect("read");
    fs::write(&other, "changed").expect("written");
    // The one after them is heard of first.
    let last = folder.file("c");
    let _last = watch(&watcher, &last, 2);
    fs::write(&last, "changed").expect("written");
    assert_eq!(hear.recv_timeout(WORD), Ok(Changed::File(key(2))));
}

#[test]
fn a_file_is_watched_until_the_last_has_let_go() {
    let (folder, (watcher, hear)) = (Folder::new("twice"), watcher());
    let path = folder.file("a");
    let (first, second) = (watch(&watcher, &path, 3), watch(&watcher, &path, 3));
    assert_eq!(watcher.count(), 1);
    drop(first);
    fs::write(&path, "changed").expect("written");
    assert_eq!(hear.recv_timeout(WORD), Ok(Changed::File(key(3))));
    drop(second);
    assert_eq!(watcher.count(), 0);
}

#[test]
fn nothing_is_watched_without_a_listener() {
    let folder = Folder::new("nobody");
    let path = folder.file("a");
    let watcher = Arc::<Watcher>::default();
    let refused = watcher.watch(File::open(&path).expect("opens").as_fd(), (key(1), false));
    assert_eq!(refused.err().and_then(|e| e.raw_os_error()), Some(libc::EOPNOTSUPP));
}

#[test]
fn changes_in_a_directory_are_reported_by_kind() {
    let (folder, (watcher, hear)) = (Folder::new("directory"), watcher());
    let _watch = watch(&watcher, &folder.0, 4);
    // Other kinds may come before: what is written is made first.
    let heard = |kind: Changes, what: &str| loop {
        match hear.recv_timeout(WORD) {
            Ok(Changed::Directory(dir, kinds)) if kinds.meets(kind) => {
                assert_eq!(dir, key(4), "{what}");
                return;
            }
            Ok(Changed::Directory(..)) => {}
            other => panic!("{what}: {other:?}"),
        }
    };
    let path = folder.file("a");
    heard(Changes::NAMES, "a new file");
    heard(Changes::DATA, "its data");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("changed");
    heard(Changes::ATTRIBUTES, "other rights");
    fs::rename(&path, folder.0.join("b")).expect("renamed");
    heard(Changes::NAMES, "another name");
    fs::remove_file(folder.0.join("b")).expect("removed");
    heard(Changes::NAMES, "one name less");
}
