//! Threads of one unit: a pool and a flush group of its own, so that a disk that does not answer
//! delays no other unit. What runs on them is the engine of [`engine::exec`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use base::limits::{
    LUN_FLUSHES_BEHIND_CLIENT_MAX, LUN_FLUSHES_BEHIND_MAX, LUN_QUEUE_CLIENT_MAX, LUN_QUEUE_MAX,
    LUN_THREADS,
};
use tokio::sync::oneshot;
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
    /// Whether several initiators have sessions with the unit.
    is_shared: Mutex<bool>,
    /// Flushes of commands that were completed before (IMMED).
    behind: Arc<AtomicUsize>,
}

impl UnitThreads {
    fn threads(&self) -> Result<&Threads> {
        let start = || {
            let (threads, queue) = (LUN_THREADS, LUN_QUEUE_MAX);
            let limits = PoolLimits { threads, queue, per_client: LUN_QUEUE_CLIENT_MAX };
            let pool = Pool::start(limits).ok()?;
            let flush = Arc::new(FlushGroup::with_threads(1).ok()?);
            Some(Threads { pool, flush, engine: OnceLock::new() })
        };
        if let Some(threads) = self.threads.get() {
            return threads.as_ref().ok_or(Status::Busy);
        }
        let threads = self.threads.get_or_init(start).as_ref();
        self.share(|_| {});
        threads.ok_or(Status::Busy)
    }

    /// Whether several initiators share the unit: then one leaves threads to the others.
    pub fn set_shared(&self, is_shared: bool) {
        self.share(|shared| *shared = is_shared);
    }

    fn share(&self, change: impl FnOnce(&mut bool)) {
        let mut is_shared = self.is_shared.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut is_shared);
        if let Some(Some(threads)) = self.threads.get() {
            threads.pool.set_exclusive(!*is_shared);
        }
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

    /// Flushes for task management: what gets the outcome. It gets none if no thread can start.
    pub fn flush(&self, flush: Flush) -> oneshot::Receiver<Result<()>> {
        let (done, outcome) = oneshot::channel();
        if let Ok(threads) = self.threads() {
            let ended = move |result| {
                // The session may be gone by then.
                let _ = done.send(result);
            };
            threads.flush.submit(flush, Box::new(ended));
        }
        outcome
    }

    /// Flushes for a command that was completed before (IMMED), of a session that has these.
    ///
    /// # Errors
    /// The flush, if a limit is reached or no thread can be started.
    pub fn flush_behind(
        &self,
        flush: Flush,
        of_session: &Arc<AtomicUsize>,
    ) -> std::result::Result<(), Flush> {
        let Ok(threads) = self.threads() else { return Err(flush) };
        let own = FlushPermit::take(of_session, LUN_FLUSHES_BEHIND_CLIENT_MAX);
        let Some(own) = own else { return Err(flush) };
        let all = FlushPermit::take(&self.behind, LUN_FLUSHES_BEHIND_MAX);
        let Some(all) = all else { return Err(flush) };
        threads.flush.submit(flush, Box::new(move |_| drop((own, all))));
        Ok(())
    }
}

/// One of a number of flushes, until it is dropped.
struct FlushPermit(Arc<AtomicUsize>);

impl FlushPermit {
    fn take(of: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let permit = Self(Arc::clone(of));
        (of.fetch_add(1, Ordering::AcqRel) < most).then_some(permit)
    }
}

impl Drop for FlushPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
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
