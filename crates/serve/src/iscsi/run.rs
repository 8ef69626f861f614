//! How commands of one unit run where they may block: on threads and a flush group of its own, so
//! that a disk that answers nothing holds up nobody else. The only file of this folder that knows
//! the engine.

use std::sync::{Arc, OnceLock};

use base::clock::stamp;
use base::limits::{LUN_QUEUE_MAX, LUN_THREADS};
use vfs::flush::{Completion, FlushGroup};
use vfs::fs::{Flush, Result};
use vfs::status::Status;

use crate::pool::{Pool, PoolLimits};

/// The threads, once they are there.
struct Threads {
    pool: Arc<Pool>,
    flush: FlushGroup,
}

/// Runs what may block. The threads are started when the first command needs them.
#[derive(Default)]
pub struct Engine {
    threads: OnceLock<Option<Threads>>,
}

impl Engine {
    fn threads(&self) -> Result<&Threads> {
        let start = || {
            let (threads, queue) = (LUN_THREADS, LUN_QUEUE_MAX);
            let limits = PoolLimits { threads, queue, per_client: queue };
            let pool = Pool::start(limits).ok()?;
            let flush = FlushGroup::with_threads(1).ok()?;
            Some(Threads { pool, flush })
        };
        self.threads.get_or_init(start).as_ref().ok_or(Status::Busy)
    }

    /// Runs a job on one of the threads; `client` has his turn among others.
    ///
    /// # Errors
    /// [`Status::Busy`] if too many wait; then the job is dropped.
    pub fn run(&self, client: u64, job: impl FnOnce() + Send + 'static) -> Result<()> {
        let slot = self.threads()?.pool.reserve(client).ok_or(Status::Busy)?;
        slot.run(stamp(), Box::new(move |_| job()));
        Ok(())
    }

    /// Brings something to disk, then calls `done`.
    pub fn flush(&self, flush: Flush, done: Completion) {
        match self.threads() {
            Ok(threads) => threads.flush.submit(flush, done),
            Err(status) => done(Err(status)),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let Some(Some(threads)) = self.threads.take() else { return };
        // Dropping them waits for what they are doing, which a stuck disk never ends.
        let waiting = std::thread::Builder::new().name("lun-end".to_owned());
        // Without a thread to be had they are dropped, and waited for, here.
        let _ = waiting.spawn(move || drop(threads));
    }
}
