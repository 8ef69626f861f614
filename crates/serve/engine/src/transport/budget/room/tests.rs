//! What is given back wakes those that fit, in order, and no others.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Wake};

use super::super::{CoreBudget, Limits};
use super::*;

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

struct Waiter {
    room: NextRoom,
    woken: Arc<Count>,
}

impl Waiter {
    fn new(budget: &Rc<CoreBudget>, need: Need) -> Self {
        let mut waiter = Self { room: NextRoom::default(), woken: Arc::default() };
        waiter.wait(budget, need);
        waiter
    }

    fn wait(&mut self, budget: &Rc<CoreBudget>, need: Need) {
        self.room.wait_for(budget, need);
        assert!(!self.is_ready(), "it waits");
    }

    fn is_ready(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.room.poll(&mut Context::from_waker(&waker)).is_ready()
    }

    fn wakes(&self) -> usize {
        self.woken.0.load(Relaxed)
    }
}

fn budget(bytes: usize) -> Rc<CoreBudget> {
    Rc::new(CoreBudget::new(Limits { bytes, requests: 4, ..Limits::default() }, 1))
}

#[test]
fn what_fits_is_woken_in_order_and_nothing_else() {
    let budget = budget(1000);
    budget.take_bytes(1000);
    let mut waiters: Vec<_> =
        [300, 900, 200, 100].map(|n| Waiter::new(&budget, Need::bytes(n))).into();
    budget.give_bytes(99);
    assert_eq!(waiters.iter().map(Waiter::wakes).sum::<usize>(), 0, "nothing fits");
    budget.give_bytes(401);
    let woken: Vec<_> = waiters.iter().map(Waiter::wakes).collect();
    assert_eq!(woken, [1, 0, 1, 0], "500 bytes: the first, and what fits beside it");
    assert!(waiters[0].is_ready() && waiters[2].is_ready());
    budget.take_bytes(300);
    waiters[0].room.clear();
    assert_eq!(waiters[3].wakes(), 0, "200 are free, which the third has not taken yet");
    waiters[2].room.clear();
    assert_eq!(waiters[3].wakes(), 1, "it needs none");
    budget.give_bytes(100);
    assert_eq!((waiters[1].wakes(), waiters[3].wakes()), (0, 1), "each is woken once");
}

#[test]
fn what_is_woken_and_finds_no_room_keeps_its_place() {
    let budget = budget(1000);
    budget.take_bytes(1000);
    let mut first = Waiter::new(&budget, Need::bytes(500));
    let mut second = Waiter::new(&budget, Need::bytes(500));
    budget.give_bytes(500);
    assert!(first.is_ready() && !second.is_ready());
    // What has not waited has taken it.
    budget.take_bytes(500);
    first.wait(&budget, Need::bytes(500));
    assert!(!second.is_ready());
    budget.give_bytes(500);
    assert!(first.is_ready() && !second.is_ready(), "it is the first still");
    drop(first);
    assert!(second.is_ready(), "what has gone leaves its room");
}

#[test]
fn a_client_that_has_its_part_does_not_hold_up_another() {
    let budget = budget(1 << 30);
    let of = |n: u8, need| {
        let (core, made) = (Rc::clone(&budget), Rc::<Cell<Option<Waiter>>>::default());
        let into = Rc::clone(&made);
        let connection = async move { into.set(Some(Waiter::new(&core, need))) };
        let mut scoped = Box::pin(budget.scoped(IpAddr::from([192, 0, 2, n]), None, connection));
        let polled = scoped.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready());
        made.take().expect("made")
    };
    let all = budget.bytes_max();
    budget.take_bytes(all);
    let mut too_much = of(1, Need::bytes(all));
    let mut little = of(2, Need::bytes(100));
    budget.give_bytes(all / 2);
    assert_eq!((too_much.wakes(), little.wakes()), (0, 1));
    assert!(little.is_ready() && !too_much.is_ready());
}

#[test]
fn what_is_given_back_on_another_thread_wakes_the_core() {
    let budget = budget(1000);
    let held = budget.hold(1000);
    let mut waiter = Waiter::new(&budget, Need::bytes(1000));
    let sent = held.into_send();
    std::thread::spawn(move || drop(sent)).join().expect("a thread");
    assert_eq!(waiter.wakes(), 0, "only the core can say what fits");
    let mut returned = Box::pin(budget.something_returned());
    assert!(returned.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    budget.look_again();
    assert!(waiter.is_ready() && waiter.wakes() == 1);
}

#[test]
fn operations_and_overdrafts_are_waited_for() {
    let budget = budget(1000);
    (0..4).for_each(|_| budget.take_request());
    let mut operation = Waiter::new(&budget, Need::operation(10));
    budget.take_bytes(1000);
    (0..base::limits::OVERDRAFTS_MAX).for_each(|_| assert!(budget.take_overdraft()));
    let mut begun = Waiter::new(&budget, Need::large(500).or_overdraft());
    budget.give_overdraft();
    assert!(begun.is_ready() && !operation.is_ready(), "an overdraft is one for a record");
    budget.give_bytes(1000);
    assert_eq!(operation.wakes(), 0, "there are as many operations as may be");
    budget.give_request();
    assert!(operation.is_ready());
}
