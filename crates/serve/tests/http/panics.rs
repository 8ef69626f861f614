//! A panic in a handler or a flush fails one request with 500, over HTTP/1.1 and HTTP/2; the
//! connection continues.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use vfs::mem::MemFs;
use vfs::share::{Service, tag};

use crate::http2::{ask, request, with};
use crate::planted::Planted;
use crate::scene::Scene;
use crate::stand::{Stand, open};

fn planted() -> (Stand, Arc<Planted>) {
    let fs = Planted::over(MemFs::new(tag("share"), 1 << 30));
    let scene = Scene::over(Service::Http, &[("share", Arc::clone(&fs) as _)]);
    (Stand::over(scene, open()), fs)
}

fn panics(stand: &Stand) -> u64 {
    let files = &stand.scene.files;
    files.engine.budgets.panics.load(Relaxed) + files.engine.flush.counts().panics
}

/// Requests, where each is to panic, and what it answers when it does not.
const REQUESTS: [(&str, &str, &[&str], u16); 7] = [
    ("GET /share/f", "lookup", &[], 200),
    ("PUT /share/f", "write", &[], 204),
    ("PUT /share/f", "rename", &[], 204),
    ("PROPFIND /share/f", "lookup", &["Depth: 0"], 207),
    ("MKCOL /share/d", "mkdir", &[], 201),
    ("MOVE /share/d", "rename", &["Destination: /share/e"], 201),
    ("DELETE /share/e", "lookup", &[], 204),
];

#[test]
fn a_panic_fails_its_request_and_no_other() {
    let (stand, fs) = planted();
    let mut client = stand.client();
    assert_eq!(client.put("/share/f", &[], b"before").status, 201);
    let mut count = 0;
    for blocks in [false, true] {
        fs.blocks.store(blocks, SeqCst);
        for (line, call, fields, expected) in REQUESTS {
            let body: &[u8] = if line.starts_with("PUT") { b"before" } else { b"" };
            fs.plant(call);
            assert_eq!(client.ask(line, fields, body).status, 500, "{line}, pooled: {blocks}");
            assert!(!fs.is_planted(), "{line}");
            count += 1;
            assert_eq!(client.get("/share/f", &[]).body, b"before", "{line}");
            assert_eq!(client.ask(line, fields, body).status, expected, "{line} once more");
        }
    }
    fs.flushes.store(true, SeqCst);
    for call in ["flush", "covered"] {
        fs.plant(call);
        assert_eq!(client.put("/share/f", &[], b"half").status, 500, "{call}");
        assert_eq!(client.get("/share/f", &[]).body, b"before", "{call}");
        count += 1;
    }
    assert_eq!(panics(&stand), count);
}

#[test]
fn a_panic_fails_its_stream_and_no_other() {
    let (stand, fs) = planted();
    with(&stand, |send| async move {
        assert_eq!(ask(&send, request("PUT", "/share/f"), b"before").await.0, 201);
        fs.plant("lookup");
        assert_eq!(ask(&send, request("GET", "/share/f"), b"").await.0, 500);
        assert_eq!(ask(&send, request("GET", "/share/f"), b"").await.1, b"before");
        fs.flushes.store(true, SeqCst);
        for call in ["flush", "covered"] {
            fs.plant(call);
            assert_eq!(ask(&send, request("PUT", "/share/f"), b"half").await.0, 500, "{call}");
            assert_eq!(ask(&send, request("GET", "/share/f"), b"").await.1, b"before", "{call}");
        }
    });
    assert_eq!(panics(&stand), 3);
}
