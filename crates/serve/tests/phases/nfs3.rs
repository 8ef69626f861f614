//! NFSv3 over TCP.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use probe::phases::Phase;
use wire::nfs3::*;

use crate::client::Client;
use crate::client::stream::Stream;
use crate::planted::Planted;
use crate::server::{Options, Server, directory};
use crate::{Bench, stop_clock};

/// Bytes of the file; more than sockets take for a client that reads nothing.
const SIZE: usize = 1 << 20;

/// A client with its file.
pub struct Mounted {
    pub client: Client,
    pub file: Vec<u8>,
}

impl Mounted {
    pub fn write(&mut self, data: &[u8]) {
        let (count, stable) = (data.len() as u32, StableHow::FILE_SYNC);
        let args = WriteArgs { file: Fh3(&self.file), offset: 0, count, stable, data };
        let reply = self.client.call(Proc::WRITE, &args);
        assert!(reply.results::<WriteRes>().into_result().is_ok());
    }

    pub fn read(&mut self) {
        let reply = self.client.call(Proc::READ, &read_args(&self.file, 4096));
        assert!(reply.results::<ReadRes<'_>>().into_result().is_ok());
    }
}

pub fn read_args(file: &[u8], count: u32) -> ReadArgs<'_> {
    ReadArgs { file: Fh3(file), offset: 0, count }
}

fn mounted(server: &Server) -> Mounted {
    let (client, root) = server.client();
    if let Stream::Tcp(stream) = &client.stream {
        socket2::SockRef::from(stream).set_recv_buffer_size(16 << 10).expect("a small buffer");
    }
    with_file(client, &root)
}

/// The same with the file that a client makes.
pub fn with_file(mut client: Client, root: &[u8]) -> Mounted {
    let where_ = DiropArgs { dir: Fh3(root), name: Filename3(b"f") };
    let how = CreateHow::Unchecked(Sattr3::default());
    let reply = client.call(Proc::CREATE, &CreateArgs { where_, how });
    let made = reply.results::<CreateRes<'_>>().into_result().expect("made");
    let file = made.obj.expect("a handle").0.to_vec();
    Mounted { client, file }
}

/// Delays on the pool, before it, and in a flush.
pub fn delay_off_the_core(bench: &Bench, mounted: &mut Mounted) {
    bench.block(true);
    bench.delay_elsewhere("read");
    mounted.read();
    bench.assert_in(Phase::Pool, "read");
    bench.delay_pool(|| mounted.read());
    bench.assert_in(Phase::PoolWait, "read");

    bench.fs.flushes.store(true, SeqCst);
    for blocks in [true, false] {
        bench.block(blocks);
        bench.delay_elsewhere("flush");
        mounted.write(b"on disk");
        bench.assert_in(Phase::Flush, "write");
    }
}

#[test]
fn nfs3_has_a_delay_where_it_was_planted() {
    if !stop_clock("nfs3") {
        return;
    }
    let fs = Planted::over(directory());
    let server = Server::start(Arc::clone(&fs) as _, Options::default());
    let mut mounted = mounted(&server);
    mounted.write(&vec![7; SIZE]);
    let (runtimes, hub) = (Arc::clone(&server.runtimes), Arc::clone(&server.hub));
    let bench = Bench { fs, runtimes, pool: Arc::clone(&server.pool), hub };

    bench.delay_inline("read");
    mounted.read();
    bench.assert_in(Phase::Inline, "read");

    // What comes with it is answered behind it.
    bench.delay_inline("read");
    let read = mounted.client.nfs(Proc::READ, &read_args(&mounted.file, 100));
    let object = Fh3(&mounted.file);
    let second = mounted.client.nfs(Proc::GETATTR, &GetattrArgs { object });
    mounted.client.send(&[read, second].concat());
    (0..2).for_each(|_| drop(mounted.client.receive()));
    bench.assert_in(Phase::Inline, "read");
    bench.assert_in(Phase::Queue, "getattr");

    delay_off_the_core(&bench, &mut mounted);

    let count = bench.count("read");
    let read = mounted.client.nfs(Proc::READ, &read_args(&mounted.file, SIZE as u32));
    mounted.client.send(&read);
    let Stream::Tcp(stream) = &mounted.client.stream else { panic!("it is one of TCP") };
    stream.peek(&mut [0]).expect("the begin of the reply");
    Bench::pass(&bench.runtimes);
    mounted.client.receive();
    bench.assert_sent("read", (count, 1));
}
