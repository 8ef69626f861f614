//! NFS version 4 put together: its state, the records of clients with state, the clock.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::clock::{Clock, NS_PER_S, SystemClock};
use base::failure::{Failure, OrFailure, chain};
use base::random::{Random, SystemRandom};
use serve::nfs4::state::{Config, Identity, NotWritten, Records, State};
use serve::nfs4::{IdMap, Nfs4, Stateful, program};
use serve::rpc::Program;
use vfs::recovery::{ClientId, ClientRecords, FileRecords, RecordError};

use crate::parts::ServiceParts;

/// The file of the clients that hold state, in the state directory.
const RECORDS: &str = "clients";
/// Kinds of clients in the records: 4.0, and 4.1 and later, which have separate names.
const KINDS: [u8; 2] = [40, 41];
/// What does not work while the records cannot be written.
const NOT_RECORDED: &str = "NFSv4 clients cannot open files until their records can be written";
/// Prefix of the principal of a client with AUTH_SYS; the uid follows, in decimal digits.
const PRINCIPAL: &[u8] = b"sys:";

/// The program on these shares, and its state. Clients that held state before the start may reclaim
/// it for one lease.
///
/// # Errors
/// The records cannot be read.
pub fn start(
    parts: &ServiceParts,
    lease: Duration,
    idmap: Arc<IdMap>,
) -> Result<(Arc<dyn Program>, Arc<Stateful>), Failure> {
    let path = parts.state.join(RECORDS);
    let (records, unwritten) =
        FileRecords::open(&path).or_failure("read the NFSv4 client records")?;
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
        records: Arc::new(OnDisk { records, reported: AtomicBool::new(false) }),
        locks: parts.locks.clone(),
        random: Box::new(SystemRandom),
    });
    let server_owner = parts.server_id.owner.clone();
    let keeper = Arc::new(Stateful { state, clock, server_owner });
    let (shares, verifier) = (parts.shares.clone(), SystemRandom.next_u64().to_be_bytes());
    let nfs = Nfs4 { shares, verifier, lease, idmap, state: keeper.clone() };
    Ok((program(Arc::new(nfs)), keeper))
}

/// `so_major_id` as versions without [`crate::server_id`] made it, where one has served NFSv4 from
/// this state directory: of the machine and the path of the client records.
pub fn owner_before(state: &Path) -> Option<Vec<u8>> {
    let path = state.join(RECORDS);
    path.exists().then(|| {
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        format!("plimsoll {} {}", machine.trim(), path.display()).into_bytes()
    })
}

/// The identity of a client, if its record is from this service.
fn identity(client: &ClientId) -> Option<Identity> {
    let has_sessions = KINDS.iter().position(|kind| *kind == client.protocol)? == 1;
    let uid = client.principal.strip_prefix(PRINCIPAL)?;
    let principal = std::str::from_utf8(uid).ok()?.parse().ok()?;
    Some(Identity { name: (has_sessions, client.owner.clone()), principal })
}

/// The records in the form that the state requires.
struct OnDisk {
    records: FileRecords,
    /// An error was reported, and no write has succeeded since: a full disk causes one message, not
    /// one for each OPEN.
    reported: AtomicBool,
}

impl OnDisk {
    fn client(client: &Identity) -> ClientId {
        let (has_sessions, owner) = &client.name;
        let protocol = KINDS[usize::from(*has_sessions)];
        let principal = [PRINCIPAL, client.principal.to_string().as_bytes()].concat();
        ClientId { protocol, owner: owner.clone(), principal }
    }

    fn report(&self, what: &str, done: Result<(), RecordError>) -> Result<(), NotWritten> {
        let reported = self.reported.swap(done.is_err(), Ordering::Relaxed);
        done.map_err(|e| {
            if !reported {
                base::error!("nfs", "{what}: {}", chain(&e));
            }
            NotWritten
        })
    }
}

impl Records for OnDisk {
    fn record(&self, client: &Identity) -> Result<(), NotWritten> {
        self.report(NOT_RECORDED, self.records.record(&Self::client(client)))
    }

    fn forget(&self, client: &Identity) -> Result<(), NotWritten> {
        let retained = "the state of an expired client is retained until its record can be removed";
        self.report(retained, self.records.forget(&Self::client(client)))
    }

    fn end_of_grace(&self) -> Result<(), NotWritten> {
        let extended = "the grace period is extended until client records can be written";
        self.report(extended, self.records.end_of_grace())
    }
}
