//! NFS version 4 put together: its state, the records of who held some, the clock.

use std::sync::Arc;
use std::time::Duration;

use base::clock::{Clock, NS_PER_S, SystemClock};
use base::random::{Random, SystemRandom};
use control::state::StateDir;
use serve::nfs4::state::{Config, Name, Records, State};
use serve::nfs4::{Nfs4, Stateful, program};
use serve::rpc::Program;
use vfs::locks::LockTable;
use vfs::recovery::{ClientId, ClientRecords, FileRecords};
use vfs::share::ShareTable;

use crate::out::{Failure, chain};

/// Where the clients that hold state are written down.
const RECORDS: &str = "clients";
/// Kinds of clients in the records: 4.0, and 4.1 and later, whose names are apart.
const KINDS: [u8; 2] = [40, 41];

/// The program on these shares, and its keeper of state. Who held state before the start may
/// reclaim it for one lease.
///
/// # Errors
/// The records cannot be read.
pub fn start(
    shares: Arc<ShareTable>,
    locks: Arc<LockTable>,
    lease: Duration,
    state: &StateDir,
) -> Result<(Arc<dyn Program>, Arc<Stateful>), Failure> {
    let path = state.file(RECORDS);
    let records =
        FileRecords::open(&path).map_err(|e| Failure::of("read who held NFSv4 state", &e))?;
    let known = records.known().iter().filter_map(name).collect();
    let clock = Arc::new(SystemClock);
    let lease_ns = lease.as_secs() * NS_PER_S;
    let state = State::new(Config {
        boot: SystemRandom.next_u64() as u32,
        lease_ns,
        grace_until_ns: clock.monotonic_ns() + lease_ns,
        known,
        records: Arc::new(OnDisk(records)),
        locks,
    });
    let owner = server_owner(&path.display().to_string());
    let keeper = Arc::new(Stateful { state, clock, server_owner: owner });
    let verifier = SystemRandom.next_u64().to_be_bytes();
    let nfs = Nfs4 { shares, verifier, lease, state: keeper.clone() };
    Ok((program(Arc::new(nfs)), keeper))
}

/// `so_major_id`: this machine and this state directory, and no other.
fn server_owner(path: &str) -> Vec<u8> {
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    format!("plimsoll {} {path}", machine.trim()).into_bytes()
}

fn name(client: &ClientId) -> Option<Name> {
    KINDS.contains(&client.protocol).then(|| (client.protocol == KINDS[1], client.owner.clone()))
}

/// The records as the state asks for them.
struct OnDisk(FileRecords);

impl OnDisk {
    fn client((has_sessions, owner): &Name) -> ClientId {
        let protocol = KINDS[usize::from(*has_sessions)];
        ClientId { protocol, owner: owner.clone(), principal: Vec::new() }
    }
}

impl Records for OnDisk {
    fn record(&self, name: &Name) {
        if let Err(e) = self.0.record(&Self::client(name)) {
            eprintln!("plimsoll: a client will not be able to reclaim its locks: {}", chain(&e));
        }
    }

    fn forget(&self, name: &Name) {
        if let Err(e) = self.0.forget(&Self::client(name)) {
            eprintln!("plimsoll: a client that is gone stays on record: {}", chain(&e));
        }
    }
}
