//! A file of a directory of this machine that is removed or replaced while a client has it open:
//! on a disk and in memory, by another client and by a program of the machine.

use std::path::{Path, PathBuf};

use vfs::host::{HostFs, HostOptions};

use super::*;

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A world with a share in a fresh directory below `base`.
struct Scene {
    world: World,
    keeper: Arc<Stateful>,
    fs: Arc<HostFs>,
    dir: PathBuf,
    next: u32,
    session: [u8; 16],
    _scratch: Scratch,
}

/// How the file loses its name.
#[derive(Debug, Clone, Copy)]
enum By {
    /// REMOVE.
    Client,
    /// RENAME of another onto it.
    Replacing,
    /// unlink(2) by a program of the machine.
    Program,
}

impl Scene {
    fn new(base: &Path, name: &str, descriptors: Option<usize>) -> Self {
        let dir = base.join(format!("serve-removed-{name}-{}", std::process::id()));
        std::fs::create_dir(&dir).expect("a directory");
        let scratch = Scratch(dir.clone());
        let options = HostOptions { descriptors, ..HostOptions::new(tag("s"), [7; 32]) };
        let fs = HostFs::open(&dir, options).expect("a share");
        let (world, keeper) = World::recorded(Vec::new(), Arc::new(NoRecords));
        let mut shares = ShareTable::default();
        shares.add("s", Arc::clone(&fs) as _, false).expect("a share");
        world.nfs.shares.replace(shares);
        let session = world.session(b"holder");
        let mut scene = Self { world, keeper, fs, dir, next: 1, session, _scratch: scratch };
        let done = ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false });
        assert_eq!(scene.run(&[done]).0, Nfsstat4::OK);
        scene
    }

    /// Operations of the client with a session.
    fn run(&mut self, ops: &[ArgOp<'_>]) -> (Nfsstat4, Vec<ResOp<'static>>) {
        let sequence = sequence(self.session, self.next);
        self.next += 1;
        self.world.run(1, &[&[sequence], ops].concat())
    }

    fn at_root(&mut self, ops: &[ArgOp<'_>]) -> (Nfsstat4, Vec<ResOp<'static>>) {
        self.run(&[&ROOT[..], ops].concat())
    }

    /// Opens a file, new if it is not there: its stateid and its handle.
    fn open(&mut self, name: &'static [u8]) -> (Stateid4, ArgOp<'static>) {
        let open = ArgOp::Open(OpenArgs4 {
            seqid: 0,
            share_access: share4::ACCESS_BOTH,
            share_deny: 0,
            owner: StateOwner4 { clientid: 0, owner: Opaque4(b"o") },
            openhow: Openflag4::Create(Createhow4::Unchecked(empty_attrs())),
            claim: OpenClaim4::Null(Component4(name)),
        });
        let (status, results) = self.at_root(&[open, ArgOp::Getfh(())]);
        assert_eq!(status, Nfsstat4::OK, "{results:?}");
        let Some(ResOp::Getfh(Res4::Ok(fh))) = results.last() else { panic!("{results:?}") };
        (opened(&results).0, ArgOp::Putfh(PutfhArgs4 { object: fh.object }))
    }

    fn remove(&mut self, by: By) {
        let (f, new) = (Component4(b"f"), Component4(b"new"));
        let (status, _) = match by {
            By::Program => {
                std::fs::remove_file(self.dir.join("f")).expect("removed");
                return;
            }
            By::Client => self.world.at_root(&[ArgOp::Remove(RemoveArgs4 { target: f })]),
            By::Replacing => {
                std::fs::write(self.dir.join("new"), b"new").expect("written");
                let rename = ArgOp::Rename(RenameArgs4 { oldname: new, newname: f });
                self.world.at_root(&[ArgOp::Savefh(()), rename])
            }
        };
        assert_eq!(status, Nfsstat4::OK, "{by:?}");
    }
}

fn size() -> ArgOp<'static> {
    ArgOp::Getattr(GetattrArgs4 { attr_request: Bitmap4::of(&[attr4::SIZE, attr4::NUMLINKS]) })
}

