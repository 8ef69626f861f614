//! Locks outlive the server, end in time, and meet the opens of other protocols.

use std::path::PathBuf;
use std::time::Duration;

use base::clock::ManualClock;

use super::*;

struct Scene {
    folder: PathBuf,
    opens: Arc<LockTable>,
    clock: Arc<ManualClock>,
}

impl Scene {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("davlocks-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("folder");
        let clock = Arc::new(ManualClock::at(1_700_000_000 * NS_PER_S));
        Self { folder, opens: Arc::default(), clock }
    }

    fn open(&self) -> Locks {
        let (opens, clock) = (Arc::clone(&self.opens), Arc::clone(&self.clock) as Arc<dyn Clock>);
        Locks::open(&self.folder.join("dav-locks"), opens, clock).expect("locks").0
    }

    /// As after a restart: the table of opens is empty.
    fn again(&mut self) -> Locks {
        self.opens = Arc::default();
        self.open()
    }

    fn may_write(&self, file: u64) -> bool {
        let nfs = ClientKey { protocol: Protocol::Nfs4, id: 1 };
        let owner = Owner::new(nfs, b"nfs").expect("short");
        let want = Share { access: SHARE_WRITE, deny: 0 };
        self.opens.open_denied(key(file), &owner, want).is_none()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn key(fileid: u64) -> FileKey {
    FileKey { fsid: 7, fileid, generation: 0 }
}

fn wanted(root: &str, file: u64) -> LockRequest {
    LockRequest {
        root: root.as_bytes().to_vec(),
        file: key(file),
        above: Vec::new(),
        user: "anna".into(),
        client: "192.0.2.7".into(),
        exclusive: true,
        deep: false,
        owner: String::new(),
        seconds: Some(100),
    }
}

#[test]
fn a_lock_outlives_the_server_and_binds_other_protocols() {
    let mut scene = Scene::new("outlive");
    let locks = scene.open();
    let lock = locks.take(wanted("/s/a", 1)).expect("free");
    let shared = LockRequest { exclusive: false, ..wanted("/s/b", 2) };
    let shared = locks.take(shared).expect("free");
    assert!(!scene.may_write(1) && scene.may_write(2));
    drop(locks);
    let locks = scene.again();
    assert_eq!(locks.get(&lock.token).as_deref(), Some(&*lock));
    assert_eq!(locks.get(&shared.token).as_deref(), Some(&*shared));
    assert!(!scene.may_write(1) && scene.may_write(2));
    locks.release(&lock.token).expect("held");
    assert!(scene.may_write(1));
    assert!(matches!(locks.release(&lock.token), Err(LockError::Unknown)));
    drop(locks);
    let locks = scene.again();
    assert!(locks.get(&lock.token).is_none() && locks.get(&shared.token).is_some());
}

#[test]
fn locks_end_in_time_here_and_among_the_opens() {
    let mut scene = Scene::new("end");
    let locks = scene.open();
    let lock = locks.take(wanted("/s/a", 1)).expect("free");
    scene.clock.advance(Duration::from_secs(60));
    assert_eq!(locks.left_s(&lock), 40);
    assert!(matches!(locks.refresh(&lock.token, "otto", None), Err(LockError::Unknown)));
    let longer = locks.refresh(&lock.token, "anna", None).expect("held");
    assert_eq!(locks.left_s(&longer), 100);
    drop(locks);
    let locks = scene.again();
    scene.clock.advance(Duration::from_secs(99));
    assert!(locks.get(&lock.token).is_some(), "the refresh is on disk");
    scene.clock.advance(Duration::from_secs(1));
    assert!(!scene.may_write(1));
    locks.sweep().expect("written");
    assert!(scene.may_write(1) && locks.is_empty());
    let bytes = std::fs::read(scene.folder.join("dav-locks")).expect("file");
    assert_eq!(record::read(&bytes).expect("locks"), []);
    assert!(matches!(locks.refresh(&lock.token, "anna", None), Err(LockError::Unknown)));
}

#[test]
fn what_ends_while_the_server_is_down_is_not_held_again() {
    let mut scene = Scene::new("down");
    let lock = scene.open().take(wanted("/s/a", 1)).expect("free");
    scene.clock.advance(Duration::from_secs(100));
    let locks = scene.again();
    assert!(locks.get(&lock.token).is_none() && scene.may_write(1));
}

#[test]
fn a_file_open_for_writing_elsewhere_is_not_locked() {
    let scene = Scene::new("open");
    let locks = scene.open();
    let nfs = ClientKey { protocol: Protocol::Nfs4, id: 1 };
    let owner = Owner::new(nfs, b"nfs").expect("short");
    let writing = Share { access: SHARE_WRITE, deny: 0 };
    scene.opens.open(key(1), &owner, writing).expect("free");
    assert!(matches!(locks.take(wanted("/s/a", 1)), Err(LockError::Open)));
    assert!(locks.is_empty(), "nothing is left of it");
    let shared = LockRequest { exclusive: false, ..wanted("/s/a", 1) };
    locks.take(shared).expect("shared locks let others write");
    scene.opens.begin_grace(Protocol::Nfs4);
    assert!(matches!(locks.take(wanted("/s/b", 2)), Err(LockError::Unavailable)));
}

#[test]
fn locks_follow_a_file_that_is_replaced_and_end_with_one_that_goes() {
    let mut scene = Scene::new("follow");
    let locks = scene.open();
    let lock = locks.take(wanted("/s/a", 1)).expect("free");
    locks.replaced(b"/s/a", None, key(9)).expect("written");
    assert!(scene.may_write(1) && !scene.may_write(9));
    drop(locks);
    let locks = scene.again();
    assert!(!scene.may_write(9), "so it is on disk");
    locks.take(wanted("/s/a/b", 3)).expect("free");
    locks.forget(b"/s/a", Lineage::UNKNOWN, true).expect("written");
    assert!(scene.may_write(3) && locks.get(&lock.token).is_some());
    locks.forget(b"/s/a", Lineage::UNKNOWN, false).expect("written");
    assert!(scene.may_write(9) && locks.is_empty());
}

#[test]
fn tokens_are_uuids_and_times_are_bounded() {
    let mut random = base::random::SeededRandom::new(1);
    let token = token(&mut random);
    let uuid = token.strip_prefix("opaquelocktoken:").expect("scheme");
    let lengths: Vec<_> = uuid.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert_eq!(uuid.as_bytes()[14], b'4');
    assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
    assert_eq!(granted(None), DAV_LOCK_TIME.as_secs());
    assert_eq!(granted(Some(u64::MAX)), DAV_LOCK_TIME_MAX.as_secs());
    assert_eq!(granted(Some(0)), 1);
}
