//! Calls over a session: large and small, many at once, in pieces; and what a session holds.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use base::random::{Random, SeededRandom};
use rustls::ClientConnection;
use wire::nfs3::*;

use super::certificates::{Authority, Shown};
use super::peer::{Secured, probed};
use super::{World, counted};
use crate::client::Client;
use crate::procedures::{create, getattr, read, write};
use crate::scripted::Scripted;
use crate::server::{Options, Server, directory, wait_for};

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n / 7 % 251) as u8).collect()
}

#[test]
fn reads_and_writes_of_all_sizes_inline_and_on_the_pool() {
    let script = Scripted::over(directory());
    let authority = Authority::new("a");
    let tls = Some(authority.server());
    let server = Server::start(script.clone() as _, Options { tls, ..Options::default() });
    let mut client =
        Secured::session(server.addr, authority.client(&Shown::Nothing)).expect("a session");
    let root = client.mount("/export/t");
    let file = create(&mut client, &root, "f");
    let data = data(1 << 20);
    for blocks in [false, true] {
        script.blocks.store(blocks, SeqCst);
        for size in [1, 4096, 16_383, 16_384, 16_385, 65_024, 65_536, 100_001, 1 << 20] {
            assert_eq!(write(&mut client, &file, 3, &data[..size]).count as usize, size);
            let (got, _) = read(&mut client, &file, 3, size as u32);
            assert!(got == data[..size], "{size} bytes");
        }
    }
}

#[test]
fn a_thousand_calls_in_one_send() {
    let world = World::new();
    let (mut client, root) = world.client();
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
fn large_reads_in_a_batch_between_small_ones() {
    let world = World::new();
    let (mut client, root) = world.client();
    let file = create(&mut client, &root, "large");
    let data = data(900_001);
    write(&mut client, &file, 0, &data);
    let reads = [(0, 100_001), (100_001, 65_536), (7, 10), (200_000, 600_002), (3, 899_998)];
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
            assert!(ok.data == &data[offset..offset + count], "{count} bytes at {offset}");
        }
    }
}

/// Many megabytes of replies that the client does not take yet, and writes behind them.
#[test]
fn a_client_that_is_slow_to_take_gets_everything() {
    let world = World::new();
    let (mut client, root) = world.client();
    let file = create(&mut client, &root, "f");
    let data = data(1 << 20);
    write(&mut client, &file, 0, &data);
    let mut bytes = Vec::new();
    for _ in 0..40 {
        let args = ReadArgs { file: Fh3(&file), offset: 0, count: 1 << 20 };
        bytes.extend(client.nfs(Proc::READ, &args));
    }
    client.send(&bytes);
    for _ in 0..40 {
        let reply = client.receive();
        assert!(reply.results::<ReadRes<'_>>().into_result().expect("read").data == &data[..]);
    }
}

/// What the client's side of a session puts on the wire for `bytes`.
fn sealed(tls: &mut ClientConnection, bytes: &[u8]) -> Vec<u8> {
    tls.writer().write_all(bytes).unwrap();
    let mut wire = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut wire).unwrap();
    }
    wire
}

#[test]
fn records_in_single_bytes_and_changes_of_keys() {
    let world = World::new();
    let (mut client, root) = world.client();
    for _ in 0..3 {
        let call = client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) });
        // An RPC record cut into TLS records, and those into segments.
        let (head, tail) = call.split_at(5);
        let wire = [head, tail].map(|part| sealed(&mut client.stream.conn, part)).concat();
        for byte in &wire {
            client.stream.sock.write_all(std::slice::from_ref(byte)).unwrap();
        }
        assert!(client.receive().results::<GetattrRes>().into_result().is_ok());
        client.stream.conn.refresh_traffic_keys().expect("a change of keys");
    }
    let file = create(&mut client, &root, "f");
    let data = data(300_000);
    write(&mut client, &file, 0, &data);
    assert!(read(&mut client, &file, 0, 300_000).0 == data);
}

#[test]
fn a_changed_byte_ends_the_session_and_is_counted() {
    let world = World::new();
    for at in [5, 20, 60] {
        let (mut client, root) = world.client();
        let call = client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) });
        let mut wire = sealed(&mut client.stream.conn, &call);
        wire[at] ^= 1;
        world.fails(&["decrypt"], || {
            client.stream.sock.write_all(&wire).unwrap();
            assert!(client.is_over());
        });
    }
    assert_eq!(world.budgets().panics.load(Relaxed), 0);
}

#[test]
fn half_a_handshake_affects_no_other_client() {
    let mut world = World::new();
    let (mut other, root) = world.client();
    let name = "localhost".try_into().expect("a name");
    let config = world.authority.client(&Shown::Nothing);
    let mut tls = ClientConnection::new(config.into(), name).expect("a client");
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    let mut peers: Vec<Client> = (0..60).map(|_| probed(world.server.addr)).collect();
    for (n, peer) in peers.iter_mut().enumerate() {
        peer.send(&hello[..n * hello.len() / 60]);
    }
    for _ in 0..100 {
        assert!(getattr(&mut other, &root).is_ok());
    }
    // Nor do they hold up the end.
    assert!(world.server.drain());
    assert!(peers.iter_mut().all(Client::is_closed));
    let closed = other.stream.read(&mut [0]).expect("an end that was announced");
    assert_eq!(closed, 0);
}

