//! The grace period, for all protocols: whether clients of some protocol may be reclaiming what
//! they held before the server restarted, and what others must wait for meanwhile ([`waits`]).
//!
//! Each protocol decides which clients may reclaim, and for how long. What they held is not known,
//! only which clients there were. So for every file that was there when the grace period
//! began it is what NFSv4 (opens with deny modes, byte ranges, delegations) or NLM (byte ranges,
//! SHARE) can hold. Reading is permitted: a deny mode for reading that is reclaimed afterwards is
//! granted all the same ([`LockTable::reopen`]).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::clock::wall_ns;
use base::limits::{FILE_CLOCK_STEP, GRACE_WAIT_MAX};

use super::continuation::call;
use super::{LockTable, Protocol, SHARE_WRITE, Share};
use crate::attr::{Attr, FileType};

const fn bit(protocol: Protocol) -> u32 {
    1 << protocol as u8
}

/// A client's request during the grace period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraceRequest {
    /// An open of an existing file.
    Open(Share),
    /// A byte-range lock.
    Range,
    /// A write to a file, of a protocol with mandatory byte ranges.
    Write,
    /// To remove a name of a file, or give it to another file: REMOVE, RENAME, an upload that
    /// replaces, delete on close.
    Name,
}

/// The one rule: whether a client of `taker` must wait with what it wants while clients of
/// `holder` may reclaim.
pub const fn waits(holder: Protocol, taker: Protocol, wanted: GraceRequest) -> bool {
    // Opens and locks of other protocols end with their connections, those of WebDAV and
    // persistent handles of SMB are on disk.
    let reclaims = matches!(holder, Protocol::Nfs4 | Protocol::Nlm);
    let takes = match (taker, wanted) {
        // No OPEN of NFSv4, and no SHARE, is granted but reclaims (RFC 8881 §8.4.2.1).
        (Protocol::Nfs4 | Protocol::Nlm, GraceRequest::Open(_)) => true,
        (_, GraceRequest::Open(share)) => share.access & SHARE_WRITE != 0 || share.deny != 0,
        (_, GraceRequest::Range | GraceRequest::Write | GraceRequest::Name) => true,
    };
    reclaims && takes
}

/// Protocols with clients that can reclaim.
const HOLDERS: [Protocol; 2] = [Protocol::Nfs4, Protocol::Nlm];

/// What to do when the grace period ends.
type Ended = Box<dyn FnOnce() + Send>;

/// The grace period of the table.
pub(super) struct Grace {
    /// Protocols with clients that may reclaim now, a bit each.
    reclaiming: AtomicU32,
    /// When it began (wall clock).
    since_ns: AtomicU64,
    patience_ns: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    of: BTreeMap<u64, Ended>,
}

impl Default for Grace {
    fn default() -> Self {
        Self {
            reclaiming: AtomicU32::new(0),
            since_ns: AtomicU64::new(0),
            patience_ns: AtomicU64::new(GRACE_WAIT_MAX.as_nanos() as u64),
            waiting: Mutex::default(),
        }
    }
}

impl Grace {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LockTable {
    /// Clients of this protocol may reclaim from now on.
    pub fn begin_grace(&self, protocol: Protocol) {
        let now = wall_ns().saturating_sub(FILE_CLOCK_STEP.as_nanos() as u64);
        let grace = &self.grace;
        if grace.reclaiming.load(Ordering::SeqCst) == 0 {
            grace.since_ns.store(now, Ordering::SeqCst);
        }
        grace.reclaiming.fetch_or(bit(protocol), Ordering::SeqCst);
    }

    /// They may not any more, until the protocol's service begins again.
    pub fn end_grace(&self, protocol: Protocol) {
        let grace = &self.grace;
        if grace.reclaiming.load(Ordering::Relaxed) & bit(protocol) == 0 {
            return;
        }
        let before = grace.reclaiming.fetch_and(!bit(protocol), Ordering::SeqCst);
        if before & !bit(protocol) == 0 {
            let ended = std::mem::take(&mut grace.waiting().of);
            ended.into_values().for_each(call);
        }
    }

    /// Whether clients of any protocol may reclaim.
    #[inline]
    pub fn in_grace(&self) -> bool {
        self.grace.reclaiming.load(Ordering::SeqCst) != 0
    }

    /// Whether clients of a protocol other than this one may reclaim.
    pub fn in_grace_of_others(&self, protocol: Protocol) -> bool {
        self.grace.reclaiming.load(Ordering::SeqCst) & !bit(protocol) != 0
    }

    /// Whether a client of this protocol must wait with what it wants, by [`waits`].
    #[inline]
    pub fn waits_for_grace(&self, taker: Protocol, wanted: GraceRequest) -> bool {
        let reclaiming = self.grace.reclaiming.load(Ordering::SeqCst);
        let may_hold = |holder: &Protocol| reclaiming & bit(*holder) != 0;
        reclaiming != 0 && HOLDERS.iter().filter(|h| may_hold(h)).any(|h| waits(*h, taker, wanted))
    }

    /// Whether a file may have been there before the grace period, so that something of it can be
    /// reclaimed: of regular files alone clients hold anything. Where the file system does not
    /// know when a file was made, the last change of its attributes counts. `attr` is that of
    /// GETATTR.
    pub fn may_be_reclaimed(&self, attr: &Attr) -> bool {
        let made = attr.birth.unwrap_or(attr.ctime);
        let is_file = attr.kind == FileType::Regular;
        is_file && self.in_grace() && made.ns() < self.grace.since_ns.load(Ordering::SeqCst)
    }

    /// How long a request waits for the end of the grace period before it is refused.
    pub fn grace_patience(&self) -> Duration {
        Duration::from_nanos(self.grace.patience_ns.load(Ordering::Relaxed))
    }

    /// Sets that: [`GRACE_WAIT_MAX`] but in tests.
    pub fn set_grace_patience(&self, patience: Duration) {
        self.grace.patience_ns.store(patience.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Calls `ended` when the grace period ends, or at once if there is none; gives the number by
    /// which [`LockTable::forget_grace`] takes that back.
    pub fn when_grace_ends(&self, ended: Ended) -> Option<u64> {
        let mut waiting = self.grace.waiting();
        if !self.in_grace() {
            drop(waiting);
            ended();
            return None;
        }
        waiting.next += 1;
        let number = waiting.next;
        waiting.of.insert(number, ended);
        Some(number)
    }

    /// Takes back what [`LockTable::when_grace_ends`] was asked for.
    pub fn forget_grace(&self, number: u64) {
        drop(self.grace.waiting().of.remove(&number));
    }

    /// How many requests wait for the end of the grace period.
    pub fn waiting_for_grace(&self) -> usize {
        self.grace.waiting().of.len()
    }
}

#[cfg(test)]
mod tests;
