//! Clients of one address take as much as they can get of the limits of NFS over RDMA in
//! docs/security.md at once: first one client, then all clients of the address. Another client
//! mounts, opens, locks, lists, reads and writes meanwhile, over RDMA and over TCP, each step
//! within two seconds.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use base::limits::{RDMA_CONNECTIONS_CLIENT_MAX, RDMA_CONNECTIONS_MAX, RDMA_CREDITS_MAX};
use verbs::mock::End;
use verbs::{Connection, Purpose, Work};
use wire::nfs3::{Fh3, NFS_PROGRAM, NFS_V3, Proc, ReadArgs, StableHow};
use wire::nfs4::*;
use wire::rpc::{Auth, CallHeader};
use wire::rpcrdma::{Body, Chunk, Chunks, Segment};
use wire::xdr::{Encode, Writer};

use crate::scene::stream::rdma::{encoded, fabric};
use crate::scene::{CRED, Client, Scene, Wire, open, opened, wait_for};

/// Longest time of one step of the other client.
const STEP_MAX: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(80);
/// Bytes of the file that is read.
const LARGE: u32 = 1 << 20;
/// Connections that ask for data and do not take it: more than registered memory has room for, if
/// one address could have all of it. The others of the address do nothing.
const READERS: usize = 32;
/// What the other client writes.
const DATA: &[u8] = b"what the other client writes";

/// Connects from the address that takes all; `None` if that is refused.
fn connect(scene: &Scene, number: usize) -> Option<End> {
    let from: SocketAddr = ([127, 0, 0, 9], 1_000 + number as u16).into();
    let mut end = fabric(scene.addr).connect(from, scene.addr, b"").ok()?;
    for id in 0..u64::from(RDMA_CREDITS_MAX) {
        let region = end.register(vec![0; 1024], Purpose::Local).ok()?;
        end.post(id, Work::Receive(region)).ok()?;
    }
    end.established(PATIENCE)?;
    Some(end)
}

fn send(end: &mut End, message: Vec<u8>) -> bool {
    let length = message.len();
    let region = end.register(message, Purpose::Local).expect("no limit");
    end.post(u64::MAX, Work::Send { region, length, invalidate: None }).is_ok()
}

/// As many READs as a connection may have, of data that it never takes.
fn read_all(end: &mut End, file: &[u8]) -> verbs::mock::Exposed {
    let memory = end.expose(vec![0; LARGE as usize], true);
    end.take_nothing();
    let target = Segment { handle: memory.key, length: LARGE, offset: memory.address };
    let chunks = || Chunks { writes: vec![Chunk(vec![target])], ..Chunks::default() };
    for xid in 0..RDMA_CREDITS_MAX {
        let mut call = Vec::new();
        let mut w = Writer::new(&mut call);
        let (prog, vers, proc) = (NFS_PROGRAM, NFS_V3, Proc::READ.0);
        CallHeader { xid, prog, vers, proc, cred: CRED, verf: Auth::None }.encode(&mut w);
        ReadArgs { file: Fh3(file), offset: 0, count: LARGE }.encode(&mut w);
        if !send(end, encoded(xid, RDMA_CREDITS_MAX, Body::Message(chunks()), &call)) {
            break;
        }
    }
    memory
}

/// Steps that took too long.
#[derive(Default)]
struct Steps {
    slow: Vec<String>,
}

impl Steps {
    fn step<T>(&mut self, what: &str, act: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let value = act();
        let took = began.elapsed();
        if took > STEP_MAX {
            self.slow.push(format!("{what}: {took:.1?}"));
        }
        value
    }
}

