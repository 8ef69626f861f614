//! TLS handshakes of NFS clients that fail, in the log.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::monotonic_ns;
use base::limits::TLS_TELL_EVERY;
use serve::transport::Budgets;
use serve::transport::tls::Tls;

/// Tells of handshakes that fail, seldom: a client that tries all day is one line a minute.
pub struct Reporter {
    tls: Arc<Tls>,
    budgets: Arc<Budgets>,
    told: u64,
    at_ns: Option<u64>,
}

impl Reporter {
    /// Tells of failures of `tls`, which `budgets` count.
    pub fn new(tls: Arc<Tls>, budgets: Arc<Budgets>) -> Self {
        Self { tls, budgets, told: 0, at_ns: None }
    }

    /// Looks whether there is something to tell.
    pub fn look(&mut self) {
        let now = monotonic_ns();
        let pause = TLS_TELL_EVERY.as_nanos() as u64;
        if self.at_ns.is_some_and(|at| now.saturating_sub(at) < pause) {
            return;
        }
        let Some((peer, why)) = self.tls.take_failure() else { return };
        let count = self.budgets.tls_failures.load(Relaxed);
        let new = count.saturating_sub(self.told).max(1);
        (self.told, self.at_ns) = (count, Some(now));
        base::warning!("nfs", "{new} TLS connections to NFS failed, the last from {peer}: {why}");
    }
}
