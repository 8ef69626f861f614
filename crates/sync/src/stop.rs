//! How all threads of a run learn that it has to end, and what wakes those that wait.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{SyncError, Why};

/// Takes a lock. What a thread that panicked has left is complete enough to end a run with.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Hook = Box<dyn Fn() + Send>;

/// Why a run has to end, for all its threads.
#[derive(Default)]
pub struct Stop {
    why: Mutex<Option<Why>>,
    hooks: Mutex<Vec<Hook>>,
}

impl Stop {
    /// Ends the run; the first reason counts.
    pub fn fail(&self, error: SyncError) -> Why {
        let why = lock(&self.why).get_or_insert_with(|| error.into()).clone();
        lock(&self.hooks).iter().for_each(|hook| hook());
        why
    }

    /// The reason, if there is one.
    pub fn why(&self) -> Option<Why> {
        lock(&self.why).clone()
    }

    /// The reason for what ended; that the other side is gone, if there is no other.
    pub fn reason(&self) -> Why {
        self.why().unwrap_or_else(|| self.fail(SyncError::Gone))
    }

    /// Runs a hook when the run is to end, to wake waiting threads. At once, if it is already.
    pub fn on_fail(&self, hook: Hook) {
        let failed = self.why().is_some();
        if failed {
            hook();
        }
        lock(&self.hooks).push(hook);
        // It may have failed between the look and the push.
        if !failed && self.why().is_some() {
            lock(&self.hooks).iter().for_each(|hook| hook());
        }
    }
}

/// Something that is waited for, with an end to the wait when the run ends.
pub struct Watched<S> {
    state: Mutex<S>,
    changed: Condvar,
    /// For threads of which any can do what comes: one is woken, and not all for each small file.
    work: Condvar,
    stop: Arc<Stop>,
}

impl<S: Send + 'static> Watched<S> {
    /// Watches a state.
    pub fn new(state: S, stop: &Arc<Stop>) -> Arc<Self> {
        let stop = Arc::clone(stop);
        let (changed, work) = (Condvar::new(), Condvar::new());
        let watched = Arc::new(Self { state: Mutex::new(state), changed, work, stop });
        let weak = Arc::downgrade(&watched);
        watched.stop.on_fail(Box::new(move || {
            if let Some(watched) = weak.upgrade() {
                // A thread that looks and then waits holds the lock between the two.
                drop(lock(&watched.state));
                watched.wake_all();
            }
        }));
        watched
    }

    /// Changes the state.
    pub fn change<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        let result = change(&mut lock(&self.state));
        self.wake_all();
        result
    }

    fn wake_all(&self) {
        self.wake();
        self.work.notify_all();
    }

    /// Wakes the threads in [`wait`](Self::wait): what they wait for may have come.
    pub fn wake(&self) {
        self.changed.notify_all();
    }

    /// Wakes one of the threads in [`wait_for_work`](Self::wait_for_work): there is some.
    pub fn wake_worker(&self) {
        self.work.notify_one();
    }

    /// Looks at the state, or changes what no thread waits for, without waking any.
    pub fn look<R>(&self, look: impl FnOnce(&mut S) -> R) -> R {
        look(&mut lock(&self.state))
    }

    /// Waits until `ready` gives something. If that changes the state, the caller wakes other
    /// waiters.
    ///
    /// # Errors
    /// Why the run ends.
    pub fn wait<R>(&self, ready: impl FnMut(&mut S) -> Option<R>) -> Result<R, Why> {
        self.wait_on(&self.changed, ready)
    }

    /// As [`Watched::wait`], one of several threads of which any can do what comes.
    ///
    /// # Errors
    /// Why the run ends.
    pub fn wait_for_work<R>(&self, ready: impl FnMut(&mut S) -> Option<R>) -> Result<R, Why> {
        self.wait_on(&self.work, ready)
    }

    fn wait_on<R>(
        &self,
        woken: &Condvar,
        mut ready: impl FnMut(&mut S) -> Option<R>,
    ) -> Result<R, Why> {
        let mut state = lock(&self.state);
        loop {
            if let Some(why) = self.stop.why() {
                return Err(why);
            }
            if let Some(result) = ready(&mut state) {
                return Ok(result);
            }
            state = woken.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