fn read(stateid: Stateid4) -> ArgOp<'static> {
    ArgOp::Read(ReadArgs4 { stateid, offset: 0, count: 100 })
}

fn cut(stateid: Stateid4) -> ArgOp<'static> {
    let attrs = Attrs4 { size: Some(2), ..Attrs4::default() };
    let mut bytes = Vec::new();
    attrs.encode(&mut Writer::new(&mut bytes));
    let obj_attributes = wire::xdr::decode_all(bytes.leak()).expect("attributes");
    ArgOp::Setattr(SetattrArgs4 { stateid, obj_attributes })
}

fn close(open_stateid: Stateid4) -> ArgOp<'static> {
    ArgOp::Close(CloseArgs4 { seqid: 0, open_stateid })
}

/// All that a program does with an open file, after it was removed; then nothing of it is left.
fn use_after_removal(scene: &mut Scene, by: By) {
    let (stateid, putfh) = scene.open(b"f");
    let ops = [putfh.clone(), write(stateid), lock_new(0, stateid, 0)];
    assert_eq!(scene.run(&ops).0, Nfsstat4::OK);
    scene.remove(by);
    let commit = ArgOp::Commit(CommitArgs4 { offset: 0, count: 0 });
    let uses = [size(), read(stateid), write(stateid), commit, cut(stateid), read(stateid)];
    for op in uses {
        let (status, results) = scene.run(&[putfh.clone(), op, size()]);
        assert_eq!(status, Nfsstat4::OK, "{by:?}: {results:?}");
        if let Some(ResOp::Getattr(Res4::Ok(ok))) = results.last() {
            let attributes: Attrs4<'_> = ok.obj_attributes.values().expect("attributes");
            // With none a Linux client takes it for gone.
            assert_eq!(attributes.numlinks, Some(1), "{by:?}");
        }
    }
    let (_, results) = scene.run(&[putfh.clone(), read(stateid)]);
    let Some(ResOp::Read(Res4::Ok(ok))) = results.last() else { panic!("{by:?}: {results:?}") };
    assert_eq!(ok.data, b"da");
    // A new file of the name is another one, and another client may deny what it likes.
    let denying = open(scene.world.client40(b"other"), 1, b"o", share4::DENY_BOTH);
    assert_eq!(scene.world.at_root(&[denying]).0, Nfsstat4::OK, "{by:?}");
    let (status, results) = scene.run(&[putfh.clone(), size(), close(stateid)]);
    assert_eq!(status, Nfsstat4::OK, "{by:?}: {results:?}");
    assert_eq!(scene.run(&[putfh, size()]).0, Nfsstat4::STALE, "{by:?}");
    let other = scene.keeper.state.clients(0).into_iter().find(|client| client.opens > 0);
    assert!(scene.keeper.expire(other.expect("who denies").id));
    assert_eq!((scene.fs.counts().retained, scene.keeper.state.locks.counts().locks), (0, 0));
    assert_eq!(scene.keeper.state.locks.counts().opens, 0, "{by:?}");
    std::fs::remove_file(scene.dir.join("f")).expect("the other one");
}

#[test]
fn an_open_file_that_is_removed_stays_usable() {
    for (base, name) in [(std::env::temp_dir(), "disk"), ("/dev/shm".into(), "memory")] {
        let mut scene = Scene::new(&base, name, None);
        for by in [By::Client, By::Replacing, By::Program] {
            use_after_removal(&mut scene, by);
        }
    }
}

