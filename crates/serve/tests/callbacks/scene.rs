//! A service on a share in memory, with a clock that the test moves; clients that are called back.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::clock::{ManualClock, NS_PER_S};
use base::random::SeededRandom;
use probe::hub::{Hub, HubOptions};
use serve::nfs3;
use serve::nfs4::state::{Config, Identity, NoRecords, State};
use serve::nfs4::{self, Nfs4, Stateful};
use serve::pool::{Pool, PoolLimits};
use serve::rpc::{RpcConfig, RpcService, listen};
use serve::transport::budget::Limits;
use serve::transport::{Budgets, Runtimes};
use vfs::flush::FlushGroup;
use vfs::fs::FileSystem;
use vfs::locks::LockTable;
use vfs::mem::MemFs;
use vfs::share::{ShareTable, Shares, tag};
use wire::nfs4::*;
use wire::rpc::{self, Auth, AuthSys, CallHeader, Gids};
use wire::xdr::{Decode, Encode, Reader, Seq, Writer};

#[path = "../nfs3/stream.rs"]
pub mod stream;

use self::stream::Stream;
use self::stream::rdma::config;

/// Long enough for a loaded machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(80);
/// The lease.
pub const LEASE: Duration = Duration::from_secs(90);

/// A running service.
pub struct Scene {
    #[allow(dead_code, reason = "each test that includes it uses a part")]
    pub service: RpcService,
    pub addr: SocketAddr,
    pub clock: Arc<ManualClock>,
    pub keeper: Arc<Stateful>,
    pub shares: Arc<Shares>,
    pub locks: Arc<LockTable>,
    pub hub: Arc<Hub>,
    pub pool: Arc<Pool>,
    #[allow(dead_code, reason = "each test that includes it uses a part")]
    pub runtimes: Arc<Runtimes>,
}

impl Scene {
    pub fn new() -> Self {
        Self::after(Vec::new())
    }

    /// After a restart: those held something before.
    pub fn after(known: Vec<Identity>) -> Self {
        Self::over(MemFs::new(tag("t"), 1 << 30), known)
    }

    /// The same, of this file system.
    pub fn over(fs: Arc<dyn FileSystem>, known: Vec<Identity>) -> Self {
        Self::with_pool(fs, known, PoolLimits { threads: 4, queue: 100, per_client: 100 })
    }

    /// The same, with this pool.
    pub fn with_pool(fs: Arc<dyn FileSystem>, known: Vec<Identity>, pool: PoolLimits) -> Self {
        let runtimes = Arc::new(Runtimes::start(2).unwrap());
        let hub = Hub::new(HubOptions { cores: 2, recorder_bytes: 1 << 20 });
        let locks = Arc::<LockTable>::default();
        let mut shares = ShareTable::with_locks(Arc::clone(&locks));
        shares.add("t", fs, false).unwrap();
        let shares = Shares::new(shares);
        let clock = Arc::new(ManualClock::at(NS_PER_S));
        let state = State::new(Config {
            boot: 3,
            lease_ns: LEASE.as_nanos() as u64,
            grace_until_ns: NS_PER_S + LEASE.as_nanos() as u64,
            known,
            records: Arc::new(NoRecords),
            locks: Arc::clone(&locks),
            random: Box::new(SeededRandom::new(1)),
        });
        let server_owner = b"here".to_vec();
        let keeper = Arc::new(Stateful { state, clock: clock.clone(), server_owner });
        keeper.call_back(&runtimes);
        keeper.delegate_for_writing(0);
        let mut programs = nfs3::programs(Arc::clone(&shares));
        programs.push(nfs4::program(Arc::new(Nfs4 {
            shares: Arc::clone(&shares),
            verifier: [1; 8],
            lease: LEASE,
            state: keeper.clone(),
            idmap: Arc::default(),
        })));
        let socket = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let pool = Pool::start(pool).unwrap();
        let service = RpcService::start(RpcConfig {
            rdma: config(socket.local_addr().unwrap()),
            socket,
            runtimes: Arc::clone(&runtimes),
            programs,
            hub: Arc::clone(&hub),
            flush: Arc::new(FlushGroup::start().unwrap()),
            pool: Arc::clone(&pool),
            budgets: Arc::new(Budgets::new(Limits::default())),
            tls: None,
        })
        .unwrap();
        let addr = service.local_addr();
        Self { service, addr, clock, keeper, shares, locks, hub, pool, runtimes }
    }

