//! Large data that is sent from the file, behind the results: when, and what its slot keeps.

use vfs::fs::FileSystem;
use vfs::host::{HostFs, HostOptions};
use vfs::share::rules::Transport;

use super::*;

const SIZE: u32 = 200_000;

struct Scratch(std::path::PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A world with a share on tmpfs, which has a file "f"; a session; the next number.
struct Scene {
    world: World,
    session: [u8; 16],
    next: u32,
    _scratch: Scratch,
}

impl Scene {
    fn new(name: &str) -> Self {
        let path = format!("/dev/shm/serve-extents-{name}-{}", std::process::id()).into();
        std::fs::create_dir(&path).expect("a directory");
        let scratch = Scratch(path);
        std::fs::write(scratch.0.join("f"), vec![7; SIZE as usize]).expect("a file");
        let fs = HostFs::open(&scratch.0, HostOptions::new(tag("s"), [7; 32])).expect("a share");
        let fs: Arc<dyn FileSystem> = fs;
        let world = World::new(Vec::new());
        let mut shares = ShareTable::default();
        shares.add("s", fs, false).expect("a share");
        world.nfs.shares.replace(shares);
        let session = world.session_of(b"reader", 1 << 20);
        world.clock.advance(Duration::from_secs(LEASE_S / 2));
        let mut scene = Self { world, session, next: 1, _scratch: scratch };
        // It is opened by the first and mapped by the second.
        for _ in 0..3 {
            let ops = scene.ops(false, &[]);
            scene.world.bytes(1, &ops);
        }
        scene
    }

    /// SEQUENCE under the next number, the file, READ of all of it, and more.
    fn ops(&mut self, cachethis: bool, more: &[ArgOp<'static>]) -> Vec<ArgOp<'static>> {
        let sequence = ArgOp::Sequence(SequenceArgs4 {
            sessionid: self.session,
            sequenceid: self.next,
            slotid: 0,
            highest_slotid: 0,
            cachethis,
        });
        self.next += 1;
        let read =
            ArgOp::Read(ReadArgs4 { stateid: Stateid4::ANONYMOUS, offset: 0, count: 1 << 19 });
        [&[sequence], &ROOT[..], &[file(), read], more].concat()
    }

    /// On a connection's own thread: bytes of data that follow the results, the status, and how
    /// many bytes of results there are.
    fn inline(&self, ops: &[ArgOp<'_>], transport: Transport) -> (Option<usize>, Nfsstat4, usize) {
        let message = message(1, ops);
        let peer = Peer { transport, ..self.world.peer() };
        let mut out = ReplyBuf::default();
        let started = self.world.nfs.begin(&message, &mut out).expect("a head");
        let Some(mut progress) = started else { panic!("answered") };
        let p = &mut progress;
        assert_eq!(self.world.nfs.run(p, peer, false, &message, &mut out, 0), Poll::Ready(()));
        let behind = progress.extent.as_ref().map(|extent| extent.count);
        (behind, progress.status(), out.len())
    }
}

#[test]
fn what_leaves_from_the_file_is_not_kept_for_a_repeat() {
    let mut scene = Scene::new("repeat");
    let ops = scene.ops(false, &[]);
    let (behind, status, results) = scene.inline(&ops, Transport::Plain);
    assert_eq!((behind, status), (Some(SIZE as usize), Nfsstat4::OK));
    assert!(results < 300, "no data among the results: {results}");
    let again = scene.inline(&ops, Transport::Plain);
    assert_eq!((again.0, again.1), (None, Nfsstat4::RETRY_UNCACHED_REP));
    let ops = scene.ops(false, &[]);
    assert_eq!(scene.inline(&ops, Transport::Plain).1, Nfsstat4::OK, "the slot is free");
}

#[test]
fn what_is_kept_encrypted_or_followed_is_copied() {
    let mut scene = Scene::new("copied");
    let ops = scene.ops(true, &[]);
    let (behind, status, _) = scene.inline(&ops, Transport::Plain);
    assert_eq!((behind, status), (None, Nfsstat4::REP_TOO_BIG_TO_CACHE));
    let ops = scene.ops(false, &[]);
    let (behind, status, results) = scene.inline(&ops, Transport::Tls);
    assert_eq!((behind, status, results > SIZE as usize), (None, Nfsstat4::OK, true));
    let ops = scene.ops(false, &[ArgOp::Getfh(())]);
    let (behind, status, results) = scene.inline(&ops, Transport::Plain);
    assert_eq!((behind, status, results > SIZE as usize), (None, Nfsstat4::OK, true));
}
