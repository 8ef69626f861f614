//! Many calls at once, records in pieces, operations that wait next to others that do not.

use std::collections::HashSet;
use std::sync::atomic::Ordering::SeqCst;

use probe::op::flag;
use wire::nfs3::*;

use crate::procedures::{create, getattr, read, write};
use crate::server::Server;

#[test]
fn a_thousand_calls_in_one_send() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let mut bytes = Vec::new();
    let mut wanted = HashSet::new();
    for _ in 0..1000 {
        bytes.extend(client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) }));
        wanted.insert(client.xid);
    }
    client.send(&bytes);
    for _ in 0..1000 {
        let reply = client.receive();
        assert!(reply.results::<GetattrRes>().into_result().is_ok());
        assert!(wanted.remove(&reply.xid), "each call is answered once");
    }
}

#[test]
fn records_in_fragments_and_in_single_bytes() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let whole = client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) });
    let message = &whole[4..];
    for size in [1, 3, 10, message.len()] {
        let mut bytes = Vec::new();
        let mut parts = message.chunks(size.max(message.len() / 40)).peekable();
        while let Some(part) = parts.next() {
            let last = if parts.peek().is_none() { 1 << 31 } else { 0 };
            bytes.extend((part.len() as u32 | last).to_be_bytes());
            bytes.extend(part);
        }
        // And another record right behind it.
        bytes.extend(&whole);
        client.send(&bytes);
        for _ in 0..2 {
            assert!(client.receive().results::<GetattrRes>().into_result().is_ok());
        }
    }
    for byte in &whole {
        client.send(std::slice::from_ref(byte));
    }
    assert!(client.receive().results::<GetattrRes>().into_result().is_ok());
}

#[test]
fn a_waiting_operation_holds_no_other_back() {
    let (server, script) = Server::scripted();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    script.blocks.store(true, SeqCst);
    script.close_gate();
    let slow = client.nfs(Proc::READ, &ReadArgs { file: Fh3(&file), offset: 0, count: 10 });
    let slow_xid = client.xid;
    let quick = client.nfs(Proc::NULL, &());
    client.send(&[slow, quick].concat());
    assert_eq!(client.receive().xid, client.xid, "the quick one first");
    script.open_gate();
    let reply = client.receive();
    assert_eq!(reply.xid, slow_xid);
    assert!(reply.results::<ReadRes<'_>>().into_result().is_ok());
    let pooled = server.records(4).iter().filter(|r| r.flags & flag::POOLED != 0).count();
    assert_eq!(pooled, 1);
}

#[test]
fn pooled_reads_and_writes_of_all_sizes() {
    let (server, script) = Server::scripted();
    let (mut client, root) = server.client();
    script.blocks.store(true, SeqCst);
    let file = create(&mut client, &root, "f");
    let data: Vec<u8> = (0..1_u32 << 20).map(|n| (n % 253) as u8).collect();
    for size in [1, 4096, 32_000, 33_000, 100_000, 1 << 20] {
        assert_eq!(write(&mut client, &file, 0, &data[..size]).count as usize, size);
        let (got, _) = read(&mut client, &file, 0, size as u32);
        assert!(got == data[..size], "{size} bytes");
    }
    // A stream of large writes, several at a time.
    let mut bytes = Vec::new();
    for n in 0..8 {
        let args = WriteArgs {
            file: Fh3(&file),
            offset: n << 20,
            count: 1 << 20,
            stable: StableHow::UNSTABLE,
            data: &data,
        };
        bytes.extend(client.nfs(Proc::WRITE, &args));
    }
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || std::io::Write::write_all(&mut sender, &bytes));
    for _ in 0..8 {
        let written = client.receive();
        assert_eq!(written.results::<WriteRes>().into_result().unwrap().count, 1 << 20);
    }
    sending.join().unwrap().unwrap();
    assert_eq!(getattr(&mut client, &file).unwrap().size, 8 << 20);
    for n in 0..8 {
        assert!(read(&mut client, &file, n << 20, 1 << 20).0 == data);
    }
}

