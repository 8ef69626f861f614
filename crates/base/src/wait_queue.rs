//! A wait queue: what waits for a part of something limited. When something is given back, those
//! that fit now are woken, in the order in which they came; the rest sleep on. What does not fit,
//! because it is large or its client has its part, does not delay what does.
//!
//! What is waited for has to be exactly what is tried then: one that is woken and does not get it
//! would be woken again at once.

use std::collections::VecDeque;
use std::ops::Deref;
use std::task::{Context, Poll, Waker};

/// Those that wait, each with what it waits for.
#[derive(Debug)]
pub struct WaitQueue<T> {
    waiting: VecDeque<Waiting<T>>,
    next: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    number: u64,
    need: T,
    waker: Option<Waker>,
    is_woken: bool,
}

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), next: 0 }
    }
}

impl<T> WaitQueue<T> {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Those for which `fits` is true, in order, are woken from now on; `but` is not looked at.
    /// Gives the wakers of those that were not woken before, for when the queue is free.
    pub fn fitting(&mut self, but: Option<u64>, mut fits: impl FnMut(&T) -> bool) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for one in self.waiting.iter_mut().filter(|one| but != Some(one.number)) {
            if fits(&one.need) && !std::mem::replace(&mut one.is_woken, true) {
                wakers.extend(one.waker.take());
            }
        }
        wakers
    }

    fn enter(&mut self, need: T) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.push_back(Waiting { number, need, waker: None, is_woken: false });
        number
    }

    /// Waits for this in its old place; whether it had been woken.
    fn enter_again(&mut self, number: u64, need: T) -> bool {
        self.find(number).is_some_and(|one| {
            one.need = need;
            std::mem::take(&mut one.is_woken)
        })
    }

    /// Whether others wait.
    fn leave(&mut self, number: u64) -> bool {
        self.waiting.retain(|one| one.number != number);
        !self.is_empty()
    }

    fn poll(&mut self, number: u64, cx: &Context<'_>) -> bool {
        self.find(number).is_some_and(|one| {
            if !one.is_woken {
                one.waker = Some(cx.waker().clone());
            }
            one.is_woken
        })
    }

    fn find(&mut self, number: u64) -> Option<&mut Waiting<T>> {
        self.waiting.iter_mut().find(|one| one.number == number)
    }
}

/// Something limited of which parts are waited for.
pub trait Limited {
    /// What is asked for.
    type Need;
    /// The same in the queue.
    type Entry;

    /// What of something asked for stands in the queue.
    fn entry(&self, need: Self::Need) -> Self::Entry;

    /// Does something with the queue.
    fn with_queue<R>(&self, act: impl FnOnce(&mut WaitQueue<Self::Entry>) -> R) -> R;

    /// Wakes those that fit now together with those before them, but not `but`.
    fn wake_fitting(&self, but: Option<u64>);

    /// This one has found that it does not fit, and waits, with `was_woken` again: others may have
    /// what it was woken for. What was given back just before, and has found nothing that waits, is
    /// looked at.
    fn waits_now(&self, number: u64, was_woken: bool);
}

/// A wait for a part, by a pointer to what is limited: it is kept over the turns of a connection,
/// with its place in the queue.
#[derive(Debug)]
pub struct NextPart<P: Deref<Target: Limited>> {
    place: Option<(P, u64)>,
    is_ready: bool,
}

impl<P: Deref<Target: Limited>> Default for NextPart<P> {
    fn default() -> Self {
        Self { place: None, is_ready: false }
    }
}

impl<P: Deref<Target: Limited>> NextPart<P> {
    /// Waits for this from now on, because it was found not to fit: in its place in the queue if it
    /// has one.
    pub fn wait_for(&mut self, of: &P, need: <P::Target as Limited>::Need)
    where
        P: Clone,
    {
        self.is_ready = false;
        let own = self.place.take_if(|(other, _)| std::ptr::eq(&**of, &**other));
        self.clear();
        let entry = of.entry(need);
        let (number, was_woken) = match own {
            None => (of.with_queue(|queue| queue.enter(entry)), false),
            Some((_, number)) => (number, of.with_queue(|queue| queue.enter_again(number, entry))),
        };
        self.place = Some((P::clone(of), number));
        of.waits_now(number, was_woken);
    }

    /// It needs none, or has it: others can have what is left.
    pub fn clear(&mut self) {
        self.is_ready = false;
        if let Some((of, number)) = self.place.take()
            && of.with_queue(|queue| queue.leave(number))
        {
            // What it was woken for may fit them.
            of.wake_fitting(None);
        }
    }

    /// Whether it waits.
    pub fn waits(&self) -> bool {
        self.place.is_some() && !self.is_ready
    }

    /// Ready once it fits, if it waits; what takes it, or finds that it has gone to others, calls
    /// [`NextPart::clear`] or [`NextPart::wait_for`] then.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((of, number)) = self.place.as_ref().filter(|_| !self.is_ready) else {
            return Poll::Pending;
        };
        self.is_ready = of.with_queue(|queue| queue.poll(*number, cx));
        if self.is_ready { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<P: Deref<Target: Limited>> Drop for NextPart<P> {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests;
