//! NFSv4.1: each call has a slot of its session, and the calls of several slots are answered in any
//! order. What a client has opened is held until it has been away for too long.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

use base::limits::NFS4_COURTESY;
use serve::pool::Pool;
use serve::transport::Budgets;
use vfs::mem::MemFs;
use vfs::share::tag;
use wire::nfs3::{DiropArgs, Fh3, Filename3, LookupArgs, LookupRes, Proc, ReadArgs, ReadRes};
use wire::nfs4::*;
use wire::rpc::{Accepted, ReplyBody};
use wire::xdr::{Decode, Seq};

use crate::client::{Client, Reply};
use crate::planted::Planted;
use crate::sessions::{Compound, LEASE, Scene, in_root, open, opened};
use crate::{BATCH, BLOCK, BLOCKS, Op, Outcome, POOL, Serves};

/// Numbers of calls and starts of clients, each used once.
static NUMBERS: AtomicU32 = AtomicU32::new(1);

/// The service, with its file.
pub struct Nfs {
    fs: Arc<Planted>,
    scene: Scene,
}

impl Nfs {
    /// Starts it.
    pub fn start() -> Self {
        let fs = Planted::over(MemFs::new(tag("t"), 1 << 30));
        let scene = Scene::with_pool(Arc::clone(&fs) as _, Vec::new(), POOL);
        let mut session = Slots::open(scene.addr).expect("a session");
        for block in 0..BLOCKS {
            crate::Session::send(&mut session, &[Op::Write(block, 0)]).expect("sent");
            crate::Session::answer(&mut session).expect("written");
        }
        Self { fs, scene }
    }
}

impl Serves for Nfs {
    fn at(&self) -> SocketAddr {
        self.scene.addr
    }

    fn open(&self, at: SocketAddr) -> io::Result<Box<dyn crate::Session>> {
        Ok(Box::new(Slots::open(at)?))
    }

    fn budgets(&self) -> Arc<Budgets> {
        Arc::clone(self.scene.service.budgets())
    }

    fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.scene.pool)
    }

    fn is_held(&self) -> bool {
        // All of its clients have been away for long.
        self.scene.pass(NFS4_COURTESY + LEASE);
        let (clients, sessions) = self.scene.keeper.state.counts();
        clients + sessions > 0 || self.scene.locks.counts().opens > 0
    }

    fn set_blocks(&self, blocks: bool) {
        self.fs.blocks.store(blocks, SeqCst);
    }

    /// Read as version 3.
    fn content(&self) -> Option<Vec<u8>> {
        let mut client = Client::connect(self.scene.addr);
        client.xid = NUMBERS.fetch_add(1000, Relaxed);
        let root = client.mount("/export/t");
        let what = DiropArgs { dir: Fh3(&root), name: Filename3(b"f") };
        let reply = client.call(Proc::LOOKUP, &LookupArgs { what });
        let found = reply.results::<LookupRes<'_>>().into_result().expect("the file");
        let count = BLOCKS * BLOCK as u32;
        let args = ReadArgs { file: Fh3(found.object.0), offset: 0, count };
        let reply = client.call(Proc::READ, &args);
        Some(reply.results::<ReadRes<'_>>().into_result().expect("data").data.to_vec())
    }
}

/// A session with a slot for each call of a batch, and its open.
struct Slots {
    client: Client<TcpStream>,
    session: [u8; 16],
    /// Calls in each slot so far.
    sequences: [u32; BATCH as usize],
    stateid: Stateid4,
    /// Those that were sent last, the first of them under the number behind `first`.
    ops: Vec<Op>,
    first: u32,
}

