//! NFSv3 over RDMA.

use std::sync::Arc;

use probe::phases::{PARTS, Phase};
use wire::nfs3::*;

use crate::client::Client;
use crate::client::stream::Stream;
use crate::nfs3::{Mounted, delay_off_the_core, read_args, with_file};
use crate::planted::Planted;
use crate::server::{Options, Server, directory};
use crate::{Bench, DELAY, PATIENCE, stop_clock};

/// Bytes of the file.
const SIZE: usize = 64 << 10;

fn mounted(server: &Server) -> Mounted {
    let mut client = Client::over(Stream::connect_rdma(server.addr, PATIENCE));
    let root = client.mount("/export/t");
    with_file(client, &root)
}

/// The client's end does nothing that the server sends, reads or writes, or all of it again.
fn take_nothing(client: &Client, nothing: bool) {
    let Stream::Rdma(client) = &client.stream else { panic!("it is one of RDMA") };
    client.lock().expect("whole").take_nothing(nothing);
}

fn undone(client: &Client) -> usize {
    let Stream::Rdma(client) = &client.stream else { panic!("it is one of RDMA") };
    client.lock().expect("whole").undone()
}

#[test]
fn rdma_has_a_delay_where_it_was_planted() {
    if !stop_clock("rdma") {
        return;
    }
    let fs = Planted::over(directory());
    let server = Server::start(Arc::clone(&fs) as _, Options::default());
    let mut mounted = mounted(&server);
    mounted.write(&[7; SIZE]);
    let (runtimes, hub) = (Arc::clone(&server.runtimes), Arc::clone(&server.hub));
    let bench = Bench { fs, runtimes, pool: Arc::clone(&server.pool), hub };

    bench.delay_inline("read");
    mounted.read();
    bench.assert_in(Phase::Inline, "read");

    // What comes with it is answered behind it.
    let object = Fh3(&mounted.file);
    let access = mounted.client.nfs(Proc::ACCESS, &AccessArgs { object, access: 1 });
    let read = mounted.client.nfs(Proc::READ, &read_args(&mounted.file, 100));
    let getattr = mounted.client.nfs(Proc::GETATTR, &GetattrArgs { object });
    bench.delay_together(("access", "read"), [&access, &[read, getattr].concat()], |bytes| {
        mounted.client.send(bytes);
    });
    (0..3).for_each(|_| drop(mounted.client.receive()));
    bench.assert_in(Phase::Inline, "read");
    bench.assert_in(Phase::Queue, "getattr");

    delay_off_the_core(&bench, &mut mounted);

    bench.block(false);
    let count = bench.count("read");
    take_nothing(&mounted.client, true);
    let read = mounted.client.nfs(Proc::READ, &read_args(&mounted.file, SIZE as u32));
    mounted.client.send(&read);
    e2e::api::wait_for("a reply under way", PATIENCE, || {
        (undone(&mounted.client) > 0).then_some(())
    });
    Bench::pass(&bench.runtimes);
    take_nothing(&mounted.client, false);
    mounted.client.receive();
    e2e::api::wait_for("a record", PATIENCE, || (bench.count("read") > count).then_some(()));
    let record = bench.record("read").expect("a record");
    assert_eq!(record.latency_ns, DELAY.as_nanos() as u64);
    assert_eq!(record.phases.part(Phase::Send), PARTS, "{:?}", record.phases.parts());
}
