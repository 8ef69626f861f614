//! Names that were looked up lately, so that the next LOOKUP needs no walk: two calls for
//! attributes, which the reply wants anyway, are all that is left.
//!
//! An entry holds as long as its directory has the change time that it had before the name was
//! found: every name that comes or goes moves it. Where change times are as coarse as the
//! kernel's tick, a name could come and go within one; so nothing is remembered of a directory
//! that changed within the last [`CHANGE_SETTLED`](base::limits::CHANGE_SETTLED).

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, Weak};

use base::limits::NAMES_RECENT_MAX;
use probe::op::FileId;

use crate::attr::Time;
use crate::host::lock::lock;
use crate::host::node::Node;

struct CachedLookup {
    /// The directory: not by its inode number, which another may get.
    dir: FileId,
    ctime: Time,
    name: Box<[u8]>,
    node: Weak<Node>,
}

/// The names, each in the one place that its hash gives.
pub struct Recent {
    slots: Vec<Mutex<Option<CachedLookup>>>,
    hash: RandomState,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            slots: (0..NAMES_RECENT_MAX).map(|_| Mutex::default()).collect(),
            hash: RandomState::new(),
        }
    }
}

impl Recent {
    fn slot(&self, dir: FileId, name: &[u8]) -> &Mutex<Option<CachedLookup>> {
        let at = self.hash.hash_one((dir, name)) as usize % self.slots.len();
        &self.slots[at]
    }

    /// The file of a name in a directory with the change time `ctime`.
    #[inline]
    pub fn get(&self, dir: &Node, ctime: Time, name: &[u8]) -> Option<Arc<Node>> {
        let slot = lock(self.slot(dir.id, name));
        let seen = slot.as_ref()?;
        let same = seen.dir == dir.id && seen.ctime == ctime && *seen.name == *name;
        if same { seen.node.upgrade() } else { None }
    }

    /// A name was found at the time `now` (nanoseconds since the epoch), before which its
    /// directory had the change time `ctime`.
    pub fn note(&self, dir: &Node, ctime: Time, now: u64, name: &[u8], node: &Arc<Node>) {
        if ctime.is_settled(now) {
            let (dir, node) = (dir.id, Arc::downgrade(node));
            *lock(self.slot(dir, name)) =
                Some(CachedLookup { dir, ctime, name: name.into(), node });
        }
    }
}
