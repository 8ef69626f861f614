//! Credits: as many calls at once as are granted, and no more.

use std::sync::atomic::Ordering::SeqCst;

use base::limits::RDMA_CREDITS_MAX;
use verbs::mock::End;
use verbs::{Connection, Purpose, Work};
use wire::nfs3::*;
use wire::rpcrdma::{Body, Chunks};

use crate::client::stream::rdma::{encoded, fabric};
use crate::client::{Client, PATIENCE};
use crate::procedures::getattr;
use crate::server::{Server, wait_for};

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
fn one_hundred_and_twenty_eight_calls_are_under_way_at_once() {
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
