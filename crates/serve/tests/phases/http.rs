//! HTTP/1.1: a connection that waits without blocking its thread. What it sends is read piece by
//! piece in between, so that no moment is only one of sending.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use probe::phases::Phase;
use vfs::mem::MemFs;
use vfs::share::{Service, tag};

use crate::planted::Planted;
use crate::scene::Scene;
use crate::stand::{Stand, open};
use crate::{Bench, stop_clock};

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
    let get = |client: &mut crate::stand::Client| {
        assert_eq!(client.get("/share/f", &[]).body, b"0123456789");
    };

    for call in ["lookup", "read"] {
        bench.delay_inline(call);
        get(&mut client);
        bench.assert_in(Phase::Inline, "get");
    }
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
}
