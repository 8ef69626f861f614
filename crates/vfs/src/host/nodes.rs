//! The table of the files we hold a descriptor on, found by handle or by inode number; bounded.
//!
//! Forgetting is by second chance: a node that was used since the last round stays.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use base::limits::NODE_SHARDS;
use probe::op::FileId;

use crate::handle::Handle;
use crate::host::descriptors::{Counted, CountedRetained};
use crate::host::ids;
use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::retain::Released;
use crate::spread::Spread;
use crate::status::{Result, Status};

/// A handle as key: its last bytes are a keyed hash already, so no other hash is needed.
#[derive(PartialEq, Eq)]
struct Key(Handle);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(ids::file_id(&self.0));
    }
}

/// Nodes evicted for each new one, while all shares together hold too many descriptors.
const EVICTED_AT_ONCE: usize = 4;

/// Evicted nodes that may wait in the queue of a part beyond as many as are held.
const ORDER_SLACK: usize = 64;

type Map<K> = HashMap<K, Arc<Node>, BuildHasherDefault<Spread>>;

#[derive(Default)]
struct ByHandle {
    nodes: Map<Key>,
    /// In the order in which they came. Those that were let go are taken out later.
    order: VecDeque<Weak<Node>>,
}

impl ByHandle {
    /// Keeps the queue from growing with files that come and go.
    fn tidy(&mut self) {
        if self.order.len() > 2 * self.nodes.len() + ORDER_SLACK {
            self.order.retain(|node| node.strong_count() > 0);
        }
    }
}

/// The table of nodes.
pub struct Nodes {
    by_handle: Vec<Mutex<ByHandle>>,
    by_ino: Vec<Mutex<Map<u64>>>,
    per_shard: usize,
    forgotten: AtomicU64,
    /// Those that are retained, and how many may be.
    retained: AtomicUsize,
    retained_max: usize,
    /// Removed ones that are not retained any more.
    pub released: Released,
}

impl Nodes {
    /// A table of at most about `capacity` nodes.
    pub fn new(capacity: usize) -> Self {
        Self {
            by_handle: (0..NODE_SHARDS).map(|_| Mutex::default()).collect(),
            by_ino: (0..NODE_SHARDS).map(|_| Mutex::default()).collect(),
            per_shard: (capacity / NODE_SHARDS).max(1),
            forgotten: AtomicU64::new(0),
            retained: AtomicUsize::new(0),
            retained_max: capacity / 2,
            released: Released::default(),
        }
    }

