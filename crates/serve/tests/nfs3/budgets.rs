//! Budgets reached, and the orderly end of the service.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use serve::pool::PoolLimits;
use serve::transport::budget::Limits;
use wire::nfs3::*;

use crate::client::Client;
use crate::procedures::{create, getattr};
use crate::scripted::Scripted;
use crate::server::{Options, Server, directory, wait_for};

#[test]
fn a_connection_too_many_is_closed_and_counted() {
    let limits = Limits { connections: 3, ..Limits::default() };
    let server = Server::start(directory(), Options { limits, ..Options::default() });
    let (mut client, root) = server.client();
    let kept: Vec<_> = (0..2).map(|_| server.client()).collect();
    let mut surplus = Client::connect(server.addr);
    assert!(surplus.is_closed());
    assert_eq!(server.service().budgets().refused.load(Relaxed), 1);
    getattr(&mut client, &root).unwrap();
    drop(kept);
    wait_for("places are free again", || {
        (server.service().budgets().connections() == 1).then_some(())
    });
    server.client();
}

#[test]
fn a_full_pool_delays_and_loses_nothing() {
    let script = Scripted::over(directory());
    let pool = PoolLimits { threads: 1, queue: 2, per_client: 2 };
    let options = Options { pool, ..Options::default() };
    let server = Server::start(Arc::clone(&script) as _, options);
    let (mut client, root) = server.client();
    script.blocks.store(true, SeqCst);
    script.close_gate();
    let mut bytes = Vec::new();
    for _ in 0..50 {
        bytes.extend(client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) }));
    }
    client.send(&bytes);
    let budgets = server.service().budgets();
    wait_for("the connection stalls", || (budgets.stalls.load(Relaxed) > 0).then_some(()));
    script.open_gate();
    let mut xids: Vec<_> = (0..50).map(|_| client.receive().xid).collect();
    xids.sort_unstable();
    xids.dedup();
    assert_eq!(xids.len(), 50);
    wait_for("nothing is held", || ((budgets.requests(), budgets.bytes()) == (0, 0)).then_some(()));
}

#[test]
fn few_requests_and_bytes_in_all_delay_and_lose_nothing() {
    let limits = Limits { requests: 4, bytes: 200_000, ..Limits::default() };
    let (script, options) = (Scripted::over(directory()), Options { limits, ..Options::default() });
    let server = Server::start(Arc::clone(&script) as _, options);
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    script.blocks.store(true, SeqCst);
    let data = vec![1; 150_000];
    let workers: Vec<_> = (0..6)
        .map(|n| {
            let (mut client, _) = server.client();
            let (file, data) = (file.clone(), data.clone());
            std::thread::spawn(move || {
                for _ in 0..10 {
                    let written = crate::procedures::write(&mut client, &file, n << 20, &data);
                    assert_eq!(written.count, 150_000);
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|w| w.join().unwrap());
    let budgets = server.service().budgets();
    wait_for("nothing is held", || ((budgets.requests(), budgets.bytes()) == (0, 0)).then_some(()));
}

/// Whatever the program, a reply that a pooled call will have is in the budget before it is made.
#[test]
fn pooled_reads_of_each_version_take_room_for_their_replies() {
    const COUNT: u32 = 512 << 10;
    for version in [3, 4] {
        let limits = Limits { bytes: 8 << 20, ..Limits::default() };
        let script = Scripted::over(directory());
        let options = Options { limits, ..Options::default() };
        let server = Server::start(Arc::clone(&script) as _, options);
        let (mut client, root) = server.client();
        let file = create(&mut client, &root, "f");
        crate::procedures::write(&mut client, &file, 0, &vec![1; COUNT as usize]);
        script.blocks.store(true, SeqCst);
        script.close_gate();
        let mut bytes = Vec::new();
        for _ in 0..40 {
            bytes.extend(match version {
                3 => {
                    let file = Fh3(&file);
                    client.nfs(Proc::READ, &ReadArgs { file, offset: 0, count: COUNT })
                }
                _ => crate::compounds::read_record(&mut client, &file, COUNT),
            });
        }
        client.send(&bytes);
        let budgets = server.service().budgets();
        wait_for("the connection stalls", || (budgets.stalls.load(Relaxed) > 0).then_some(()));
        let taken = wait_for("they are shown", || Some(budgets.requests()).filter(|n| *n > 0));
        assert!(taken <= 16, "version {version}: {taken} calls were taken");
        script.open_gate();
        for _ in 0..40 {
            let reply = client.receive();
            assert!(reply.bytes.len() > COUNT as usize, "version {version}: all of the data");
        }
        wait_for("nothing is held", || {
            ((budgets.requests(), budgets.bytes()) == (0, 0)).then_some(())
        });
    }
}

/// A large record is in the budget while it is received: the call that takes its buffer over needs
/// no room for it a second time.
#[test]
fn a_large_write_begins_next_to_calls_that_take_long() {
    const SIZE: usize = 1 << 20;
    // Two cores of 4 MiB, of which one client has a half: less than twice the record.
    let limits = Limits { bytes: 8 << 20, ..Limits::default() };
    let (script, options) = (Scripted::over(directory()), Options { limits, ..Options::default() });
    let server = Server::start(Arc::clone(&script) as _, options);
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    // One on each core.
    let mut others = [server.client().0, server.client().0];
    script.blocks.store(true, SeqCst);
    script.close_gate();
    let begun = script.begun();
    for (n, other) in others.iter_mut().enumerate() {
        let record = other.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) });
        other.send(&record);
        script.wait_begun(begun + n + 1);
    }
    let writer = std::thread::spawn(move || {
        let written = crate::procedures::write(&mut client, &file, 0, &vec![1; SIZE]);
        assert_eq!(written.count as usize, SIZE);
    });
    script.wait_begun(begun + 3);
    script.open_gate();
    writer.join().unwrap();
    for other in &mut others {
        assert!(other.receive().results::<GetattrRes>().into_result().is_ok());
    }
    let budgets = server.service().budgets();
    wait_for("nothing is held", || ((budgets.requests(), budgets.bytes()) == (0, 0)).then_some(()));
}

#[test]
fn draining_answers_what_was_taken_and_closes() {
    let script = Scripted::over(directory());
    let mut server = Server::start(Arc::clone(&script) as _, Options::default());
    let (mut idle, _) = server.client();
    let (mut client, root) = server.client();
    script.blocks.store(true, SeqCst);
    script.close_gate();
    let begun = script.begun();
    let record = client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) });
    client.send(&record);
    script.wait_begun(begun + 1);
    let addr = server.addr;
    let draining = std::thread::spawn(move || (server.drain(), server));
    assert!(idle.is_closed(), "idle connections end at once");
    wait_for("nobody is let in", || std::net::TcpStream::connect(addr).err());
    script.open_gate();
    assert!(client.receive().results::<GetattrRes>().into_result().is_ok());
    assert!(client.is_closed());
    let (drained, _server) = draining.join().unwrap();
    assert!(drained);
}

