//! Repeats over the other transport: a call that was done is not done again, whichever way its
//! repeat comes.

use std::sync::atomic::Ordering::SeqCst;

use wire::nfs3::*;

use crate::client::stream::Stream;
use crate::client::{Client, PATIENCE, Reply};
use crate::procedures::{at, getattr, mode};
use crate::server::Server;

/// A client over each of the two, the first over RDMA if `rdma_first`.
fn both(server: &Server, rdma_first: bool) -> [Client; 2] {
    let tcp = || Client::over(Stream::connect_tcp(server.addr, PATIENCE));
    let rdma = || Client::over(Stream::connect_rdma(server.addr, PATIENCE));
    if rdma_first { [rdma(), tcp()] } else { [tcp(), rdma()] }
}

fn create_record(client: &mut Client, root: &[u8]) -> Vec<u8> {
    let how = CreateHow::Guarded(mode(0o644));
    client.nfs(Proc::CREATE, &CreateArgs { where_: at(root, "f"), how })
}

fn status(reply: &Reply) -> Nfsstat3 {
    reply.results::<CreateRes<'_>>().status()
}

#[test]
fn a_create_is_done_once_whichever_way_its_repeat_comes() {
    for rdma_first in [true, false] {
        let server = Server::fresh();
        let [mut first, mut second] = both(&server, rdma_first);
        let root = first.mount("/export/t");
        let record = create_record(&mut first, &root);
        first.send(&record);
        let done = first.receive();
        assert_eq!(status(&done), Nfsstat3::OK);
        second.send(&record);
        assert_eq!(second.receive(), done, "the reply of the first, byte for byte");
        getattr(&mut second, &root).expect("the connection goes on");
        // Guarded: done again it would find what is there.
        second.xid += 1000;
        let again = create_record(&mut second, &root);
        second.send(&again);
        assert_eq!(status(&second.receive()), Nfsstat3::EXIST);
    }
}

#[test]
fn a_repeat_over_the_other_transport_waits_for_the_first() {
    for rdma_first in [true, false] {
        let (server, script) = Server::scripted();
        let [mut first, mut second] = both(&server, rdma_first);
        let root = first.mount("/export/t");
        // Over RDMA a client may have one call in flight before the first reply.
        second.xid = 1000;
        second.call(Proc::NULL, &());
        script.blocks.store(true, SeqCst);
        script.close_gate();
        let begun = script.begun();
        let record = create_record(&mut first, &root);
        first.send(&record);
        script.wait_begun(begun + 1);
        second.send(&record);
        // It is parked once another call behind it was answered.
        let null = second.nfs(Proc::NULL, &());
        second.send(&null);
        assert_eq!(second.receive().xid, second.xid);
        script.open_gate();
        let (one, other) = (first.receive(), second.receive());
        assert_eq!(status(&one), Nfsstat3::OK);
        assert_eq!(one, other);
    }
}
