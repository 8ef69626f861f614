//! The state of the storage of units, queried so that disks that do not respond delay no request
//! and hold one thread each at most. A list of all units waits for all of them together no longer
//! than for one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::{LUN_LOOK_AGAIN, LUN_LOOK_TIME_MIN, STORAGE_LOOK_TIME_MAX};
use vfs::lun::file::FileMedium;
use vfs::lun::{Medium, MediumStatus};

use super::bounded::within;

/// How long units may still be waited for, over all of them.
#[derive(Default)]
pub struct LookTime(Mutex<Spent>);

#[derive(Default)]
struct Spent {
    /// When it was last spent.
    at_ns: u64,
    time: Duration,
}

impl LookTime {
    fn spent<T>(&self, act: impl FnOnce(&mut Spent) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How long one may be waited for at this time.
    fn left(&self, now_ns: u64) -> Duration {
        self.spent(|spent| {
            if Duration::from_nanos(now_ns.saturating_sub(spent.at_ns)) >= LUN_LOOK_AGAIN {
                spent.time = Duration::ZERO;
            }
            STORAGE_LOOK_TIME_MAX.saturating_sub(spent.time).max(LUN_LOOK_TIME_MIN)
        })
    }

    /// One was waited for in vain, until this time.
    fn spend(&self, time: Duration, now_ns: u64) {
        self.spent(|spent| (spent.at_ns, spent.time) = (now_ns, spent.time + time));
    }
}

/// What was seen last of one unit.
#[derive(Default)]
pub struct Look {
    asks: AtomicBool,
    asked_ns: AtomicU64,
    seen: Mutex<Option<MediumStatus>>,
}

impl Look {
    /// With how the storage was when it was opened.
    pub fn new(seen: MediumStatus) -> Arc<Self> {
        Arc::new(Self { seen: Mutex::new(Some(seen)), ..Self::default() })
    }

    /// How the storage is, or was when it answered last, and whether it answers.
    pub fn at(
        self: &Arc<Self>,
        medium: &Arc<FileMedium>,
        time: &LookTime,
    ) -> (Option<MediumStatus>, bool) {
        let medium = Arc::clone(medium);
        self.query(time, move || medium.status())
    }

    fn query(
        self: &Arc<Self>,
        time: &LookTime,
        status: impl FnOnce() -> MediumStatus + Send + 'static,
    ) -> (Option<MediumStatus>, bool) {
        if self.asks.swap(true, Ordering::AcqRel) {
            // A query is in progress.
            return (self.seen(), !self.is_late());
        }
        let begun_ns = monotonic_ns();
        self.asked_ns.store(begun_ns, Ordering::Release);
        let (look, wait) = (Arc::clone(self), time.left(begun_ns));
        let answered = within(wait, move || {
            let status = status();
            *look.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
            look.asks.store(false, Ordering::Release);
        });
        if answered.is_none() {
            time.spend(wait, monotonic_ns());
        }
        (self.seen(), answered.is_some() || !self.is_late())
    }

    /// Whether the query is so old that the storage does not respond.
    fn is_late(&self) -> bool {
        let asked_ns = self.asked_ns.load(Ordering::Acquire);
        Duration::from_nanos(monotonic_ns().saturating_sub(asked_ns)) >= STORAGE_LOOK_TIME_MAX
    }

    fn seen(&self) -> Option<MediumStatus> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
