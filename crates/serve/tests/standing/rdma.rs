//! NFSv3 over RDMA where no memory is left: what waits for the part of its address, or for memory
//! to be registered, sleeps until it has some.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Waker};

use base::limits::{RDMA_ADDRESS_BYTES_MAX, RDMA_CONNECTION_BYTES_MAX};
use verbs::{Depth, Purpose};
use wire::nfs3::*;

use crate::client::stream::rdma::fabric;
use crate::nfs3::{connect_rdma, file};
use crate::planted::Planted;
use crate::server::{Options, Server, directory};
use crate::{POOL, assert_stands_while};

/// Bytes of a WRITE, and of a READ.
const SIZE: usize = 1 << 20;

#[test]
fn rdma_wakes_nothing_while_the_part_of_an_address_is_used_up() {
    const WRITES: usize = RDMA_CONNECTION_BYTES_MAX / SIZE + 2;
    const CONNECTIONS: usize = RDMA_ADDRESS_BYTES_MAX / RDMA_CONNECTION_BYTES_MAX + 1;
    let fs = Planted::over(directory());
    let options = Options { pool: POOL, ..Options::default() };
    let server = Server::start(Arc::clone(&fs) as _, options);
    let file = file(&server);
    fs.blocks.store(true, SeqCst);
    let held = fs.hold("write");
    let data = vec![7; SIZE];
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| connect_rdma(&server)).collect();
    for (connection, client) in clients.iter_mut().enumerate() {
        client.xid = 1000 * (connection as u32 + 1);
        for number in 0..WRITES {
            let (offset, count) = ((number * SIZE) as u64, SIZE as u32);
            let stable = StableHow::UNSTABLE;
            let args = WriteArgs { file: Fh3(&file), offset, count, stable, data: &data };
            let record = client.nfs(Proc::WRITE, &args);
            client.send(&record);
        }
    }
    held.wait();
    let account = Arc::clone(fabric(server.addr).account());
    assert_stands_while("much registered", || {
        server.pool.queued() == POOL.queue && account.bytes() > RDMA_CONNECTION_BYTES_MAX
    });
    drop(held);
    for client in &mut clients {
        for _ in 0..WRITES {
            assert!(client.receive().results::<WriteRes>().into_result().is_ok());
        }
    }
}

#[test]
fn rdma_wakes_nothing_while_no_memory_can_be_registered() {
    let server = Server::start(directory(), Options::default());
    let file = file(&server);
    let mut client = connect_rdma(&server);
    let data = vec![7; SIZE];
    let (offset, count, stable) = (0, SIZE as u32, StableHow::UNSTABLE);
    client.call(Proc::WRITE, &WriteArgs { file: Fh3(&file), offset, count, stable, data: &data });

    // The server's end of another connection has all that is left.
    let fabric = fabric(server.addr);
    let (from, other) = (([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into());
    let mut listener = fabric.verbs().listen(other).expect("an address");
    let _end = fabric.connect(from, other, b"").expect("connected");
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(request)) = listener.poll_request(&mut cx) else { panic!("it asks") };
    let mut connection = request.open(Depth { receives: 1, sends: 1 }).expect("opened");
    let account = Arc::clone(fabric.account());
    let rest = vec![0; account.max() - account.bytes()];
    let all = connection.register(rest, Purpose::Local).map_err(|(_, why)| why).expect("the rest");

    let refusals = account.refusals();
    let read = client.nfs(Proc::READ, &ReadArgs { file: Fh3(&file), offset, count });
    client.send(&read);
    assert_stands_while("a refused registration", || {
        account.refusals() > refusals && account.bytes() == account.max()
    });
    assert!(account.refusals() < refusals + 10, "{} tries", account.refusals() - refusals);
    drop(all);
    let reply = client.receive();
    let read = reply.results::<ReadRes<'_>>().into_result().expect("data");
    assert!(read.data == data);
}
