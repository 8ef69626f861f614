//! Tests of the file of persistent handles: what is recorded is there at the next start, what ends
//! is not, and how many there may be.

use std::path::PathBuf;

use tokio::sync::watch;
use vfs::handle::Handle;
use vfs::locks::{FileKey, Share};

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("smb-handles-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn open(&self) -> Arc<HandleStore> {
        HandleStore::open(&self.0.join("smb-handles")).expect("a store").0
    }

    /// What is in the file now: numbers, and names of users.
    fn names(&self) -> Vec<(u64, String)> {
        let bytes = std::fs::read(self.0.join("smb-handles")).expect("the file");
        let all = inspect(&bytes).expect("records").into_iter();
        all.map(|(number, record)| (number, record.user)).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn record(user: &str) -> Record {
    Record {
        user: user.to_owned(),
        share: "share".to_owned(),
        path: b"/share/f".to_vec(),
        handle: Handle::new(&[7; 30]).expect("a handle"),
        file: FileKey { fsid: 1, fileid: 2, generation: 3 },
        address: IpAddr::from([192, 0, 2, 1]),
        client: [4; 16],
        guid: [5; 16],
        timeout_ms: 60_000,
        access: 1,
        mode: Share { access: 1, deny: 2 },
        options: 0,
        delete_on_close: false,
        is_marked: false,
        lease: None,
        sequences: Vec::new(),
        ranges: Vec::new(),
    }
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(future)
}

fn left(store: &HandleStore) -> Vec<(u64, String)> {
    store.left().into_iter().map(|(number, record)| (number, record.user)).collect()
}

#[test]
fn what_is_recorded_is_there_at_the_next_start_and_what_ended_is_not() {
    let folder = Folder::new("next");
    let store = folder.open();
    let hold = |number| store.hold(number, "alice", (address(1), [4; 16])).expect("room");
    let (one, other) = (hold(1), hold(2));
    wait(one.put(&record("alice"))).expect("recorded");
    wait(other.put(&record("alice"))).expect("recorded");
    wait(one.put(&record("changed"))).expect("recorded");
    assert!(left(&store).is_empty(), "they have opens");
    assert_eq!(folder.names(), [(1, "changed".to_owned()), (2, "alice".to_owned())]);
    wait(other.forget());
    assert_eq!(folder.names(), [(1, "changed".to_owned())]);
    // Dropped: behind what comes next it is gone from the disk as well.
    drop(one);
    let third = hold(3);
    wait(third.put(&record("bert"))).expect("recorded");
    assert_eq!(folder.names(), [(3, "bert".to_owned())]);
}

#[test]
fn handles_that_are_dropped_when_the_service_ends_stay() {
    let folder = Folder::new("ends");
    let store = folder.open();
    let (ends, ending) = watch::channel(false);
    store.set_ending(ending);
    let one = store.hold(1, "alice", (address(1), [4; 16])).expect("room");
    wait(one.put(&record("alice"))).expect("recorded");
    assert!(!one.stays());
    ends.send(true).expect("the store has it");
    assert!(one.stays());
    drop(one);
    drop(store);
    assert_eq!(left(&folder.open()), [(1, "alice".to_owned())]);
}

#[test]
fn one_client_leaves_room_for_others() {
    let folder = Folder::new("room");
    let store = folder.open();
    let hold = |number, from: u8| store.hold(number, "alice", (address(from), [from; 16]));
    let many: Vec<_> = (0..SMB_HANDLES_MAX).map_while(|number| hold(number, 1)).collect();
    assert!((many.len() as u64) < SMB_HANDLES_MAX, "{}", many.len());
    let other = hold(u64::MAX, 2).expect("room for another client");
    drop(other);
    let count = many.len();
    drop(many);
    let again: Vec<_> = (0..SMB_HANDLES_MAX).map_while(|number| hold(number, 1)).collect();
    assert_eq!(again.len(), count, "what was dropped is not counted");
}

#[test]
fn what_is_too_long_or_cannot_be_written_is_not_recorded() {
    let folder = Folder::new("long");
    let store = folder.open();
    let one = store.hold(1, "alice", (address(1), [4; 16])).expect("room");
    let long = Record { path: vec![b'x'; SMB_HANDLE_RECORD_MAX], ..record("alice") };
    assert_eq!(wait(one.put(&long)), Err(NotRecorded));
    wait(one.put(&record("alice"))).expect("recorded");
    std::fs::remove_dir_all(&folder.0).expect("a folder");
    std::fs::write(&folder.0, b"in its place").expect("a file");
    // The open file can still be written; a larger one would have to be rewritten.
    drop(store);
    let none = HandleStore::open(&folder.0.join("smb-handles"));
    assert!(none.is_err(), "the folder is none");
    std::fs::remove_file(&folder.0).expect("a file");
}

#[test]
fn a_record_that_is_not_understood_is_forgotten() {
    let folder = Folder::new("other");
    let path = folder.0.join("smb-handles");
    let limits = Limits { record_max: 100, file_max: 1 << 20, compact: 1 << 10 };
    let (journal, _) = Journal::open(&path, MAGIC, limits).expect("a journal");
    journal.put(&1u64.to_be_bytes(), b"something else").expect("put");
    journal.put(b"short", b"").expect("put");
    drop(journal);
    assert!(left(&folder.open()).is_empty());
    assert!(inspect(&std::fs::read(path).expect("the file")).expect("records").is_empty());
    assert!(folder.open().journal.records().is_empty());
}