/// Connections of one client that share two threads.
const CONNECTIONS: u64 = 64;
/// READs of each; their offsets are `CONNECTIONS * number + connection`.
const READS: u64 = 4;

#[test]
fn a_full_pool_is_given_in_order_of_arrival_and_in_turn_among_connections() {
    let script = Scripted::over(directory());
    let pool = PoolLimits { threads: 2, queue: 8, per_client: 8 };
    let server = Server::start(Arc::clone(&script) as _, Options { pool, ..Options::default() });
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    script.blocks.store(true, SeqCst);
    script.close_gate();
    let mut clients: Vec<Client> = (0..CONNECTIONS)
        .map(|connection| {
            let mut client = Client::connect(server.addr);
            client.xid = 1000 * (connection as u32 + 1);
            let offset = |number| CONNECTIONS * number + connection;
            let reads = (0..READS).flat_map(|number| {
                let args = ReadArgs { file: Fh3(&file), offset: offset(number), count: 1 };
                client.nfs(Proc::READ, &args)
            });
            let reads: Vec<u8> = reads.collect();
            client.send(&reads);
            client
        })
        .collect();
    // Ten have a thread or a place, which leaves something to all but the first two.
    wait_for("all others wait", || {
        (server.pool.queued() == 8 && server.pool.waiting() as u64 >= CONNECTIONS - 10)
            .then_some(())
    });
    script.wait_begun(2);
    let at_first = server.pool.waiting();
    script.open_gate();
    for client in &mut clients {
        for _ in 0..READS {
            assert!(client.receive().results::<ReadRes<'_>>().into_result().is_ok());
        }
    }
    let begun = script.reads.lock().unwrap().clone();
    assert_eq!(begun.len() as u64, CONNECTIONS * READS);
    // In order within each connection, but for one that has a thread which its processor delays.
    for connection in 0..CONNECTIONS {
        let own = begun.iter().filter(|offset| *offset % CONNECTIONS == connection);
        let numbers: Vec<u64> = own.map(|offset| offset / CONNECTIONS).collect();
        let is_late = |place: &usize| numbers[..*place].iter().any(|n| *n > numbers[*place]);
        let late = (0..numbers.len()).filter(is_late).count();
        assert!(late <= 1 && numbers.len() as u64 == READS, "connection {connection}: {numbers:?}");
    }
    // In turn: those that waited at first all begin before one of them begins again. Those that
    // have a place or a thread can overtake each other, since cores run at their own speed.
    let turn = &begun[10..10 + at_first];
    let mut connections: Vec<u64> = turn.iter().map(|offset| offset % CONNECTIONS).collect();
    connections.sort_unstable();
    connections.dedup();
    assert!(connections.len() + 10 >= at_first, "{turn:?}");
    wait_for("nothing is held", || (server.pool.queued() == 0).then_some(()));
}
