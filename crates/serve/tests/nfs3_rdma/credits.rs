//! Credits: as many calls at once as are granted, and no more.

use std::io::Cursor;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use base::clock::stamp;
use base::limits::{RDMA_CONNECTIONS_CLIENT_MAX, RDMA_CREDITS_MAX};
use probe::op::{OpRecord, Protocol};
use serve::transport::budget::Limits;
use serve::transport::pace::SlowPeerBudget;
use verbs::mock::End;
use verbs::{Connection, Purpose, Work};
use wire::nfs3::*;
use wire::rpcrdma::{Body, Chunks, ReadSegment, Segment};

use crate::client::stream::rdma::{encoded, fabric};
use crate::client::{Client, PATIENCE};
use crate::procedures::getattr;
use crate::server::{Options, Server, directory, wait_for};

/// An end that keeps to nothing, with receives for many replies.
fn raw(server: &Server) -> End {
    let from = ([127, 0, 0, 9], 999).into();
    let mut end = fabric(server.addr).connect(from, server.addr, b"").expect("it listens");
    for id in 0..2 * u64::from(RDMA_CREDITS_MAX) {
        let region = end.register(vec![0; 1024], Purpose::Local).expect("no limit");
        end.post(id, Work::Receive(region)).expect("posted");
    }
    end.established(PATIENCE).expect("accepted");
    end
}

fn send(end: &mut End, message: Vec<u8>) -> bool {
    let length = message.len();
    let region = end.register(message, Purpose::Local).expect("no limit");
    end.post(u64::MAX, Work::Send { region, length, invalidate: None }).is_ok()
}

#[test]
fn one_hundred_and_twenty_eight_calls_are_in_progress_at_once() {
    let (server, script) = Server::scripted();
    let (mut client, root) = server.client();
    getattr(&mut client, &root).expect("grants what is asked for");
    script.blocks.store(true, SeqCst);
    script.close_gate();
    let mut bytes = Vec::new();
    for _ in 0..200 {
        bytes.extend(client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) }));
    }
    client.send(&bytes);
    let budgets = server.service().budgets();
    wait_for("all that were granted are taken", || {
        (budgets.requests() == i64::from(RDMA_CREDITS_MAX)).then_some(())
    });
    script.open_gate();
    (0..200).for_each(|_| drop(client.receive()));
    assert_eq!(client.stream.counts().most, RDMA_CREDITS_MAX as usize);
    wait_for("nothing is held", || ((budgets.requests(), budgets.bytes()) == (0, 0)).then_some(()));
}

#[test]
fn a_client_beyond_its_grant_loses_its_connection_only() {
    let (server, script) = Server::scripted();
    let (mut other, root) = server.client();
    let registered = fabric(server.addr).account().bytes();
    let mut end = raw(&server);
    script.blocks.store(true, SeqCst);
    script.close_gate();
    let mut calls = Client::connect(server.addr);
    for _ in 0..=RDMA_CREDITS_MAX {
        let record = calls.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) });
        let body = Body::Message(Chunks::default());
        let message = encoded(calls.xid, RDMA_CREDITS_MAX, body, &record[4..]);
        // The last may find that the connection has ended.
        if !send(&mut end, message) {
            break;
        }
    }
    let ended = wait_for("it is closed", || end.look().err());
    assert!(matches!(ended, verbs::VerbsError::Closed), "{ended}");
    script.open_gate();
    script.blocks.store(false, SeqCst);
    getattr(&mut other, &root).expect("others see nothing");
    drop((end, calls));
    wait_for("registered memory is given back", || {
        (fabric(server.addr).account().bytes() == registered).then_some(())
    });
}

/// Encodes calls without a connection.
fn calls() -> Client<Cursor<Vec<u8>>> {
    Client { stream: Cursor::new(Vec::new()), xid: 0, uid: 0, gid: 0 }
}

fn getattr_call(calls: &mut Client<Cursor<Vec<u8>>>, root: &[u8]) -> Vec<u8> {
    let record = calls.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(root) });
    encoded(calls.xid, RDMA_CREDITS_MAX, Body::Message(Chunks::default()), &record[4..])
}

/// The records of GETATTRs.
fn getattrs(server: &Server) -> Vec<OpRecord> {
    let mut records = server.records(0);
    records.retain(|op| op.protocol == Protocol::Nfs3 as u8 && u32::from(op.op) == Proc::GETATTR.0);
    records
}

/// Behind a slow link that is when the client has it; when the reply is posted it is not.
#[test]
fn an_operation_ends_when_its_reply_was_taken() {
    let server = Server::fresh();
    let (_other, root) = server.client();
    let (mut end, mut calls) = (raw(&server), calls());
    end.take_nothing();
    let sent_ns = stamp();
    assert!(send(&mut end, getattr_call(&mut calls, &root)));
    wait_for("the reply is posted", || (end.undone() == 1).then_some(()));
    // Its core has had many a turn meanwhile.
    let mut others = [server.client().0, server.client().0];
    let all = (0..20).flat_map(|_| [0, 1]);
    all.for_each(|at| drop(others[at].call(Proc::NULL, &())));
    assert!(getattrs(&server).is_empty(), "it has not ended");
    let taken_ns = stamp();
    end.take_again();
    let records =
        wait_for("it has ended", || Some(getattrs(&server)).filter(|records| !records.is_empty()));
    assert_eq!(records.len(), 1);
    assert!(records[0].done_ns >= taken_ns);
    let came_ns = records[0].done_ns - records[0].latency_ns;
    assert!((sent_ns..taken_ns).contains(&came_ns), "{sent_ns} {came_ns} {taken_ns}");
}

