//! Messages in pieces, agents that read nothing, and connections that end.

use super::*;

const WAIT: Duration = Duration::from_secs(60);

fn pair(exchange: &Exchange, number: u32) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    exchange.add(number, Connection::pair(ours)).unwrap();
    theirs
}

fn pong(id: u64) -> FromAgent {
    FromAgent::Pong { id, mono_ns: 1, wall_ns: 2 }
}

fn next(exchange: &Exchange) -> Event {
    exchange.next(WAIT).expect("an event")
}

#[test]
fn messages_in_pieces_come_whole_and_in_order() {
    let exchange = Exchange::new().unwrap();
    let (mut one, mut other) = (pair(&exchange, 7), pair(&exchange, 8));
    let mut bytes = Vec::new();
    for mono_ns in 0..100 {
        proto::send(&mut bytes, &pong(mono_ns)).unwrap();
    }
    let sender = std::thread::spawn(move || {
        bytes.chunks(3).for_each(|piece| one.write_all(piece).unwrap());
        one
    });
    for expected in 0..100 {
        let event = next(&exchange);
        assert_eq!((event.agent, event.message), (7, Some(pong(expected))));
    }
    // The other one was not held up, nor does its end concern the first.
    proto::send(&mut other, &FromAgent::Cleaned).unwrap();
    assert_eq!(next(&exchange).message, Some(FromAgent::Cleaned));
    drop(other);
    let event = next(&exchange);
    assert!(event.agent == 8 && event.message.is_none());
    drop(sender.join().unwrap());
    assert!(next(&exchange).message.is_none());
}

#[test]
fn what_is_no_message_ends_the_connection() {
    let exchange = Exchange::new().unwrap();
    for bytes in [&[0xff; 8][..], &[0, 0, 0, 2, b'{', b'}']] {
        let mut agent = pair(&exchange, 1);
        agent.write_all(bytes).unwrap();
        assert!(next(&exchange).message.is_none());
        assert_eq!(agent.read(&mut [0]).unwrap_or(0), 0);
        assert!(exchange.send(1, &ToAgent::Clean).is_err());
    }
}

#[test]
fn an_agent_that_reads_nothing_has_a_limit_and_delays_no_other() {
    let exchange = Exchange::new().unwrap();
    let mut silent = pair(&exchange, 1);
    let mut other = pair(&exchange, 2);
    let sent = (0..10_000_000).find(|id| exchange.send(1, &ToAgent::Ping { id: *id }).is_err());
    let sent = sent.expect("a limit");
    exchange.send(2, &ToAgent::Clean).unwrap();
    assert_eq!(proto::receive::<ToAgent>(&mut other).unwrap(), ToAgent::Clean);
    // What it was sent before comes, once it reads.
    for id in 0..sent {
        assert_eq!(proto::receive::<ToAgent>(&mut silent).unwrap(), ToAgent::Ping { id });
    }
    exchange.send(1, &ToAgent::Bye).unwrap();
    assert_eq!(proto::receive::<ToAgent>(&mut silent).unwrap(), ToAgent::Bye);
}

#[test]
fn an_agent_that_is_disconnected_is_reported_once() {
    let exchange = Exchange::new().unwrap();
    let _agent = pair(&exchange, 3);
    exchange.shutdown(3);
    let event = next(&exchange);
    assert!(event.agent == 3 && event.message.is_none());
    assert!(exchange.next(Duration::from_millis(50)).is_none());
}

#[test]
fn beats_show_that_an_agent_lives_and_are_no_events() {
    let exchange = Exchange::new().unwrap();
    let mut agent = pair(&exchange, 5);
    let begun = clock::mono_ns();
    // The silence grows as long as nothing comes, and ends with a beat.
    while exchange.silent_ns(5) < 200_000_000 {
        assert!(clock::mono_ns() - begun < WAIT.as_nanos() as u64, "no silence");
        std::thread::yield_now();
    }
    proto::send(&mut agent, &FromAgent::Beat { mono_ns: 1 }).unwrap();
    while exchange.silent_ns(5) >= 200_000_000 {
        assert!(clock::mono_ns() - begun < WAIT.as_nanos() as u64, "no beat");
        std::thread::yield_now();
    }
    proto::send(&mut agent, &pong(9)).unwrap();
    let event = next(&exchange);
    // On a machine so busy that the beat was late it is an event as well.
    let event = if event.message == Some(pong(9)) { event } else { next(&exchange) };
    assert_eq!(event.message, Some(pong(9)));
}