    /// Time passes, and the server looks after its clients.
    pub fn pass(&self, time: Duration) {
        self.clock.advance(time);
        self.keeper.sweep();
    }
}

/// Retries until there is a result.
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A stream of records in both directions.
pub struct Wire {
    stream: Stream,
    xid: u32,
    /// Calls that came while a reply was waited for.
    calls: VecDeque<Vec<u8>>,
    /// What is sent at once later.
    held: Option<Vec<u8>>,
}

pub const CRED: Auth<'static> =
    Auth::Sys(AuthSys { stamp: 0, machine: b"test", uid: 0, gid: 0, gids: Gids::EMPTY });

impl Wire {
    pub fn connect(addr: SocketAddr) -> Self {
        Self::on(Stream::connect(addr, PATIENCE))
    }

    pub fn over(stream: TcpStream) -> Self {
        Self::on(Stream::over(stream, PATIENCE))
    }

    fn on(stream: Stream) -> Self {
        Self { stream, xid: 0, calls: VecDeque::new(), held: None }
    }

    fn send(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes);
        let mark = rpc::begin_record(&mut w);
        write(&mut w);
        rpc::end_record(&mut w, mark);
        match &mut self.held {
            Some(held) => held.append(&mut bytes),
            None => self.stream.write_all(&bytes).expect("send"),
        }
    }

    /// Sends nothing until [`Wire::release`].
    #[allow(dead_code, reason = "each test that includes it uses a part")]
    pub fn hold(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Sends what was held, at once.
    #[allow(dead_code, reason = "each test that includes it uses a part")]
    pub fn release(&mut self) {
        let held = self.held.take().expect("something is held");
        self.stream.write_all(&held).expect("send");
    }

    /// The socket.
    #[allow(dead_code, reason = "each test that includes it uses a part")]
    pub fn tcp(&self) -> &TcpStream {
        match &self.stream {
            Stream::Tcp(stream) => stream,
            Stream::Rdma(_) => panic!("a test of TCP"),
        }
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut marker = [0; 4];
        self.stream.read_exact(&mut marker).expect("a record");
        let mut bytes = vec![0; (u32::from_be_bytes(marker) & !(1 << 31)) as usize];
        self.stream.read_exact(&mut bytes).expect("a record");
        bytes
    }

    /// Calls, and gives the results.
    pub fn call(&mut self, program: (u32, u32, u32), args: &impl Encode) -> Vec<u8> {
        self.start(program, args);
        self.reply()
    }

    /// Calls; the results are taken by [`Self::reply`].
    pub fn start(&mut self, (prog, vers, proc): (u32, u32, u32), args: &impl Encode) {
        self.xid += 1;
        let xid = self.xid;
        self.send(|w| {
            CallHeader { xid, prog, vers, proc, cred: CRED, verf: Auth::None }.encode(w);
            args.encode(w);
        });
    }

    /// Ends the connection, and waits until the server has noticed that.
    pub fn leave(mut self, addr: SocketAddr) {
        if !stream::by_rdma() {
            self.stream.shutdown(Shutdown::Write).expect("a connection");
            let mut rest = Vec::new();
            self.stream.read_to_end(&mut rest).expect("the end");
            return;
        }
        drop(self);
        // Each core has looked at what had come before these calls once it answers them.
        let mut others = [Self::connect(addr), Self::connect(addr)];
        for other in &mut others {
            for _ in 0..3 {
                other.call((NFS4_PROGRAM, NFS_V4, 0), &());
            }
        }
    }

    /// The next reply.
    pub fn reply(&mut self) -> Vec<u8> {
        loop {
            let record = self.receive();
            match record[4..8] {
                [0, 0, 0, 1] => return record[24..].to_vec(),
                _ => self.calls.push_back(record),
            }
        }
    }

    /// The next call that the server makes.
    pub fn called(&mut self) -> Called {
        let record = self.calls.pop_front().unwrap_or_else(|| self.receive());
        Called::new(record)
    }

    /// Answers a call of the server.
    pub fn answer(&mut self, called: &Called, results: &[CbResOp<'_>]) {
        let status = results.last().map_or(Nfsstat4::OK, CbResOp::status);
        self.send(|w| {
            rpc::success(w, called.xid);
            if called.proc == CB_COMPOUND {
                let count = results.len() as u32;
                CbCompoundRes { status, tag: Tag4(b""), count }.encode(w);
                results.iter().for_each(|result| result.encode(w));
            }
        });
    }
}

/// A call that the server has made.
#[derive(Debug)]
pub struct Called {
    pub xid: u32,
    pub prog: u32,
    pub proc: u32,
    pub uid: Option<u32>,
    pub head: Option<CbCompoundArgs<'static>>,
    pub ops: Vec<CbArgOp<'static>>,
}

impl Called {
    fn new(record: Vec<u8>) -> Self {
        let (header, mut r): (CallHeader<'static>, Reader<'static>) =
            rpc::open_call(record.leak()).expect("a call");
        let uid = if let Auth::Sys(sys) = header.cred { Some(sys.uid) } else { None };
        let mut called = Self {
            xid: header.xid,
            prog: header.prog,
            proc: header.proc,
            uid,
            head: None,
            ops: Vec::new(),
        };
        assert_eq!(header.vers, NFS_CB);
        if header.proc == CB_COMPOUND {
            let head = CbCompoundArgs::decode(&mut r).expect("a head");
            called.ops = (0..head.count).map(|_| CbArgOp::decode(&mut r).expect("an op")).collect();
            called.head = Some(head);
        }
        r.finish().expect("nothing more");
        called
    }

    /// What is recalled.
    pub fn recalled(&self) -> Stateid4 {
        match self.ops.last() {
            Some(CbArgOp::Recall(args)) => args.stateid,
            other => panic!("{other:?}"),
        }
    }

    /// The result of CB_SEQUENCE, if there is one, done as it should be.
    pub fn sequence_done(&self) -> Vec<CbResOp<'static>> {
        let is_sequence = |op: &&CbArgOp<'_>| matches!(op, CbArgOp::Sequence(_));
        self.ops.iter().filter(is_sequence).map(Self::done_one).collect()
    }

    /// The results of one that is done as it should be.
    pub fn done(&self) -> Vec<CbResOp<'static>> {
        self.ops.iter().map(Self::done_one).collect()
    }

    fn done_one(op: &CbArgOp<'_>) -> CbResOp<'static> {
        match op {
            CbArgOp::Sequence(args) => CbResOp::Sequence(Res4::Ok(CbSequenceResOk4 {
                sessionid: args.sessionid,
                sequenceid: args.sequenceid,
                slotid: args.slotid,
                highest_slotid: args.slotid,
                target_highest_slotid: args.slotid,
            })),
            CbArgOp::Recall(_) => CbResOp::Recall(Res4::Ok(())),
            other => panic!("{other:?}"),
        }
    }
}

