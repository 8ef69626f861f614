//! Threads of one unit: a pool and a flush group of its own, so that a disk that does not answer
//! delays no other unit. What runs on them is the engine of [`engine::exec`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use base::limits::{LUN_FLUSHES_BEHIND_MAX, LUN_QUEUE_MAX, LUN_THREADS};
use vfs::flush::FlushGroup;
use vfs::fs::{Flush, Result};
use vfs::status::Status;

use engine::exec::Engine;
use engine::pool::{Pool, PoolLimits};

/// The threads, once they are there.
struct Threads {
    pool: Arc<Pool>,
    flush: Arc<FlushGroup>,
    engine: OnceLock<Arc<Engine>>,
}

/// Threads that are started when the first command needs them.
#[derive(Default)]
pub struct UnitThreads {
    threads: OnceLock<Option<Threads>>,
    /// Flushes of commands that were completed before (IMMED).
    behind: Arc<AtomicUsize>,
}

impl UnitThreads {
    fn threads(&self) -> Result<&Threads> {
        let start = || {
            let (threads, queue) = (LUN_THREADS, LUN_QUEUE_MAX);
            let limits = PoolLimits { threads, queue, per_client: queue };
            let pool = Pool::start(limits).ok()?;
            let flush = Arc::new(FlushGroup::with_threads(1).ok()?);
            Some(Threads { pool, flush, engine: OnceLock::new() })
        };
        self.threads.get_or_init(start).as_ref().ok_or(Status::Busy)
    }

    /// What executes the commands of the unit: with the budgets and the probe of its service.
    ///
    /// # Errors
    /// [`Status::Busy`] if no thread can be started.
    pub fn engine(&self, service: &Engine) -> Result<&Arc<Engine>> {
        let Threads { pool, flush, engine } = self.threads()?;
        let over = || {
            flush.count_panics_with(&service.flush);
            let (budgets, hub) = (Arc::clone(&service.budgets), Arc::clone(&service.hub));
            Engine::new(Arc::clone(pool), Arc::clone(flush), budgets, hub)
        };
        Ok(engine.get_or_init(over))
    }

    /// Flushes for a command that was completed before (IMMED).
    ///
    /// # Errors
    /// The flush, if the limit is reached or no thread can be started.
    pub fn flush_behind(&self, flush: Flush) -> std::result::Result<(), Flush> {
        let Ok(threads) = self.threads() else { return Err(flush) };
        if self.behind.fetch_add(1, Ordering::AcqRel) >= LUN_FLUSHES_BEHIND_MAX {
            self.behind.fetch_sub(1, Ordering::AcqRel);
            return Err(flush);
        }
        let behind = Arc::clone(&self.behind);
        let ended = move |_| {
            behind.fetch_sub(1, Ordering::AcqRel);
        };
        threads.flush.submit(flush, Box::new(ended));
        Ok(())
    }
}

impl Drop for UnitThreads {
    fn drop(&mut self) {
        let Some(Some(threads)) = self.threads.take() else { return };
        // Dropping them waits for what they are doing, which a stuck disk never ends.
        let waiting = std::thread::Builder::new().name("lun-end".to_owned());
        // Without a thread they are dropped, and waited for, here.
        let _ = waiting.spawn(move || drop(threads));
    }
}
