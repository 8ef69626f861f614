//! Steps that wait: what they do while they are polled is inline, what ran elsewhere is where it
//! ran, and all other time is in the queue, or with sending.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::clock::{advance_stamps, stop_stamps, wall_ns};
use probe::phases::PARTS;

use super::*;

const MS: u64 = 1_000_000;

fn pass(ms: u64) {
    advance_stamps(Duration::from_millis(ms));
}

/// A part that waited for the pool, ran there and was flushed, one millisecond each.
fn part() -> PhaseClock {
    let mut part = PhaseClock::new(0);
    part.spent(Phase::PoolWait, MS);
    part.spent(Phase::Pool, 2 * MS);
    part.spent(Phase::Flush, 3 * MS);
    part
}

/// A step that runs 2 ms, waits once, and continues with the result of that part.
async fn waits_once() {
    pass(2);
    let mut waited = false;
    poll_fn(|_| if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending })
        .await;
    add(&part());
    inline(|| pass(2));
}

/// Polls it twice, 7 ms apart.
fn poll_twice(step: impl Future<Output = ()>) {
    let (mut step, mut cx) = (pin!(step), Context::from_waker(Waker::noop()));
    assert!(step.as_mut().poll(&mut cx).is_pending());
    pass(7);
    assert!(step.as_mut().poll(&mut cx).is_ready());
}

fn assert_ms(clock: &PhaseClock, arrived_ns: u64, expected: [u64; 6]) {
    let latency = stamp() - arrived_ns;
    let ns = clock.parts(latency, stamp()).ns(latency);
    assert_eq!(latency, expected.iter().sum::<u64>() * MS);
    for (phase, (is, should)) in Phase::ALL.into_iter().zip(ns.into_iter().zip(expected)) {
        assert!(is.abs_diff(should * MS) <= latency / PARTS + 1, "{phase:?}: {ns:?}");
    }
}

/// One test: stamps are the whole process's.
#[test]
fn time_goes_where_it_was_spent() {
    if !stop_stamps(wall_ns()) {
        return println!("SKIP engine/timed: another test of this process reads the clock");
    }
    let arrived_ns = stamp();
    let mut clock = PhaseClock::new(arrived_ns);
    pass(10);
    poll_twice(run(&mut clock, pin!(waits_once())));
    pass(5);
    // Of the 7 ms between the polls 3 were those of the part.
    assert_ms(&clock, arrived_ns, [10 + 7 - 3, 4, 1, 1, 1, 5]);
    // The same while its reply is being sent: only what runs in `inline` counts as inline.
    let arrived_ns = stamp();
    let mut clock = PhaseClock::new(arrived_ns);
    poll_twice(sending(&mut clock, pin!(waits_once())));
    assert_ms(&clock, arrived_ns, [0, 2, 1, 1, 1, 2 + 7 - 3]);
    // A panic in a step leaves no clock behind.
    let mut clock = PhaseClock::new(stamp());
    let panics = async {
        add(&part());
        panic!("planted");
    };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let panics = pin!(panics);
        let mut step = pin!(sending(&mut clock, panics));
        let _ = step.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }));
    assert!(caught.is_err() && !POLLED.get().sends);
    assert_eq!(POLLED.get().clock, PhaseClock::new(0));
}
