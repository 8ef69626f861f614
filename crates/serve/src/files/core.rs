//! What the connections of one core share, and how an operation on files runs: at once if it need
//! not wait, otherwise on the pool.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::{Deadline, stamp};
use base::limits::{POOL_LOOK, POOL_PATIENCE, RECALL_LOOK};
use tokio::sync::oneshot;
use vfs::cred::Cred;
use vfs::fs::{Change, Context, Flush, Result};
use vfs::status::Status;

use super::Files;
use super::caller::Caller;
use crate::pool::Slot;
use crate::transport::budget::CoreBudget;
use crate::transport::buffers::CoreBuffers;
use crate::transport::meter::Meter;

/// One core's state for one service.
pub struct Core {
    /// The core's number.
    pub id: u8,
    /// The service.
    pub files: Arc<Files>,
    /// The core's part of what may be in use.
    pub budget: Rc<CoreBudget>,
    /// Buffers used again.
    pub buffers: CoreBuffers,
    pub(super) meter: Meter,
}

impl Core {
    /// Core `id` of `cores`. To be called on its thread.
    pub fn new(id: usize, cores: usize, files: Arc<Files>) -> Rc<Self> {
        Rc::new(Self {
            id: id as u8,
            budget: Rc::new(CoreBudget::new(files.budgets.limits(), cores)),
            buffers: CoreBuffers::default(),
            meter: Meter::of(&files.hub, id),
            files,
        })
    }

    /// Runs an operation that changes nothing.
    ///
    /// # Errors
    /// Its own; [`Status::Busy`] if the pool has no place for too long.
    pub async fn look<T: Send + 'static>(
        &self,
        who: &Caller,
        cred: &Arc<Cred>,
        op: impl Fn(Context<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let budgets = &self.files.budgets;
        match budgets.contain(|| op(Context { cred, may_block: false })).and_then(|done| done) {
            Err(Status::WouldBlock) => self.pooled(who, cred, op).await?,
            done => done,
        }
    }

    /// Runs an operation that changes something, and waits until that is on disk. If the holder of
    /// a delegation must give it back first, it is repeated until he has.
    ///
    /// # Errors
    /// Its own, or that of a flush; [`Status::Busy`] after waiting too long.
    pub async fn change<T: Send + 'static>(
        &self,
        who: &Caller,
        cred: &Arc<Cred>,
        op: impl Fn(Context<'_>) -> Change<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let op = Arc::new(op);
        let until = Deadline::after(self.files.locks.recall_patience());
        loop {
            let again = Arc::clone(&op);
            match self.pooled(who, cred, move |cx| again(cx)).await? {
                Ok(changed) => {
                    self.flushed(changed.flush).await?;
                    return Ok(changed.value);
                }
                Err(failed) if failed.status == Status::Busy && !until.passed() => {
                    tokio::time::sleep(RECALL_LOOK).await;
                }
                Err(failed) => return Err(failed.status),
            }
        }
    }

    /// Runs something on the pool, with the caller's rights.
    ///
    /// # Errors
    /// [`Status::Busy`] if the pool has no place for too long, [`Status::Fault`] if it panics.
    pub async fn pooled<T: Send + 'static>(
        &self,
        who: &Caller,
        cred: &Arc<Cred>,
        op: impl FnOnce(Context<'_>) -> T + Send + 'static,
    ) -> Result<T> {
        let slot = self.slot(who).await?;
        let (done, result) = oneshot::channel();
        // Who asked may have gone when it is done.
        self.hand_over(slot, cred, move |cx| drop(done.send(op(cx))));
        result.await.map_err(|_| Status::Fault)
    }

    fn hand_over(
        &self,
        slot: Slot,
        cred: &Arc<Cred>,
        op: impl FnOnce(Context<'_>) + Send + 'static,
    ) {
        let (cred, files) = (Arc::clone(cred), Arc::clone(&self.files));
        let job = move |_waited_ns: u64| {
            // Who waits for it sees that nothing came.
            let _ = files.budgets.contain(|| op(Context { cred: &cred, may_block: true }));
        };
        slot.run(stamp(), Box::new(job));
    }

    /// Runs something on the pool that nobody waits for; not at all if there is no place now.
    pub(super) fn behind(
        &self,
        who: &Caller,
        cred: &Arc<Cred>,
        op: impl FnOnce(Context<'_>) + Send + 'static,
    ) {
        if let Some(slot) = self.files.pool.reserve(u64::from(who.client)) {
            self.hand_over(slot, cred, op);
        }
    }

    async fn slot(&self, who: &Caller) -> Result<Slot> {
        let until = Deadline::after(POOL_PATIENCE);
        loop {
            if let Some(slot) = self.files.pool.reserve(u64::from(who.client)) {
                return Ok(slot);
            }
            if until.passed() {
                return Err(Status::Busy);
            }
            self.files.budgets.stalls.fetch_add(1, Relaxed);
            tokio::time::sleep(POOL_LOOK).await;
        }
    }

    /// Waits until what was changed is on disk.
    ///
    /// # Errors
    /// That it is not.
    pub async fn flushed(&self, flush: Flush) -> Result<()> {
        if flush.is_empty() {
            return Ok(());
        }
        let (done, result) = oneshot::channel();
        let told = move |outcome: Result<()>| {
            // Who asked may have gone.
            let _ = done.send(outcome);
        };
        self.files.flush.submit(flush, Box::new(told));
        result.await.map_err(|_| Status::Fault)?
    }

    /// What is done every now and then.
    pub(super) fn idle(&self) {
        self.meter.idle();
        let files = &self.files;
        self.budget.publish(&files.budgets);
        if self.id == 0 {
            files.budgets.show_panics(&files.flush, files.hub.gauges());
        }
    }
}
