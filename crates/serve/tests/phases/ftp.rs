//! FTP: a session that waits without blocking its thread, and its transfers.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use probe::phases::Phase;
use serve::ftp::Settings;
use vfs::mem::MemFs;
use vfs::share::{Service, tag};
use wire::ftp::{Request, Verb};

use crate::ftp_client::Running;
use crate::planted::Planted;
use crate::scene::Scene;
use crate::{Bench, stop_clock};

/// Bytes of the file; more than sockets take for a client that reads nothing.
const SIZE: usize = 8 << 20;

#[test]
fn ftp_has_a_delay_where_it_was_planted() {
    if !stop_clock("ftp") {
        return;
    }
    let fs = Planted::over(MemFs::new(tag("share"), 1 << 30));
    let scene = Scene::over(Service::Ftp, &[("share", Arc::clone(&fs) as _)]);
    let running = Running::over(scene, Settings::default());
    let mut client = running.signed_in();
    client.put("f", &vec![7; SIZE]);
    let bench = Bench::of(&fs, &running.scene.files.engine, &running.scene.runtimes);

    bench.delay_inline("lookup");
    assert_eq!(client.code_of("SIZE f"), 213);
    bench.assert_in(Phase::Inline, "size");

    // What comes with it is answered behind it.
    bench.delay_inline("lookup");
    client.send(b"SIZE f\r\nNOOP\r\n");
    assert_eq!([client.reply().code, client.reply().code], [213, 200]);
    bench.assert_in(Phase::Inline, "size");
    bench.assert_in(Phase::Queue, "noop");

    bench.block(true);
    bench.delay_elsewhere("lookup");
    assert_eq!(client.code_of("SIZE f"), 213);
    bench.assert_in(Phase::Pool, "size");
    bench.delay_pool(|| assert_eq!(client.code_of("SIZE f"), 213));
    bench.assert_in(Phase::PoolWait, "size");

    bench.fs.flushes.store(true, SeqCst);
    for (blocks, name) in [(true, "d"), (false, "e")] {
        bench.block(blocks);
        bench.delay_elsewhere("flush");
        assert_eq!(client.code_of(&format!("MKD {name}")), 257);
        bench.assert_in(Phase::Flush, "mkd");
    }

    let count = bench.count("retr");
    let data = client.begin(&Request::Text(Verb::Retr, b"f"));
    let small = socket2::SockRef::from(data.socket()).set_recv_buffer_size(16 << 10);
    small.expect("a small buffer");
    data.socket().peek(&mut [0]).expect("the begin of the file");
    Bench::pass(&bench.runtimes);
    assert_eq!(data.all().len(), SIZE);
    assert_eq!(client.reply().code, 226);
    bench.assert_sent("retr", (count, 1));
}
