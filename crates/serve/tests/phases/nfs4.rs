//! NFSv4.1 over TCP: each operation of a compound has the time of its compound.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use probe::phases::Phase;
use socket2::{Domain, Socket, Type};
use vfs::mem::MemFs;
use vfs::share::tag;
use wire::nfs4::*;

use crate::planted::Planted;
use crate::sessions::{Client, Scene, Wire, in_root};
use crate::{Bench, stop_clock};

/// Bytes of the file; more than sockets take for a client that reads nothing.
const SIZE: usize = 60_000;

fn in_file(op: ArgOp<'static>) -> Vec<ArgOp<'static>> {
    in_root(&[ArgOp::Lookup(LookupArgs4 { objname: Component4(b"f") }), op])
}

fn read(count: u32) -> Vec<ArgOp<'static>> {
    in_file(ArgOp::Read(ReadArgs4 { stateid: Stateid4::ANONYMOUS, offset: 0, count }))
}

impl Client {
    fn done(&mut self, ops: &[ArgOp<'_>]) {
        assert_eq!(self.run(ops).0, Nfsstat4::OK);
    }

    fn write(&mut self, stateid: Stateid4, data: &'static [u8]) {
        let stable = StableHow4::FILE_SYNC;
        self.done(&in_file(ArgOp::Write(WriteArgs4 { stateid, offset: 0, stable, data })));
    }
}

/// A client that takes little as long as nothing is read.
fn client(scene: &Scene) -> Client {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4 << 10).expect("a small buffer");
    socket.connect(&scene.addr.into()).expect("connected");
    let mut client = Client::over(Wire::over(socket.into()), b"one", vec![CallbackSec4::None(())]);
    client.done(&[ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false })]);
    client
}

#[test]
fn nfs4_has_a_delay_where_it_was_planted() {
    if !stop_clock("nfs4") {
        return;
    }
    let fs = Planted::over(MemFs::new(tag("t"), 1 << 30));
    let scene = Scene::over(Arc::clone(&fs) as _, Vec::new());
    let mut client = client(&scene);
    let access = share4::ACCESS_BOTH | share4::WANT_NO_DELEG;
    let stateid = client.open(access, true).expect("made").stateid;
    client.write(stateid, &[7; SIZE]);
    let (runtimes, hub) = (Arc::clone(&scene.runtimes), Arc::clone(&scene.hub));
    let bench = Bench { fs, runtimes, pool: Arc::clone(&scene.pool), hub };

    bench.delay_inline("read");
    client.done(&read(4096));
    bench.assert_in(Phase::Inline, "read");

    // What comes with it is answered behind it.
    bench.delay_inline("read");
    client.wire.hold();
    client.start(&read(100));
    client.start_in_slot(1, &in_root(&[ArgOp::Getfh(())]));
    client.wire.release();
    (0..2).for_each(|_| assert_eq!(client.wire.results().0, Nfsstat4::OK));
    bench.assert_in(Phase::Inline, "read");
    bench.assert_in(Phase::Queue, "getfh");

    bench.block(true);
    bench.delay_elsewhere("read");
    client.done(&read(4096));
    bench.assert_in(Phase::Pool, "read");
    bench.delay_pool(|| client.done(&read(4096)));
    bench.assert_in(Phase::PoolWait, "read");

    bench.fs.flushes.store(true, SeqCst);
    for blocks in [true, false] {
        bench.block(blocks);
        bench.delay_elsewhere("flush");
        client.write(stateid, b"on disk");
        bench.assert_in(Phase::Flush, "write");
    }

    let count = bench.count("read");
    client.start(&read(SIZE as u32));
    client.wire.tcp().peek(&mut [0]).expect("the begin of the reply");
    Bench::pass(&bench.runtimes);
    assert_eq!(client.wire.results().0, Nfsstat4::OK);
    bench.assert_sent("read", (count, 1));
}
