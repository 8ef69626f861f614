//! Where an operation is tried, queued, flushed and completed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base::clock::stamp;
use probe::hub::Hub;
use probe::phases::Phase;
use vfs::flush::FlushGroup;
use vfs::fs::Flush;
use vfs::status::Status;

use super::{Failure, Operation};
use crate::pool::{Pool, Slot};
use crate::transport::Budgets;
use crate::transport::buffers::LargeBuffers;

/// What executes the operations of a service: the same over all its starts. The pool, the flush
/// group and the hub are shared by the services, budgets and buffers are its own.
pub struct Engine {
    /// Threads for operations that block.
    pub pool: Arc<Pool>,
    /// Flushes that replies wait for.
    pub flush: Arc<FlushGroup>,
    /// How much of everything may be in use, and is.
    pub budgets: Arc<Budgets>,
    /// Where operations are recorded.
    pub hub: Arc<Hub>,
    /// Buffers that go to the pool and back.
    pub large: LargeBuffers,
}

impl Engine {
    /// An engine of one service.
    pub fn new(
        pool: Arc<Pool>,
        flush: Arc<FlushGroup>,
        budgets: Arc<Budgets>,
        hub: Arc<Hub>,
    ) -> Arc<Self> {
        Arc::new(Self { pool, flush, budgets, hub, large: LargeBuffers::default() })
    }

    /// Tries a step of an operation on this thread; on a connection's it must not wait.
    ///
    /// # Errors
    /// [`Status::Fault`] if it panics, which is counted.
    #[inline]
    pub fn attempt<T>(&self, step: impl FnOnce() -> T) -> Result<T, Status> {
        self.budgets.contain(step)
    }

    /// Tries a step of an operation that waits without blocking its thread; it is not polled again
    /// after a panic. It is pinned by its caller and not copied.
    ///
    /// # Errors
    /// [`Status::Fault`] if it panics, which is counted.
    pub async fn attempt_async<F: Future>(&self, step: Pin<&mut F>) -> Result<F::Output, Status> {
        self.budgets.contain_async(step).await
    }

    /// Runs an operation on the pool, performs the flush that it returns, and completes it.
    pub fn submit<O: Operation>(self: &Arc<Self>, slot: Slot, operation: O) {
        let engine = Arc::clone(self);
        slot.run(Box::new(move || engine.run(operation)));
    }

    fn run<O: Operation>(&self, mut operation: O) {
        operation.clock().spent(Phase::PoolWait, stamp());
        if !operation.begins() {
            operation.failed(Failure::Cancelled);
            return operation.complete();
        }
        let ran = self.attempt(|| operation.run());
        operation.clock().spent(Phase::Pool, stamp());
        match ran {
            Ok(Some(flush)) => self.flush(flush, operation),
            Ok(None) => operation.complete(),
            Err(_) => {
                operation.failed(Failure::Panicked);
                operation.complete();
            }
        }
    }

    /// Completes an operation that has its reply, once this is on disk: on a flusher thread,
    /// or here and now if there is nothing to flush.
    pub fn flush<O: Operation>(&self, flush: Flush, mut operation: O) {
        let budgets = Arc::clone(&self.budgets);
        let done = move |outcome: Result<(), Status>| {
            operation.clock().spent(Phase::Flush, stamp());
            if budgets.contain(|| operation.flushed(outcome)).is_err() {
                operation.failed(Failure::Panicked);
            }
            operation.complete();
        };
        self.flush.submit(flush, Box::new(done));
    }

    /// Runs a job on the pool without a completion; not at all, and false, if there is no
    /// place in the queue of `client` now.
    pub fn run_behind(self: &Arc<Self>, client: u64, job: impl FnOnce() + Send + 'static) -> bool {
        let Some(slot) = self.pool.reserve(client) else { return false };
        let engine = Arc::clone(self);
        let contained = move || {
            // It has no completion; a panic is counted.
            let _ = engine.attempt(job);
        };
        slot.run(Box::new(contained));
        true
    }

    /// Runs an operation on a thread of its caller's own, which may wait, and performs there the
    /// flush that it returns.
    ///
    /// # Errors
    /// [`Status::Fault`] if it panics, which is counted; that the flush failed.
    pub fn run_here<T>(&self, operation: impl FnOnce() -> (T, Flush)) -> Result<T, Status> {
        let (value, flush) = self.attempt(operation)?;
        if !flush.is_empty() {
            self.attempt(|| flush.wait())??;
        }
        Ok(value)
    }
}
