//! NFSv3: its calls are free to be answered in any order.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

use serve::pool::Pool;
use serve::transport::Budgets;
use wire::nfs3::*;

use crate::client::Client;
use crate::planted::Planted;
use crate::server::{Options, Server, directory};
use crate::{BLOCK, BLOCKS, Op, Outcome, POOL, Serves, Session};

/// Numbers of calls, each used once: a reply is not repeated for another connection's call.
static XIDS: AtomicU32 = AtomicU32::new(1);

/// The service, with its file.
pub struct Nfs {
    fs: Arc<Planted>,
    server: Server,
    file: Vec<u8>,
}

impl Nfs {
    /// Starts it.
    pub fn start() -> Self {
        let fs = Planted::over(directory());
        let options = Options { pool: POOL, ..Options::default() };
        let server = Server::start(Arc::clone(&fs) as _, options);
        let (mut client, root) = server.client();
        let where_ = DiropArgs { dir: Fh3(&root), name: Filename3(b"f") };
        let size = u64::from(BLOCKS) * BLOCK as u64;
        let how = CreateHow::Unchecked(Sattr3 { size: Some(size), ..Sattr3::default() });
        let reply = client.call(Proc::CREATE, &CreateArgs { where_, how });
        let made = reply.results::<CreateRes<'_>>().into_result().expect("made");
        let file = made.obj.expect("a handle").0.to_vec();
        Self { fs, server, file }
    }
}

impl Serves for Nfs {
    fn at(&self) -> SocketAddr {
        self.server.addr
    }

    fn open(&self, at: SocketAddr) -> io::Result<Box<dyn Session>> {
        let stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(crate::PATIENCE))?;
        let xid = XIDS.fetch_add(1000, Relaxed);
        let client = Client { stream, xid, uid: 0, gid: 0 };
        Ok(Box::new(Calls { client, file: self.file.clone(), ops: Vec::new(), first: 0 }))
    }

    fn budgets(&self) -> Arc<Budgets> {
        Arc::clone(self.server.service().budgets())
    }

    fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.server.pool)
    }

    fn set_blocks(&self, blocks: bool) {
        self.fs.blocks.store(blocks, SeqCst);
    }

    fn content(&self) -> Option<Vec<u8>> {
        let mut client = Client::connect(self.server.addr);
        client.xid = XIDS.fetch_add(1000, Relaxed);
        let count = BLOCKS * BLOCK as u32;
        let reply = client.call(Proc::READ, &ReadArgs { file: Fh3(&self.file), offset: 0, count });
        Some(reply.results::<ReadRes<'_>>().into_result().expect("data").data.to_vec())
    }
}

struct Calls {
    client: Client<TcpStream>,
    file: Vec<u8>,
    /// Those that were sent last, the first of them under the number behind `first`.
    ops: Vec<Op>,
    first: u32,
}

impl Session for Calls {
    fn send(&mut self, ops: &[Op]) -> io::Result<()> {
        (self.ops, self.first) = (ops.to_vec(), self.client.xid + 1);
        let mut bytes = Vec::new();
        for op in ops {
            let file = Fh3(&self.file);
            bytes.extend(match *op {
                Op::Read(block) => {
                    let offset = u64::from(block) * BLOCK as u64;
                    self.client.nfs(Proc::READ, &ReadArgs { file, offset, count: BLOCK as u32 })
                }
                Op::Write(block, value) => {
                    let (offset, data) = (u64::from(block) * BLOCK as u64, [value; BLOCK]);
                    let (count, stable) = (BLOCK as u32, StableHow::UNSTABLE);
                    let args = WriteArgs { file, offset, count, stable, data: &data };
                    self.client.nfs(Proc::WRITE, &args)
                }
            });
        }
        io::Write::write_all(&mut self.client.stream, &bytes)
    }

    fn answer(&mut self) -> io::Result<(usize, Outcome)> {
        let reply = self.client.try_receive()?;
        let number = reply.xid.wrapping_sub(self.first) as usize;
        let data = match self.ops[number] {
            Op::Read(_) => {
                let read = reply.results::<ReadRes<'_>>().into_result().expect("data");
                read.data.to_vec()
            }
            Op::Write(..) => {
                let written = reply.results::<WriteRes>().into_result().expect("written");
                assert_eq!(written.count as usize, BLOCK);
                Vec::new()
            }
        };
        Ok((number, Some(data)))
    }
}