/// COMPOUND4args.
pub struct Compound<'a>(pub u32, pub &'a [ArgOp<'a>]);

impl Encode for Compound<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        let count = self.1.len() as u32;
        CompoundArgs { tag: Tag4(b""), minorversion: self.0, count }.encode(w);
        self.1.iter().for_each(|op| op.encode(w));
    }
}

impl Wire {
    /// Does a compound.
    pub fn compound(&mut self, minor: u32, ops: &[ArgOp<'_>]) -> (Nfsstat4, Vec<ResOp<'static>>) {
        self.start((NFS4_PROGRAM, NFS_V4, NFSPROC4_COMPOUND), &Compound(minor, ops));
        self.results()
    }

    /// The results of the compound that was started last.
    pub fn results(&mut self) -> (Nfsstat4, Vec<ResOp<'static>>) {
        let bytes = self.reply();
        let mut r = Reader::new(bytes.leak());
        let head = CompoundRes::decode(&mut r).expect("a head");
        let results = (0..head.count).map(|_| ResOp::decode(&mut r).expect("a result")).collect();
        r.finish().expect("nothing more");
        (head.status, results)
    }
}

const ROOT: [ArgOp<'static>; 3] = [
    ArgOp::Putrootfh(()),
    ArgOp::Lookup(LookupArgs4 { objname: Component4(b"export") }),
    ArgOp::Lookup(LookupArgs4 { objname: Component4(b"t") }),
];

/// A client of 4.1 with a session that it is called back on.
pub struct Client {
    pub wire: Wire,
    pub id: u64,
    pub session: [u8; 16],
    sequence: u32,
    /// The flags of its last SEQUENCE.
    pub flags: u32,
}

impl Client {
    /// One that has nothing to reclaim; as [`Client::back`].
    pub fn new(addr: SocketAddr, name: &[u8], secs: Vec<CallbackSec4<'_>>) -> Self {
        let mut client = Self::back(addr, name, secs);
        let done = ReclaimCompleteArgs4 { one_fs: false };
        assert_eq!(client.run(&[ArgOp::ReclaimComplete(done)]).0, Nfsstat4::OK);
        client
    }

