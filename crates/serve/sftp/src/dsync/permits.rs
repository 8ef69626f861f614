//! Permits for the threads of runs. A run that is refused needs a thread as well, until the client
//! has sent its first message and got the reason: there are as many of these.

use std::net::IpAddr;
use std::sync::Arc;

use base::limits::{DSYNC_SHARE_RUNS, DSYNC_SHARE_RUNS_CLIENT_MAX};
use base::peer::network;
use base::tally::{AddressPermit, AddressPermits};

/// The permits.
#[derive(Default)]
pub(super) struct RunPermits {
    runs: Arc<AddressPermits>,
    refusals: Arc<AddressPermits>,
}

/// A permit, until it is dropped.
pub(super) struct RunPermit {
    /// Why the run is refused, if it is.
    pub refused: Option<&'static str>,
    _permit: AddressPermit,
}

impl RunPermits {
    /// A permit for a run, or for its refusal, of a client at this address; `None` if there is
    /// neither.
    pub(super) fn take(&self, from: IpAddr) -> Option<RunPermit> {
        let (from, limits) = (network(from), (DSYNC_SHARE_RUNS, DSYNC_SHARE_RUNS_CLIENT_MAX));
        if let Some(permit) = self.runs.take(from, limits) {
            return Some(RunPermit { refused: None, _permit: permit });
        }
        let why = "too many dsync runs on this server; try again later";
        let permit = self.refusals.take(from, limits)?;
        Some(RunPermit { refused: Some(why), _permit: permit })
    }
}

#[cfg(test)]
mod tests;
