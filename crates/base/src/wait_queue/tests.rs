//! Places in the queue: what is woken, what keeps its place, what leaves it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::*;

/// Some units, of which parts are taken.
#[derive(Default)]
struct Units {
    free: Cell<usize>,
    queue: RefCell<WaitQueue<usize>>,
}

impl Limited for Units {
    type Need = usize;
    type Entry = usize;

    fn entry(&self, need: usize) -> usize {
        need
    }

    fn with_queue<R>(&self, act: impl FnOnce(&mut WaitQueue<usize>) -> R) -> R {
        act(&mut self.queue.borrow_mut())
    }

    fn wake_fitting(&self, but: Option<u64>) {
        let mut left = self.free.get();
        let fits = |need: &usize| match left.checked_sub(*need) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        };
        let wakers = self.with_queue(|queue| queue.fitting(but, fits));
        wakers.into_iter().for_each(Waker::wake);
    }

    fn waits_now(&self, number: u64, was_woken: bool) {
        if was_woken {
            self.wake_fitting(Some(number));
        }
    }
}

impl Units {
    fn give(&self, units: usize) {
        self.free.set(self.free.get() + units);
        self.wake_fitting(None);
    }
}

fn waiting(units: &Rc<Units>, need: usize) -> NextPart<Rc<Units>> {
    let mut next = NextPart::default();
    next.wait_for(units, need);
    assert!(next.waits() && !is_ready(&mut next));
    next
}

fn is_ready(next: &mut NextPart<Rc<Units>>) -> bool {
    next.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn those_that_fit_are_ready_in_order() {
    let units = Rc::<Units>::default();
    let mut all = [6, 3, 3, 1].map(|need| waiting(&units, need));
    units.give(4);
    assert_eq!(all.each_mut().map(is_ready), [false, true, false, true]);
    assert_eq!(units.queue.borrow().len(), 4, "none has left");
    all[1].clear();
    assert_eq!(all.each_mut().map(is_ready), [false, false, true, false], "it needs none");
    assert!(!all[1].waits() && units.queue.borrow().len() == 3);
}

#[test]
fn what_is_woken_in_vain_keeps_its_place_and_leaves_the_rest_to_others() {
    let units = Rc::<Units>::default();
    let mut all = [4, 2, 4].map(|need| waiting(&units, need));
    units.give(4);
    assert!(is_ready(&mut all[0]) && !is_ready(&mut all[1]));
    // What has not waited has taken half of it.
    units.free.set(2);
    all[0].wait_for(&units, 4);
    assert!(all[0].waits() && is_ready(&mut all[1]), "the second fits");
    all[1].clear();
    units.give(2);
    assert!(is_ready(&mut all[0]) && !is_ready(&mut all[2]), "it is the first still");
}

#[test]
fn a_wait_for_something_else_leaves_its_place() {
    let (one, other) = (Rc::<Units>::default(), Rc::<Units>::default());
    let mut next = waiting(&one, 1);
    next.wait_for(&other, 1);
    assert!(one.queue.borrow().is_empty() && next.waits());
    drop(next);
    assert!(other.queue.borrow().is_empty());
}
