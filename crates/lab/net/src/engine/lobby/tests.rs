//! Strangers: connections that do not state which they are.

use super::{HELLO, Lobby, SECRET, hello};
use crate::count::Key;
use crate::limits::{HELLO_MAX, STRANGERS_MAX};
use crate::socket;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const OWN: [u8; SECRET] = [7; SECRET];
const KEY: Key = Key { host: 2, thread: 1, conn: 3 };
/// How long a test waits on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn lobby() -> Arc<Lobby> {
    socket::raise_descriptor_limit();
    let sockets = socket::listen(Some(Ipv4Addr::LOCALHOST.into())).expect("sockets");
    Lobby::open(sockets, 2, OWN).expect("lobby")
}

fn connect(lobby: &Lobby, message: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, lobby.tcp)).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
    stream.write_all(message).expect("written");
    stream
}

/// Whether the other end has closed it.
fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(e) => e.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn a_connection_is_what_it_states() {
    let lobby = lobby();
    let whole = hello(&OWN, KEY);
    // In two parts, behind one that sends nothing.
    let silent = connect(&lobby, &[]);
    let mut stream = connect(&lobby, &whole[..HELLO - 1]);
    stream.write_all(&whole[HELLO - 1..]).expect("written");
    let arrival = lobby.take(KEY.thread, KEY.conn, PATIENCE).expect("it arrives");
    assert_eq!(arrival.key, KEY);
    drop(silent);
}

#[test]
fn others_are_closed() {
    let lobby = lobby();
    let mut magic = hello(&OWN, KEY);
    magic[0] = b'q';
    let nowhere = hello(&OWN, Key { thread: 2, ..KEY });
    for message in [hello(&[8; SECRET], KEY), magic, nowhere] {
        assert!(is_closed(&mut connect(&lobby, &message)), "{message:?}");
    }
    assert!(lobby.take(KEY.thread, KEY.conn, Duration::ZERO).is_none());
}

#[test]
fn strangers_that_take_all_places_leave_them() {
    let lobby = lobby();
    let mut strangers: Vec<_> = (0..STRANGERS_MAX).map(|_| connect(&lobby, b"plim")).collect();
    let begun = Instant::now();
    let _stream = connect(&lobby, &hello(&OWN, KEY));
    lobby.take(KEY.thread, KEY.conn, PATIENCE).expect("it arrives");
    assert!(begun.elapsed() < HELLO_MAX + PATIENCE, "{:?}", begun.elapsed());
    assert!(strangers.iter_mut().all(is_closed), "each of them is closed");
}
