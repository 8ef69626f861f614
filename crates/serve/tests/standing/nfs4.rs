//! NFSv4.1: the slots of a session are used at once; the first compound of a connection that waits
//! for its place waits alone.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use vfs::mem::MemFs;
use vfs::share::tag;
use wire::nfs4::*;

use crate::planted::Planted;
use crate::sessions::{Client, Scene, in_root};
use crate::{CONNECTIONS, POOL, assert_in_turn, assert_stands, offset};

/// READs of each connection: one in each of its slots.
const READS: usize = 2;

#[test]
fn nfs4_wakes_nothing_while_the_file_system_stands_still() {
    let fs = Planted::over(MemFs::new(tag("t"), 1 << 30));
    let scene = Scene::with_pool(Arc::clone(&fs) as _, Vec::new(), POOL);
    let client =
        |name: usize| Client::new(scene.addr, &name.to_be_bytes(), vec![CallbackSec4::None(())]);
    let access = share4::ACCESS_BOTH | share4::WANT_NO_DELEG;
    let mut first = client(CONNECTIONS);
    first.open(access, true).expect("made");
    let mut clients: Vec<_> = (0..CONNECTIONS).map(client).collect();
    fs.blocks.store(true, SeqCst);
    let held = fs.hold("read");
    for (connection, client) in clients.iter_mut().enumerate() {
        for number in 0..READS {
            let (stateid, offset) = (Stateid4::ANONYMOUS, offset(connection, number));
            let read = ArgOp::Read(ReadArgs4 { stateid, offset, count: 1 });
            let lookup = ArgOp::Lookup(LookupArgs4 { objname: Component4(b"f") });
            client.start_in_slot(number as u32, &in_root(&[lookup, read]));
        }
    }
    held.wait();
    assert_stands(&scene.pool, CONNECTIONS - POOL.queue - POOL.threads);
    drop(held);
    for client in &mut clients {
        for _ in 0..READS {
            assert_eq!(client.wire.results().0, Nfsstat4::OK);
        }
    }
    let begun = fs.reads.lock().expect("whole");
    assert_in_turn(&begun, READS, (POOL.threads, POOL.queue + POOL.threads));
}