fn lookup(name: &'static [u8]) -> ArgOp<'static> {
    ArgOp::Lookup(LookupArgs4 { objname: Component4(name) })
}

/// Uses the share over this connection: `round` makes the client and its lock.
fn use_share(steps: &mut Steps, over: &str, round: u64, wire: impl FnOnce() -> Wire) {
    let what = |step: &str| format!("{over}, {step}");
    let name = format!("{over}-{round}");
    let mut client = steps.step(&what("mount"), || {
        let mut client = Client::over(wire(), name.as_bytes(), vec![CallbackSec4::None(())]);
        let done = ReclaimCompleteArgs4 { one_fs: false };
        assert_eq!(client.run(&[ArgOp::ReclaimComplete(done)]).0, Nfsstat4::OK);
        client
    });
    let file = steps.step(&what("OPEN"), || {
        let access = share4::ACCESS_BOTH | share4::WANT_NO_DELEG;
        let (status, results) = client.at_root(&[open(client.id, 0, access, true)]);
        opened(status, results).expect("opened")
    });
    let mut run = |step: &str, ops: &[ArgOp<'_>]| {
        let (status, mut results) = steps.step(&what(step), || client.at_root(ops));
        assert_eq!(status, Nfsstat4::OK, "{over}, {step}");
        results.pop()
    };
    let lock = ArgOp::Lock(LockArgs4 {
        locktype: locktype4::WRITE,
        reclaim: false,
        offset: 1 << 40 | round << 8 | over.len() as u64,
        length: 1,
        locker: Locker4::New(OpenToLockOwner4 {
            open_seqid: 0,
            open_stateid: file.stateid,
            lock_seqid: 0,
            lock_owner: StateOwner4 { clientid: 0, owner: Opaque4(b"locker") },
        }),
    });
    run("LOCK", &[lookup(b"f"), lock]);
    let attr_request = Bitmap4::of(&[attr4::FILEID]);
    let (cookie, cookieverf, dircount, maxcount) = (0, [0; 8], 0, 8192);
    let readdir = ReaddirArgs4 { cookie, cookieverf, dircount, maxcount, attr_request };
    run("READDIR", &[ArgOp::Readdir(readdir)]);
    let (stateid, stable) = (file.stateid, StableHow::FILE_SYNC);
    let write = WriteArgs4 { stateid, offset: 0, stable, data: DATA };
    run("WRITE", &[lookup(b"f"), ArgOp::Write(write)]);
    let read = ReadArgs4 { stateid, offset: 0, count: DATA.len() as u32 };
    match run("READ", &[lookup(b"f"), ArgOp::Read(read)]) {
        Some(ResOp::Read(Res4::Ok(ok))) => assert_eq!(ok.data, DATA),
        other => panic!("{other:?}"),
    }
}

/// The handle of a file with data.
fn large(scene: &Scene) -> Vec<u8> {
    let mut client = Client::new(scene.addr, b"planter", vec![CallbackSec4::None(())]);
    let made = client.open(share4::ACCESS_BOTH | share4::WANT_NO_DELEG, true).expect("made");
    let data = vec![7; 32 << 10];
    for offset in (0..u64::from(LARGE)).step_by(data.len()) {
        let (stateid, stable) = (made.stateid, StableHow::UNSTABLE);
        let write = ArgOp::Write(WriteArgs4 { stateid, offset, stable, data: &data });
        assert_eq!(client.at_root(&[lookup(b"f"), write]).0, Nfsstat4::OK);
    }
    match client.at_root(&[lookup(b"f"), ArgOp::Getfh(())]).1.pop() {
        Some(ResOp::Getfh(Res4::Ok(ok))) => ok.object.0.to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_address_leaves_nfs_over_rdma_to_others() {
    let scene = Scene::new();
    let file = large(&scene);
    let account = || fabric(scene.addr).account().bytes();
    wait_for("the connection has ended", || (account() == 0).then_some(()));
    let mut steps = Steps::default();
    for (round, all) in [(1, false), (2, true)] {
        let most = if all { RDMA_CONNECTIONS_MAX } else { 1 };
        let mut ends: Vec<_> = (0..most).map_while(|n| connect(&scene, n)).collect();
        assert_eq!(ends.len(), most.min(RDMA_CONNECTIONS_CLIENT_MAX));
        let readers = ends.iter_mut().take(READERS);
        let memory: Vec<_> = readers.map(|end| read_all(end, &file)).collect();
        let of_one = 16 << 20;
        wait_for("data is registered", || (account() >= of_one).then_some(()));
        let rdma = || Wire::connect(scene.addr);
        let tcp = || Wire::over(TcpStream::connect(scene.addr).expect("a connection"));
        use_share(&mut steps, "RDMA", round, rdma);
        use_share(&mut steps, "TCP", round, tcp);
        println!("{} connections, {} MiB registered", ends.len(), account() >> 20);
        drop((ends, memory));
        wait_for("nothing is registered", || (account() == 0).then_some(()));
    }
    assert!(steps.slow.is_empty(), "{:?}", steps.slow);
}
