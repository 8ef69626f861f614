//! The end of the service: calls that were taken are completed; what comes after that is left to
//! the client, which sends it again over its next connection.

use std::sync::atomic::Ordering::SeqCst;

use wire::nfs3::*;

use crate::client::Client;
use crate::procedures::getattr;
use crate::server::Server;

#[test]
fn what_comes_while_the_service_ends_is_not_answered() {
    let (mut server, script) = Server::scripted();
    // One on each core: they end with their cores.
    let mut idle = [server.client().0, server.client().0];
    let (mut client, root) = server.client();
    getattr(&mut client, &root).expect("grants what is asked for");
    script.blocks.store(true, SeqCst);
    script.close_gate();
    let begun = script.begun();
    let taken = client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(&root) });
    client.send(&taken);
    let xid = client.xid;
    script.wait_begun(begun + 1);
    let draining = std::thread::spawn(move || (server.drain(), server));
    assert!(idle.iter_mut().all(Client::is_closed), "idle connections end at once");
    let late = client.nfs(Proc::NULL, &());
    client.send(&late);
    script.open_gate();
    assert_eq!(client.receive().xid, xid);
    client.try_receive().expect_err("nothing else is answered");
    let (drained, _server) = draining.join().expect("no panic");
    assert!(drained, "within its time");
}
