//! HTTP/1.1: a connection waits for the answer to its request.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use serve::transport::budget::Limits;
use vfs::mem::MemFs;
use vfs::share::{Service, tag};

use crate::planted::Planted;
use crate::scene::Scene;
use crate::stand::{Stand, open};
use crate::{CONNECTIONS, POOL, assert_stands};

#[test]
fn http_wakes_nothing_while_the_file_system_stands_still() {
    let fs = Planted::over(MemFs::new(tag("share"), 1 << 30));
    let shares = [("share", Arc::clone(&fs) as _)];
    let scene = Scene::with_pool(Service::Http, &shares, Limits::default(), POOL);
    let stand = Stand::over(scene, open());
    assert_eq!(stand.client().put("/share/f", &[], b"0123456789").status, 201);
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| stand.client()).collect();
    fs.blocks.store(true, SeqCst);
    let held = fs.hold("read");
    for client in &mut clients {
        let request = format!("GET /share/f HTTP/1.1\r\nHost: {}\r\n\r\n", client.host);
        client.raw(request);
    }
    held.wait();
    let engine = &stand.scene.files.engine;
    assert_stands(&engine.pool, CONNECTIONS - POOL.queue - POOL.threads);
    drop(held);
    for client in &mut clients {
        assert_eq!(client.reply(false).body, b"0123456789");
    }
}
