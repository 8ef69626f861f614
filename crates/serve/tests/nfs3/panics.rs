//! A panic in a handler, a flush or a completion fails one call, with the error of its protocol.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use probe::op::Protocol;
use serve::rpc::{Call, DispatchResult, Handled, OnFlushed, Procedure, Program};
use serve::transport::buffers::ReplyBuf;
use vfs::fs::Flush;
use vfs::status::Status;
use wire::mount3::{Dirpath, MntRes, Mountstat3};
use wire::nfs3::*;
use wire::xdr::{Reader, Writer};

use crate::client::{Client, Reply};
use crate::planted::Planted;
use crate::procedures::{at, create, getattr, mode};
use crate::server::{Options, Server, directory, wait_for};

fn planted() -> (Server, Arc<Planted>) {
    let fs = Planted::over(directory());
    (Server::start(Arc::clone(&fs) as _, Options::default()), fs)
}

/// The status of a reply: what its results begin with.
fn status(reply: &Reply) -> Nfsstat3 {
    let (_, mut results) = reply.open();
    Nfsstat3(results.u32("status").expect("a status"))
}

/// Waits until this number of panics is shown.
fn shown(server: &Server, count: u64) {
    wait_for("panics are shown", || (server.hub.gauges().panics.get() == count).then_some(()));
}

/// A call that panics at a given point.
type CallFn = fn(&mut Client, &[u8], &[u8]) -> Vec<u8>;

const CALLS: [(&str, CallFn); 6] = [
    ("getattr", |c, _, file| c.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(file) })),
    ("lookup", |c, root, _| c.nfs(Proc::LOOKUP, &LookupArgs { what: at(root, "f") })),
    ("write", |c, _, file| {
        let (offset, count, stable) = (0, 1, StableHow::UNSTABLE);
        c.nfs(Proc::WRITE, &WriteArgs { file: Fh3(file), offset, count, stable, data: b"x" })
    }),
    ("create", |c, root, _| {
        let how = CreateHow::Guarded(mode(0o644));
        c.nfs(Proc::CREATE, &CreateArgs { where_: at(root, "new"), how })
    }),
    ("rename", |c, root, _| {
        c.nfs(Proc::RENAME, &RenameArgs { from: at(root, "f"), to: at(root, "f") })
    }),
    ("read", |c, _, file| c.nfs(Proc::READ, &ReadArgs { file: Fh3(file), offset: 0, count: 1 })),
];

#[test]
fn a_panic_fails_its_call_and_no_other() {
    let (server, fs) = planted();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    let mut panics = 0;
    for blocks in [false, true] {
        fs.blocks.store(blocks, SeqCst);
        for (call, ask) in CALLS {
            fs.plant(call);
            let failing = ask(&mut client, &root, &file);
            // The next call is sent together with it: both are answered.
            let null = client.nfs(Proc::NULL, &());
            client.send(&[failing, null].concat());
            let mut replies = [client.receive(), client.receive()];
            replies.sort_by_key(|reply| reply.xid);
            assert_eq!(status(&replies[0]), Nfsstat3::SERVERFAULT, "{call}, pooled: {blocks}");
            assert!(!fs.is_planted(), "{call}");
            panics += 1;
            let again = ask(&mut client, &root, &file);
            client.send(&again);
            assert_eq!(status(&client.receive()), Nfsstat3::OK, "{call} once more");
            let gone = RemoveArgs { object: at(&root, "new") };
            client.call(Proc::REMOVE, &gone);
        }
    }
    shown(&server, panics);
    assert!(getattr(&mut client, &root).is_ok());
}

#[test]
fn a_flush_and_its_end_that_panic_fail_their_call_and_no_other() {
    let (server, fs) = planted();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    fs.flushes.store(true, SeqCst);
    for (count, call) in ["flush", "covered"].into_iter().enumerate() {
        fs.plant(call);
        for expected in [Nfsstat3::SERVERFAULT, Nfsstat3::OK] {
            let commit = CommitArgs { file: Fh3(&file), offset: 0, count: 0 };
            assert_eq!(status(&client.call(Proc::COMMIT, &commit)), expected, "{call}");
        }
        shown(&server, count as u64 + 1);
    }
}

/// A repeat of a call that panics on the pool gets the same reply, and its connection continues.
#[test]
fn a_repeat_of_a_call_that_panics_is_answered() {
    let (server, fs) = planted();
    let (mut client, root) = server.client();
    fs.blocks.store(true, SeqCst);
    fs.plant("create");
    let how = CreateHow::Guarded(mode(0o644));
    let record = client.nfs(Proc::CREATE, &CreateArgs { where_: at(&root, "f"), how });
    client.send(&record);
    let first = client.receive();
    assert_eq!(status(&first), Nfsstat3::SERVERFAULT);
    let mut other = Client::connect(server.addr);
    other.send(&record);
    assert_eq!(other.receive(), first);
}

#[test]
fn a_panic_in_mount_fails_that_mount() {
    let (server, fs) = planted();
    let (mut client, _) = server.client();
    for blocks in [false, true] {
        fs.blocks.store(blocks, SeqCst);
        fs.plant("lookup");
        for expected in [Mountstat3::SERVERFAULT, Mountstat3::NOENT] {
            let args = Dirpath(b"/export/t/missing");
            let reply = client.mount_call(wire::mount3::Proc::MNT, &args);
            let MntRes::Fail(status) = reply.results::<MntRes<'_>>() else { panic!("mounted") };
            assert_eq!(status, expected);
        }
    }
    shown(&server, 2);
}

/// A program with calls that panic when their flush has ended.
struct Unsettled;

const NUMBER: u32 = 0x2000_0001;

impl OnFlushed for Unsettled {
    fn protocol(&self) -> Protocol {
        Protocol::Dsync
    }
    fn flushed(
        self: Box<Self>,
        _: Result<(), Status>,
        _: &mut Vec<u8>,
        _: &mut Vec<probe::op::OpRecord>,
    ) {
        panic!("planted")
    }
}

impl Program for Unsettled {
    fn number(&self) -> u32 {
        NUMBER
    }
    fn version(&self) -> u32 {
        1
    }
    fn protocol(&self) -> Protocol {
        Protocol::Dsync
    }
    fn procedure(&self, number: u32) -> Option<Procedure> {
        Some(Procedure { number, non_idempotent: true })
    }
    fn reply_max(&self, _: Procedure, _: &Reader<'_>) -> usize {
        base::limits::REPLY_SMALL
    }
    fn handle(&self, procedure: Procedure, call: &mut Call<'_>) -> Handled {
        Writer::new(call.out.vec()).u32(0);
        Ok(match procedure.number {
            0 => DispatchResult::Done,
            _ => DispatchResult::Durable(Flush::NONE, Some(Box::new(Self))),
        })
    }
    fn fail(&self, _: u32, status: Status, out: &mut ReplyBuf) -> u16 {
        assert_eq!(status, Status::Fault);
        Writer::new(out.vec()).u32(10_006);
        10_006
    }
}

#[test]
fn a_completion_that_panics_fails_its_call_and_no_other() {
    let server = Server::with(directory(), Options::default(), vec![Arc::new(Unsettled)]);
    let mut client = Client::connect(server.addr);
    for (proc, expected) in [(1, 10_006), (0, 0), (1, 10_006)] {
        let record = client.record(NUMBER, 1, proc, &());
        client.send(&record);
        assert_eq!(status(&client.receive()), Nfsstat3(expected));
    }
    shown(&server, 2);
}
