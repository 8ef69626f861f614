//! Two ends: messages, one-sided operations, what is refused, what is given back.

use std::time::Duration;

use super::*;
use crate::{Completion, Piece, Purpose, Work};

const TIME: Duration = Duration::from_secs(60);

fn addr(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// A client and a server that has accepted it.
fn pair(fabric: &Arc<Fabric>) -> (End, Box<dyn Connection>) {
    let mut listener = fabric.verbs().listen(addr(1)).expect("it listens");
    let mut client = fabric.connect(addr(2), addr(1), b"hello").expect("it is there");
    let cx = &mut Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(request)) = listener.poll_request(cx) else { panic!("nobody asks") };
    assert_eq!((request.peer(), request.local()), (addr(2), addr(1)));
    assert_eq!(request.private_data(), b"hello");
    let mut server = request.open(Depth { receives: 1, sends: 1 }).expect("there is room");
    server.accept(b"welcome").expect("accepted");
    assert_eq!(client.established(TIME).as_deref(), Some(&b"welcome"[..]));
    (client, server)
}

fn region(connection: &mut dyn Connection, bytes: &[u8]) -> crate::Region {
    connection.register(bytes.to_vec(), Purpose::Local).expect("there is room")
}

fn done(connection: &mut dyn Connection) -> Vec<Completion> {
    let mut done = Vec::new();
    let polled = connection.poll(&mut Context::from_waker(Waker::noop()), &mut done);
    assert!(matches!(polled, Poll::Ready(Ok(()))), "{polled:?}");
    done
}

fn send(connection: &mut dyn Connection, bytes: &[u8]) -> Result<(), VerbsError> {
    let region = region(connection, bytes);
    connection.post(1, Work::Send { region, length: bytes.len(), invalidate: None })
}

#[test]
fn messages_arrive_where_receives_are_posted() {
    let fabric = Fabric::new(1 << 20);
    let (mut client, mut server) = pair(&fabric);
    for id in [7, 8] {
        let room = region(&mut *server, &[0; 16]);
        server.post(id, Work::Receive(room)).expect("posted");
    }
    assert_eq!(fabric.account().bytes(), 32);
    send(&mut client, b"one").expect("sent");
    send(&mut client, b"second").expect("sent");
    let came = done(&mut *server);
    let texts: Vec<_> =
        came.iter().map(|c| (c.id, &c.region[..*c.outcome.as_ref().expect("good")])).collect();
    assert_eq!(texts, [(7, &b"one"[..]), (8, b"second")]);
    drop(came);
    assert_eq!(fabric.account().bytes(), 0, "given back");
    assert!(send(&mut client, b"third").is_err(), "no receive is posted");
    let polled = server.poll(&mut Context::from_waker(Waker::noop()), &mut Vec::new());
    assert!(matches!(polled, Poll::Ready(Err(_))), "{polled:?}");
}

#[test]
fn memory_of_the_peer_is_read_and_written() {
    let fabric = Fabric::new(1 << 20);
    let (mut client, mut server) = pair(&fabric);
    let source = client.expose(b"0123456789".to_vec(), false);
    let target = client.expose(vec![b'.'; 6], true);
    let into = region(&mut *server, &[0; 6]);
    let piece = |local, key, address| Piece { local, key, address };
    let pieces =
        vec![piece(0..2, source.key, source.address), piece(2..6, source.key, source.address + 6)];
    server.post(1, Work::Read { region: into, pieces }).expect("posted");
    let region = done(&mut *server).remove(0).region;
    assert_eq!(&region[..], b"016789");
    let pieces = vec![piece(1..4, target.key, target.address + 2)];
    server.post(2, Work::Write { region, pieces }).expect("posted");
    assert_eq!(target.bytes(), b"..167.");
    let region = done(&mut *server).remove(0).region;
    let room = super::tests::region(&mut client, &[0; 4]);
    client.post(1, Work::Receive(room)).expect("posted");
    let invalidate = Some(target.key);
    server.post(3, Work::Send { region, length: 2, invalidate }).expect("posted");
    assert!(target.is_invalidated() && !source.is_invalidated());
}

#[test]
fn memory_that_was_not_given_ends_the_connection() {
    for (key, address, length, write) in
        [(9, 0x1000, 4, false), (1, 0x1000, 11, false), (1, 0, 4, false), (1, 0x1000, 4, true)]
    {
        let fabric = Fabric::new(1 << 20);
        let (mut client, mut server) = pair(&fabric);
        let _source = client.expose(vec![1; 10], false);
        let region = region(&mut *server, &[0; 64]);
        let pieces = vec![Piece { local: 0..length, key, address }];
        let work = match write {
            true => Work::Write { region, pieces },
            false => Work::Read { region, pieces },
        };
        assert!(matches!(server.post(1, work), Err(VerbsError::Work(_))));
        assert!(client.wait(TIME).is_err());
        assert_eq!(fabric.account().bytes(), 0);
    }
}

#[test]
fn registered_memory_has_a_limit() {
    let fabric = Fabric::new(100);
    let (mut client, mut server) = pair(&fabric);
    let one = region(&mut *server, &[5; 60]);
    let refused = server.register(vec![6; 50], Purpose::ReadTarget);
    assert!(matches!(refused, Err((buffer, VerbsError::NoRoom)) if buffer == [6; 50]));
    assert_eq!(fabric.account().refusals(), 1);
    assert_eq!(one.release(), [5; 60]);
    assert_eq!(fabric.account().bytes(), 0);
    assert!(client.register(vec![0; 5000], Purpose::Local).is_ok(), "clients have no limit");
}

#[test]
fn connections_end_and_are_lost() {
    let fabric = Fabric::new(1 << 20);
    let (mut client, server) = pair(&fabric);
    drop(server);
    assert!(matches!(client.wait(TIME), Err(VerbsError::Closed)));
    let (mut client, mut server) = pair(&fabric);
    client.lose_after(1);
    for _ in 0..2 {
        let room = region(&mut *server, &[0; 16]);
        server.post(1, Work::Receive(room)).expect("posted");
    }
    send(&mut client, b"one").expect("sent");
    assert!(send(&mut client, b"two").is_err());
    assert_eq!(done(&mut *server).len(), 1, "what came before is there");
    let nobody = fabric.connect(addr(2), addr(3), b"");
    assert!(matches!(nobody, Err(VerbsError::Closed)));
    let mut listener = fabric.verbs().listen(addr(4)).expect("it listens");
    assert!(fabric.verbs().listen(addr(4)).is_err());
    fabric.remove_device(addr(4));
    let polled = listener.poll_request(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Err(VerbsError::DeviceRemoved))));
}
