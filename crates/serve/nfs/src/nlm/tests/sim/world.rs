//! The server as it is, without sockets: calls are made as a connection makes them, and what is on
//! disk outlives a restart. And what a process believes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::clock::{Clock, ManualClock, NS_PER_S};
use base::limits::NLM_SWEEP_EVERY;
use probe::op::OpRecord;
use tokio::sync::mpsc::UnboundedReceiver;
use vfs::attr::SetAttr;
use vfs::cred::Cred;
use vfs::fs::{Context, CreateHow, FileSystem};
use vfs::handle::Handle;
use vfs::locks::{Kind, LockTable, What};
use vfs::mem::MemFs;
use vfs::recovery::{ClientId, ClientRecords, RecordError};
use vfs::share::{ShareTable, Shares};
use wire::nlm4::{
    CancelArgs, HostName, LockArgs, Netobj, Nlm4Lock, Nlm4Res, Nlm4Stat, Proc, UnlockArgs,
};
use wire::xdr::{Encode, Reader, Writer, decode_all};

use super::super::super::conn::Message;
use super::super::super::dispatch::Nlm4;
use super::super::super::hosts::owner_parts;
use super::super::super::{Config, Nlm, lock};
use crate::rpc::{Call, Caller, Program};
use engine::transport::Budgets;
use engine::transport::buffers::ReplyBuf;

const HOSTS: u8 = 3;
pub const PROCESSES: usize = 6;
pub const BYTES: usize = 6;
/// The `caller_name` of every host: hosts differ by their addresses.
pub const NAME: &[u8] = b"host";
/// How long hosts may reclaim.
const GRACE_NS: u64 = 20 * NS_PER_S;

/// Offset, length, whether exclusively.
pub type Request = (u64, u64, bool);

/// What a process believes of each byte: true for exclusively.
pub type Bytes = [Option<bool>; BYTES];

#[derive(Default, Clone)]
pub struct Process {
    pub held: Bytes,
    /// It accepts a grant of this.
    pub waiting: Option<Request>,
    /// It has requested this, without a reply.
    pub unsure: Option<Request>,
    /// The reply to its last request was lost.
    pub lost: bool,
    /// The server has restarted, and what it holds is to be reclaimed.
    pub reclaims: bool,
}

impl Process {
    pub fn has_none(&self, (start, len, _): Request) -> bool {
        (start..start + len).all(|at| self.held[at as usize].is_none())
    }

    /// What it may have been granted without a reply.
    pub fn unconfirmed(&self) -> Option<Request> {
        self.unsure.or(self.waiting.filter(|_| self.lost))
    }

    pub fn take(&mut self, (start, len, exclusive): Request) {
        self.waiting = None;
        (start..start + len).for_each(|at| self.held[at as usize] = Some(exclusive));
    }

    pub fn drop_range(&mut self, (start, len, _): Request) {
        (start..start + len).for_each(|at| self.held[at as usize] = None);
    }

    /// What it holds, in one piece each.
    pub fn runs(&self) -> Vec<Request> {
        let mut runs: Vec<Request> = Vec::new();
        for (at, held) in self.held.iter().enumerate() {
            match (held, runs.last_mut()) {
                (Some(kind), Some((start, len, of)))
                    if *of == *kind && *start + *len == at as u64 =>
                {
                    *len += 1;
                }
                (Some(kind), _) => runs.push((at as u64, 1, *kind)),
                (None, _) => {}
            }
        }
        runs
    }
}

/// Where a process is.
pub fn address(process: usize) -> IpAddr {
    IpAddr::from([10, 0, 0, process as u8 % HOSTS])
}

/// On disk: the hosts on record, each with whether it has been active in this run.
#[derive(Default)]
struct MemoryRecords(Mutex<(BTreeMap<ClientId, bool>, BTreeSet<ClientId>)>);

impl MemoryRecords {
    fn start(&self) {
        let mut book = lock(&self.0);
        book.0.values_mut().for_each(|here| *here = false);
        book.1 = book.0.keys().cloned().collect();
    }
}

impl ClientRecords for MemoryRecords {
    fn known(&self) -> Vec<ClientId> {
        lock(&self.0).1.iter().cloned().collect()
    }
    fn may_reclaim(&self, client: &ClientId) -> bool {
        lock(&self.0).1.contains(client)
    }
    fn record(&self, client: &ClientId) -> Result<(), RecordError> {
        lock(&self.0).0.insert(client.clone(), true);
        Ok(())
    }
    fn forget(&self, client: &ClientId) -> Result<(), RecordError> {
        let mut book = lock(&self.0);
        book.0.remove(client);
        book.1.remove(client);
        Ok(())
    }
    fn reclaim_complete(&self, _: &ClientId) -> bool {
        false
    }
    fn end_of_grace(&self) -> Result<(), RecordError> {
        let mut book = lock(&self.0);
        book.1.clear();
        book.0.retain(|client, here| *here || client.owner.is_empty());
        Ok(())
    }
}

/// The server.
pub struct World {
    pub nlm: Arc<Nlm>,
    pub locks: Arc<LockTable>,
    pub messages: UnboundedReceiver<Message>,
    clock: Arc<ManualClock>,
    shares: Arc<Shares>,
    book: Arc<MemoryRecords>,
    file: Handle,
}

