//! How a finished operation comes back to its connection from the pool or a flush, and how a
//! connection is told to end.

use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

/// A connection's mailbox. Any thread puts letters in; only the connection takes them out. Bounded
/// by the number of operations that a connection may have under way.
#[derive(Debug)]
pub struct Mailbox<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    letters: Vec<T>,
    waker: Option<Waker>,
    closing: bool,
}

/// What woke a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Woken {
    /// There are letters.
    pub mail: bool,
    /// The service is ending.
    pub closing: bool,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self { state: Mutex::new(State { letters: Vec::new(), waker: None, closing: false }) }
    }
}

impl<T> Mailbox<T> {
    /// Puts a letter in and wakes the connection.
    pub fn put(&self, letter: T) {
        self.wake(|state| state.letters.push(letter));
    }

    /// Tells the connection to finish what is under way and end.
    pub fn close(&self) {
        self.wake(|state| state.closing = true);
    }

    fn wake(&self, change: impl FnOnce(&mut State<T>)) {
        let waker = {
            let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
            change(&mut state);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ready when there is mail or (unless it is known already) the end.
    pub fn poll(&self, cx: &mut Context<'_>, closing_known: bool) -> Poll<Woken> {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let mail = !state.letters.is_empty();
        if mail || (state.closing && !closing_known) {
            return Poll::Ready(Woken { mail, closing: state.closing });
        }
        if !state.waker.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Moves all letters into `into`.
    pub fn take(&self, into: &mut Vec<T>) {
        into.append(&mut self.state.lock().unwrap_or_else(|e| e.into_inner()).letters);
    }

    /// Whether the service is ending.
    pub fn is_closing(&self) -> bool {
        self.state.lock().unwrap_or_else(|e| e.into_inner()).closing
    }
}
