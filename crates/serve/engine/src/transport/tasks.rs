//! Tasks that run on the runtimes for a service, and their end: ordered at once, and waited for,
//! so that its sockets are free again for the next start.

use std::future::Future;
use std::io;
use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::DRAIN_TIME_MAX;
use tokio::sync::{oneshot, watch};
use tokio::time::{Interval, MissedTickBehavior};

use super::Runtimes;

/// Ticks of this period, at the same moments for all connections: a core that has nothing to do
/// wakes once for all of them.
pub fn common_interval(period: Duration) -> Interval {
    let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
    let left = Duration::from_nanos(period_ns - monotonic_ns() % period_ns);
    let first = tokio::time::sleep(left).deadline();
    let mut ticks = tokio::time::interval_at(first, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// Turns true, or is closed, when the service is to end.
pub type Ending = watch::Receiver<bool>;

/// The tasks of a service. Dropping them orders them to end, without waiting.
pub struct Tasks {
    ending: watch::Sender<bool>,
    running: Vec<oneshot::Receiver<bool>>,
    /// Others that end with these.
    others: Vec<Tasks>,
}

impl Default for Tasks {
    fn default() -> Self {
        let (ending, _) = watch::channel(false);
        Self { ending, running: Vec::new(), others: Vec::new() }
    }
}

impl Tasks {
    /// Runs the future that `start` makes on core `core`. It must end when it is ordered to; true
    /// means that it left nothing undone. Returns false when the runtimes are ending.
    pub fn spawn<F, T>(&mut self, runtimes: &Runtimes, core: usize, start: F) -> bool
    where
        F: FnOnce(Ending) -> T + Send + 'static,
        T: Future<Output = bool> + 'static,
    {
        let ending = self.ending.subscribe();
        let (done, is_done) = oneshot::channel();
        self.running.push(is_done);
        runtimes.spawn_on(core, move || async move {
            let clean = start(ending).await;
            // The receiver may be gone.
            let _ = done.send(clean);
        })
    }

    /// Runs a future without an end of its own until it is ordered to end.
    pub fn spawn_endless<F, T>(&mut self, runtimes: &Runtimes, core: usize, start: F) -> bool
    where
        F: FnOnce() -> T + Send + 'static,
        T: Future + 'static,
    {
        self.spawn(runtimes, core, move |mut ending| async move {
            tokio::select! {
                _ = start() => {}
                _ = ending.wait_for(|end| *end) => {}
            }
            true
        })
    }

    /// Adds other tasks, which are ordered to end together with these.
    pub fn adopt(&mut self, others: Self) {
        self.others.push(others);
    }

    /// Orders all to end, and waits for each a little longer than [`DRAIN_TIME_MAX`]. Returns
    /// whether all have ended and left nothing undone.
    pub async fn end(self) -> bool {
        let mut running = Vec::new();
        let mut all = vec![self];
        while let Some(mut tasks) = all.pop() {
            tasks.ending.send_replace(true);
            running.append(&mut tasks.running);
            all.append(&mut tasks.others);
        }
        let mut clean = true;
        let patience = DRAIN_TIME_MAX + Duration::from_secs(1);
        for running in running {
            let done = tokio::time::timeout(patience, running).await;
            clean &= matches!(done, Ok(Ok(true)));
        }
        clean
    }

    /// As [`Tasks::end`], for callers that are not asynchronous.
    ///
    /// # Errors
    /// When no timer can be had for waiting.
    pub fn end_blocking(self) -> io::Result<bool> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(runtime.block_on(self.end()))
    }
}
