//! Calls of clients that have closed their connections: what waits for the pool does not begin, and
//! what has begun ends where it can.

use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use serve::pool::PoolLimits;
use wire::nfs3::*;
use wire::nfs4::{ArgOp, Bitmap4, Fh4, GetattrArgs4, PutfhArgs4, attr4};

use crate::client::Client;
use crate::client::stream::by_rdma;
use crate::compounds;
use crate::procedures::{at, mode};
use crate::scripted::Scripted;
use crate::server::{Options, Server, directory, wait_for};

/// A server with one thread for what blocks, and its script.
fn one_thread() -> (Server, Arc<Scripted>) {
    let script = Scripted::over(directory());
    let pool = PoolLimits { threads: 1, queue: 1000, per_client: 1000 };
    (Server::start(Arc::clone(&script) as _, Options { pool, ..Options::default() }), script)
}

/// Requests the attributes of a file.
fn query(client: &mut Client, file: &[u8]) {
    let record = client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(file) });
    client.send(&record);
}

/// Waits until this many calls wait for a thread.
fn queued(server: &Server, count: u64) {
    let pool_queue = &server.hub.gauges().pool_queue;
    wait_for("calls wait", || (pool_queue.get() == count).then_some(()));
}

/// Ends the connection of a client, and waits until the server has noticed that.
fn leave(server: &Server, mut client: Client) {
    if !by_rdma() {
        client.stream.shutdown(Shutdown::Write).expect("a connection");
        assert!(client.is_closed(), "the server has closed it");
        return;
    }
    drop(client);
    // Each core has looked at what had come before these calls once it answers them.
    let mut others = [Client::connect(server.addr), Client::connect(server.addr)];
    for client in others.iter_mut().chain(&mut [Client::connect(server.addr)]) {
        for _ in 0..3 {
            client.call(Proc::NULL, &());
        }
    }
}

#[test]
fn a_call_that_waits_does_not_begin() {
    for changes in [true, false] {
        let (server, script) = one_thread();
        let (mut first, root) = server.client();
        let (mut gone, _) = server.client();
        script.blocks.store(true, SeqCst);
        script.close_gate();
        query(&mut first, &root);
        script.wait_begun(1);
        let how = CreateHow::Guarded(mode(0o644));
        let create = gone.nfs(Proc::CREATE, &CreateArgs { where_: at(&root, "f"), how });
        match changes {
            true => gone.send(&create),
            false => query(&mut gone, &root),
        }
        queued(&server, 1);
        query(&mut first, &root);
        queued(&server, 2);
        leave(&server, gone);
        script.open_gate();
        // The one that was queued last is answered last.
        first.receive();
        first.receive();
        assert_eq!(script.begun(), 2, "changes: {changes}");
        // The client makes the same call over its next connection.
        script.blocks.store(false, SeqCst);
        let mut again = Client::connect(server.addr);
        again.send(&create);
        let reply = again.receive();
        assert_eq!(reply.results::<CreateRes<'_>>().status(), Nfsstat3::OK);
    }
}

#[test]
fn a_call_that_waits_is_carried_out_for_its_repeat() {
    let (server, script) = one_thread();
    let (mut first, root) = server.client();
    let (mut gone, _) = server.client();
    let mut again = Client::connect(server.addr);
    // Over RDMA a client may have one call in progress before the first reply.
    again.xid = 1000;
    again.call(Proc::NULL, &());
    script.blocks.store(true, SeqCst);
    script.close_gate();
    query(&mut first, &root);
    script.wait_begun(1);
    let how = CreateHow::Guarded(mode(0o644));
    let create = gone.nfs(Proc::CREATE, &CreateArgs { where_: at(&root, "f"), how });
    gone.send(&create);
    queued(&server, 1);
    again.send(&create);
    // The repeat is noted before the connection answers this.
    let null = again.nfs(Proc::NULL, &());
    again.send(&null);
    assert_eq!(again.receive().xid, again.xid);
    leave(&server, gone);
    script.open_gate();
    assert_eq!(again.receive().results::<CreateRes<'_>>().status(), Nfsstat3::OK);
}

#[test]
fn a_compound_ends_between_its_operations() {
    let (server, script) = one_thread();
    let (mut first, root) = server.client();
    let (mut gone, _) = server.client();
    let putfh = ArgOp::Putfh(PutfhArgs4 { object: Fh4(&root) });
    let getattr = ArgOp::Getattr(GetattrArgs4 { attr_request: Bitmap4::of(&[attr4::TYPE]) });
    let ops = [&[putfh][..], &vec![getattr; 20]].concat();
    script.blocks.store(true, SeqCst);
    let compound = compounds::record(&mut gone, &ops);
    gone.send(&compound);
    gone.receive();
    let whole = script.begun();
    assert!(whole >= 20, "{whole} operations");

    script.close_gate();
    let compound = compounds::record(&mut gone, &ops);
    gone.send(&compound);
    script.wait_begun(whole + 1);
    query(&mut first, &root);
    queued(&server, 1);
    leave(&server, gone);
    script.open_gate();
    first.receive();
    let more = script.begun() - whole;
    assert!(more <= 3, "{more} operations were carried out for a client that has gone");
}
