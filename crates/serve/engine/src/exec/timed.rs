//! What the time of an operation went to that waits without blocking its thread: while it is polled
//! it runs inline; what of it ran on the pool, or waited for a flush, adds that itself when its
//! owner has the result; all other time it was queued.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;

use base::clock::stamp;
use probe::phases::{Phase, PhaseClock};

/// The clock of the operation that is polled now.
#[derive(Clone, Copy)]
struct Polling {
    clock: PhaseClock,
    /// Its reply is being sent: what runs inline is not counted by its polls.
    sends: bool,
}

thread_local! {
    static POLLED: Cell<Polling> =
        const { Cell::new(Polling { clock: PhaseClock::new(0), sends: false }) };
}

/// Puts the clock of an outer operation back, also after a panic.
struct Polled(Polling);

impl Polled {
    fn begin(clock: PhaseClock, sends: bool) -> Self {
        Self(POLLED.replace(Polling { clock, sends }))
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        POLLED.set(self.0);
    }
}

/// Tries a step of an operation that has begun at `begun_ns`, on its clock. Gives the time at which
/// that has ended.
pub fn tried<T>(clock: &mut PhaseClock, begun_ns: u64, step: impl FnOnce() -> T) -> (T, u64) {
    clock.resume(begun_ns);
    let polled = Polled::begin(*clock, false);
    let done = step();
    *clock = POLLED.get().clock;
    drop(polled);
    let ended_ns = stamp();
    clock.spent(Phase::Inline, ended_ns);
    (done, ended_ns)
}

/// Runs the rest of an operation, on its clock.
pub async fn run<F: Future>(clock: &mut PhaseClock, mut rest: Pin<&mut F>) -> F::Output {
    poll_fn(move |cx| tried(clock, stamp(), || rest.as_mut().poll(cx)).0).await
}

/// Runs what sends the data of a reply that was ready before: what of that runs on the pool was not
/// sending.
pub async fn sending<F: Future>(clock: &mut PhaseClock, mut step: Pin<&mut F>) -> F::Output {
    poll_fn(move |cx| {
        let polled = Polled::begin(PhaseClock::default(), true);
        let done = step.as_mut().poll(cx);
        clock.add_while_sending(&POLLED.get().clock);
        drop(polled);
        done
    })
    .await
}

/// A part of the operation that is polled now has ended, which ran elsewhere.
pub fn add(part: &PhaseClock) {
    let mut polling = POLLED.get();
    polling.clock.add(part);
    POLLED.set(polling);
}

/// Runs a step of the operation that is polled now on this thread.
pub fn inline<T>(step: impl FnOnce() -> T) -> T {
    if !POLLED.get().sends {
        return step();
    }
    let mut clock = PhaseClock::new(stamp());
    let done = step();
    clock.spent(Phase::Inline, stamp());
    add(&clock);
    done
}

#[cfg(test)]
mod tests;
