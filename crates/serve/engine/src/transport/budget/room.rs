//! What waits for bytes or operations of a core's budget ([`base::wait_queue`]).
//!
//! The queue is the core's own. What is given back on other threads notifies the core, which looks
//! through the queue (`exec::accept`).

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use base::wait_queue::{Limited, NextPart, WaitQueue};

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

/// The wait of a connection for room in the budget of its core.
pub type NextRoom = NextPart<Rc<CoreBudget>>;

/// What waits.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    queue: RefCell<WaitQueue<Entry>>,
    /// How many there are: those that give back look at this first.
    count: Cell<usize>,
}

/// What of a budget a connection waits for, within its part.
#[derive(Debug)]
pub struct Entry {
    need: Need,
    scope: Option<Rc<Scope>>,
}

impl CoreBudget {
    /// Something was given back.
    #[inline]
    pub(super) fn freed(&self) {
        if self.waiting.count.get() > 0 {
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
        self.waiting.count.get() > 0
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

    /// Does something as within the part of a client.
    fn in_scope<T>(&self, scope: Option<Rc<Scope>>, act: impl FnOnce() -> T) -> T {
        let before = self.scope.replace(scope);
        let done = act();
        self.scope.replace(before);
        done
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
            Part::Operation => self.fits_operation(need.bytes),
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
}

fn change(cell: &Cell<usize>, n: usize, is_taken: bool) {
    cell.set(if is_taken { cell.get() + n } else { cell.get().saturating_sub(n) });
}

impl Limited for CoreBudget {
    type Need = Need;
    type Entry = Entry;

    fn entry(&self, need: Need) -> Entry {
        Entry { need, scope: self.scope.borrow().clone() }
    }

    fn with_queue<R>(&self, act: impl FnOnce(&mut WaitQueue<Entry>) -> R) -> R {
        let mut queue = self.waiting.queue.borrow_mut();
        let done = act(&mut queue);
        let count = queue.len();
        if self.waiting.count.replace(count) != count {
            self.returns.set_line(count > 0);
        }
        done
    }

    fn wake_fitting(&self, but: Option<u64>) {
        let mut fitting = Vec::new();
        let fits = |one: &Entry| {
            self.in_scope(one.scope.clone(), || {
                let fits = self.fits(one.need);
                if fits {
                    self.assume(one.need, true);
                    fitting.push((one.need, one.scope.clone()));
                }
                fits
            })
        };
        let wakers = self.with_queue(|queue| queue.fitting(but, fits));
        for (need, scope) in fitting {
            self.in_scope(scope, || self.assume(need, false));
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    fn waits_now(&self, number: u64, was_woken: bool) {
        if was_woken {
            self.wake_fitting(Some(number));
        }
        // What was given back on another thread just now has found nothing that waits.
        self.settle();
    }
}

#[cfg(test)]
mod tests;