#[test]
fn counting_keeps_pace_with_the_load() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let mut bytes = Vec::new();
    for _ in 0..1000 {
        bytes.extend(client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) }));
    }
    let mut most = 0;
    for _ in 0..60 {
        client.send(&bytes);
        (0..1000).for_each(|_| drop(client.receive()));
        most = most.max(server.hub.waiting());
    }
    // A few slices per core; 60 000 were done.
    let slices = 4 * base::limits::CORE_BURST_OPS as u64 * server.hub.cores() as u64;
    assert!(most <= slices, "{most} records wait to be counted");
    assert_eq!(server.hub.gauges().dropped.get(), 0);
}

/// Large reads are sent from the page cache: of odd lengths, across the end of the file, many in
/// one batch, between small ones; the second round uses what the first has mapped.
#[test]
fn large_reads_in_a_batch_are_whole_and_in_their_frames() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "large");
    let data: Vec<u8> = (0..900_001_u32).map(|n| (n / 5 % 253) as u8).collect();
    for (n, part) in data.chunks(300_000).enumerate() {
        write(&mut client, &file, n as u64 * 300_000, part);
    }
    let reads = [
        (0, 100_001),
        (100_001, 65_536),
        (7, 10),
        (200_000, 600_002),
        (800_001, 1 << 20),
        (900_001, 70_000),
        (3, 899_999),
    ];
    for _ in 0..3 {
        let mut bytes = Vec::new();
        let mut wanted = std::collections::HashMap::new();
        for (offset, count) in reads {
            bytes.extend(client.nfs(Proc::READ, &ReadArgs { file: Fh3(&file), offset, count }));
            wanted.insert(client.xid, (offset as usize, count as usize));
        }
        client.send(&bytes);
        for _ in reads {
            let reply = client.receive();
            let (offset, count) = wanted.remove(&reply.xid).expect("each is answered once");
            let ok = reply.results::<ReadRes<'_>>().into_result().expect("read");
            let end = data.len().min(offset + count);
            assert!(ok.data == &data[offset..end], "{count} bytes at {offset}");
            assert_eq!((ok.count as usize, ok.eof), (end - offset, end == data.len()));
        }
    }
    // MNT, CREATE and a WRITE for each part came before them.
    let all = 2 + data.len().div_ceil(300_000) + 3 * reads.len();
    let moved: u64 = server.records(all).iter().map(|r| u64::from(r.bytes)).sum();
    assert!(moved > 3 * 2_000_000, "bytes are counted: {moved}");
}

#[test]
fn a_file_cut_short_does_not_harm_the_server() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "short");
    let data = vec![9; 900_000];
    write(&mut client, &file, 0, &data);
    for round in 0..20 {
        let mut bytes = Vec::new();
        for _ in 0..4 {
            let args = ReadArgs { file: Fh3(&file), offset: 0, count: 900_000 };
            bytes.extend(client.nfs(Proc::READ, &args));
        }
        client.send(&bytes);
        let (mut other, _) = server.client();
        // Numbers of its own, or the server takes its calls for repeats.
        other.xid = 1000 * (round as u32 + 1);
        for size in [round * 100, 900_000] {
            let new_attributes = Sattr3 { size: Some(size), ..Sattr3::default() };
            let args = SetattrArgs { object: Fh3(&file), new_attributes, guard: None };
            assert!(other.call(Proc::SETATTR, &args).results::<SetattrRes>().into_result().is_ok());
        }
        for _ in 0..4 {
            // Cut short while it was being sent: then the connection is closed, and only that.
            let Ok(reply) = client.try_receive() else {
                client = server.client().0;
                break;
            };
            assert!(reply.results::<ReadRes<'_>>().into_result().is_ok());
        }
    }
    assert_eq!(getattr(&mut client, &file).expect("there").size, 900_000);
}
