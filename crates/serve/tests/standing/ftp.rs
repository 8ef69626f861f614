//! FTP: a session waits for the end of its transfer.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use serve::ftp::Settings;
use serve::transport::budget::Limits;
use vfs::mem::MemFs;
use vfs::share::{Service, tag};

use crate::ftp_client::{Running, Stream, connect};
use crate::planted::Planted;
use crate::scene::Scene;
use crate::{CONNECTIONS, POOL, assert_stands};

#[test]
fn ftp_wakes_nothing_while_the_file_system_stands_still() {
    let fs = Planted::over(MemFs::new(tag("share"), 1 << 30));
    let shares = [("share", Arc::clone(&fs) as _)];
    let scene = Scene::with_pool(Service::Ftp, &shares, Limits::default(), POOL);
    let running = Running::over(scene, Settings::default());
    running.signed_in().put("f", b"0123456789");
    let mut clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut client = running.signed_in();
            let data = Stream::Plain(connect(client.passive()));
            (client, data)
        })
        .collect();
    fs.blocks.store(true, SeqCst);
    let held = fs.hold("read");
    for (client, _) in &mut clients {
        client.send(b"RETR f\r\n");
    }
    held.wait();
    let engine = &running.scene.files.engine;
    assert_stands(&engine.pool, CONNECTIONS - POOL.queue - POOL.threads);
    drop(held);
    for (mut client, data) in clients {
        assert_eq!(client.reply().code, 150);
        assert_eq!(data.all(), b"0123456789");
        assert_eq!(client.reply().code, 226);
    }
}