    /// With `secs` for the callbacks; the connection is the back channel as well.
    pub fn back(addr: SocketAddr, name: &[u8], secs: Vec<CallbackSec4<'_>>) -> Self {
        Self::over(Wire::connect(addr), name, secs)
    }

    /// The same, over this connection.
    pub fn over(mut wire: Wire, name: &[u8], secs: Vec<CallbackSec4<'_>>) -> Self {
        let args = ExchangeIdArgs4 {
            clientowner: ClientOwner4 { verifier: [1; 8], ownerid: Opaque4(name) },
            flags: 0,
            state_protect: StateProtectA4::None(()),
            client_impl_id: None,
        };
        let (_, results) = wire.compound(1, &[ArgOp::ExchangeId(args)]);
        let [ResOp::ExchangeId(Res4::Ok(ok))] = &results[..] else { panic!("{results:?}") };
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 1 << 16,
            maxresponsesize: 1 << 16,
            maxresponsesize_cached: 4096,
            maxoperations: 128,
            maxrequests: 2,
            rdma_ird: None,
        };
        let args = CreateSessionArgs4 {
            clientid: ok.clientid,
            sequence: ok.sequenceid,
            flags: create_session4::CONN_BACK_CHAN,
            fore_chan_attrs: channel,
            back_chan_attrs: channel,
            cb_program: NFS4_CALLBACK,
            sec_parms: Seq(secs),
        };
        let id = ok.clientid;
        let (_, results) = wire.compound(1, &[ArgOp::CreateSession(args)]);
        let [ResOp::CreateSession(Res4::Ok(ok))] = results[..] else { panic!("{results:?}") };
        assert_eq!(ok.flags, create_session4::CONN_BACK_CHAN);
        Self { wire, id, session: ok.sessionid, sequence: 0, flags: 0 }
    }