#[test]
fn idle_sessions_hold_no_buffers() {
    let world = World::new();
    let idle: Vec<_> = (0..30).map(|_| world.client()).collect();
    let budgets = world.budgets();
    counted(&budgets.tls_sessions, 30);
    wait_for("no buffers are held", || (budgets.bytes() == 0).then_some(()));
    for (mut client, root) in idle {
        assert!(getattr(&mut client, &root).is_ok());
    }
    wait_for("all have gone", || (budgets.connections() == 0).then_some(()));
    wait_for("no buffers are held", || (budgets.bytes() == 0).then_some(()));
    assert_eq!(budgets.tls_failures.load(Relaxed), 0);
}

#[test]
fn random_bytes_after_the_probe_or_in_a_session_end_only_their_connection() {
    let world = World::new();
    let (mut other, root) = world.client();
    let mut random = SeededRandom::new(9);
    for round in 0..60 {
        let mut bytes = vec![0; 1 + random.below(3000) as usize];
        random.fill(&mut bytes);
        // As handshake, alert, change of cipher, data; or as nothing that exists.
        if round % 6 != 0 {
            let len = random.below(bytes.len() as u64) as u16;
            let head = [20 + (round % 6) as u8, 3, 3, (len >> 8) as u8, len as u8];
            bytes.splice(..0, head);
        }
        let mut peer = if round % 2 == 0 {
            probed(world.server.addr).stream.tcp()
        } else {
            world.client().0.stream.sock
        };
        // The server may have closed it before all is sent.
        let _ = peer.write_all(&bytes);
        peer.shutdown(std::net::Shutdown::Write).ok();
        let mut rest = Vec::new();
        match peer.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset),
        }
        assert!(getattr(&mut other, &root).is_ok());
    }
    assert_eq!(world.budgets().panics.load(Relaxed), 0);
    assert!(world.budgets().tls_failures.load(Relaxed) > 20);
}

/// Room for hardly more than one large record on each core: all sessions wait, and all complete in
/// the end.
#[test]
fn many_sessions_share_a_small_budget() {
    let authority = Authority::new("a");
    let limits = serve::transport::budget::Limits { bytes: 3 << 20, ..Default::default() };
    let tls = Some(authority.server());
    let server = Server::start(directory(), Options { limits, tls, ..Options::default() });
    let addr = server.addr;
    let workers: Vec<_> = (0..10_u32)
        .map(|n| {
            let config = authority.client(&Shown::Nothing);
            std::thread::spawn(move || {
                let mut client = Secured::session(addr, config).expect("a session");
                client.xid = (n + 1) << 24;
                let root = client.mount("/export/t");
                let file = create(&mut client, &root, &format!("f{n}"));
                let data: Vec<u8> = (0..1_u32 << 20).map(|i| (i ^ n) as u8).collect();
                for round in 0..4 {
                    write(&mut client, &file, round << 20, &data);
                    assert!(read(&mut client, &file, round << 20, 1 << 20).0 == data);
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().expect("done"));
    let budgets = server.service().budgets();
    wait_for("no buffers are held", || (budgets.bytes() == 0).then_some(()));
    assert_eq!(budgets.timeouts.load(Relaxed), 0);
}

#[test]
fn peers_that_stop_in_the_middle_of_a_record_give_up_their_room() {
    let authority = Authority::new("a");
    // Ten buffers on each core.
    let limits = serve::transport::budget::Limits { bytes: 20 * 65_536, ..Default::default() };
    let tls = Some(authority.server());
    let server = Server::start(directory(), Options { limits, tls, ..Options::default() });
    let session = || {
        let config = authority.client(&Shown::Nothing);
        Secured::session(server.addr, config).expect("a session")
    };
    let (mut other, root) = server.client();
    let mut stopped: Vec<_> = (0..40).map(|_| session()).collect();
    for peer in &mut stopped {
        let call = peer.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) });
        let wire = sealed(&mut peer.stream.conn, &call);
        peer.stream.sock.write_all(&wire[..wire.len() / 2]).unwrap();
    }
    let mut late = session();
    late.xid = 9 << 20;
    for _ in 0..20 {
        assert!(getattr(&mut late, &root).is_ok());
        assert!(getattr(&mut other, &root).is_ok());
    }
    drop(stopped);
    let budgets = server.service().budgets();
    wait_for("no buffers are held", || (budgets.bytes() == 0).then_some(()));
}

/// The small call is decrypted together with the end of the large one, and nothing comes after it.
#[test]
fn a_small_call_behind_a_large_one_is_answered() {
    let world = World::new();
    let (mut client, root) = world.client();
    let file = create(&mut client, &root, "f");
    let data = data(300_000);
    for _ in 0..5 {
        let args = WriteArgs {
            file: Fh3(&file),
            offset: 0,
            count: 300_000,
            stable: StableHow::UNSTABLE,
            data: &data,
        };
        let mut bytes = client.nfs(Proc::WRITE, &args);
        let mut wanted = HashSet::from([client.xid]);
        bytes.extend(client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) }));
        wanted.insert(client.xid);
        client.send(&bytes);
        assert!(wanted.remove(&client.receive().xid));
        assert!(wanted.remove(&client.receive().xid));
    }
}
