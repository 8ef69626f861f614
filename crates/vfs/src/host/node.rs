//! Files we hold a descriptor on, found by handle or by inode number; bounded.
//!
//! The descriptor is O_PATH: it gives no access, pins the inode (so that its number cannot be
//! used again meanwhile) and is the base of every call on the file. Forgetting is by second
//! chance: a node that was used since the last round stays.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use base::limits::NODE_SHARDS;
use probe::op::FileId;

use crate::attr::{Attr, FileType, Time};
use crate::fs::Result;
use crate::handle::Handle;
use crate::host::durable::FlushState;
use crate::host::ids::{self, Ident};
use crate::host::list::Stream;
use crate::host::open::OpenFile;
use crate::host::retain::{self, Guard, Released};
use crate::host::sys;
use crate::status::Status;
use crate::turn;

/// One descriptor in the count of all that the back ends of this process hold: several shares
/// have one limit between them.
pub struct Counted(());

static HELD: AtomicUsize = AtomicUsize::new(0);

impl Counted {
    /// One more.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        HELD.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Whether there are more than there should be.
    fn too_many() -> bool {
        static MOST: OnceLock<usize> = OnceLock::new();
        HELD.load(Ordering::Relaxed) > *MOST.get_or_init(|| sys::descriptor_limit() / 2)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A file we hold.
pub struct Node {
    /// O_PATH.
    pub fd: OwnedFd,
    /// Inode number.
    pub ino: u64,
    /// Kind of file; it never changes for an inode.
    pub kind: FileType,
    /// Its handle.
    pub handle: Handle,
    /// What identifies it, for handles of files in it (a directory) and for the tables.
    pub ident: Ident,
    /// What tells it from others that had its inode number ([`Attr::generation`]).
    pub generation: u64,
    /// The statistics' id.
    pub id: FileId,
    /// Descriptors for reading and writing.
    pub files: Mutex<Vec<Arc<OpenFile>>>,
    /// Listings under way.
    pub streams: Mutex<Vec<Stream>>,
    /// What is not on disk yet.
    pub flush: FlushState,
    /// Whether it has an access control list: 0 not asked yet, 1 no, 2 yes.
    pub acl: AtomicU8,
    /// The change time at which `acl` was found, folded to 64 bits.
    pub acl_ctime: AtomicU64,
    /// Tells changes within one tick of the file system's clock apart.
    pub changes: Changes,
    /// When it was made, once somebody has asked.
    pub birth: OnceLock<Option<Time>>,
    used: AtomicBool,
    pinned: bool,
    /// By how many it is retained; changed under the lock of its part.
    retained: AtomicUsize,
    /// As which it counts then.
    retained_as: Mutex<Option<retain::Counted>>,
    /// Whether it was found to have no name any more while it was retained.
    removed: AtomicBool,
    _counted: Counted,
}

impl Node {
    /// A node over an O_PATH descriptor.
    pub fn new(fd: OwnedFd, ino: u64, kind: FileType, handle: Handle, ident: Ident) -> Self {
        Self {
            fd,
            ino,
            kind,
            handle,
            ident,
            generation: ident.generation(),
            id: ids::file_id(&handle),
            files: Mutex::default(),
            streams: Mutex::default(),
            flush: FlushState::default(),
            acl: AtomicU8::new(0),
            acl_ctime: AtomicU64::new(0),
            changes: Changes::default(),
            birth: OnceLock::new(),
            used: AtomicBool::new(false),
            pinned: false,
            retained: AtomicUsize::new(0),
            retained_as: Mutex::default(),
            removed: AtomicBool::new(false),
            _counted: Counted::new(),
        }
    }

    /// The file has been changed by us: its change attribute must be another one from now on.
    pub fn touched(&self) {
        self.changes.made.fetch_add(1, Ordering::AcqRel);
        turn::forget();
    }

    /// Attributes of this file with what only its node knows.
    #[inline]
    pub fn completed(&self, attr: Attr) -> Attr {
        let birth = attr.birth.or_else(|| self.birth.get().copied().flatten());
        let (change, generation) = (self.changes.value(attr.change), self.generation);
        Attr { change, birth, generation, ..attr }
    }

    /// Never forgotten.
    pub fn pinned(mut self) -> Self {
        self.pinned = true;
        self
    }

    /// Whether it stays usable when its last name is removed.
    pub fn is_retained(&self) -> bool {
        self.retained.load(Ordering::Acquire) > 0
    }

    /// The O_PATH descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The change attribute: the change time, and one more for each further change in its tick.
///
/// A change is counted after it was made, so that nobody gets its number with the old data.
#[derive(Default)]
pub struct Changes {
    made: AtomicU64,
    told: AtomicU64,
    last: AtomicU64,
    step: Mutex<()>,
}

impl Changes {
    /// How many changes we have made.
    #[inline]
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Acquire)
    }

    /// The number to tell when the change time says `ctime` (nanoseconds).
    #[inline]
    fn value(&self, ctime: u64) -> u64 {
        if self.made.load(Ordering::Acquire) != self.told.load(Ordering::Acquire) {
            self.step(ctime);
        }
        self.last.load(Ordering::Acquire).max(ctime)
    }

    fn step(&self, ctime: u64) {
        let _step = lock(&self.step);
        let made = self.made.load(Ordering::Acquire);
        if made != self.told.load(Ordering::Acquire) {
            let last = self.last.load(Ordering::Acquire);
            self.last.store(ctime.max(last + 1), Ordering::Release);
            self.told.store(made, Ordering::Release);
        }
    }
}

/// Locks what holds no invariant that a panic could break.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle as key: its last bytes are a keyed hash already, so no other hash is needed.
#[derive(PartialEq, Eq)]
struct Key(Handle);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(ids::file_id(&self.0));
    }
}

/// Takes a number that is random already, or spreads one that is not.
#[derive(Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

/// Nodes given up for one that comes, while all shares together hold too many descriptors.
const EVICTED_AT_ONCE: usize = 4;

/// Nodes let go that may wait in the queue of a part beyond as many as are held.
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

    /// Takes a node in; gives back the one that is there already if somebody was faster.
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

    /// Forgets a node whose file is gone, so that its space is given back; once nobody retains it
    /// any more if somebody does. Tells whether it was forgotten.
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
            let counted = retain::Counted::new().ok_or(Status::Busy)?;
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

    /// Nodes given up for room since the start, for statistics.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    /// Nodes of one shard, for the sweep that finds files removed behind our back.
    pub fn of_shard(&self, shard: usize) -> Vec<Arc<Node>> {
        lock(&self.by_handle[shard % NODE_SHARDS]).nodes.values().cloned().collect()
    }

    /// The node with this id in statistics, if we hold it. Looks through a part: off the path.
    pub fn by_id(&self, id: FileId) -> Option<Arc<Node>> {
        let shard = lock(&self.by_handle[(id >> 40) as usize % NODE_SHARDS]);
        shard.nodes.values().find(|node| node.id == id).cloned()
    }
}

/// Takes out the first node that nobody used since it was last looked at; `None` if after one
/// round all are in use.
fn second_chance(shard: &mut ByHandle) -> Option<Arc<Node>> {
    for _ in 0..shard.order.len() * 2 {
        let Some(node) = shard.order.pop_front()?.upgrade() else { continue };
        // The two maps and this function hold it; anybody else is in the middle of something.
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
