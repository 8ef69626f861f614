//! Permits for the threads of runs. A run that is refused needs a thread as well, until the client
//! has sent its first message and got the reason: there are as many of these.

use std::net::IpAddr;
use std::sync::Arc;

use base::limits::{
    DSYNC_SHARE_BYTES, DSYNC_SHARE_BYTES_CLIENT_MAX, DSYNC_SHARE_RUN_BYTES, DSYNC_SHARE_RUNS,
    DSYNC_SHARE_RUNS_CLIENT_MAX,
};
use base::peer::network;
use base::tally::{AddressBytes, AddressPermit, AddressPermits};
use sync::memory::RunMemory;

/// The permits.
#[derive(Default)]
pub(super) struct RunPermits {
    runs: Arc<AddressPermits>,
    refusals: Arc<AddressPermits>,
    bytes: Arc<AddressBytes>,
}

/// A permit, until it is dropped.
pub(super) struct RunPermit {
    /// Why the run is refused, if it is.
    pub refused: Option<&'static str>,
    /// What the run may hold.
    pub memory: Arc<RunMemory>,
    _permit: AddressPermit,
}

impl RunPermits {
    /// A permit for a run, or for its refusal, of a client at this address; `None` if there is
    /// neither.
    pub(super) fn take(&self, from: IpAddr) -> Option<RunPermit> {
        let (from, limits) = (network(from), (DSYNC_SHARE_RUNS, DSYNC_SHARE_RUNS_CLIENT_MAX));
        let of_all = (DSYNC_SHARE_BYTES, DSYNC_SHARE_BYTES_CLIENT_MAX);
        let bytes = Arc::clone(&self.bytes);
        let memory = RunMemory::shared(DSYNC_SHARE_RUN_BYTES, bytes, from, of_all);
        if let Some(permit) = self.runs.take(from, limits) {
            return Some(RunPermit { refused: None, memory, _permit: permit });
        }
        let why = "too many dsync runs on this server; try again later";
        let permit = self.refusals.take(from, limits)?;
        Some(RunPermit { refused: Some(why), memory, _permit: permit })
    }
}

#[cfg(test)]
mod tests;
