//! Each operation completes once: done, after its flush, failed where it panics, or cancelled.

use std::future::Future as _;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use base::limits::{CORE_REST_MAX, CORE_TICK};
use probe::hub::{Hub, HubOptions};
use probe::phases::PhaseClock;
use vfs::flush::{FlushGroup, FlushSite};
use vfs::fs::Durable;

use super::*;
use crate::pool::place::NextSlot;
use crate::pool::{Pool, PoolLimits};
use crate::transport::Budgets;
use crate::transport::budget::Limits;

const WAIT: Duration = Duration::from_secs(40);

/// An engine with few threads and small budgets.
pub fn engine_of(threads: usize) -> Arc<Engine> {
    let limits = PoolLimits { threads, queue: 10, per_client: 10 };
    Engine::new(
        Pool::start(limits).unwrap(),
        Arc::new(FlushGroup::with_threads(1).unwrap()),
        Arc::new(Budgets::new(Limits { requests: 2, bytes: 1000, ..Limits::default() })),
        Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 }),
    )
}

/// What an operation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Nowhere,
    Ran,
    Flushed(Result<(), Status>),
    Failed(Failure),
    Dropped,
}

type Step = Box<dyn FnOnce() -> Option<Flush> + Send>;

/// An operation that does what a test specifies.
struct Planned {
    step: Option<Step>,
    panics: (bool, bool),
    token: CancelToken,
    came: Came,
    to: Option<Sender<Came>>,
    clock: PhaseClock,
}

impl Operation for Planned {
    fn clock(&mut self) -> &mut PhaseClock {
        &mut self.clock
    }

    fn run(&mut self) -> Option<Flush> {
        self.came = Came::Ran;
        self.step.take().unwrap()()
    }

    fn flushed(&mut self, outcome: Result<(), Status>) {
        assert!(!self.panics.0, "planted");
        self.came = Came::Flushed(outcome);
    }

    fn failed(&mut self, why: Failure) {
        assert!(!self.panics.1, "planted");
        self.came = Came::Failed(why);
    }

    fn begins(&self) -> bool {
        self.token.begin()
    }

    fn complete(mut self) {
        self.to.take().unwrap().send(self.came).unwrap();
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            to.send(Came::Dropped).unwrap();
        }
    }
}

fn planned(step: impl FnOnce() -> Option<Flush> + Send + 'static) -> (Planned, Receiver<Came>) {
    let (to, from) = channel();
    let (step, token): (Step, _) = (Box::new(step), CancelToken::default());
    let (to, panics) = (Some(to), (false, false));
    let clock = PhaseClock::new(base::clock::stamp());
    (Planned { step: Some(step), panics, token, came: Came::Nowhere, to, clock }, from)
}

struct Disk(Result<(), Status>);

impl Durable for Disk {
    fn key(&self) -> u64 {
        7
    }

    fn flush(&self) -> Result<(), Status> {
        self.0
    }
}

fn flush(outcome: Result<(), Status>) -> Flush {
    Flush::of(FlushSite::Commit, Arc::new(Disk(outcome)))
}

