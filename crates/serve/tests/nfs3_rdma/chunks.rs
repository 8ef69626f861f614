//! What goes by chunks: data of each size both ways, long calls and replies, what is invalidated.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use base::limits::{RDMA_CONNECTION_BYTES_MAX, SEND_FILE_MIN};
use wire::nfs3::*;

use crate::client::stream::Stream;
use crate::client::{Client, PATIENCE};
use crate::procedures::{at, create, read, write};
use crate::server::{Server, wait_for};

#[test]
fn data_of_each_size_makes_a_round_trip() {
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

/// A device cannot send what is mapped, which may be cut short meanwhile: what TCP has sent from
/// the mapped file is read into the reply for RDMA, and moved by the write chunk, as long as it is
/// (RFC 8166 §3.4.6, RFC 1813 §3.3.6).
#[test]
fn a_file_that_is_mapped_is_read_with_what_is_in_it_now() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    let data: Vec<u8> = (0..300_001_u32).map(|n| (n / 3 % 251) as u8).collect();
    write(&mut client, &file, 0, &data);
    let mut tcp = Client::over(Stream::connect_tcp(server.addr, PATIENCE));
    // Numbers of its own, or the server takes its calls for repeats.
    tcp.xid = 1_000;
    const { assert!(SEND_FILE_MIN <= 100_000) };
    for length in [data.len(), 150_001, 0] {
        let new_attributes = Sattr3 { size: Some(length as u64), ..Sattr3::default() };
        let args = SetattrArgs { object: Fh3(&file), new_attributes, guard: None };
        let cut = tcp.call(Proc::SETATTR, &args);
        assert!(cut.results::<SetattrRes>().into_result().is_ok());
        for (offset, count) in [(0, 100_000), (7, 299_994), (149_000, 100_003), (300_000, 70_000)] {
            let end = length.min(offset + count);
            let expected = &data[offset.min(end)..end];
            for by in [&mut tcp, &mut client] {
                let (before, rdma) = match &by.stream {
                    Stream::Rdma(_) => (by.stream.counts().written, true),
                    Stream::Tcp(_) => (0, false),
                };
                let args =
                    ReadArgs { file: Fh3(&file), offset: offset as u64, count: count as u32 };
                let reply = by.call(Proc::READ, &args);
                let ok = reply.results::<ReadRes<'_>>().into_result().expect("read");
                assert!(ok.data == expected, "{count} at {offset} of {length}, RDMA: {rdma}");
                assert_eq!((ok.count as usize, ok.eof), (expected.len(), end == length));
                if rdma {
                    let written = by.stream.counts().written - before;
                    assert_eq!(written, expected.len(), "by its chunk");
                }
            }
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
    // Calls with data that has arrived must not wait for those that have no room.
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
