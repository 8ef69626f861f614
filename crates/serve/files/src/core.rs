//! What the connections of one core share, and how an operation on files goes through the engine:
//! at once if it need not wait, otherwise on the pool, and after its flush.

use std::future::Future;
use std::net::TcpListener;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use base::clock::{Deadline, stamp};
use base::limits::POOL_PATIENCE;
use probe::phases::PhaseClock;
use tokio::sync::oneshot;
use vfs::cred::Cred;
use vfs::fs::{Change, Context, Flush, Result};
use vfs::locks::leases::take_blocked;
use vfs::status::Status;

use super::Files;
use super::caller::Caller;
use super::grace;
use super::held::HeldBetween;
use super::recall;
use engine::exec::accept::{self, Joins};
use engine::exec::{self, Failure, Operation, ServiceCore, timed};
use engine::transport::listener::Accepted;
use engine::transport::tasks::Ending;
use engine::transport::{Runtimes, Tasks};

/// One core's state for one service.
pub struct Core {
    /// The service.
    pub files: Arc<Files>,
    /// What its clients hold between their requests.
    pub held: Rc<HeldBetween>,
    core: exec::Core,
}

impl Deref for Core {
    type Target = exec::Core;

    fn deref(&self) -> &exec::Core {
        &self.core
    }
}

impl ServiceCore for Core {}

/// Serves a service of files at `sockets`, as [`accept::serve`] does. `None` if the runtimes have
/// ended.
pub fn serve<Tag, F, T>(
    files: &Arc<Files>,
    runtimes: &Runtimes,
    sockets: Vec<(TcpListener, Tag)>,
    connection: F,
) -> Option<Tasks>
where
    Tag: Copy + Send + 'static,
    F: Fn(Rc<Core>, Accepted, Tag, Ending) -> T + Clone + Send + 'static,
    T: Future<Output = ()> + 'static,
{
    serve_joined(files, runtimes, sockets, connection).map(|(tasks, _)| tasks)
}

/// As [`serve`], for a service that has connections by other means as well.
pub fn serve_joined<Tag, F, T>(
    files: &Arc<Files>,
    runtimes: &Runtimes,
    sockets: Vec<(TcpListener, Tag)>,
    connection: F,
) -> Option<(Tasks, Joins<Core>)>
where
    Tag: Copy + Send + 'static,
    F: Fn(Rc<Core>, Accepted, Tag, Ending) -> T + Clone + Send + 'static,
    T: Future<Output = ()> + 'static,
{
    let shared = Arc::clone(files);
    let new_core = move |core| Core::over(core, Arc::clone(&shared));
    accept::serve_joined(&files.engine, runtimes, sockets, new_core, connection)
}

/// What an operation has come to, and what its time went to.
type Outcome<T> = (Result<T>, PhaseClock);

/// An operation on files; the task that waits for it may end first.
struct FileOperation<F, T> {
    /// What to do, until it runs.
    step: Option<F>,
    cred: Arc<Cred>,
    outcome: Option<Result<T>>,
    to: oneshot::Sender<Outcome<T>>,
    clock: PhaseClock,
    /// It changes nothing: it need not begin when the client that waits for it has gone.
    only_looks: bool,
}

