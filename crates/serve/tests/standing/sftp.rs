//! SFTP over SSH: the requests of a channel are done at once, and each waits for its own place.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use e2e::sftp::Sftp;
use e2e::tcp::HERE;
use serve::sftp::server::{Server, ServiceSettings};
use serve::sftp::ssh::host_keys;
use serve::transport::budget::Limits;
use serve::transport::listener::listen;
use vfs::mem::MemFs;
use vfs::share::{Service, tag};
use wire::sftp::request::Read;
use wire::sftp::{HandleBytes, OpenFlags, PacketType, Request, StatusCode};

use crate::planted::Planted;
use crate::scene::{Scene, Scratch, Serving};
use crate::{CONNECTIONS, POOL, assert_in_turn, assert_stands, offset};

/// READs of each connection.
const READS: usize = 3;

#[test]
fn sftp_wakes_nothing_while_the_file_system_stands_still() {
    let fs = Planted::over(MemFs::new(tag("share"), 1 << 30));
    let shares = [("share", Arc::clone(&fs) as _)];
    let scene = Scene::with_pool(Service::Sftp, &shares, Limits::default(), POOL);
    let folder = Scratch::new();
    let socket = listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    let at = socket.local_addr().expect("an address");
    let keys = host_keys::read_or_make(&folder.0).expect("host keys");
    let server = Server::new(ServiceSettings::default(), keys);
    let _tasks = Serving(server.start(&scene.files, &scene.runtimes, vec![socket]));
    let connect = || Sftp::connect(HERE, at, ("alice", "secret")).expect("a channel");
    let mut first = connect();
    let flags = OpenFlags::WRITE.with(OpenFlags::CREAT);
    let made = first.open("/share/f", flags).expect("an answer").expect("a file");
    let written = first.write(&made, 0, &[7; CONNECTIONS * READS]).expect("an answer");
    assert_eq!(written, StatusCode::OK);
    assert_eq!(first.close(&made).expect("an answer"), StatusCode::OK);
    let mut clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut client = connect();
            let opened = client.open("/share/f", OpenFlags::READ).expect("an answer");
            (client, opened.expect("the file"))
        })
        .collect();
    fs.blocks.store(true, SeqCst);
    let held = fs.hold("read");
    for (connection, (client, handle)) in clients.iter_mut().enumerate() {
        for number in 0..READS {
            let (handle, offset) = (HandleBytes(handle), offset(connection, number));
            client.start(&Request::Read(Read { handle, offset, len: 1 })).expect("sent");
        }
    }
    held.wait();
    let waiting = CONNECTIONS * READS - POOL.queue - POOL.threads;
    assert_stands(&scene.files.engine.pool, waiting);
    drop(held);
    for (client, _) in &mut clients {
        for _ in 0..READS {
            assert_eq!(client.packet().expect("an answer").0, PacketType::DATA);
        }
    }
    let begun = fs.reads.lock().expect("whole");
    assert_in_turn(&begun, READS, (POOL.threads, POOL.queue + POOL.threads));
}