fn start(
    shares: &Arc<Shares>,
    clock: &Arc<ManualClock>,
    book: &Arc<MemoryRecords>,
) -> (Arc<Nlm>, Arc<LockTable>, UnboundedReceiver<Message>) {
    book.start();
    let locks = Arc::<LockTable>::default();
    let config = Config {
        shares: Arc::clone(shares),
        locks: Arc::clone(&locks),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        records: Arc::clone(book) as Arc<dyn ClientRecords>,
        grace_until_ns: clock.monotonic_ns() + GRACE_NS,
        evict_expired: Box::new(|_| false),
        name: "server".into(),
        portmap_port: 0,
        address: None,
        grant_time: Duration::ZERO,
        reserved_ports: false,
    };
    let (nlm, messages) = Nlm::new(config);
    (nlm, locks, messages)
}

impl World {
    pub fn new() -> Self {
        let fs = MemFs::new(vfs::share::tag("t"), 1 << 20);
        let cred = Cred::root();
        let cx = Context { cred: &cred, may_block: true };
        let how = CreateHow::Unchecked(SetAttr { mode: Some(0o666), ..SetAttr::default() });
        let made = fs.create(cx, &fs.root(), b"f", how);
        let file = made.unwrap_or_else(|failed| panic!("{:?}", failed.status)).value.handle;
        let mut shares = ShareTable::default();
        shares.add("t", fs, false).unwrap();
        let shares = Shares::new(shares);
        let (clock, book) = (Arc::new(ManualClock::at(NS_PER_S)), Arc::<MemoryRecords>::default());
        let (nlm, locks, messages) = start(&shares, &clock, &book);
        Self { nlm, locks, messages, clock, shares, book, file }
    }

    /// Everything but the disk is lost; returns the addresses that it notifies of the restart.
    pub fn restart(&mut self) -> BTreeSet<IpAddr> {
        (self.nlm, self.locks, self.messages) = start(&self.shares, &self.clock, &self.book);
        let mut notified = BTreeSet::new();
        while let Ok(message) = self.messages.try_recv() {
            if let Message::Restarted { address } = message {
                notified.insert(address);
            }
        }
        notified
    }

    /// Time goes by: more than hosts may reclaim in, and than they are remembered for nothing.
    pub fn pass_grace(&self) {
        self.clock.advance(NLM_SWEEP_EVERY.max(Duration::from_nanos(GRACE_NS)));
    }

    /// Hosts on record.
    pub fn on_record(&self) -> usize {
        lock(&self.book.0).0.keys().filter(|client| !client.owner.is_empty()).count()
    }

    fn call(&self, process: usize, proc: Proc, args: &impl Encode) -> Nlm4Stat {
        let mut bytes = Vec::new();
        args.encode(&mut Writer::new(&mut bytes));
        let program = Nlm4(Arc::clone(&self.nlm));
        let mut caller = Caller::new((address(process), 1), 0, 0);
        let procedure = program.procedure(proc.0).unwrap();
        program.admit(procedure, &Reader::new(&bytes), &mut caller).unwrap();
        let (mut out, mut facts) = (ReplyBuf::default(), OpRecord::default());
        let mut call = Call {
            caller: &caller,
            may_block: true,
            args: Reader::new(&bytes),
            out: &mut out,
            facts: &mut facts,
            more: &mut Vec::new(),
            budgets: &Budgets::default(),
        };
        program.handle(procedure, &mut call).unwrap();
        decode_all::<Nlm4Res<'_>>(out.as_slice()).unwrap().stat
    }

    fn alock(&self, process: usize, (start, len, _): Request) -> Nlm4Lock<'_> {
        Nlm4Lock {
            caller_name: HostName(NAME),
            fh: Netobj(self.file.as_bytes()),
            oh: Netobj(b"oh"),
            svid: process as u32,
            l_offset: start,
            l_len: len,
        }
    }

    pub fn lock(&self, process: usize, want: Request, block: bool, reclaim: bool) -> Nlm4Stat {
        let (cookie, alock, exclusive) = (Netobj(b""), self.alock(process, want), want.2);
        let args = LockArgs { cookie, block, exclusive, alock, reclaim, state: 1 };
        self.call(process, Proc::LOCK, &args)
    }

    pub fn unlock(&self, process: usize, range: Request) -> Nlm4Stat {
        let args = UnlockArgs { cookie: Netobj(b""), alock: self.alock(process, range) };
        self.call(process, Proc::UNLOCK, &args)
    }

    pub fn cancel(&self, process: usize, want: Request) -> Nlm4Stat {
        let (cookie, alock) = (Netobj(b""), self.alock(process, want));
        let args = CancelArgs { cookie, block: true, exclusive: want.2, alock };
        self.call(process, Proc::CANCEL, &args)
    }

    /// Which process a grant that is not acknowledged is for, and of what.
    pub fn granted(&self, id: u64) -> Option<(usize, Request)> {
        let (want, _) = self.nlm.blocks.lock().granted(id)?;
        let process = owner_parts(&want.owner).0 as usize;
        let (start, end) = (want.range.start, want.range.end);
        Some((process, (start, end - start + 1, want.kind == Kind::Write)))
    }

    /// What the table of locks holds for each process.
    pub fn table(&self) -> [Bytes; PROCESSES] {
        let mut table = [Bytes::default(); PROCESSES];
        for row in self.locks.list(None, usize::MAX) {
            if let What::Lock(range, kind) = row.what {
                let bytes = &mut table[owner_parts(&row.owner).0 as usize];
                let bytes = &mut bytes[range.start as usize..=range.end as usize];
                bytes.fill(Some(kind == Kind::Write));
            }
        }
        table
    }
}
