//! What goes by chunks: data of each size both ways, long calls and replies, what is invalidated.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use base::limits::RDMA_CONNECTION_BYTES_MAX;
use wire::nfs3::*;

use crate::procedures::{at, create, read, write};
use crate::server::{Server, wait_for};

#[test]
fn data_of_each_size_goes_there_and_back() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    let data: Vec<u8> = (0..1_u32 << 20).map(|n| (n / 7 % 251) as u8).collect();
    for size in [0, 1, 3, 255, 256, 1023, 1024, 4095, 4097, 65_537, 1_048_575, 1 << 20] {
        let before = client.stream.counts();
        assert_eq!(write(&mut client, &file, 0, &data[..size]).count as usize, size);
        let (got, _) = read(&mut client, &file, 0, size as u32);
        assert!(got == data[..size], "{size} bytes");
        let after = client.stream.counts();
        if size >= 1024 {
            assert!(after.read - before.read >= size, "{size} bytes were read from the client");
        }
        if size >= 256 {
            assert_eq!(after.written - before.written, size, "and written to it");
            assert!(after.invalidated > before.invalidated, "its memory is invalidated");
        }
    }
}

#[test]
fn long_texts_and_long_listings() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let target = vec![b'a'; 4000];
    let args = SymlinkArgs {
        where_: at(&root, "link"),
        symlink_attributes: Sattr3::default(),
        symlink_data: Nfspath3(&target),
    };
    let reply = client.call(Proc::SYMLINK, &args);
    let made = reply.results::<SymlinkRes<'_>>().into_result().expect("made");
    let link = made.obj.expect("a handle").0.to_vec();
    let reply = client.call(Proc::READLINK, &ReadlinkArgs { symlink: Fh3(&link) });
    let ok = reply.results::<ReadlinkRes<'_>>().into_result().expect("read");
    assert_eq!(ok.data.0, target);
    for n in 0..500 {
        create(&mut client, &root, &format!("a name that is not short, number {n:06}"));
    }
    let args = ReaddirArgs { dir: Fh3(&root), cookie: 0, cookieverf: [0; 8], count: 256 << 10 };
    let long = client.stream.counts().long;
    let reply = client.call(Proc::READDIR, &args);
    let ok = reply.results::<ReaddirRes<'_>>().into_result().expect("listed");
    assert!(ok.entries.iter().count() >= 501, "{}", ok.entries.iter().count());
    assert_eq!(client.stream.counts().long, long + 1, "it came in the reply chunk");
}

#[test]
fn more_data_at_once_than_a_connection_may_hold_is_written() {
    const CALLS: u64 = 100;
    let (server, script) = Server::scripted();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    // The data that is there already must not wait for what there is no room for.
    const { assert!(CALLS << 20 > 3 * RDMA_CONNECTION_BYTES_MAX as u64) };
    let data = vec![b'x'; 1 << 20];
    // All of it is there before any is read: the core stands still in the call before.
    script.holds.store(true, SeqCst);
    script.close_gate();
    let begun = script.begun();
    let record = client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) });
    client.send(&record);
    script.wait_begun(begun + 1);
    for n in 0..CALLS {
        let (file, stable) = (Fh3(&file), StableHow::UNSTABLE);
        let (offset, count) = (n << 20, 1 << 20);
        let record =
            client.nfs(Proc::WRITE, &WriteArgs { file, offset, count, stable, data: &data });
        client.send(&record);
    }
    script.open_gate();
    assert_eq!(client.receive().xid, client.xid - CALLS as u32);
    for _ in 0..CALLS {
        let done = client.receive();
        assert_eq!(done.results::<WriteRes>().into_result().expect("written").count, 1 << 20);
    }
}

#[test]
fn replies_that_are_being_made_count_for_what_a_connection_may_hold() {
    const CALLS: usize = 100;
    let (server, script) = Server::scripted();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    write(&mut client, &file, 0, &vec![b'x'; 1 << 20]);
    script.blocks.store(true, SeqCst);
    script.close_gate();
    for _ in 0..CALLS {
        let args = ReadArgs { file: Fh3(&file), offset: 0, count: 1 << 20 };
        let record = client.nfs(Proc::READ, &args);
        client.send(&record);
    }
    let budgets = server.service().budgets();
    wait_for("the connection stalls", || (budgets.stalls.load(Relaxed) > 0).then_some(()));
    let taken = wait_for("they are shown", || Some(budgets.requests()).filter(|n| *n > 0));
    assert!(taken as usize <= (RDMA_CONNECTION_BYTES_MAX >> 20) + 1, "{taken} calls were taken");
    script.open_gate();
    for _ in 0..CALLS {
        assert!(client.receive().bytes.len() > 1 << 20, "all of the data");
    }
}