/// A file that becomes a logical unit is not reached by an open from before, nor by its name; and a
/// file that a client has open does not become one.
#[test]
fn an_open_from_before_does_not_reach_a_logical_unit() {
    for (base, name) in [(std::env::temp_dir(), "lun-disk"), ("/dev/shm".into(), "lun-memory")] {
        let mut scene = Scene::new(&base, name, None);
        let (stateid, putfh) = scene.open(b"f");
        assert_eq!(scene.run(&[putfh.clone(), write(stateid)]).0, Nfsstat4::OK);
        let at = scene.dir.join("f");
        let locks = Arc::clone(&scene.keeper.state.locks);
        let claim = vfs::lun::Claim::take(&locks, &at, "default/f");
        assert!(matches!(claim, Err(vfs::lun::ClaimError::Open(_))), "somebody has it open");
        let meta = std::fs::metadata(&at).expect("there");
        let file = (std::os::unix::fs::MetadataExt::dev(&meta), {
            std::os::unix::fs::MetadataExt::ino(&meta)
        });
        // Another way to the same: the set of files alone.
        assert!(scene.fs.exclusive().insert(file));
        for op in [size(), read(stateid), write(stateid), cut(stateid)] {
            let (status, results) = scene.run(&[putfh.clone(), op]);
            assert_eq!(status, Nfsstat4::STALE, "{results:?}");
        }
        let lookup = ArgOp::Lookup(LookupArgs4 { objname: Component4(b"f") });
        assert_eq!(scene.at_root(&[lookup]).0, Nfsstat4::NOENT);
        let remove = ArgOp::Remove(RemoveArgs4 { target: Component4(b"f") });
        assert_eq!(scene.at_root(&[remove]).0, Nfsstat4::NOENT);
        scene.fs.exclusive().remove(file);
        assert_eq!(scene.run(&[putfh, read(stateid), close(stateid)]).0, Nfsstat4::OK);
        assert!(vfs::lun::Claim::take(&locks, &at, "default/f").is_ok());
    }
}

/// A client that is ended lets go of what it had open.
#[test]
fn an_open_that_ends_with_its_client_lets_go_of_its_file() {
    let mut scene = Scene::new(Path::new("/dev/shm"), "expired", None);
    let (_, putfh) = scene.open(b"f");
    scene.remove(By::Program);
    assert_eq!(scene.fs.counts().retained, 1);
    let client = scene.keeper.state.clients(0).into_iter().find(|client| client.opens > 0);
    assert!(scene.keeper.expire(client.expect("the holder").id));
    assert_eq!(scene.fs.counts().retained, 0);
    assert_eq!(scene.world.run(0, &[putfh, size()]).0, Nfsstat4::STALE);
}

/// Files opened beyond the budget of descriptors are gone with their last name; what a client holds
/// on them it can give back.
#[test]
fn beyond_the_budget_a_removed_file_can_still_be_unlocked_and_closed() {
    let mut scene = Scene::new(Path::new("/dev/shm"), "budget", Some(1));
    let names = (0..base::limits::NODES_MIN).map(|n| format!("f{n}").into_bytes());
    let opens: Vec<_> = names.map(|name| scene.open(name.leak())).collect();
    assert_eq!(scene.fs.counts().retained, base::limits::NODES_MIN as u64 / 2);
    let (stateid, putfh) = scene.open(b"f");
    let ops = [putfh.clone(), lock_new(0, stateid, 0)];
    let (_, results) = scene.run(&ops);
    let Some(ResOp::Lock(LockRes4::Ok(locked))) = results.last() else { panic!("{results:?}") };
    scene.remove(By::Client);
    assert_eq!(scene.run(&[putfh.clone(), size()]).0, Nfsstat4::STALE);
    let unlock = ArgOp::Locku(LockuArgs4 {
        locktype: locktype4::WRITE,
        seqid: 0,
        lock_stateid: locked.stateid,
        offset: 0,
        length: u64::MAX,
    });
    assert_eq!(scene.run(&[putfh.clone(), unlock]).0, Nfsstat4::OK);
    assert_eq!(scene.run(&[putfh, close(stateid)]).0, Nfsstat4::OK);
    for (stateid, putfh) in opens {
        assert_eq!(scene.run(&[putfh, close(stateid)]).0, Nfsstat4::OK);
    }
    assert_eq!(scene.fs.counts().retained, 0);
}
