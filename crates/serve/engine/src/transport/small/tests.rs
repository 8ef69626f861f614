//! Tests of small services: datagrams and connections, answers that may block, what is too long.

use std::io::{Read, Write};
use std::net::TcpStream as Stream;
use std::time::Duration;

use super::*;
use crate::exec::tests::engine_of;
use crate::transport::budget::{Budgets, Limits};
use crate::transport::{Runtimes, listener};

/// Says what it was asked; on a thread of its own when that begins with `b`, nothing when `x`.
struct Echo;

impl Answers for Echo {
    fn answer(&self, message: &[u8], origin: Origin) -> Answer {
        let mut answer = message.to_vec();
        answer.push(u8::from(origin.connected));
        match message.first() {
            Some(b'x') => Answer::Nothing,
            Some(b'b') => Answer::Deferred(Box::new(move || answer)),
            _ => Answer::Now(answer),
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn datagrams_are_answered() {
    let runtimes = Runtimes::start(1).unwrap();
    let socket = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let at = socket.local_addr().unwrap();
    runtimes.spawn_on(0, move || async move {
        drop(datagrams(socket, Arc::new(Echo), engine_of(1)).await)
    });
    let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.connect(at).unwrap();
    let mut answer = [0; 100];
    for question in [&b"now"[..], b"by and by"] {
        // What is too long, or no question, has no answer.
        client.send(&[b'a'; SMALL_RECORD_MAX + 1]).unwrap();
        client.send(b"x").unwrap();
        client.send(question).unwrap();
        let len = client.recv(&mut answer).unwrap();
        assert_eq!(answer[..len], [question, &[0]].concat());
    }
}

#[test]
fn connections_are_answered_until_a_record_is_invalid() {
    let runtimes = Runtimes::start(1).unwrap();
    let socket = listener::listen(([127, 0, 0, 1], 0).into()).unwrap();
    let at = socket.local_addr().unwrap();
    let (mut tasks, small) = (Tasks::default(), engine_of(1));
    // With room for what a connection holds.
    let (pool, flush, budgets) =
        (small.pool.clone(), small.flush.clone(), Arc::new(Budgets::new(Limits::default())));
    let engine = Engine::new(pool, flush, budgets, small.hub.clone());
    let service: Arc<dyn Answers> = Arc::new(Echo);
    assert!(connections(socket, &service, &engine, &runtimes, &mut tasks));
    let connect = || {
        let stream = Stream::connect(at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    let mut client = connect();
    client.write_all(&[framed(b"now"), framed(b"by and by")].concat()).unwrap();
    let expect = [framed(b"now\x01"), framed(b"by and by\x01")].concat();
    let mut answer = vec![0; expect.len()];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer, expect);
    for wrong in [framed(b"x"), (1u32 << 31 | 1 << 20).to_be_bytes().to_vec(), vec![0x80, 0, 0, 0]]
    {
        let mut client = connect();
        client.write_all(&wrong).unwrap();
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "closed: {wrong:?}");
    }
    // The service drains: idle connections are not waited for.
    let mut idle = connect();
    // It is served: one that was not yet accepted would be reset when the listener ends.
    idle.write_all(&framed(b"now")).unwrap();
    idle.read_exact(&mut [0; 8]).unwrap();
    assert!(tasks.end_blocking().unwrap(), "nothing was left undone");
    assert_eq!(idle.read(&mut [0; 1]).unwrap(), 0, "closed");
    assert_eq!(engine.budgets.connections(), 0);
}
