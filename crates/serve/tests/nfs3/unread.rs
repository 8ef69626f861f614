//! Connections that the server itself leaves unread: their time does not run meanwhile.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};

use serve::pool::PoolLimits;
use serve::transport::budget::Limits;
use wire::nfs3::*;

use crate::client::Client;
use crate::procedures::create;
use crate::scripted::Scripted;
use crate::server::{Options, Server, directory, wait_for};

/// Bytes of a large WRITE.
const SIZE: usize = 100_000;
/// Bytes of its record that come first.
const BEGINNING: usize = 100;
/// Records above the limit that one client may have on one core.
const OVERDRAFTS: usize = base::limits::OVERDRAFTS_MAX / 2;

fn getattr(client: &mut Client, object: &[u8]) -> Vec<u8> {
    client.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(object) })
}

fn large_write(client: &mut Client, file: &[u8]) -> Vec<u8> {
    let (count, stable) = (SIZE as u32, StableHow::UNSTABLE);
    let data = &vec![1; SIZE];
    client.nfs(Proc::WRITE, &WriteArgs { file: Fh3(file), offset: 0, count, stable, data })
}

/// A part of a large record is received, and there is no room for the rest for longer than a peer
/// may stand still.
#[test]
fn a_record_that_finds_no_room_is_not_too_slow() {
    // Two cores of 200,000 bytes, and a pool with one thread and one place.
    let limits = Limits { bytes: 400_000, ..Limits::default() };
    let pool = PoolLimits { threads: 1, queue: 1, per_client: 100 };
    let script = Scripted::over(directory());
    let options = Options { limits, pool, ..Options::default() };
    let server = Server::start(Arc::clone(&script) as _, options);
    let (mut other, root) = server.client();
    let file = create(&mut other, &root, "f");
    // The cores have connections in turn: these are all of one, and the rest of the other one.
    let (mut clients, mut rest) = (Vec::new(), Vec::new());
    for xid in (1000..).step_by(1000).take(OVERDRAFTS + 1) {
        clients.push(Client { xid, ..Client::connect(server.addr) });
        rest.push(Client::connect(server.addr));
    }
    script.blocks.store(true, SeqCst);
    script.close_gate();
    let begun = script.begun();
    let bytes = [getattr(&mut other, &root), getattr(&mut other, &root)].concat();
    other.send(&bytes);
    script.wait_begun(begun + 1);
    wait_for("the pool is full", || (server.pool.queued() == 1).then_some(()));

    // The first call waits for the pool: so long nothing is received.
    let (client, writers) = clients.split_first_mut().expect("the first");
    let mut bytes = getattr(client, &root);
    let (first, write) = (client.xid, large_write(client, &file));
    let (beginning, end) = write.split_at(BEGINNING);
    bytes.extend(beginning);
    client.send(&bytes);
    wait_for("it waits for the pool", || (server.pool.waiting() == 1).then_some(()));
    // Whole records, and all that may be above the limit.
    for (n, writer) in writers.iter_mut().enumerate() {
        let write = large_write(writer, &file);
        writer.send(&write);
        wait_for("it waits as well", || (server.pool.waiting() == n + 2).then_some(()));
    }
    let (mut sender, end) = (client.stream.try_clone().unwrap(), end.to_vec());
    let sending = std::thread::spawn(move || sender.write_all(&end));
    script.let_one_pass();
    wait_for("its call has a place", || (server.pool.waiting() == writers.len()).then_some(()));

    // One that stands still from now on is closed before the first is received again.
    let mut slow = rest.pop().expect("one of the other core");
    slow.send(&write[..BEGINNING]);
    assert!(slow.is_closed());
    assert_eq!(server.service().budgets().timeouts.load(Relaxed), 1);
    script.open_gate();
    assert_eq!(client.receive().xid, first);
    let written = client.receive();
    assert_eq!(written.results::<WriteRes>().into_result().unwrap().count as usize, SIZE);
    sending.join().unwrap().unwrap();
    for writer in writers {
        let written = writer.receive();
        assert_eq!(written.results::<WriteRes>().into_result().unwrap().count as usize, SIZE);
    }
}
