//! How an operation that has left its connection's thread comes back to it from the pool or the
//! flush group, and how a connection hears that the service ends.

use std::task::{Context, Poll, Waker};

use base::lock_order::{OrderedMutex, ranks};

/// The completions of a connection; `T` is what its protocol keeps of one. Any thread pushes, only
/// the connection drains. Bounded by the operations that a connection may have in progress.
#[derive(Debug)]
pub struct CompletionQueue<T> {
    state: OrderedMutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    completions: Vec<T>,
    waker: Option<Waker>,
    closing: bool,
}

/// What woke a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Woken {
    /// There are completions.
    pub has_completions: bool,
    /// The service is stopping.
    pub closing: bool,
}

/// A queue of whatever type, as the drain of a service sees it.
pub(super) trait Close {
    /// Has the connection finish its operations and end.
    fn close(&self);
}

impl<T> Default for CompletionQueue<T> {
    fn default() -> Self {
        let state = State { completions: Vec::new(), waker: None, closing: false };
        Self { state: OrderedMutex::new(ranks::COMPLETIONS, state) }
    }
}

impl<T> CompletionQueue<T> {
    /// Adds a completion and wakes the connection.
    pub fn push(&self, completion: T) {
        self.wake(|state| state.completions.push(completion));
    }

    /// Has the connection finish its operations and end.
    pub fn close(&self) {
        self.wake(|state| state.closing = true);
    }

    fn wake(&self, change: impl FnOnce(&mut State<T>)) {
        let waker = {
            let mut state = self.state.lock();
            change(&mut state);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ready when there are completions or (unless it is known already) the service ends.
    pub fn poll(&self, cx: &mut Context<'_>, closing_known: bool) -> Poll<Woken> {
        let mut state = self.state.lock();
        let has_completions = !state.completions.is_empty();
        if has_completions || (state.closing && !closing_known) {
            return Poll::Ready(Woken { has_completions, closing: state.closing });
        }
        if !state.waker.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Moves all completions into `into`.
    pub fn drain(&self, into: &mut Vec<T>) {
        into.append(&mut self.state.lock().completions);
    }
}

impl<T> Close for CompletionQueue<T> {
    fn close(&self) {
        Self::close(self);
    }
}
