//! An order of locks, stated once and checked in builds with debug assertions: a thread that holds
//! a lock of one rank may take only locks of higher ranks. Two threads that keep to it cannot wait
//! for each other. The order is in [`ranks`].
//!
//! In a release build an [`OrderedMutex`] costs what a mutex costs.

pub mod ranks;

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[cfg(debug_assertions)]
thread_local! {
    /// The ranks that this thread holds, in the order in which it took them.
    static HELD: std::cell::RefCell<Vec<Rank>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Where a class of locks stands in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// The place: outer locks have low ones.
    pub place: u8,
    /// What the class is called.
    pub name: &'static str,
}

impl Rank {
    /// The rank of a class of locks.
    pub const fn new(place: u8, name: &'static str) -> Self {
        Self { place, name }
    }
}

/// A mutex with a rank. A panic under it does not poison it: what it guards must be whole between
/// any two statements that can panic.
#[derive(Debug)]
pub struct OrderedMutex<T> {
    rank: Rank,
    inner: Mutex<T>,
}

/// What an [`OrderedMutex`] guards, until it is dropped.
pub struct OrderedGuard<'a, T> {
    // Before `taken`: the lock is given back before its rank.
    guard: MutexGuard<'a, T>,
    taken: HeldRank,
}

/// A rank that this thread holds.
struct HeldRank(#[cfg(debug_assertions)] Rank);

impl HeldRank {
    /// Takes a rank.
    ///
    /// # Panics
    /// With debug assertions, when this thread holds one that is not below it.
    #[inline]
    fn take(rank: Rank) -> Self {
        #[cfg(debug_assertions)]
        {
            let highest = HELD.with_borrow(|held| held.iter().copied().max_by_key(|r| r.place));
            debug_assert!(
                highest.is_none_or(|held| held.place < rank.place),
                "lock order: {:?} must not be taken while {:?} is held",
                rank.name,
                highest.map_or("", |held| held.name),
            );
            HELD.with_borrow_mut(|held| held.push(rank));
            Self(rank)
        }
        #[cfg(not(debug_assertions))]
        {
            let _ = rank;
            Self()
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for HeldRank {
    fn drop(&mut self) {
        // A thread that ends may have none any more.
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if let Some(at) = held.iter().rposition(|rank| *rank == self.0) {
                held.remove(at);
            }
        });
    }
}

impl<T> OrderedMutex<T> {
    /// A mutex of this rank.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self { rank, inner: Mutex::new(value) }
    }

    /// Waits for the lock and takes it.
    ///
    /// # Panics
    /// With debug assertions, when this thread holds a lock of this or a higher rank.
    #[inline]
    pub fn lock(&self) -> OrderedGuard<'_, T> {
        let taken = HeldRank::take(self.rank);
        OrderedGuard { guard: self.inner.lock().unwrap_or_else(PoisonError::into_inner), taken }
    }
}

impl<'a, T> OrderedGuard<'a, T> {
    /// Gives the lock back until `woken` is notified, and takes it again.
    pub fn wait(self, woken: &Condvar) -> Self {
        let Self { guard, taken } = self;
        Self { guard: woken.wait(guard).unwrap_or_else(PoisonError::into_inner), taken }
    }
}

impl<T> Deref for OrderedGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for OrderedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(test)]
mod tests;
