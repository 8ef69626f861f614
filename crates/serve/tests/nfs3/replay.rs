//! Repeated calls: replayed over a new connection, parked while the first is in progress.

use std::sync::atomic::Ordering::SeqCst;

use probe::op::flag;
use wire::nfs3::*;

use crate::client::Client;
use crate::procedures::{at, create, getattr, mode};
use crate::server::{Server, wait_for};

fn create_record(client: &mut Client, root: &[u8], name: &str) -> Vec<u8> {
    let how = CreateHow::Guarded(mode(0o644));
    client.nfs(Proc::CREATE, &CreateArgs { where_: at(root, name), how })
}

#[test]
fn a_repeat_over_a_new_connection_gets_the_same_bytes() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "old");
    let args = RenameArgs { from: at(&root, "old"), to: at(&root, "new") };
    let record = client.nfs(Proc::RENAME, &args);
    client.send(&record);
    let first = client.receive();
    assert!(first.results::<RenameRes>().into_result().is_ok());
    drop(client);

    let mut again = Client::connect(server.addr);
    again.send(&record);
    assert_eq!(again.receive(), first, "the reply of the first, byte for byte");
    assert!(getattr(&mut again, &file).is_ok());
    let replays = server.records(5).iter().filter(|r| r.flags & flag::REPLAY != 0).count();
    assert_eq!(replays, 1, "counted apart");
    let gauges = server.hub.gauges();
    // Each core brings its part at its next tick.
    wait_for("gauges move", || {
        let all = gauges.drc_replays.get() == 1
            && gauges.drc_entries.get() >= 2
            && gauges.requests.get() >= 5
            && gauges.bytes.get() > record.len() as u64 * 2;
        all.then_some(())
    });
}

#[test]
fn the_same_number_with_other_arguments_is_another_call() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    for name in ["a", "b"] {
        client.xid = 1000;
        create(&mut client, &root, name);
    }
}

#[test]
fn the_same_number_of_another_user_is_another_call() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let (mut other, _) = server.client();
    other.uid = 1000;
    for (one, expected) in [(&mut client, Nfsstat3::OK), (&mut other, Nfsstat3::EXIST)] {
        one.xid = 1000;
        let record = create_record(one, &root, "f");
        one.send(&record);
        assert_eq!(one.receive().results::<CreateRes<'_>>().status(), expected);
    }
}

#[test]
fn a_failure_is_replayed_too() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let record = client.nfs(Proc::REMOVE, &RemoveArgs { object: at(&root, "f") });
    client.send(&record);
    let first = client.receive();
    assert_eq!(first.results::<RemoveRes>().status(), Nfsstat3::NOENT);
    create(&mut client, &root, "f");
    client.send(&record);
    assert_eq!(client.receive(), first, "the late repeat does not remove the new file");
}

#[test]
fn a_repeat_waits_for_the_first() {
    let (server, script) = Server::scripted();
    let (mut client, root) = server.client();
    script.blocks.store(true, SeqCst);
    script.close_gate();
    let record = create_record(&mut client, &root, "f");
    client.send(&record);
    let begun = script.begun();
    script.wait_begun(begun.max(1));
    let mut again = Client::connect(server.addr);
    // Over RDMA a client may have one call in flight before the first reply.
    again.xid = 1000;
    again.call(Proc::NULL, &());
    again.send(&record);
    // The second connection is alive and well while its call waits.
    let null = again.nfs(Proc::NULL, &());
    again.send(&null);
    assert_eq!(again.receive().xid, again.xid);
    script.open_gate();
    let first = client.receive();
    assert!(first.results::<CreateRes<'_>>().into_result().is_ok());
    assert_eq!(again.receive(), first);
    assert_eq!(script.begun(), 1, "it was done once");
}

#[test]
fn a_repeat_waits_for_the_flush() {
    let (server, script) = Server::scripted();
    let (mut client, root) = server.client();
    script.flushes.store(true, SeqCst);
    let record = create_record(&mut client, &root, "f");
    client.send(&record);
    let first = client.receive();
    assert!(first.results::<CreateRes<'_>>().into_result().is_ok());
    assert_eq!(script.flushed.load(SeqCst), 1);
    client.send(&record);
    assert_eq!(client.receive(), first);
    assert_eq!(script.flushed.load(SeqCst), 1);
}

#[test]
fn a_flush_that_panics_fails_its_operation_and_no_later_one() {
    let (server, script) = Server::scripted();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    script.flushes.store(true, SeqCst);
    script.flush_panics.store(true, SeqCst);
    for expected in [Nfsstat3::SERVERFAULT, Nfsstat3::OK] {
        let commit = CommitArgs { file: Fh3(&file), offset: 0, count: 0 };
        let reply = client.call(Proc::COMMIT, &commit);
        assert_eq!(reply.results::<CommitRes>().status(), expected);
    }
    crate::server::wait_for("the panic is shown", || {
        (server.hub.gauges().panics.get() == 1).then_some(())
    });
}

#[test]
fn a_failed_flush_is_a_failed_operation() {
    let (server, script) = Server::scripted();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    script.flushes.store(true, SeqCst);
    script.flush_fails.store(true, SeqCst);
    for blocks in [false, true] {
        script.blocks.store(blocks, SeqCst);
        let args = WriteArgs {
            file: Fh3(&file),
            offset: 0,
            count: 4,
            stable: StableHow::FILE_SYNC,
            data: b"data",
        };
        let reply = client.call(Proc::WRITE, &args);
        assert_eq!(reply.results::<WriteRes>().status(), Nfsstat3::IO);
        let commit = CommitArgs { file: Fh3(&file), offset: 0, count: 0 };
        let reply = client.call(Proc::COMMIT, &commit);
        assert_eq!(reply.results::<CommitRes>().status(), Nfsstat3::IO);
        let args = RenameArgs { from: at(&root, "f"), to: at(&root, "f") };
        let reply = client.call(Proc::RENAME, &args);
        assert_eq!(reply.results::<RenameRes>().status(), Nfsstat3::IO);
        let args = LinkArgs { file: Fh3(&file), link: at(&root, if blocks { "l" } else { "m" }) };
        let reply = client.call(Proc::LINK, &args);
        assert_eq!(reply.results::<LinkRes>().status(), Nfsstat3::IO);
    }
}
