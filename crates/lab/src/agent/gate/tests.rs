//! Which connection ends for a newer one.

use super::*;
use std::io::{Read, Write};

struct Scene {
    listener: TcpListener,
    gate: Arc<Gate>,
}

impl Scene {
    fn new(most: usize) -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").unwrap(), gate: Gate::new(most) }
    }

    /// A peer that has sent this, and its entry.
    fn enter(&self, sends: &[u8]) -> (TcpStream, TcpStream, HalfOpen) {
        let mut peer = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        let (socket, _) = self.listener.accept().unwrap();
        peer.write_all(sends).unwrap();
        if !sends.is_empty() {
            assert_eq!(socket.peek(&mut [0]).unwrap(), 1);
        }
        let half_open = self.gate.enter(&socket).unwrap();
        (peer, socket, half_open)
    }
}

fn has_ended(peer: &mut TcpStream) -> bool {
    peer.set_nonblocking(true).unwrap();
    matches!(peer.read(&mut [0]), Ok(0))
}

fn ended(peers: &mut [(TcpStream, TcpStream, HalfOpen)]) -> Vec<bool> {
    peers.iter_mut().map(|(peer, ..)| has_ended(peer)).collect()
}

#[test]
fn the_oldest_silent_one_ends() {
    let scene = Scene::new(3);
    let mut peers: Vec<_> =
        [&b"x"[..], b"", b"x", b""].iter().map(|sends| scene.enter(sends)).collect();
    assert_eq!(ended(&mut peers), [false, true, false, false]);
    assert_eq!(scene.gate.state().entries.len(), 3);
}

#[test]
fn one_that_was_read_is_not_silent_and_without_silent_ones_the_oldest_ends() {
    let scene = Scene::new(2);
    let mut peers = vec![scene.enter(b"x"), scene.enter(b"x")];
    for (_, socket, half_open) in &mut peers {
        socket.read_exact(&mut [0]).unwrap();
        half_open.sends();
    }
    peers.push(scene.enter(b""));
    assert_eq!(ended(&mut peers), [true, false, false]);
    peers.push(scene.enter(b""));
    assert_eq!(ended(&mut peers), [true, false, true, false]);
}

#[test]
fn one_that_has_proved_itself_takes_no_permit() {
    let scene = Scene::new(1);
    let (mut first, _socket, half_open) = scene.enter(b"");
    drop(half_open);
    let _second = scene.enter(b"");
    assert!(!has_ended(&mut first));
}