/// Runs an operation on the pool; what it came to, and that it came once.
fn on_pool(engine: &Arc<Engine>, (operation, from): (Planned, Receiver<Came>)) -> Came {
    engine.submit(engine.pool.reserve(1).unwrap(), operation);
    let came = from.recv_timeout(WAIT).expect("it comes");
    assert_eq!(from.recv_timeout(WAIT), Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    came
}

#[test]
fn operation_completes_once_it_ran_or_was_flushed() {
    let engine = engine_of(1);
    assert_eq!(on_pool(&engine, planned(|| None)), Came::Ran);
    for outcome in [Ok(()), Err(Status::Io)] {
        assert_eq!(on_pool(&engine, planned(move || Some(flush(outcome)))), Came::Flushed(outcome));
    }
    // An empty flush is one all the same.
    assert_eq!(on_pool(&engine, planned(|| Some(Flush::NONE))), Came::Flushed(Ok(())));
    let (operation, from) = planned(|| None);
    engine.flush(flush(Ok(())), operation);
    assert_eq!(from.recv_timeout(WAIT), Ok(Came::Flushed(Ok(()))));
    assert_eq!(engine.budgets.panics.load(Relaxed), 0);
}

#[test]
fn operation_that_panics_fails_and_completes() {
    let engine = engine_of(1);
    assert_eq!(on_pool(&engine, planned(|| panic!("planted"))), Came::Failed(Failure::Panicked));
    let (mut operation, from) = planned(|| Some(flush(Ok(()))));
    operation.panics = (true, false);
    assert_eq!(on_pool(&engine, (operation, from)), Came::Failed(Failure::Panicked));
    assert_eq!(engine.budgets.panics.load(Relaxed), 2);
    // Its owner is notified too if the failure handler panics, and the threads continue.
    let (mut operation, from) = planned(|| panic!("planted"));
    operation.panics = (true, true);
    assert_eq!(on_pool(&engine, (operation, from)), Came::Dropped);
    let (mut operation, from) = planned(|| Some(flush(Ok(()))));
    operation.panics = (true, true);
    assert_eq!(on_pool(&engine, (operation, from)), Came::Dropped);
    assert_eq!(on_pool(&engine, planned(|| Some(flush(Ok(()))))), Came::Flushed(Ok(())));
}

#[test]
fn cancelled_operation_does_not_run_but_completes() {
    let engine = engine_of(1);
    let (started, starts) = channel::<()>();
    let (release, held) = channel::<()>();
    let (first, first_came) = planned(move || {
        let _ = started.send(());
        let _ = held.recv();
        None
    });
    let (second, second_came) = planned(|| panic!("it runs"));
    let (first_token, second_token) = (first.token.clone(), second.token.clone());
    engine.submit(engine.pool.reserve(1).unwrap(), first);
    engine.submit(engine.pool.reserve(1).unwrap(), second);
    // A thread that took it off the queue has not yet looked at its token.
    assert_eq!(starts.recv_timeout(WAIT), Ok(()));
    first_token.cancel();
    second_token.cancel();
    drop(release);
    assert_eq!(first_came.recv_timeout(WAIT), Ok(Came::Ran), "it ran already");
    assert_eq!(second_came.recv_timeout(WAIT), Ok(Came::Failed(Failure::Cancelled)));
    assert_eq!(engine.budgets.panics.load(Relaxed), 0);
}

#[test]
fn attempt_and_run_here_contain_panics() {
    let engine = engine_of(1);
    assert_eq!(engine.attempt(|| 7), Ok(7));
    assert_eq!(engine.attempt(|| -> u8 { panic!("planted") }), Err(Status::Fault));
    assert_eq!(engine.run_here(|| (7, flush(Ok(())))), Ok(7));
    assert_eq!(engine.run_here(|| (7, flush(Err(Status::Io)))), Err(Status::Io));
    assert_eq!(engine.run_here(|| -> (u8, Flush) { panic!("planted") }), Err(Status::Fault));
    assert_eq!(engine.budgets.panics.load(Relaxed), 2);
}

#[test]
fn core_reserves_within_its_budgets() {
    let engine = engine_of(1);
    let core = Core::new(0, 1, Arc::clone(&engine));
    let next = &mut NextSlot::default();
    assert!(core.reserve(next, 1, 2000).is_some(), "one is always let in");
    core.take_up(600);
    assert!(core.reserve(next, 1, 600).is_none(), "bytes");
    assert!(core.reserve(next, 1, 100).is_some());
    core.take_up(100);
    assert!(core.reserve(next, 1, 100).is_none(), "requests");
    assert!(!core.under_backpressure(base::clock::stamp()));
    core.note_backpressure();
    assert!(core.under_backpressure(base::clock::stamp()));
    assert_eq!(engine.budgets.stalls.load(Relaxed), 1);
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woke(AtomicUsize);

impl Wake for Woke {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn completion_queue_wakes_for_completions_and_for_the_end() {
    let core = Core::new(0, 1, engine_of(1));
    let (queue, gone) = (core.completion_queue::<u8>(), core.completion_queue::<u16>());
    drop(gone);
    let woke = Arc::<Woke>::default();
    let waker = Waker::from(Arc::clone(&woke));
    let cx = &mut std::task::Context::from_waker(&waker);
    assert_eq!(queue.poll(cx, false), Poll::Pending);
    queue.push(1);
    queue.push(2);
    assert_eq!(woke.0.load(Relaxed), 1);
    let Poll::Ready(woken) = queue.poll(cx, false) else { panic!("it is ready") };
    assert!(woken.has_completions && !woken.closing);
    let mut all = Vec::new();
    queue.drain(&mut all);
    assert_eq!(all, [1, 2]);
    assert_eq!(queue.poll(cx, false), Poll::Pending);
    core.close_queues();
    assert_eq!(woke.0.load(Relaxed), 2);
    let Poll::Ready(woken) = queue.poll(cx, false) else { panic!("it is ready") };
    assert!(!woken.has_completions && woken.closing);
    assert_eq!(queue.poll(cx, true), Poll::Pending, "it is known");
}

#[test]
fn cancelling_reports_whether_there_is_an_effect() {
    let token = CancelToken::default();
    assert!(token.cancel() && token.is_over(), "it has not begun");
    assert!(!token.begin(), "and never does");
    let token = CancelToken::default();
    assert!(token.begin());
    assert!(!token.cancel() && !token.is_over(), "it runs");
    token.end();
    assert!(token.cancel() && token.is_over(), "it has had its effect");
}

#[test]
fn a_core_without_operations_rests_until_the_second_ends() {
    let core = Core::new(0, 1, engine_of(1));
    // The first look closes the seconds before, and knows when the present one ends.
    assert_eq!(core.idle(), CORE_TICK, "it has just started");
    let rest = core.idle();
    assert!((CORE_TICK..=CORE_REST_MAX).contains(&rest), "{rest:?}");
    let stirred = |core: &Core| {
        let mut notified = std::pin::pin!(core.stirred.notified());
        notified.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop())).is_ready()
    };
    assert!(!stirred(&core));
    let span = core.begin(probe::op::Protocol::Nfs3, 1, 6, base::clock::stamp());
    core.finish(&mut vec![span, span]);
    assert!(stirred(&core), "an operation ends the rest");
    assert!(!stirred(&core), "once");
    assert_eq!(core.idle(), CORE_TICK, "it had operations");
    assert!(core.idle() >= CORE_TICK);
    core.done(span, 0);
    assert!(stirred(&core));
}
