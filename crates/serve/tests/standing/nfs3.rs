//! NFSv3 over TCP: a connection is left unread while its first call waits for its place.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use e2e::api::wait_for;
use wire::nfs3::*;

use crate::client::Client;
use crate::planted::Planted;
use crate::server::{Options, Server, directory};
use crate::{CONNECTIONS, PATIENCE, POOL, assert_stands};

/// READs of each connection.
const READS: usize = 4;

#[test]
fn nfs3_wakes_nothing_while_the_file_system_stands_still() {
    let fs = Planted::over(directory());
    let options = Options { pool: POOL, ..Options::default() };
    let server = Server::start(Arc::clone(&fs) as _, options);
    let (mut client, root) = server.client();
    let where_ = DiropArgs { dir: Fh3(&root), name: Filename3(b"f") };
    let how = CreateHow::Unchecked(Sattr3::default());
    let reply = client.call(Proc::CREATE, &CreateArgs { where_, how });
    let made = reply.results::<CreateRes<'_>>().into_result().expect("made");
    let file = made.obj.expect("a handle").0.to_vec();
    fs.blocks.store(true, SeqCst);
    let held = fs.hold("read");
    let mut clients: Vec<Client> = (0..CONNECTIONS)
        .map(|connection| {
            let mut client = Client::connect(server.addr);
            client.xid = 1000 * (connection as u32 + 1);
            let args = ReadArgs { file: Fh3(&file), offset: 0, count: 1 };
            let reads: Vec<u8> = (0..READS).flat_map(|_| client.nfs(Proc::READ, &args)).collect();
            client.send(&reads);
            client
        })
        .collect();
    held.wait();
    assert_stands(&server.pool, CONNECTIONS - POOL.queue - POOL.threads);
    // One that ends while it waits gives its place in the line to others.
    let waiting = server.pool.waiting();
    drop(clients.pop());
    wait_for("the end of a connection", PATIENCE, || {
        (server.pool.waiting() < waiting).then_some(())
    });
    drop(held);
    for client in &mut clients {
        for _ in 0..READS {
            assert!(client.receive().results::<ReadRes<'_>>().into_result().is_ok());
        }
    }
}
