//! NFSv3 over TCP and RDMA: a connection takes no further call while its first waits for its place.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use e2e::api::wait_for;
use wire::nfs3::*;

use crate::client::Client;
use crate::client::stream::Stream;
use crate::planted::Planted;
use crate::server::{Options, Server, directory};
use crate::{CONNECTIONS, PATIENCE, POOL, assert_in_turn, assert_stands, offset};

/// READs of each connection.
const READS: usize = 4;

/// Sends the READs of a connection at once.
fn send_reads(client: &mut Client, file: &[u8], connection: usize) {
    client.xid = 1000 * (connection as u32 + 1);
    let reads: Vec<u8> = (0..READS)
        .flat_map(|number| {
            let offset = offset(connection, number);
            client.nfs(Proc::READ, &ReadArgs { file: Fh3(file), offset, count: 1 })
        })
        .collect();
    client.send(&reads);
}

fn answered(client: &mut Client) {
    for _ in 0..READS {
        assert!(client.receive().results::<ReadRes<'_>>().into_result().is_ok());
    }
}

fn stands_still(connect: impl Fn(&Server) -> Client) {
    let fs = Planted::over(directory());
    let options = Options { pool: POOL, ..Options::default() };
    let server = Server::start(Arc::clone(&fs) as _, options);
    let file = file(&server);
    fs.blocks.store(true, SeqCst);
    let held = fs.hold("read");
    let mut clients: Vec<Client> = (0..CONNECTIONS)
        .map(|connection| {
            let mut client = connect(&server);
            send_reads(&mut client, &file, connection);
            client
        })
        .collect();
    held.wait();
    assert_stands(&server.pool, CONNECTIONS - POOL.queue - POOL.threads);
    // One that ends while it waits gives its place in the line to others.
    let waiting = server.pool.waiting();
    let mut ended = connect(&server);
    send_reads(&mut ended, &file, CONNECTIONS);
    wait_for("one more", PATIENCE, || (server.pool.waiting() > waiting).then_some(()));
    drop(ended);
    wait_for("the end of a connection", PATIENCE, || {
        (server.pool.waiting() == waiting).then_some(())
    });
    drop(held);
    clients.iter_mut().for_each(answered);
    let begun = fs.reads.lock().expect("whole");
    assert_in_turn(&begun, READS, (POOL.threads, POOL.queue + POOL.threads));
}

/// A file, made by a client that has left.
pub fn file(server: &Server) -> Vec<u8> {
    let (mut client, root) = server.client();
    let where_ = DiropArgs { dir: Fh3(&root), name: Filename3(b"f") };
    let how = CreateHow::Unchecked(Sattr3::default());
    let reply = client.call(Proc::CREATE, &CreateArgs { where_, how });
    let made = reply.results::<CreateRes<'_>>().into_result().expect("made");
    made.obj.expect("a handle").0.to_vec()
}

#[test]
fn nfs3_wakes_nothing_while_the_file_system_stands_still() {
    stands_still(|server| Client::connect(server.addr));
}

/// A client over RDMA that was granted all its calls: with the first reply.
pub fn connect_rdma(server: &Server) -> Client {
    let mut client = Client::over(Stream::connect_rdma(server.addr, PATIENCE));
    client.call(Proc::NULL, &());
    client
}

#[test]
fn nfs3_over_rdma_wakes_nothing_while_the_file_system_stands_still() {
    stands_still(connect_rdma);
}
