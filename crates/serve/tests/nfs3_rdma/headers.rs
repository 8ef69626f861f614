//! Headers that no client sends: refused, or the connection ends; registered memory is released,
//! and no other client notices.

use base::random::{Random, SeededRandom};
use verbs::mock::End;
use verbs::{Connection, Purpose, VerbsError, Work};
use wire::nfs3::*;
use wire::rpcrdma::{Body, Chunk, Chunks, Header, ReadSegment, Refusal, Segment};

use crate::client::stream::rdma::{encoded, fabric};
use crate::client::{Client, PATIENCE};
use crate::procedures::getattr;
use crate::server::{Server, wait_for};

/// The result of a message.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Refused(Refusal),
    Replied,
    Closed,
}

struct Peer {
    end: End,
}

impl Peer {
    fn new(server: &Server) -> Self {
        let from = ([127, 0, 0, 9], 999).into();
        let mut end = fabric(server.addr).connect(from, server.addr, b"").expect("it listens");
        for id in 0..8 {
            let region = end.register(vec![0; 1024], Purpose::Local).expect("no limit");
            end.post(id, Work::Receive(region)).expect("posted");
        }
        end.established(PATIENCE).expect("accepted");
        Self { end }
    }

    /// Sends it, and waits for what comes of it.
    fn ask(&mut self, message: &[u8]) -> Answer {
        let (length, message) = (message.len(), message.to_vec());
        let region = self.end.register(message, Purpose::Local).expect("no limit");
        if self.end.post(99, Work::Send { region, length, invalidate: None }).is_err() {
            return Answer::Closed;
        }
        loop {
            match self.end.wait(PATIENCE) {
                Ok(done) => {
                    if let Some(one) = done.into_iter().find(|one| one.id != 99) {
                        let length = one.outcome.expect("received");
                        let (header, _) = Header::open(&one.region[..length]).expect("a header");
                        return match header.body {
                            Body::Error(refusal) => Answer::Refused(refusal),
                            _ => Answer::Replied,
                        };
                    }
                }
                Err(VerbsError::Work("nothing has happened in time")) => panic!("no answer"),
                Err(_) => return Answer::Closed,
            }
        }
    }
}

fn null(xid: u32) -> Vec<u8> {
    let mut client =
        Client { stream: std::io::Cursor::new(Vec::new()), xid: xid - 1, uid: 0, gid: 0 };
    client.nfs(Proc::NULL, &())[4..].to_vec()
}

fn segment(handle: u32, length: u32, offset: u64) -> Segment {
    Segment { handle, length, offset }
}

fn reads(all: &[(u32, Segment)]) -> Chunks {
    let read =
        |(position, target): &(u32, Segment)| ReadSegment { position: *position, target: *target };
    Chunks { reads: all.iter().map(read).collect(), ..Chunks::default() }
}

/// Messages with what must come of them; `None`: either way.
fn hostile() -> Vec<(&'static str, Vec<u8>, Answer)> {
    let xid = 7;
    let message = |body: fn(Chunks) -> Body, chunks: Chunks, inline: &[u8]| {
        encoded(xid, 32, body(chunks), inline)
    };
    let call = null(xid);
    let one = segment(9, 8, 0);
    let chunk = || Answer::Refused(Refusal::Chunk);
    let mut version = message(Body::Message, Chunks::default(), &call);
    version[7] = 2;
    let mut procedure = message(Body::Message, Chunks::default(), &call);
    procedure[15] = 3;
    let thousand = (0..1000).map(|_| (8, segment(9, 0, 0))).collect::<Vec<_>>();
    let mut thousand = message(Body::Message, reads(&thousand), &call);
    thousand.truncate(4096);
    let overlap = Chunks {
        writes: vec![Chunk(vec![segment(9, 100, 0)]), Chunk(vec![segment(9, 100, 50)])],
        ..Chunks::default()
    };
    let no_key = Chunks { writes: vec![Chunk(vec![segment(0, 100, 0)])], ..Chunks::default() };
    let other = null(8);
    vec![
        ("version", version, Answer::Refused(Refusal::Version { low: 1, high: 1 })),
        ("procedure", procedure, chunk()),
        ("1,000 chunks", thousand, chunk()),
        ("overlap", message(Body::Message, overlap, &call), chunk()),
        ("no key", message(Body::Message, no_key, &call), chunk()),
        ("beyond", message(Body::Message, reads(&[(4096, one)]), &call), chunk()),
        ("position", message(Body::Message, reads(&[(6, one)]), &call), chunk()),
        ("2^32-1", message(Body::Message, reads(&[(8, segment(9, u32::MAX, 0))]), &call), chunk()),
        ("no message", message(Body::NoMessage, Chunks::default(), &[]), chunk()),
        (
            "a message that is read, and behind the header",
            message(Body::NoMessage, reads(&[(0, segment(9, 0, 0))]), &call),
            chunk(),
        ),
        ("memory", message(Body::Message, reads(&[(8, one)]), &call), Answer::Closed),
        ("number", message(Body::Message, Chunks::default(), &other), Answer::Closed),
        ("short", vec![0; 12], Answer::Closed),
        (
            "answer",
            message(Body::Message, Chunks::default(), &[0, 0, 0, 7, 0, 0, 0, 1]),
            Answer::Closed,
        ),
    ]
}

#[test]
fn hostile_headers_are_refused_or_end_their_connection() {
    let server = Server::fresh();
    let (mut other, root) = server.client();
    let registered = fabric(server.addr).account().bytes();
    for (what, message, wanted) in hostile() {
        let mut peer = Peer::new(&server);
        assert_eq!(peer.ask(&message), wanted, "{what}");
        if wanted != Answer::Closed {
            let call = encoded(7, 32, Body::Message(Chunks::default()), &null(7));
            assert_eq!(peer.ask(&call), Answer::Replied, "{what}: the connection goes on");
        }
        drop(peer);
        getattr(&mut other, &root).expect("others see nothing");
        wait_for("registered memory is given back", || {
            (fabric(server.addr).account().bytes() == registered).then_some(())
        });
    }
}

#[test]
fn changed_messages_are_answered_or_end_their_connection() {
    let server = Server::fresh();
    let (mut other, root) = server.client();
    let registered = fabric(server.addr).account().bytes();
    let mut random = SeededRandom::new(6);
    let seeds: Vec<_> = hostile().into_iter().map(|(_, message, _)| message).collect();
    for n in 0..200 {
        let mut message = seeds[n % seeds.len()].clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(message.len() as u64) as usize;
            message[at] = random.next_u64() as u8;
        }
        // An error message of the client gets no reply: a call follows that does.
        let mut peer = Peer::new(&server);
        let length = message.len();
        let region = peer.end.register(message, Purpose::Local).expect("no limit");
        if peer.end.post(99, Work::Send { region, length, invalidate: None }).is_ok() {
            let call = encoded(7, 32, Body::Message(Chunks::default()), &null(7));
            peer.ask(&call);
        }
    }
    getattr(&mut other, &root).expect("others see nothing");
    wait_for("registered memory is given back", || {
        (fabric(server.addr).account().bytes() == registered).then_some(())
    });
    let panics = &server.service().budgets().panics;
    assert_eq!(panics.load(std::sync::atomic::Ordering::Relaxed), 0);
}
