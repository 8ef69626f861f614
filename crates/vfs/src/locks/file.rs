//! Everything that is held on one file: opens, locks, waiting requests, leases. Pure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use super::kinds::{Break, Caching, HeldRange, Kind, Owner, Range, SHARE_READ, SHARE_WRITE, Share};
use super::ranges::Ranges;
use super::{Recall, Released, WaitId, Woken};

/// A request that waits for a lock.
pub struct Waiter {
    /// For cancelling.
    pub id: WaitId,
    /// Its owner.
    pub owner: Owner,
    /// For which bytes.
    pub range: Range,
    /// How.
    pub kind: Kind,
    /// What to do when it is decided.
    pub woken: Woken,
}

/// What kind of lease it is: how it is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A delegation of NFSv4: returned as a whole.
    Delegation,
    /// A lease of SMB.
    Lease,
    /// An oplock of SMB: broken to reading or nothing.
    Oplock,
}

/// How far the break of a lease has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// It is not broken.
    Granted,
    /// Its holder was notified.
    Breaking {
        /// What it keeps.
        to: Caching,
        /// What it keeps at last: more was taken since.
        required: Caching,
        /// When it loses all, by a monotonic clock.
        until_ns: u64,
    },
}

/// A lease on a file.
pub struct Lease {
    /// Its holder.
    pub owner: Owner,
    /// What kind it is.
    pub style: Style,
    /// What its holder may do.
    pub caching: Caching,
    /// Whether it is being broken.
    pub state: LeaseState,
    /// Counts its changes.
    pub epoch: u16,
    /// Opens that share it, and how their holders are notified; a delegation has none.
    pub opens: Vec<(Owner, Arc<dyn Recall>)>,
    /// Where it is counted.
    pub slot: u64,
    /// As what: any, and one for writing.
    pub counted: (bool, bool),
    /// What its holder may do, for opens that must not lock the table.
    pub shown: Arc<AtomicU8>,
    /// How its holder is notified.
    pub notice: Arc<dyn Recall>,
}

impl Lease {
    /// Whether its holder was notified and has not answered.
    pub const fn is_breaking(&self) -> bool {
        matches!(self.state, LeaseState::Breaking { .. })
    }

    /// How its holder is notified: by an open that has a connection, if there is one.
    pub fn notifier(&self) -> Arc<dyn Recall> {
        let is_reachable = |notice: &&Arc<dyn Recall>| notice.is_reachable();
        let mut all = std::iter::once(&self.notice).chain(self.opens.iter().map(|(_, by)| by));
        Arc::clone(all.find(is_reachable).unwrap_or(&self.notice))
    }

    /// Whether it is an open's.
    pub fn is_of(&self, open: &Owner) -> bool {
        self.opens.iter().any(|(other, _)| other == open)
    }

    /// When it loses all, if it is being broken.
    pub const fn until_ns(&self) -> Option<u64> {
        match self.state {
            LeaseState::Granted => None,
            LeaseState::Breaking { until_ns, .. } => Some(until_ns),
        }
    }
}

/// Holders to notify of breaks, and how.
pub type Notices = Vec<(Owner, Arc<dyn Recall>, Break)>;

/// All that is held on a file.
#[derive(Default)]
pub struct FileLocks {
    /// One for each owner.
    pub opens: Vec<(Owner, Share)>,
    /// Byte ranges.
    pub ranges: Ranges,
    /// In the order in which they came.
    pub waiting: VecDeque<Waiter>,
    /// Delegations, leases, oplocks.
    pub leases: Vec<Lease>,
    /// Requests that wait for a change of a lease.
    pub released: Vec<(WaitId, Released)>,
}

impl FileLocks {
    /// Whether nothing is held, so that it can be forgotten.
    pub fn is_empty(&self) -> bool {
        self.opens.is_empty()
            && self.ranges.is_empty()
            && self.waiting.is_empty()
            && self.leases.is_empty()
            && self.released.is_empty()
    }

    /// What waits for a change of a lease: it looks again.
    pub fn take_released(&mut self) -> Vec<(WaitId, Released)> {
        std::mem::take(&mut self.released)
    }

