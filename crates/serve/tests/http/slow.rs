//! Peers that are too slow: they send or receive a byte now and then, and are disconnected; those
//! that are merely slow are not.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use base::limits::PEER_RATE_MIN;
use socket2::{Domain, Socket, Type};
use vfs::share::Service;

use crate::scene::{Scene, Scratch};
use crate::stand::{Stand, open};

/// How long a peer may do nothing here.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the server may take to give up one that does little more.
const DEADLINE: Duration = Duration::from_secs(60);
/// Pause between two pieces.
const PAUSE: Duration = Duration::from_millis(20);

fn stand() -> Stand {
    Stand::over(Scene::with_patience(Service::Http, PATIENCE), open())
}

fn timeouts(stand: &Stand) -> u64 {
    stand.scene.files.engine.budgets.timeouts.load(Relaxed)
}

/// Sends a piece after each pause until the server has answered; the status.
fn trickle(stand: &Stand, head: &str, piece: &[u8], times: usize) -> (u16, usize) {
    let mut stream = TcpStream::connect(stand.plain).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.set_read_timeout(Some(PAUSE)).unwrap();
    let (begun, mut answer) = (Instant::now(), [0; 64]);
    for sent in 0..times {
        assert!(begun.elapsed() < DEADLINE, "not given up");
        let _cut = stream.write_all(piece);
        // The pause: nothing comes until the server has an answer.
        if let Ok(n) = stream.read(&mut answer)
            && n > 12
        {
            let status = std::str::from_utf8(&answer[9..12]).unwrap();
            return (status.parse().unwrap(), sent + 1);
        }
    }
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    assert!(stream.read(&mut answer).unwrap() > 12, "an answer");
    (std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap(), times)
}

#[test]
fn a_body_that_trickles_is_abandoned_and_one_that_is_slow_is_not() {
    let stand = stand();
    let head = "PUT /share/a HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n";
    // A byte in 20 ms: 50 a second, where 500 are the least.
    let (status, sent) = trickle(&stand, head, b"x", 100_000);
    assert_eq!(status, 408);
    assert!(sent < 1_000, "{sent}");
    assert_eq!(timeouts(&stand), 1);
    let head = "PUT /share/c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(trickle(&stand, head, b"1\r\nx\r\n", 100_000).0, 408, "chunk by chunk");
    // Slower than anything in use today, for longer than the patience: fast enough.
    let piece = vec![b'y'; PEER_RATE_MIN as usize / 5];
    let head = "PUT /share/b HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\n";
    assert_eq!(trickle(&stand, head, &piece, 200), (201, 200));
    assert_eq!(timeouts(&stand), 2);
    let mut client = stand.client();
    assert_eq!(client.get("/share/a", &[]).status, 404, "nothing is left of it");
    assert_eq!(client.get("/share/b", &[]).body.len(), 20_000);
}

#[test]
fn a_client_that_takes_a_byte_now_and_then_is_abandoned() {
    let folder = Scratch::new();
    let in_folder = Scene::in_folder(Service::Http, &folder, PATIENCE);
    for stand in [stand(), Stand::over(in_folder, open())] {
        abandons_a_client_that_takes_a_byte(&stand);
    }
}

fn abandons_a_client_that_takes_a_byte(stand: &Stand) {
    let data = vec![7; 8 << 20];
    assert_eq!(stand.client().put("/share/large", &[], &data).status, 201);
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    socket.connect(&stand.plain.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PAUSE)).unwrap();
    stream.write_all(b"GET /share/large HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let begun = Instant::now();
    while timeouts(stand) == 0 {
        assert!(begun.elapsed() < DEADLINE, "not given up");
        let _taken = stream.read(&mut [0; 1]);
        // So that the next byte is taken later; nothing is waited for.
        std::thread::park_timeout(PAUSE);
    }
    // Others have everything at once.
    assert_eq!(stand.client().get("/share/large", &[]).body.len(), data.len());
}
