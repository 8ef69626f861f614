//! Peers that send invalid calls, or read no replies; others are not affected.

use std::sync::atomic::Ordering::Relaxed;

use base::random::{Random, SeededRandom};
use wire::nfs3::*;

use crate::client::Client;
use crate::procedures::{at, getattr};
use crate::server::Server;

#[test]
fn mutated_calls_are_answered_or_end_their_connection() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let mut random = SeededRandom::new(5);
    for _ in 0..300 {
        let mut record = client.nfs(Proc::LOOKUP, &LookupArgs { what: at(&root, "name") });
        for _ in 0..1 + random.below(4) {
            // The marker stays, so that the stream stays in step.
            let place = 4 + random.below(record.len() as u64 - 4) as usize;
            record[place] = random.next_u64() as u8;
        }
        client.send(&record);
        if client.try_receive().is_err() {
            client = Client::connect(server.addr);
        }
    }
    getattr(&mut client, &root).unwrap();
    assert_eq!(server.service().budgets().panics.load(Relaxed), 0);
}

#[test]
fn a_peer_that_reads_nothing_holds_back_only_itself() {
    let server = Server::fresh();
    let (mut other, root) = server.client();
    let file = crate::procedures::create(&mut other, &root, "f");
    crate::procedures::write(&mut other, &file, 0, &vec![7; 1 << 20]);
    let mut greedy = Client::connect(server.addr);
    let args = ReadArgs { file: Fh3(&file), offset: 0, count: 1 << 20 };
    for _ in 0..100 {
        let record = greedy.nfs(Proc::READ, &args);
        greedy.send(&record);
    }
    for _ in 0..200 {
        getattr(&mut other, &root).unwrap();
    }
    for _ in 0..100 {
        let reply = greedy.receive();
        assert_eq!(reply.results::<ReadRes<'_>>().into_result().unwrap().count, 1 << 20);
    }
}
