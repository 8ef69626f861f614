//! What waits for bytes or operations of a core's budget, in a line: when something is given back,
//! those that fit now are woken, in the order in which they came; the rest sleep on. What does not
//! fit, because it is large or its client has its part, does not delay what does.
//!
//! A [`Need`] has to be exactly what is tried then: one that is woken and does not get it would be
//! woken again at once.
//!
//! The line is the core's own. What is given back on other threads notifies the core, which looks
//! through the line (`exec::accept`).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::CoreBudget;
use super::client::Scope;

/// What of a budget something waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    bytes: usize,
    part: Part,
    or: Or,
    /// Bytes that it holds until then.
    holds: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Any,
    Large,
    Operation,
}

/// What serves as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Or {
    Nothing,
    Overdrafts(usize),
    SmallOnly,
}

impl Need {
    /// This number of bytes ([`CoreBudget::has_bytes`]).
    pub const fn bytes(bytes: usize) -> Self {
        Self { bytes, part: Part::Any, or: Or::Nothing, holds: 0 }
    }

    /// A buffer of this number of bytes for a large record ([`CoreBudget::has_large`]).
    pub const fn large(bytes: usize) -> Self {
        Self { bytes, part: Part::Large, or: Or::Nothing, holds: 0 }
    }

    /// An operation with this number of bytes ([`CoreBudget::has_room`]).
    pub const fn operation(bytes: usize) -> Self {
        Self { bytes, part: Part::Operation, or: Or::Nothing, holds: 0 }
    }

    /// By what holds this number of bytes while it waits, and gives them back before.
    pub const fn holding(self, holds: usize) -> Self {
        Self { holds, ..self }
    }

    /// Or an overdraft, of a record that has begun.
    pub const fn or_overdraft(self) -> Self {
        self.or_overdrafts(1)
    }

    /// Or this number of them.
    pub const fn or_overdrafts(self, count: usize) -> Self {
        Self { or: Or::Overdrafts(count), ..self }
    }

    /// And this number of bytes in addition.
    pub const fn and(self, bytes: usize) -> Self {
        Self { bytes: self.bytes + bytes, ..self }
    }

    /// Or that no more is held than the part of small records.
    pub const fn or_small_only(self) -> Self {
        Self { or: Or::SmallOnly, ..self }
    }
}

/// What waits.
#[derive(Debug, Default)]
pub(super) struct Line {
    waiting: RefCell<VecDeque<Waiting>>,
    /// How many there are: those that give back look at this first.
    count: Cell<usize>,
    next: Cell<u64>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    need: Need,
    scope: Option<Rc<Scope>>,
    waker: Option<Waker>,
    is_woken: bool,
}

impl Line {
    fn with<T>(&self, number: u64, change: impl FnOnce(&mut Waiting) -> T) -> Option<T> {
        let mut waiting = self.waiting.borrow_mut();
        waiting.iter_mut().find(|one| one.number == number).map(change)
    }
}

impl CoreBudget {
    /// Something was given back.
    #[inline]
    pub(super) fn freed(&self) {
        if self.line.count.get() > 0 {
            self.wake_fitting(None);
        }
    }

    /// Waits until something was given back on another thread for which something waits. The core
    /// calls [`CoreBudget::look_again`] then.
    pub async fn something_returned(&self) {
        self.returns.notified().await;
    }

    /// Whether something waits for room.
    pub fn has_line(&self) -> bool {
        self.line.count.get() > 0
    }

    /// Takes account of what was given back on other threads.
    pub fn look_again(&self) {
        self.settle();
    }

    /// Waits until `take` takes what it needs of this budget, which is `need`, for at most
    /// `patience` if that is given: called at once, and again when that fits.
    pub async fn room<T>(
        self: &Rc<Self>,
        patience: Option<Duration>,
        need: Need,
        mut take: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let mut room = NextRoom::default();
        let taken = async {
            loop {
                if let Some(taken) = take() {
                    return taken;
                }
                room.wait_for(self, need);
                poll_fn(|cx| room.poll(cx)).await;
            }
        };
        match patience {
            Some(patience) => tokio::time::timeout(patience, taken).await.ok(),
            None => Some(taken.await),
        }
    }

