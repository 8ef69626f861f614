//! HTTP/1.1: a connection that waits without blocking its thread.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use probe::phases::Phase;
use vfs::mem::MemFs;
use vfs::share::{Service, tag};

use crate::planted::Planted;
use crate::scene::Scene;
use crate::stand::{Client, Stand, open};
use crate::{Bench, stop_clock};

/// Bytes of the file; more than sockets take for a client that reads nothing.
const SIZE: usize = 8 << 20;

#[test]
fn http_has_a_delay_where_it_was_planted() {
    if !stop_clock("http") {
        return;
    }
    let fs = Planted::over(MemFs::new(tag("share"), 1 << 30));
    let stand = Stand::over(Scene::over(Service::Http, &[("share", Arc::clone(&fs) as _)]), open());
    let mut client = stand.client();
    assert_eq!(client.put("/share/f", &[], b"0123456789").status, 201);
    let bench = Bench::of(&fs, &stand.scene.files.engine, &stand.scene.runtimes);
    let get = |client: &mut Client| {
        assert_eq!(client.get("/share/f", &[]).body, b"0123456789");
    };

    for call in ["lookup", "read"] {
        bench.delay_inline(call);
        get(&mut client);
        bench.assert_in(Phase::Inline, "get");
    }
    // What comes with it is answered behind it.
    bench.delay_inline("read");
    let request =
        |method: &str| format!("{method} /share/f HTTP/1.1\r\nHost: {}\r\n\r\n", client.host);
    let both = [request("GET"), request("HEAD")].concat();
    client.raw(both);
    assert_eq!(client.reply(false).body, b"0123456789");
    assert_eq!(client.reply(true).status, 200);
    bench.assert_in(Phase::Inline, "get");
    bench.assert_in(Phase::Queue, "head");

    bench.block(true);
    for call in ["lookup", "read"] {
        bench.delay_elsewhere(call);
        get(&mut client);
        bench.assert_in(Phase::Pool, "get");
    }

    bench.fs.flushes.store(true, SeqCst);
    bench.delay_elsewhere("flush");
    assert_eq!(client.put("/share/f", &[], b"0123456789").status, 204);
    bench.assert_in(Phase::Flush, "put");

    // Its client is of the thread that waits for the answer.
    let host = client.host.clone();
    let at = stand.plain;
    bench.delay_pool(move || {
        let mut stream = std::net::TcpStream::connect(at).expect("connected");
        let request = format!("GET /share/f HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        std::io::Read::read_to_end(&mut stream, &mut answer).expect("an answer");
        assert!(answer.ends_with(b"0123456789"));
    });
    bench.assert_in(Phase::PoolWait, "get");

    slow_to_take(&bench, &mut client, at);
}

/// A request with data that its client does not take.
fn slow_to_take(bench: &Bench, client: &mut Client, at: SocketAddr) {
    bench.block(false);
    bench.fs.flushes.store(false, SeqCst);
    assert_eq!(client.put("/share/large", &[], &vec![7; SIZE]).status, 201);
    let count = bench.count("get");
    let mut stream = std::net::TcpStream::connect(at).expect("connected");
    let small = socket2::SockRef::from(&stream).set_recv_buffer_size(16 << 10);
    small.expect("a small buffer");
    let host = client.host.clone();
    let request = format!("GET /share/large HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).expect("sent");
    stream.peek(&mut [0]).expect("the begin of the answer");
    Bench::pass(&bench.runtimes);
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut answer).expect("an answer");
    assert!(answer.len() > SIZE);
    bench.assert_sent("get", (count, 1));
}