    fn handle_shard(&self, handle: &Handle) -> MutexGuard<'_, ByHandle> {
        lock(&self.by_handle[(ids::file_id(handle) >> 40) as usize % NODE_SHARDS])
    }

    fn ino_shard(&self, ino: u64) -> MutexGuard<'_, Map<u64>> {
        lock(&self.by_ino[ino as usize % NODE_SHARDS])
    }

    /// The node of a handle, if we hold it.
    #[inline]
    pub fn get(&self, handle: &Handle) -> Option<Arc<Node>> {
        let shard = self.handle_shard(handle);
        let node = shard.nodes.get(&Key(*handle))?;
        node.used.store(true, Ordering::Relaxed);
        Some(Arc::clone(node))
    }

    /// The node of an inode, if we hold it: as long as we do, the number is not used again.
    pub fn by_ino(&self, ino: u64) -> Option<Arc<Node>> {
        let shard = self.ino_shard(ino);
        let node = shard.get(&ino)?;
        node.used.store(true, Ordering::Relaxed);
        Some(Arc::clone(node))
    }

    /// Inserts a node; returns the existing one if another thread was faster.
    pub fn insert(&self, node: Node) -> Arc<Node> {
        let node = Arc::new(node);
        {
            let mut shard = self.ino_shard(node.ino);
            if let Some(there) = shard.get(&node.ino) {
                return Arc::clone(there);
            }
            shard.insert(node.ino, Arc::clone(&node));
        }
        let mut shard = self.handle_shard(&node.handle);
        let mut gone = Vec::new();
        while shard.nodes.len() >= self.per_shard
            || (Counted::too_many() && shard.nodes.len() > 1 && gone.len() < EVICTED_AT_ONCE)
        {
            match second_chance(&mut shard) {
                Some(old) => gone.push(old),
                None => break,
            }
        }
        shard.nodes.insert(Key(node.handle), Arc::clone(&node));
        shard.order.push_back(Arc::downgrade(&node));
        shard.tidy();
        drop(shard);
        for old in gone {
            self.drop_ino(&old);
            self.forgotten.fetch_add(1, Ordering::Relaxed);
        }
        node
    }

    /// Removes the node of a file that is gone, so that its space is freed; if the file is
    /// retained, after its last release. Returns whether the node was removed.
    pub fn forget(&self, node: &Arc<Node>) -> bool {
        if node.pinned {
            return false;
        }
        let mut shard = self.handle_shard(&node.handle);
        if node.is_retained() {
            node.removed.store(true, Ordering::Relaxed);
            return false;
        }
        shard.nodes.remove(&Key(node.handle));
        shard.tidy();
        drop(shard);
        self.drop_ino(node);
        lock(&node.files).clear();
        lock(&node.streams).clear();
        true
    }

    /// Lets go of all nodes but the pinned one, whether they are retained or not; writes that were
    /// not flushed stay so.
    pub fn clear(&self) {
        for shard in &self.by_handle {
            let mut gone = Vec::new();
            let mut shard = lock(shard);
            shard.nodes.retain(|_, node| {
                if !node.pinned {
                    gone.push(Arc::clone(node));
                }
                node.pinned
            });
            shard.order.retain(|node| node.upgrade().is_some_and(|node| node.pinned));
            drop(shard);
            for node in gone {
                self.drop_ino(&node);
                lock(&node.files).clear();
                lock(&node.streams).clear();
                node.flush.release();
            }
        }
    }

    /// Files with unstable writes, each with the number of its last change.
    pub fn dirty(&self) -> Vec<(Arc<Node>, u64)> {
        let mut dirty = Vec::new();
        for shard in &self.by_handle {
            let shard = lock(shard);
            let found = shard.nodes.values().filter(|node| node.flush.is_dirty());
            dirty.extend(found.map(|node| (Arc::clone(node), node.flush.last_change())));
        }
        dirty
    }

    /// Retains a node's file; `None` if the node is not in the table any more.
    ///
    /// # Errors
    /// [`Status::Busy`] if no more may be retained.
    pub fn retain(self: &Arc<Self>, node: &Arc<Node>) -> Result<Option<Guard>> {
        let shard = self.handle_shard(&node.handle);
        let held = shard.nodes.get(&Key(node.handle));
        if !held.is_some_and(|held| Arc::ptr_eq(held, node)) {
            return Ok(None);
        }
        if !node.is_retained() {
            let counted = CountedRetained::new().ok_or(Status::Busy)?;
            let room = |count: usize| (count < self.retained_max).then_some(count + 1);
            let more = self.retained.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
            more.map_err(|_| Status::Busy)?;
            *lock(&node.retained_as) = Some(counted);
        }
        node.retained.fetch_add(1, Ordering::AcqRel);
        Ok(Some(Guard::new(node, self)))
    }

    /// One fewer retains a node's file.
    pub fn release(&self, node: &Arc<Node>) {
        let shard = self.handle_shard(&node.handle);
        if node.retained.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        *lock(&node.retained_as) = None;
        drop(shard);
        self.retained.fetch_sub(1, Ordering::Relaxed);
        if node.removed.load(Ordering::Relaxed) {
            self.released.add(node);
        }
    }

    /// Files that are retained, for statistics.
    pub fn retained(&self) -> usize {
        self.retained.load(Ordering::Relaxed)
    }

    fn drop_ino(&self, node: &Arc<Node>) {
        let mut shard = self.ino_shard(node.ino);
        if shard.get(&node.ino).is_some_and(|there| Arc::ptr_eq(there, node)) {
            shard.remove(&node.ino);
        }
    }

    /// Nodes held, for statistics.
    pub fn len(&self) -> usize {
        self.by_handle.iter().map(|shard| lock(shard).nodes.len()).sum()
    }

    /// Nodes evicted since the start, for statistics.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    /// Nodes of one shard, for the sweep that finds files removed outside the server.
    pub fn of_shard(&self, shard: usize) -> Vec<Arc<Node>> {
        lock(&self.by_handle[shard % NODE_SHARDS]).nodes.values().cloned().collect()
    }

    /// The node with this id in statistics, if we hold it. Looks through a part: off the path.
    pub fn by_id(&self, id: FileId) -> Option<Arc<Node>> {
        let shard = lock(&self.by_handle[(id >> 40) as usize % NODE_SHARDS]);
        shard.nodes.values().find(|node| node.id == id).cloned()
    }
}

/// Removes the first node that was not used since the last check; `None` if after one round all are
/// in use.
fn second_chance(shard: &mut ByHandle) -> Option<Arc<Node>> {
    for _ in 0..shard.order.len() * 2 {
        let Some(node) = shard.order.pop_front()?.upgrade() else { continue };
        // The two maps and this function hold it; any other reference is of an operation in
        // progress.
        let busy = node.pinned || Arc::strong_count(&node) > 3 || node.flush.is_dirty();
        if busy || node.used.swap(false, Ordering::Relaxed) {
            shard.order.push_back(Arc::downgrade(&node));
            continue;
        }
        shard.nodes.remove(&Key(node.handle));
        return Some(node);
    }
    None
}

/// Retains a file as long as it lives.
pub struct Guard {
    node: Arc<Node>,
    /// Not the nodes themselves: an open that outlives its share must not keep all its files.
    nodes: Weak<Nodes>,
}

impl Guard {
    /// Of a node that has just been counted as retained.
    pub fn new(node: &Arc<Node>, nodes: &Arc<Nodes>) -> Self {
        Self { node: Arc::clone(node), nodes: Arc::downgrade(nodes) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(nodes) = self.nodes.upgrade() {
            nodes.release(&self.node);
        }
    }
}
