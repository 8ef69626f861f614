//! Locks of NFSv3 clients put together: NLM on the table of all protocols, the records of hosts.

use std::sync::Arc;
use std::time::Duration;

use base::clock::{Clock, NS_PER_S, SystemClock};
use base::failure::{Failure, OrFailure};
use base::limits::NLM_GRANT_TIME_MAX;
use serve::nfs4::Stateful;
use serve::nlm::{Config, Nlm, PORTMAP_PORT};
use vfs::recovery::FileRecords;

use crate::parts::ServiceParts;
use crate::reach::machine_name;

/// The file of the hosts that hold locks, in the state directory.
const RECORDS: &str = "nlm-clients";

/// The service on these shares. Hosts that held locks before the start are notified, and may
/// reclaim them for one lease.
///
/// # Errors
/// The records cannot be read.
pub fn start(
    parts: &ServiceParts,
    lease: Duration,
    nfs4: &Arc<Stateful>,
) -> Result<Arc<Nlm>, Failure> {
    let (records, unwritten) =
        FileRecords::open(&parts.state.join(RECORDS)).or_failure("read the NFSv3 lock records")?;
    if let Some(e) = unwritten {
        base::error!("nfs", "locks of new NFSv3 hosts are refused until they can be recorded: {e}");
    }
    let clock = Arc::new(SystemClock);
    let nfs4 = nfs4.clone();
    let config = Config {
        shares: parts.shares.clone(),
        locks: parts.locks.clone(),
        grace_until_ns: clock.monotonic_ns() + lease.as_secs() * NS_PER_S,
        clock,
        records: Arc::new(records),
        evict_expired: Box::new(move |owner| nfs4.evict_expired(owner)),
        name: machine_name(),
        address: Some(parts.at.0).filter(|address| !address.is_unspecified()),
        portmap_port: PORTMAP_PORT,
        grant_time: NLM_GRANT_TIME_MAX,
        reserved_ports: true,
    };
    Ok(Nlm::start(config, &parts.runtimes))
}