impl Slots {
    fn open(at: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(crate::PATIENCE))?;
        let xid = NUMBERS.fetch_add(1000, Relaxed);
        let client = Client { stream, xid, uid: 0, gid: 0 };
        let (sequences, stateid) = ([0; BATCH as usize], Stateid4::ANONYMOUS);
        let (session, ops) = ([0; 16], Vec::new());
        let mut slots = Self { client, session, sequences, stateid, ops, first: 0 };
        let verifier = u64::from(xid).to_be_bytes();
        let (id, sequence) = slots.exchange_id(verifier)?;
        slots.create_session(id, sequence)?;
        let done = ReclaimCompleteArgs4 { one_fs: false };
        slots.run(&[ArgOp::ReclaimComplete(done)])?;
        let access = share4::ACCESS_BOTH | share4::WANT_NO_DELEG;
        let (status, results) = slots.run(&in_root(&[open(id, 0, access, true)]))?;
        slots.stateid = opened(status, results).expect("opened").stateid;
        Ok(slots)
    }

    /// An earlier one is another start of the same client: what that held is released.
    fn exchange_id(&mut self, verifier: [u8; 8]) -> io::Result<(u64, u32)> {
        let args = ExchangeIdArgs4 {
            clientowner: ClientOwner4 { verifier, ownerid: Opaque4(b"one") },
            flags: 0,
            state_protect: StateProtectA4::None(()),
            client_impl_id: None,
        };
        let (_, results) = self.plain(&[ArgOp::ExchangeId(args)])?;
        let [ResOp::ExchangeId(Res4::Ok(ok))] = &results[..] else { panic!("{results:?}") };
        Ok((ok.clientid, ok.sequenceid))
    }

    fn create_session(&mut self, clientid: u64, sequence: u32) -> io::Result<()> {
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 1 << 16,
            maxresponsesize: 1 << 16,
            maxresponsesize_cached: 4096,
            maxoperations: 128,
            maxrequests: BATCH,
            rdma_ird: None,
        };
        let args = CreateSessionArgs4 {
            clientid,
            sequence,
            flags: 0,
            fore_chan_attrs: channel,
            back_chan_attrs: channel,
            cb_program: NFS4_CALLBACK,
            sec_parms: Seq(vec![CallbackSec4::None(())]),
        };
        let (_, results) = self.plain(&[ArgOp::CreateSession(args)])?;
        let [ResOp::CreateSession(Res4::Ok(ok))] = results[..] else { panic!("{results:?}") };
        self.session = ok.sessionid;
        Ok(())
    }

    fn record(&mut self, ops: &[ArgOp<'_>]) -> Vec<u8> {
        self.client.record(NFS4_PROGRAM, NFS_V4, NFSPROC4_COMPOUND, &Compound(1, ops))
    }

    /// The record of a compound in a slot.
    fn record_in(&mut self, slot: usize, ops: &[ArgOp<'_>]) -> Vec<u8> {
        self.sequences[slot] += 1;
        let sequence = ArgOp::Sequence(SequenceArgs4 {
            sessionid: self.session,
            sequenceid: self.sequences[slot],
            slotid: slot as u32,
            highest_slotid: BATCH - 1,
            cachethis: false,
        });
        self.record(&[&[sequence], ops].concat())
    }

    fn plain(&mut self, ops: &[ArgOp<'_>]) -> io::Result<(Nfsstat4, Vec<ResOp<'static>>)> {
        let record = self.record(ops);
        io::Write::write_all(&mut self.client.stream, &record)?;
        Ok(results(self.client.try_receive()?))
    }

    /// Runs operations in the first slot.
    fn run(&mut self, ops: &[ArgOp<'_>]) -> io::Result<(Nfsstat4, Vec<ResOp<'static>>)> {
        let record = self.record_in(0, ops);
        io::Write::write_all(&mut self.client.stream, &record)?;
        Ok(results(self.client.try_receive()?))
    }
}

/// What a compound has come to.
fn results(reply: Reply) -> (Nfsstat4, Vec<ResOp<'static>>) {
    let reply: &'static Reply = Box::leak(Box::new(reply));
    let (body, mut r) = reply.open();
    assert!(matches!(body, ReplyBody::Accepted { stat: Accepted::Success, .. }), "{body:?}");
    let head = CompoundRes::decode(&mut r).expect("a head");
    let results = (0..head.count).map(|_| ResOp::decode(&mut r).expect("a result")).collect();
    r.finish().expect("nothing more");
    (head.status, results)
}

impl crate::Session for Slots {
    fn send(&mut self, ops: &[Op]) -> io::Result<()> {
        (self.ops, self.first) = (ops.to_vec(), self.client.xid + 1);
        let (stateid, mut bytes) = (self.stateid, Vec::new());
        for (slot, op) in ops.iter().enumerate() {
            let lookup = ArgOp::Lookup(LookupArgs4 { objname: Component4(b"f") });
            let at = |block: u32| u64::from(block) * BLOCK as u64;
            let root = in_root(&[lookup]);
            bytes.extend(match *op {
                Op::Read(block) => {
                    let (offset, count) = (at(block), BLOCK as u32);
                    let read = ArgOp::Read(ReadArgs4 { stateid, offset, count });
                    self.record_in(slot, &[&root[..], &[read]].concat())
                }
                Op::Write(block, value) => {
                    let (offset, data) = (at(block), [value; BLOCK]);
                    let (stable, data) = (StableHow4::UNSTABLE, &data[..]);
                    let write = ArgOp::Write(WriteArgs4 { stateid, offset, stable, data });
                    self.record_in(slot, &[&root[..], &[write]].concat())
                }
            });
        }
        io::Write::write_all(&mut self.client.stream, &bytes)
    }

    fn answer(&mut self) -> io::Result<(usize, Outcome)> {
        let reply = self.client.try_receive()?;
        let number = reply.xid.wrapping_sub(self.first) as usize;
        let (status, mut results) = results(reply);
        assert_eq!(status, Nfsstat4::OK, "{results:?}");
        let data = match results.pop() {
            Some(ResOp::Read(Res4::Ok(ok))) => ok.data.to_vec(),
            Some(ResOp::Write(Res4::Ok(ok))) => {
                assert_eq!(ok.count as usize, BLOCK);
                Vec::new()
            }
            other => panic!("{other:?}"),
        };
        Ok((number, Some(data)))
    }
}
