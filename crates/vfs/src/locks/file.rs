//! Everything that is held on one file: opens, locks, waiting requests, leases. Pure.

use std::collections::VecDeque;
use std::sync::Arc;

use super::kinds::{ClientKey, HeldRange, Kind, Owner, Range, SHARE_READ, SHARE_WRITE, Share};
use super::ranges::Ranges;
use super::{LeaseKind, Recall, WaitId, Woken};

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

/// A lease (delegation) on a file.
pub struct Lease {
    /// Its holder.
    pub owner: Owner,
    /// For reading or writing.
    pub kind: LeaseKind,
    /// Whether it was recalled.
    pub recalled: bool,
    /// How its holder is notified.
    pub notice: Arc<dyn Recall>,
}

/// Holders to notify that a lease must be returned, and how.
pub type Notices = Vec<(Owner, Arc<dyn Recall>)>;

/// All that is held on a file.
#[derive(Default)]
pub struct FileLocks {
    /// One for each owner.
    pub opens: Vec<(Owner, Share)>,
    /// Byte ranges.
    pub ranges: Ranges,
    /// In the order in which they came.
    pub waiting: VecDeque<Waiter>,
    /// Delegations.
    pub leases: Vec<Lease>,
}

impl FileLocks {
    /// Whether nothing is held, so that it can be forgotten.
    pub fn is_empty(&self) -> bool {
        self.opens.is_empty()
            && self.ranges.is_empty()
            && self.waiting.is_empty()
            && self.leases.is_empty()
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

    /// Marks the leases of others that a change (or with `only_write`, a look) conflicts with as
    /// being recalled; gives the notices that have not been sent yet, and whether there are any
    /// in the way at all.
    pub fn recall(&mut self, by: Option<ClientKey>, only_write: bool) -> (bool, Notices) {
        let (mut any, mut notices) = (false, Vec::new());
        for lease in &mut self.leases {
            let own = by == Some(lease.owner.client);
            if own || (only_write && lease.kind == LeaseKind::Read) {
                continue;
            }
            any = true;
            if !std::mem::replace(&mut lease.recalled, true) {
                notices.push((lease.owner.clone(), Arc::clone(&lease.notice)));
            }
        }
        (any, notices)
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
