//! Opens that keep the names of their files: while another client has one, a file is neither
//! removed nor renamed, and no other file takes its name. [`Share::keeps_names`] decides which
//! opens do.
//!
//! Whether there is any such open at all is one atomic number. A thread sets the client for which
//! it acts with [`ByClient`] or, where a client acts with only some of its opens, with
//! [`ByOwners`].
//!
//! An open that is granted while a file is being removed may come too late for its name; it is
//! then the open of a file without one.

use std::sync::atomic::Ordering;

use super::acting::acting_owner;
use super::file::FileLocks;
use super::{ByClient, FileKey, LockTable, Owner, Share};
use crate::attr::Attr;

impl LockTable {
    /// Counts an open that changes from `before` to `after`.
    pub(super) fn count_keeper(&self, owner: &Owner, before: Option<Share>, after: Option<Share>) {
        let keeps = |share: Option<Share>| {
            share.is_some_and(|share| share.keeps_names(owner.client.protocol))
        };
        match (keeps(before), keeps(after)) {
            (false, true) => drop(self.counts.name_keepers.fetch_add(1, Ordering::SeqCst)),
            (true, false) => drop(self.counts.name_keepers.fetch_sub(1, Ordering::SeqCst)),
            _ => {}
        }
    }

    /// Whether any open keeps names: only then [`Self::may_rename`] has anything to say.
    #[inline]
    pub fn has_name_keepers(&self) -> bool {
        self.counts.name_keepers.load(Ordering::SeqCst) > 0
    }

    /// Whether the names of a file must stay as they are until the grace period is over, because
    /// clients may reclaim it. An owner that this thread acts for and that keeps the names itself
    /// had them before the restart. `attr` is that of GETATTR.
    pub fn keeps_names_in_grace(&self, attr: &Attr) -> bool {
        if !self.may_be_reclaimed(attr) {
            return false;
        }
        let key = FileKey::from(attr);
        let keeps = |owner: &Owner| {
            let share = self.share_of(key, owner);
            share.is_some_and(|share| share.keeps_names(owner.client.protocol))
        };
        acting_owner(keeps).is_none()
    }

    /// Whether a name of a file may be removed, or given to another file, by the client and the
    /// owners for which this thread acts.
    pub fn may_rename(&self, key: FileKey) -> bool {
        if !self.has_name_keepers() {
            return true;
        }
        let by = ByClient::now();
        let is_kept = |file: &FileLocks| {
            // Of shared locks one is enough (RFC 4918 §7).
            let holder = acting_owner(|owner| file.share_of(owner).is_some());
            let with = holder.map(|owner| owner.client.protocol);
            let own = |who: &Owner| by == Some(who.client) || with == Some(who.client.protocol);
            file.name_keeper(own).is_some()
        };
        let kept = self.shard(key).get(&key).is_some_and(is_kept);
        if kept {
            self.counts.denied.fetch_add(1, Ordering::Relaxed);
        }
        !kept
    }
}