    /// Wakes what fits together with those before it in the line, but not this one, which has found
    /// just now that it does not.
    fn wake_fitting(&self, but: Option<u64>) {
        let (mut wakers, mut fitting) = (Vec::new(), Vec::new());
        let mut line = self.line.waiting.borrow_mut();
        for one in line.iter_mut().filter(|one| but != Some(one.number)) {
            let before = self.scope.replace(one.scope.clone());
            if self.fits(one.need) {
                self.assume(one.need, true);
                fitting.push((one.need, one.scope.clone()));
                if !std::mem::replace(&mut one.is_woken, true) {
                    wakers.extend(one.waker.take());
                }
            }
            self.scope.replace(before);
        }
        drop(line);
        for (need, scope) in fitting {
            let before = self.scope.replace(scope);
            self.assume(need, false);
            self.scope.replace(before);
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether it can be taken now, by the connection that is in scope.
    fn fits(&self, need: Need) -> bool {
        let less = |cell: &Cell<usize>| {
            let less = need.holds.min(cell.get());
            cell.set(cell.get() - less);
            less
        };
        let (of_all, of_client) = (less(&self.bytes), self.of_client(|client| less(&client.bytes)));
        let fits = self.fits_with(need);
        change(&self.bytes, of_all, true);
        self.of_client(|client| change(&client.bytes, of_client.unwrap_or(0), true));
        fits
    }

    fn fits_with(&self, need: Need) -> bool {
        let fits = match need.part {
            Part::Any => self.fits_bytes(need.bytes),
            Part::Large => self.fits_large(need.bytes),
            Part::Operation => {
                self.requests.get() == 0 || self.has_request() && self.fits_bytes(need.bytes)
            }
        };
        fits || match need.or {
            Or::Nothing => false,
            Or::Overdrafts(count) => self.has_overdrafts(count),
            Or::SmallOnly => self.fits_small_only(),
        }
    }

    /// As if it were taken, or not, while the line is looked through.
    fn assume(&self, need: Need, is_taken: bool) {
        self.change_bytes(need.bytes.saturating_sub(need.holds), is_taken);
        if need.part == Part::Operation {
            change(&self.requests, 1, is_taken);
            self.of_client(|client| change(&client.requests, 1, is_taken));
        }
    }

    fn change_bytes(&self, bytes: usize, is_taken: bool) {
        change(&self.bytes, bytes, is_taken);
        self.of_client(|client| change(&client.bytes, bytes, is_taken));
    }

    fn leave(&self, number: u64) {
        self.line.waiting.borrow_mut().retain(|one| one.number != number);
        self.line_changed();
        // What it was woken for may fit others.
        self.freed();
    }

    fn line_changed(&self) {
        let count = self.line.waiting.borrow().len();
        self.line.count.set(count);
        self.returns.set_line(count > 0);
    }

    fn enter(&self, need: Need) -> u64 {
        let number = self.line.next.get();
        self.line.next.set(number + 1);
        let scope = self.scope.borrow().clone();
        let waiting = Waiting { number, need, scope, waker: None, is_woken: false };
        self.line.waiting.borrow_mut().push_back(waiting);
        self.line_changed();
        number
    }
}

fn change(cell: &Cell<usize>, n: usize, is_taken: bool) {
    cell.set(if is_taken { cell.get() + n } else { cell.get().saturating_sub(n) });
}

/// The wait of a connection for room in the budget of its core: it is kept over its turns, with its
/// place in the line.
#[derive(Debug, Default)]
pub struct NextRoom {
    place: Option<(Rc<CoreBudget>, u64)>,
    is_ready: bool,
}

impl NextRoom {
    /// Waits for this from now on, because it was found not to fit: in its place in the line if it
    /// has one.
    pub fn wait_for(&mut self, budget: &Rc<CoreBudget>, need: Need) {
        self.is_ready = false;
        match &self.place {
            None => {
                let number = budget.enter(need);
                self.place = Some((Rc::clone(budget), number));
            }
            Some((budget, number)) => {
                let was_woken = budget.line.with(*number, |own| {
                    own.need = need;
                    std::mem::take(&mut own.is_woken)
                });
                if was_woken == Some(true) {
                    budget.wake_fitting(Some(*number));
                }
            }
        }
        // What was given back on another thread just now has found nothing that waits.
        budget.settle();
    }

    /// It needs none, or has it: others can have what is left.
    pub fn clear(&mut self) {
        self.is_ready = false;
        if let Some((budget, number)) = self.place.take() {
            budget.leave(number);
        }
    }

    /// Whether it waits.
    pub fn waits(&self) -> bool {
        self.place.is_some() && !self.is_ready
    }

    /// Ready once there is room, if it waits; what takes it, or finds that it has gone to others,
    /// calls [`NextRoom::clear`] or [`NextRoom::wait_for`] then.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((budget, number)) = self.place.as_ref().filter(|_| !self.is_ready) else {
            return Poll::Pending;
        };
        let is_woken = budget.line.with(*number, |own| {
            if !own.is_woken {
                own.waker = Some(cx.waker().clone());
            }
            own.is_woken
        });
        self.is_ready = is_woken == Some(true);
        if self.is_ready { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for NextRoom {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests;
