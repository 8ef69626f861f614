//! SFTP over SSH: requests of a channel, which wait without blocking its thread.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use e2e::api::wait_for;
use e2e::sftp::{Came, Sftp};
use e2e::tcp::HERE;
use probe::phases::Phase;
use serve::sftp::server::{Server, ServiceSettings};
use serve::sftp::ssh::host_keys;
use serve::transport::listener::listen;
use vfs::mem::MemFs;
use vfs::share::{Service, tag};
use wire::sftp::request::{OfPath, Read};
use wire::sftp::{HandleBytes, OpenFlags, PacketType, PathBytes, Request, StatusCode};

use crate::planted::Planted;
use crate::scene::{Scene, Scratch, Serving};
use crate::{Bench, PATIENCE, stop_clock};

/// Bytes of a READ, and READs at once: more than sockets take for a client that reads nothing.
const SIZE: usize = 256 << 10;
const READS: usize = 4;

fn path() -> OfPath<'static> {
    OfPath { path: PathBytes(b"/share/f") }
}

/// A client with a small receive buffer.
fn connect(at: SocketAddr) -> Sftp {
    let client = Sftp::connect(HERE, at, ("alice", "secret")).expect("a channel");
    let stream = socket2::SockRef::from(client.stream());
    stream.set_recv_buffer_size(16 << 10).expect("a small buffer");
    client
}

fn stat(client: &mut Sftp) {
    let came = client.call(&Request::Stat(path())).expect("an answer");
    assert!(matches!(came, Came::Other(_)), "{came:?}");
}

#[test]
fn sftp_has_a_delay_where_it_was_planted() {
    if !stop_clock("sftp") {
        return;
    }
    let fs = Planted::over(MemFs::new(tag("share"), 1 << 30));
    let scene = Scene::over(Service::Sftp, &[("share", Arc::clone(&fs) as _)]);
    let folder = Scratch::new();
    let socket = listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    // Its connections inherit it: what they take does not grow with their congestion window.
    socket2::SockRef::from(&socket).set_send_buffer_size(16 << 10).expect("a small buffer");
    let at = socket.local_addr().expect("an address");
    let keys = host_keys::read_or_make(&folder.0).expect("host keys");
    let server = Server::new(ServiceSettings::default(), keys);
    let _tasks = Serving(server.start(&scene.files, &scene.runtimes, vec![socket]));
    let mut client = connect(at);
    let flags = OpenFlags::READ.with(OpenFlags::WRITE).with(OpenFlags::CREAT);
    let file = client.open("/share/f", flags).expect("an answer").expect("a file");
    for offset in (0..SIZE).step_by(16 << 10) {
        let written = client.write(&file, offset as u64, &[7; 16 << 10]).expect("an answer");
        assert_eq!(written, StatusCode::OK);
    }
    assert_eq!(client.close(&file).expect("an answer"), StatusCode::OK);
    let bench = Bench::of(&fs, &scene.files.engine, &scene.runtimes);

    bench.delay_inline("lookup");
    stat(&mut client);
    bench.assert_in(Phase::Inline, "stat");

    // What comes with it is answered behind it.
    bench.delay_inline("lookup");
    client.start_all(&[Request::Stat(path()), Request::Lstat(path())]).expect("sent");
    for _ in 0..2 {
        assert_eq!(client.packet().expect("an answer").0, PacketType::ATTRS);
    }
    bench.assert_in(Phase::Inline, "stat");
    bench.assert_in(Phase::Queue, "lstat");

    bench.block(true);
    bench.delay_elsewhere("lookup");
    stat(&mut client);
    bench.assert_in(Phase::Pool, "stat");
    bench.delay_pool(|| stat(&mut client));
    bench.assert_in(Phase::PoolWait, "stat");

    bench.fs.flushes.store(true, SeqCst);
    for (blocks, name) in [(true, "/share/d"), (false, "/share/e")] {
        bench.block(blocks);
        bench.delay_elsewhere("flush");
        assert_eq!(client.mkdir(name).expect("an answer"), StatusCode::OK);
        bench.assert_in(Phase::Flush, "mkdir");
    }

    slow_to_take(&bench, &mut client);
}

/// READs of a client that takes their data only after the time has passed.
fn slow_to_take(bench: &Bench, client: &mut Sftp) {
    let file = client.open("/share/f", OpenFlags::READ).expect("an answer").expect("the file");
    let count = bench.count("read");
    let (handle, len) = (HandleBytes(&file), SIZE as u32);
    let reads = [(); READS].map(|()| Request::Read(Read { handle, offset: 0, len }));
    // Those that may wait are listed: the last one has arrived before the time passes. None ends
    // before that, as a server with replies that its client does not take reads no more requests.
    bench.block(true);
    let held = bench.fs.hold("read");
    client.start_all(&reads).expect("sent");
    let begun = || bench.fs.reads.lock().unwrap().iter().filter(|offset| **offset == 0).count();
    let all = || (begun() == READS).then_some(());
    wait_for("the begin of all READs", PATIENCE, all);
    drop(held);
    client.stream().peek(&mut [0]).expect("the begin of a reply");
    Bench::pass(&bench.runtimes);
    for _ in 0..READS {
        assert_eq!(client.packet().expect("an answer").0, PacketType::DATA);
    }
    // Of the others the server may not have begun to send the replies.
    bench.assert_sent("read", (count, READS));
}