    /// What an owner has open.
    pub fn share_of(&self, owner: &Owner) -> Option<Share> {
        self.opens.iter().find(|(who, _)| who == owner).map(|(_, share)| *share)
    }

    /// Another owner with an open that conflicts with one that is reclaimed. What was opened for
    /// reading meanwhile is not: it was permitted during the grace period because it changes
    /// nothing.
    pub fn reclaim_conflict(&self, owner: &Owner, want: Share) -> Option<&Owner> {
        let want = Share { deny: want.deny & !SHARE_READ, ..want };
        self.share_conflict(Some(owner), want)
    }

    /// Another owner with a conflicting open.
    pub fn share_conflict(&self, owner: Option<&Owner>, want: Share) -> Option<&Owner> {
        let clash = |(who, share): &&(Owner, Share)| share.conflicts(want) && Some(who) != owner;
        self.opens.iter().find(clash).map(|(who, _)| who)
    }

    /// An owner for which `own` is false, with an open that keeps the file's names.
    pub fn name_keeper(&self, own: impl Fn(&Owner) -> bool) -> Option<&Owner> {
        let keeps = |(who, share): &&(Owner, Share)| share.keeps_names(who.client.protocol);
        self.opens.iter().filter(keeps).map(|(who, _)| who).find(|who| !own(who))
    }

    /// The lease of a holder that keeps back what it writes: there is one at most.
    pub fn writer(&self) -> Option<&Lease> {
        self.leases.iter().find(|lease| lease.caching.has(Caching::WRITE))
    }

    /// Whether it is open for writing.
    pub fn is_written(&self) -> bool {
        self.opens.iter().any(|(_, share)| share.access & SHARE_WRITE != 0)
    }

    /// What a request for a lock has to wait for: a lock, or an earlier request that waits for one.
    /// An owner that holds part of the range already does not queue: others might wait for it.
    pub fn in_the_way(&self, owner: &Owner, range: Range, kind: Kind) -> Option<HeldRange> {
        if let Some(held) = self.ranges.conflict(owner, range, kind) {
            return Some(held.clone());
        }
        if self.ranges.holds(owner, range) {
            return None;
        }
        earlier(self.waiting.iter(), owner, range, kind)
    }

    /// Gives locks to requests that wait and can have them, in turn, and calls `granted` for each,
    /// with how many locks the file had before and has then; the caller runs its continuation once
    /// it holds no lock. `still` is called with each that still waits for a lock that is held,
    /// and the owner of that.
    ///
    /// Each costs two searches ([`Ranges`]): in the locks, and in what those before it wait for.
    pub fn wake(
        &mut self,
        mut granted: impl FnMut(&Owner, usize, usize),
        mut still: impl FnMut(&Owner, &Owner),
    ) -> Vec<Waiter> {
        let mut woken = Vec::new();
        let mut left: VecDeque<Waiter> = VecDeque::with_capacity(self.waiting.len());
        let mut ahead = Ranges::default();
        for waiter in std::mem::take(&mut self.waiting) {
            let (owner, range, kind) = (&waiter.owner, waiter.range, waiter.kind);
            let blocker = self.ranges.conflict(owner, range, kind);
            let must_queue = || {
                ahead.conflict_of_others(owner, range, kind).is_some()
                    && !self.ranges.holds(owner, range)
            };
            if let Some(blocker) = blocker {
                still(owner, &blocker.owner);
            } else if !must_queue() {
                let before = self.ranges.len();
                self.ranges.set(owner, range, Some(kind));
                granted(owner, before, self.ranges.len());
                woken.push(waiter);
                continue;
            }
            ahead.put(HeldRange { owner: owner.clone(), range, kind });
            left.push_back(waiter);
        }
        self.waiting = left;
        woken
    }
}

/// The first waiting request that conflicts with another, as if it held what it waits for.
fn earlier<'a>(
    mut waiting: impl Iterator<Item = &'a Waiter>,
    owner: &Owner,
    range: Range,
    kind: Kind,
) -> Option<HeldRange> {
    let clash =
        |w: &&Waiter| w.range.overlaps(&range) && w.kind.conflicts(kind) && w.owner != *owner;
    let found = waiting.find(clash)?;
    Some(HeldRange { owner: found.owner.clone(), range: found.range, kind: found.kind })
}
