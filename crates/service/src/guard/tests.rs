//! A run of replication in the one table: hidden files, deny modes, names that are kept.

use super::*;
use base::random::{Random, SystemRandom};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use sync::guard::Guard;
use vfs::locks::SHARE_DELETE;
use vfs::lun::Claim;

struct Scene {
    dir: PathBuf,
    locks: Arc<LockTable>,
    guard: Arc<Guard>,
}

impl Scene {
    fn new() -> Self {
        let name = format!("plimsoll-table-{:016x}", SystemRandom.next_u64());
        let dir = std::env::temp_dir().canonicalize().unwrap().join(name);
        fs::create_dir(&dir).unwrap();
        for name in ["file", "disk.img"] {
            fs::write(dir.join(name), vec![1; 4096]).unwrap();
        }
        let locks = Arc::<LockTable>::default();
        let guard = Guard::over(UnixStream::from(connect(&locks).unwrap())).unwrap();
        Self { dir, locks, guard }
    }

    /// What the table answers at once.
    fn answer(&self, name: &str, access: Access) -> Result<(), Refusal> {
        let client = ClientKey { protocol: Protocol::Dsync, id: u64::MAX };
        let table = Table { locks: Arc::clone(&self.locks), client, next: AtomicU64::new(0) };
        let path = self.dir.join(name);
        let meta = fs::metadata(&path).unwrap();
        table.open(&path, (meta.dev(), meta.ino()), access).map(drop)
    }

    fn open(&self, name: &str, access: Access) -> bool {
        let file = File::open(self.dir.join(name)).unwrap();
        self.guard.open(file.as_fd(), access).is_ok()
    }

    /// What a client of SMB has open.
    fn client(&self, share: Share) -> Entry {
        let client = ClientKey { protocol: Protocol::Smb, id: 1 };
        let owner = Owner::new(client, b"x").unwrap();
        let key = key_of(&self.dir.join("file")).unwrap();
        self.locks.open(key, &owner, share).unwrap();
        Entry { locks: Arc::clone(&self.locks), key, owner }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.dir).unwrap();
    }
}

const ALL: [Access; 3] = [Access::Read, Access::Write, Access::Remove];

#[test]
fn the_file_of_a_logical_unit_is_hidden_and_not_opened() {
    let scene = Scene::new();
    let disk = scene.dir.join("disk.img");
    assert!(ALL.iter().all(|access| scene.open("disk.img", *access)));
    let claim = Claim::take(&scene.locks, &disk, "disk").unwrap();
    let meta = fs::metadata(&disk).unwrap();
    assert!(scene.guard.hidden().unwrap().contains(&(meta.dev(), meta.ino())));
    assert!(!ALL.iter().any(|access| scene.open("disk.img", *access)));
    let above = fs::metadata(&scene.dir).unwrap();
    assert!(scene.guard.keeps_name((above.dev(), above.ino())).unwrap());
    // A program on plain paths sees that, too.
    assert!(base::claim::is_marked(&File::open(&disk).unwrap()));
    drop(claim);
    assert!(!base::claim::is_marked(&File::open(&disk).unwrap()));
    assert!(scene.guard.hidden().unwrap().is_empty());
    assert!(scene.open("disk.img", Access::Remove));
}

#[test]
fn what_a_client_denies_is_denied_to_a_run() {
    let scene = Scene::new();
    for (deny, expected) in [
        (0, [true, true, true]),
        (SHARE_READ, [false, false, false]),
        (SHARE_WRITE, [true, false, false]),
        (SHARE_DELETE, [true, true, false]),
    ] {
        let open = scene.client(Share { access: SHARE_READ, deny });
        let found = ALL.map(|access| scene.open("file", access));
        assert_eq!(found, expected, "denied: {deny}");
        drop(open);
    }
    // The other way round: what a run writes is open for writing.
    let file = File::open(scene.dir.join("file")).unwrap();
    let held = scene.guard.open(file.as_fd(), Access::Write).unwrap();
    let key = key_of(&scene.dir.join("file")).unwrap();
    let owner = Owner::new(ClientKey { protocol: Protocol::Smb, id: 2 }, b"y").unwrap();
    let want = Share { access: SHARE_READ, deny: SHARE_WRITE };
    assert!(scene.locks.open(key, &owner, want).is_err());
    drop(held);
    assert!(scene.locks.open(key, &owner, want).is_ok());
}

#[test]
fn what_may_be_reclaimed_is_waited_for() {
    let scene = Scene::new();
    scene.locks.begin_grace(Protocol::Nfs4);
    let answers = |name| ALL.map(|access| scene.answer(name, access));
    assert_eq!(answers("file"), [Ok(()), Err(Refusal::Grace), Err(Refusal::Grace)]);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| scene.open("file", Access::Write));
        assert!(scene.open("file", Access::Read), "others are answered meanwhile");
        scene.locks.end_grace(Protocol::Nfs4);
        assert!(waits.join().unwrap(), "it is opened after the end");
    });
    assert_eq!(answers("file"), [Ok(()); 3]);
}