impl<F, T> Operation for FileOperation<F, T>
where
    F: FnOnce(Context<'_>) -> (T, Flush) + Send + 'static,
    T: Send + 'static,
{
    fn clock(&mut self) -> &mut PhaseClock {
        &mut self.clock
    }

    fn run(&mut self) -> Option<Flush> {
        let step = self.step.take()?;
        let (value, flush) = step(Context { cred: &self.cred, may_block: true });
        self.outcome = Some(Ok(value));
        (!flush.is_empty()).then_some(flush)
    }

    fn flushed(&mut self, outcome: Result<()>) {
        if let Err(status) = outcome {
            self.outcome = Some(Err(status));
        }
    }

    /// What only looks is not begun once nothing waits for it; what changes something is.
    fn begins(&self) -> bool {
        !(self.only_looks && self.to.is_closed())
    }

    fn failed(&mut self, _: Failure) {
        self.outcome = Some(Err(Status::Fault));
    }

    fn complete(self) {
        if let Some(outcome) = self.outcome {
            // The waiting task may have ended.
            let _ = self.to.send((outcome, self.clock));
        }
    }
}

impl Core {
    /// Core `id` of `cores`. To be called on its thread.
    pub fn new(id: usize, cores: usize, files: Arc<Files>) -> Rc<Self> {
        let core = exec::Core::new(id, cores, Arc::clone(&files.engine));
        Rc::new(Self::over(core, files))
    }

    /// A core of the service.
    pub fn over(core: exec::Core, files: Arc<Files>) -> Self {
        let held = HeldBetween::new(&core.budget);
        Self { files, held, core }
    }

    /// Tries a step of an operation on this thread, where it may not wait.
    ///
    /// # Errors
    /// Its own; [`Status::Fault`] if it panics, which is counted.
    pub fn inline<T>(&self, step: impl FnOnce() -> Result<T>) -> Result<T> {
        timed::inline(|| self.engine.attempt(step)).and_then(|done| done)
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
        match self.inline(|| op(Context { cred, may_block: false })) {
            Err(Status::WouldBlock) => self.pooled_look(who, cred, op).await?,
            done => done,
        }
    }

    /// Runs something that changes nothing on the pool, with the caller's rights; not at all if
    /// what waits for it is gone before it begins.
    ///
    /// # Errors
    /// As of [`Core::pooled`].
    pub async fn pooled_look<T: Send + 'static>(
        &self,
        who: &Caller,
        cred: &Arc<Cred>,
        op: impl FnOnce(Context<'_>) -> T + Send + 'static,
    ) -> Result<T> {
        self.executed(who, cred, move |cx: Context<'_>| (op(cx), Flush::NONE), true).await
    }

    /// Runs an operation that changes something, and waits until that is on disk. If the holder of
    /// a delegation must give it back first, it is repeated until then; what clients of NFS may
    /// reclaim is waited for.
    ///
    /// # Errors
    /// Its own, or that of a flush; after waiting too long [`Status::Busy`], or [`Status::InUse`]
    /// for the end of the grace period.
    pub async fn change<T: Send + 'static>(
        &self,
        who: &Caller,
        cred: &Arc<Cred>,
        op: impl Fn(Context<'_>) -> Change<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let op = Arc::new(op);
        let until = Deadline::after(self.files.locks.recall_patience());
        let patience = grace::patience(&self.files.locks);
        loop {
            let again = Arc::clone(&op);
            let step = move |cx: Context<'_>| {
                take_blocked();
                match again(cx) {
                    Ok(changed) => ((Ok(changed.value), None), changed.flush),
                    Err(failed) => ((Err(failed.status), take_blocked()), Flush::NONE),
                }
            };
            let (done, blocked) = self.executed(who, cred, step, false).await?;
            match done {
                Err(Status::Busy) if self.files.locks.in_grace() => {
                    if !grace::ended(&self.files.locks, patience).await {
                        return Err(Status::InUse);
                    }
                }
                Err(Status::Busy) if !until.passed() => {
                    recall::released(&self.files.locks, blocked, until).await;
                }
                done => return done,
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
        self.executed(who, cred, move |cx: Context<'_>| (op(cx), Flush::NONE), false).await
    }

    /// Runs an operation on the pool, and waits until its changes are on disk.
    async fn executed<T: Send + 'static>(
        &self,
        who: &Caller,
        cred: &Arc<Cred>,
        step: impl FnOnce(Context<'_>) -> (T, Flush) + Send + 'static,
        only_looks: bool,
    ) -> Result<T> {
        // The wait for a place is one for the pool.
        let clock = PhaseClock::new(stamp());
        let slot = self.place(who.queue(), POOL_PATIENCE).await.ok_or(Status::Busy)?;
        let (operation, outcome) = operation(cred, step, (only_looks, clock));
        self.engine.submit(slot, operation);
        let (outcome, clock) = outcome.await.map_err(|_| Status::Fault)?;
        timed::add(&clock);
        outcome
    }

    /// Runs an operation on the pool without waiting for it; drops it if no permit is free.
    pub(super) fn behind(
        &self,
        who: &Caller,
        cred: &Arc<Cred>,
        op: impl FnOnce(Context<'_>) + Send + 'static,
    ) {
        let cred = Arc::clone(cred);
        let job = move || op(Context { cred: &cred, may_block: true });
        self.engine.run_behind(who.queue(), job);
    }
}

/// An operation, and what it comes to.
fn operation<F, T>(
    cred: &Arc<Cred>,
    step: F,
    (only_looks, clock): (bool, PhaseClock),
) -> (FileOperation<F, T>, oneshot::Receiver<Outcome<T>>) {
    let (to, outcome) = oneshot::channel();
    let cred = Arc::clone(cred);
    (FileOperation { step: Some(step), cred, outcome: None, to, clock, only_looks }, outcome)
}
