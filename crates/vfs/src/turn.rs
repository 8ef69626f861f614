//! What the READs of one batch share: access rights and attributes of the file that they read.
//!
//! A batch is what a connection executes between a receive and a send. All its calls had arrived
//! before it began, and no reply leaves before it has ended: whatever was true of a file during the
//! batch was true between the arrival and the reply of each call. So the first READ of a file looks
//! up the file, gets its attributes and checks the caller's rights with them, and the following
//! READs of the same file only read. Their attributes are older than their data, which is the safe
//! side: a client that caches by them revalidates once too often. Attributes newer than the data
//! would let it use old data as new.
//!
//! A cached file is dropped when the thread changes anything, is invalid after this server has
//! changed the file in another thread, and is not used near the end of the file: a READ there gets
//! the attributes again. If a local program revokes a right and then writes data that no user may
//! read, a batch that began before can still read it, but only for calls that had arrived before;
//! the batch begins nothing new after [`TURN_TIME_MAX`](base::limits::TURN_TIME_MAX).

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::attr::Attr;
use crate::host::node::Node;
use crate::host::open::OpenFile;

/// A file as a READ of this batch has found it; its caller may read it.
pub(crate) struct CachedRead {
    /// The file.
    pub node: Arc<Node>,
    /// The caller's descriptor.
    pub open: Arc<OpenFile>,
    /// Its attributes.
    pub attr: Attr,
    /// How many changes this server had made to it before.
    pub made: u64,
}

/// A thread's turn.
struct BatchState {
    begun: bool,
    /// The file that was read last.
    seen: Option<CachedRead>,
}

thread_local! {
    static BATCH: RefCell<BatchState> =
        const { RefCell::new(BatchState { begun: false, seen: None }) };
}

/// A turn of the connection that this thread is at, until it is dropped. Nothing may be received
/// and nothing answered meanwhile.
pub struct ReadBatch(PhantomData<*const ()>);

impl ReadBatch {
    /// Begins with nothing seen.
    #[must_use]
    pub fn begin() -> Self {
        BATCH.with_borrow_mut(|now| now.begun = true);
        Self(PhantomData)
    }
}

impl Drop for ReadBatch {
    fn drop(&mut self) {
        BATCH.with_borrow_mut(|now| now.begun = false);
        forget();
    }
}

/// Remembers what a READ has seen, in a turn.
pub(crate) fn see(seen: CachedRead) {
    let before = BATCH.with_borrow_mut(|now| if now.begun { now.seen.replace(seen) } else { None });
    drop(before);
}

/// Asks `look` about what was seen in this turn, if anything was.
#[inline]
pub(crate) fn seen<T>(look: impl FnOnce(&CachedRead) -> Option<T>) -> Option<T> {
    BATCH.with_borrow(|now| now.seen.as_ref().and_then(look))
}

/// Forgets what was seen: this thread has changed something.
pub(crate) fn forget() {
    // Closing a file is not for inside.
    let before = BATCH.with_borrow_mut(|now| now.seen.take());
    drop(before);
}

impl Node {
    /// The file has been changed by us: its change attribute must be another one from now on.
    pub fn touched(&self) {
        self.changes.add();
        forget();
    }
}