/// Its replies would be made, registered and kept for as long as it likes.
#[test]
fn a_client_that_takes_no_replies_gets_a_limited_number_made() {
    const UNSENT: usize = 256;
    let server = Server::fresh();
    // One on each core.
    let (mut other, root) = server.client();
    let mut others = [server.client().0, server.client().0];
    let registered = fabric(server.addr).account().bytes();
    let (mut end, mut calls) = (raw(&server), calls());
    end.take_nothing();
    let answered = || getattrs(&server).len();
    for n in 1..=UNSENT {
        assert!(send(&mut end, getattr_call(&mut calls, &root)));
        // Within its grant.
        if n % 64 == 0 {
            wait_for("they are answered", || (end.undone() >= n).then_some(()));
        }
    }
    for n in 0..=RDMA_CREDITS_MAX {
        if n == 64 {
            // Its core has had many a turn meanwhile.
            let all = (0..20).flat_map(|_| [0, 1]);
            all.for_each(|at| drop(others[at].call(Proc::NULL, &())));
            assert_eq!((end.undone(), answered()), (UNSENT, 0));
        }
        if !send(&mut end, getattr_call(&mut calls, &root)) {
            break;
        }
    }
    wait_for("it is closed", || end.look().err());
    // Those that were carried out count, although their replies were never taken.
    wait_for("no more were made", || (answered() == UNSENT).then_some(()));
    getattr(&mut other, &root).expect("others see nothing");
    drop(end);
    wait_for("registered memory is given back", || {
        (fabric(server.addr).account().bytes() == registered).then_some(())
    });
}

#[test]
fn a_client_that_does_nothing_for_its_replies_or_calls_loses_its_connection() {
    let pace = SlowPeerBudget::new(Duration::from_millis(200));
    let limits = Limits { pace, ..Limits::default() };
    let server = Server::start(directory(), Options { limits, ..Options::default() });
    let (mut other, root) = server.client();
    let registered = fabric(server.addr).account().bytes();
    for long in [false, true] {
        let (mut end, mut calls) = (raw(&server), calls());
        end.take_nothing();
        let mut message = getattr_call(&mut calls, &root);
        // Its reply is never taken, or it can never be read.
        let call = message.split_off(28);
        let memory = end.expose(call.clone(), false);
        let length = call.len() as u32;
        let target = Segment { handle: memory.key, length, offset: memory.address };
        let reads = vec![ReadSegment { position: 0, target }];
        let body = Body::NoMessage(Chunks { reads, ..Chunks::default() });
        let message = match long {
            true => encoded(calls.xid, RDMA_CREDITS_MAX, body, &[]),
            false => [message, call].concat(),
        };
        assert!(send(&mut end, message));
        wait_for("it is closed", || end.look().err());
        getattr(&mut other, &root).expect("others see nothing");
        drop((end, memory));
        wait_for("registered memory is given back", || {
            (fabric(server.addr).account().bytes() == registered).then_some(())
        });
    }
    assert_eq!(server.service().budgets().timeouts.load(Relaxed), 2);
}

/// Messages that are refused cost no credit.
#[test]
fn a_client_that_takes_no_refusals_gets_a_limited_number() {
    let server = Server::fresh();
    let (mut other, root) = server.client();
    let mut end = raw(&server);
    end.take_nothing();
    let body = Body::NoMessage(Chunks::default());
    let (bad, budgets) = (encoded(7, 32, body, &[]), server.service().budgets());
    for n in 1..=256 {
        assert!(send(&mut end, bad.clone()));
        if n % 64 == 0 {
            let all = || (budgets.bad_records.load(Relaxed) >= n).then_some(());
            wait_for("they are refused", all);
        }
    }
    send(&mut end, bad);
    wait_for("it is closed", || end.look().err());
    getattr(&mut other, &root).expect("others see nothing");
}

/// Peers that have vanished send nothing, and RDMA has no keepalive.
#[test]
fn an_idle_connection_is_evicted_for_a_new_one() {
    let options = Options { rdma_idle_min: Duration::ZERO, ..Options::default() };
    let server = Server::start(directory(), options);
    let (mut other, root) = server.client();
    let mut ends: Vec<_> = (0..RDMA_CONNECTIONS_CLIENT_MAX).map(|_| raw(&server)).collect();
    let ended = |ends: &mut [End]| ends.iter_mut().filter_map(|end| end.look().err()).count();
    assert_eq!(ended(&mut ends), 0);
    let mut new = raw(&server);
    wait_for("one is closed", || (ended(&mut ends) == 1).then_some(()));
    assert!(new.look().is_ok());
    assert!(send(&mut new, getattr_call(&mut calls(), &root)), "it is served");
    wait_for("it is answered", || (!new.look().expect("it stays").is_empty()).then_some(()));
    getattr(&mut other, &root).expect("others see nothing");
    assert_eq!(ended(&mut ends), 1);
}
