//! Waiting for a place or for memory that other operations give back, with pauses that grow: what
//! waits for long must not take a processor from those.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::clock::Deadline;
use base::limits::{POOL_LOOK, POOL_LOOK_MAX};
use engine::exec;
use vfs::status::Status;

/// The pauses of one operation.
#[derive(Debug)]
pub struct Backoff {
    until: Option<Deadline>,
    next: Duration,
}

impl Backoff {
    /// Until then.
    pub const fn until(until: Deadline) -> Self {
        Self { until: Some(until), next: POOL_LOOK }
    }

    /// For as long as the connection lasts.
    pub const fn endless() -> Self {
        Self { until: None, next: POOL_LOOK }
    }

    /// Pauses before the next attempt, and counts a stall.
    ///
    /// # Errors
    /// [`Status::Busy`] if the time is over.
    pub async fn pause(&mut self, core: &exec::Core) -> Result<(), Status> {
        let Some(pause) = self.next_pause() else { return Err(Status::Busy) };
        core.engine.budgets.stalls.fetch_add(1, Relaxed);
        tokio::time::sleep(pause).await;
        Ok(())
    }

    fn next_pause(&mut self) -> Option<Duration> {
        if self.until.is_some_and(Deadline::passed) {
            return None;
        }
        let pause = self.next;
        self.next = (2 * pause).min(POOL_LOOK_MAX);
        Some(pause)
    }
}

#[cfg(test)]
mod tests;