    /// Does operations in the session; without SEQUENCE's result.
    pub fn run(&mut self, ops: &[ArgOp<'_>]) -> (Nfsstat4, Vec<ResOp<'static>>) {
        self.start(ops);
        let (status, mut results) = self.wire.results();
        match results.remove(0) {
            ResOp::Sequence(Res4::Ok(ok)) => self.flags = ok.status_flags,
            other => panic!("{other:?}"),
        }
        (status, results)
    }

    /// Begins operations in the session.
    pub fn start(&mut self, ops: &[ArgOp<'_>]) {
        self.sequence += 1;
        self.start_again(ops);
    }

    /// Begins operations under the number of the last ones.
    pub fn start_again(&mut self, ops: &[ArgOp<'_>]) {
        self.start_under((0, self.sequence), ops);
    }

    /// Begins the first operations of a slot; of slot 0 the next ones.
    #[allow(dead_code, reason = "each test that includes it uses a part")]
    pub fn start_in_slot(&mut self, slotid: u32, ops: &[ArgOp<'_>]) {
        match slotid {
            0 => self.start(ops),
            _ => self.start_under((slotid, 1), ops),
        }
    }

    fn start_under(&mut self, (slotid, sequenceid): (u32, u32), ops: &[ArgOp<'_>]) {
        let sequence = ArgOp::Sequence(SequenceArgs4 {
            sessionid: self.session,
            sequenceid,
            slotid,
            highest_slotid: slotid,
            cachethis: false,
        });
        let ops = [&[sequence], ops].concat();
        self.wire.start((NFS4_PROGRAM, NFS_V4, NFSPROC4_COMPOUND), &Compound(1, &ops));
    }

    /// The reply if the last one, with these operations, is sent again.
    pub fn again(&mut self, ops: &[ArgOp<'_>]) -> (Nfsstat4, Vec<ResOp<'static>>) {
        self.sequence -= 1;
        self.run(ops)
    }

    /// As [`Self::run`], in the share's root.
    pub fn at_root(&mut self, ops: &[ArgOp<'_>]) -> (Nfsstat4, Vec<ResOp<'static>>) {
        self.run(&[&ROOT[..], ops].concat())
    }

    /// OPEN of the file `f`: its status, and what it was given.
    pub fn open(&mut self, access: u32, create: bool) -> Result<OpenResOk4<'static>, Nfsstat4> {
        let (status, results) = self.at_root(&[open(self.id, 0, access, create)]);
        opened(status, results)
    }

    /// DELEGRETURN.
    pub fn give_back(&mut self, deleg_stateid: Stateid4) -> Nfsstat4 {
        let back = ArgOp::Delegreturn(DelegreturnArgs4 { deleg_stateid });
        self.at_root(&[ArgOp::Lookup(LookupArgs4 { objname: Component4(b"f") }), back]).0
    }

    /// TEST_STATEID.
    pub fn test(&mut self, id: Stateid4) -> Nfsstat4 {
        let args = TestStateidArgs4 { stateids: Seq(vec![id]) };
        match &self.run(&[ArgOp::TestStateid(args)]).1[..] {
            [ResOp::TestStateid(Res4::Ok(ok))] => ok.status_codes.0[0],
            other => panic!("{other:?}"),
        }
    }
}

/// OPEN of the file `f` by the owner `o`.
pub fn open(clientid: u64, seqid: u32, share_access: u32, create: bool) -> ArgOp<'static> {
    let how = Createhow4::Unchecked(Fattr4::NONE);
    ArgOp::Open(OpenArgs4 {
        seqid,
        share_access,
        share_deny: 0,
        owner: StateOwner4 { clientid, owner: Opaque4(b"o") },
        openhow: if create { Openflag4::Create(how) } else { Openflag4::Nocreate(()) },
        claim: OpenClaim4::Null(Component4(b"f")),
    })
}

/// The result of OPEN, as the last operation.
pub fn opened(
    status: Nfsstat4,
    mut results: Vec<ResOp<'static>>,
) -> Result<OpenResOk4<'static>, Nfsstat4> {
    match results.pop() {
        Some(ResOp::Open(Res4::Ok(ok))) => Ok(ok),
        _ => Err(status),
    }
}

/// In the share's root, without a session.
pub fn in_root(op: &[ArgOp<'static>]) -> Vec<ArgOp<'static>> {
    [&ROOT[..], op].concat()
}

/// The delegation for reading that an OPEN was given.
pub fn read_delegation(ok: &OpenResOk4<'_>) -> Option<Stateid4> {
    match &ok.delegation {
        OpenDelegation4::Read(read) => Some(read.stateid),
        _ => None,
    }
}
