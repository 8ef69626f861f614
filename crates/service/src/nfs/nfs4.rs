//! NFS version 4 put together: its state, the records of who held some, the clock.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::clock::{Clock, NS_PER_S, SystemClock};
use base::failure::{Failure, chain};
use base::random::{Random, SystemRandom};
use serve::nfs4::state::{Config, Identity, NotWritten, Records, State};
use serve::nfs4::{IdMap, Nfs4, Stateful, program};
use serve::rpc::Program;
use vfs::locks::LockTable;
use vfs::recovery::{ClientId, ClientRecords, FileRecords, RecordError};
use vfs::share::Shares;

/// Where the clients that hold state are written down, in the state directory.
pub const RECORDS: &str = "clients";
/// Kinds of clients in the records: 4.0, and 4.1 and later, whose names are apart.
const KINDS: [u8; 2] = [40, 41];
/// What does not work while the records cannot be written.
const NOT_RECORDED: &str = "NFSv4 clients cannot open files until their records can be written";
/// Begins the principal of who came with AUTH_SYS; the uid follows, in decimal digits.
const PRINCIPAL: &[u8] = b"sys:";

/// The program on these shares, and its keeper of state. Who held state before the start may
/// reclaim it for one lease.
///
/// # Errors
/// The records cannot be read.
pub fn start(
    shares: Arc<Shares>,
    locks: Arc<LockTable>,
    (lease, idmap): (Duration, Arc<IdMap>),
    path: &Path,
) -> Result<(Arc<dyn Program>, Arc<Stateful>), Failure> {
    let (records, unwritten) =
        FileRecords::open(path).map_err(|e| Failure::of("read the NFSv4 client records", &e))?;
    if let Some(e) = unwritten {
        base::error!("nfs", "{NOT_RECORDED}: {e}");
    }
    let known = records.known().iter().filter_map(identity).collect();
    let clock = Arc::new(SystemClock);
    let lease_ns = lease.as_secs() * NS_PER_S;
    let state = State::new(Config {
        boot: SystemRandom.next_u64() as u32,
        lease_ns,
        grace_until_ns: clock.monotonic_ns() + lease_ns,
        known,
        records: Arc::new(OnDisk::new(records)),
        locks,
        random: Box::new(SystemRandom),
    });
    let owner = server_owner(&path.display().to_string());
    let keeper = Arc::new(Stateful { state, clock, server_owner: owner });
    let verifier = SystemRandom.next_u64().to_be_bytes();
    let nfs = Nfs4 { shares, verifier, lease, idmap, state: keeper.clone() };
    Ok((program(Arc::new(nfs)), keeper))
}

/// `so_major_id`: this machine and this state directory, and no other.
fn server_owner(path: &str) -> Vec<u8> {
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    format!("plimsoll {} {path}", machine.trim()).into_bytes()
}

/// A client of ours on record.
fn identity(client: &ClientId) -> Option<Identity> {
    let has_sessions = KINDS.iter().position(|kind| *kind == client.protocol)? == 1;
    let uid = client.principal.strip_prefix(PRINCIPAL)?;
    let principal = std::str::from_utf8(uid).ok()?.parse().ok()?;
    Some(Identity { name: (has_sessions, client.owner.clone()), principal })
}

/// The records as the state asks for them.
struct OnDisk {
    records: FileRecords,
    /// Trouble was told, and nothing has gone well since: a full disk is one message, not one for
    /// each OPEN.
    told: AtomicBool,
}

impl OnDisk {
    fn new(records: FileRecords) -> Self {
        Self { records, told: AtomicBool::new(false) }
    }

    fn client(client: &Identity) -> ClientId {
        let (has_sessions, owner) = &client.name;
        let protocol = KINDS[usize::from(*has_sessions)];
        let principal = [PRINCIPAL, client.principal.to_string().as_bytes()].concat();
        ClientId { protocol, owner: owner.clone(), principal }
    }

    fn tell(&self, what: &str, done: Result<(), RecordError>) -> Result<(), NotWritten> {
        match done {
            Ok(()) => {
                self.told.store(false, Ordering::Relaxed);
                Ok(())
            }
            Err(e) => {
                if !self.told.swap(true, Ordering::Relaxed) {
                    base::error!("nfs", "{what}: {}", chain(&e));
                }
                Err(NotWritten)
            }
        }
    }
}

impl Records for OnDisk {
    fn record(&self, client: &Identity) -> Result<(), NotWritten> {
        let done = self.records.record(&Self::client(client));
        self.tell(NOT_RECORDED, done)
    }

    fn forget(&self, client: &Identity) -> Result<(), NotWritten> {
        let done = self.records.forget(&Self::client(client));
        self.tell(
            "the state of an expired client is retained until its record can be removed",
            done,
        )
    }

    fn end_of_grace(&self) -> Result<(), NotWritten> {
        let done = self.records.end_of_grace();
        self.tell("the grace period is extended until client records can be written", done)
    }
}
