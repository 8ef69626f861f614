//! The real server without sockets: it runs messages, forgets all when it restarts, and keeps on
//! record what a file would have kept.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::Duration;

use base::clock::{Clock, ManualClock, NS_PER_S};
use base::random::SeededRandom;
use probe::op::OpRecord;
use vfs::attr::SetAttr;
use vfs::cred::Cred;
use vfs::fs::{Context, CreateHow, FileSystem};
use vfs::locks::{FileKey, LockTable, SHARE_READ, Share, What as Row};
use vfs::mem::MemFs;
use vfs::share::{ShareTable, Shares, tag};

use super::super::super::state::{Config, Identity, NotWritten, Records, State};
use super::super::super::{Nfs4, Peer, Stateful};
use super::wire::{BYTES, Bytes, Handles};
use engine::transport::buffers::ReplyBuf;

/// Files that the clients meet on.
pub const FILES: usize = 2;
pub const LEASE_NS: u64 = 20 * NS_PER_S;

/// What the lock table holds, by file, client and owner.
pub type Table = BTreeMap<(usize, u64, u32), (Share, Bytes)>;

/// On disk: the clients on record, each with whether it has reclaimed since the start.
#[derive(Default)]
struct MemoryRecords(Mutex<HashMap<Identity, bool>>);

impl MemoryRecords {
    fn entries(&self) -> MutexGuard<'_, HashMap<Identity, bool>> {
        self.0.lock().expect("no panic before")
    }
}

impl Records for MemoryRecords {
    fn record(&self, client: &Identity) -> Result<(), NotWritten> {
        self.entries().insert(client.clone(), true);
        Ok(())
    }

    fn forget(&self, client: &Identity) -> Result<(), NotWritten> {
        self.entries().remove(client);
        Ok(())
    }

    fn end_of_grace(&self) -> Result<(), NotWritten> {
        self.entries().retain(|_, here| *here);
        Ok(())
    }
}

pub struct Server {
    pub clock: Arc<ManualClock>,
    pub handles: Handles,
    pub boot: u32,
    pub grace_until: u64,
    pub locks: Arc<LockTable>,
    fs: Arc<MemFs>,
    keys: Vec<FileKey>,
    book: Arc<MemoryRecords>,
    nfs: Nfs4,
    keeper: Arc<Stateful>,
    cred: Cred,
}

fn start(
    fs: &Arc<MemFs>,
    clock: &Arc<ManualClock>,
    book: &Arc<MemoryRecords>,
    boot: u32,
    locks: &Arc<LockTable>,
) -> (Nfs4, Arc<Stateful>) {
    let mut shares = ShareTable::default();
    shares.add("s", fs.clone(), false).expect("a share");
    let mut on_record = book.entries();
    on_record.values_mut().for_each(|here| *here = false);
    let state = State::new(Config {
        boot,
        lease_ns: LEASE_NS,
        grace_until_ns: clock.monotonic_ns() + LEASE_NS,
        known: on_record.keys().cloned().collect(),
        records: book.clone(),
        locks: locks.clone(),
        random: Box::new(SeededRandom::new(u64::from(boot))),
    });
    let keeper = Stateful { state, clock: clock.clone(), server_owner: b"here".to_vec() };
    let keeper = Arc::new(keeper);
    let lease = Duration::from_nanos(LEASE_NS);
    (
        Nfs4 {
            shares: Shares::new(shares),
            verifier: [1; 8],
            lease,
            state: keeper.clone(),
            idmap: Arc::default(),
        },
        keeper,
    )
}

impl Server {
    pub fn new() -> Self {
        let fs = MemFs::new(tag("s"), 1 << 30);
        let (clock, book) =
            (Arc::new(ManualClock::at(NS_PER_S)), Arc::new(MemoryRecords::default()));
        let (cred, locks) = (Cred::root(), Arc::new(LockTable::default()));
        let cx = Context { cred: &cred, may_block: true };
        let names: Vec<_> = (0..FILES).map(|n| format!("f{n}").into_bytes()).collect();
        let made = names.iter().map(|name| {
            let how = CreateHow::Guarded(SetAttr { mode: Some(0o666), ..Default::default() });
            fs.create(cx, &fs.root(), name, how).expect("a file").value
        });
        let made: Vec<_> = made.collect();
        let keys = made.iter().map(|entry| FileKey::from(&entry.attr)).collect();
        let files = made.iter().map(|entry| entry.handle.as_bytes().to_vec()).collect();
        let handles = Handles { root: fs.root().as_bytes().to_vec(), files, names };
        let (nfs, keeper) = start(&fs, &clock, &book, 1, &locks);
        let grace_until = clock.monotonic_ns();
        Self { clock, handles, boot: 1, grace_until, locks, fs, keys, book, nfs, keeper, cred }
    }

    /// Everything but the disk is gone.
    pub fn restart(&mut self) {
        self.boot += 1;
        self.locks = Arc::new(LockTable::default());
        (self.nfs, self.keeper) = start(&self.fs, &self.clock, &self.book, self.boot, &self.locks);
        self.grace_until = self.now() + LEASE_NS;
    }

    pub fn now(&self) -> u64 {
        self.clock.monotonic_ns()
    }

    /// Runs a message as a connection would: inline first, then where it may block.
    pub fn run(&self, message: &[u8]) -> Vec<u8> {
        let address = (std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 40_000);
        let peer = Peer {
            cred: &self.cred,
            address,
            transport: Default::default(),
            flavor: Default::default(),
            facts: OpRecord::default(),
            connection: 1,
            back: None,
            budgets: &engine::transport::Budgets::default(),
        };
        let mut out = ReplyBuf::default();
        let Some(mut progress) = self.nfs.begin(message, &mut out).expect("a head") else {
            return out.into_vec();
        };
        let p = &mut progress;
        if self.nfs.run(p, peer, false, message, &mut out, 0) == Poll::Pending {
            assert_eq!(self.nfs.run(p, peer, true, message, &mut out, 0), Poll::Ready(()));
        }
        let mut results = out.into_vec();
        if !progress.flush.is_empty() {
            self.nfs.flushed(&mut progress, Ok(()), &mut results, 0);
        }
        results
    }

    pub fn sweep(&self) {
        self.keeper.sweep();
    }

    /// Confirmed clients.
    pub fn clients(&self) -> Vec<u64> {
        self.keeper.state.clients(self.now()).iter().map(|client| client.id).collect()
    }

    /// Clients and sessions, opens and locks by stateid, opens and locks in the table.
    pub fn counts(&self) -> [u64; 6] {
        let (clients, sessions) = self.keeper.state.counts();
        let held = self.keeper.state.clients(self.now());
        let states = held.iter().map(|c| (c.opens + c.locks) as u64).sum();
        let names = self.keeper.state.names_known() as u64;
        let table = self.locks.counts();
        [clients as u64, sessions as u64, states, names, table.opens, table.locks]
    }

    /// What the lock table holds.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        for row in self.locks.list(None, usize::MAX) {
            let file = self.keys.iter().position(|key| *key == row.key).expect("a known file");
            let owner = row.owner.id().try_into().map_or(u32::MAX, u32::from_be_bytes);
            let held = table.entry((file, row.owner.client.id, owner)).or_default();
            match row.what {
                Row::Open(share) => held.0 = share,
                Row::Lock(range, kind) => {
                    let end = range.end.min(BYTES as u64 - 1) as usize;
                    let how = if kind == vfs::locks::Kind::Read { SHARE_READ } else { 2 };
                    held.1[range.start as usize..=end].fill(how);
                }
                other => panic!("nobody asked for {other:?}"),
            }
        }
        table
    }
}
