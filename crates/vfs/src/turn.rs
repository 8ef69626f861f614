//! What the READs of one turn share: the rights and the attributes of the file that they are of.
//!
//! A turn is what a connection answers between a receive and a send. All its calls had come before
//! it began, and none is answered before it has ended: whatever was true of a file within the turn
//! was true between the arrival and the reply of each of them. So the first READ of a file looks up
//! the file, asks for its attributes and checks the caller's rights by them, and the READs of the
//! same file that follow only read. Their attributes are older than their data, which is the safe
//! side: a client that caches by them asks once too often. Attributes newer than the data would let
//! it keep old data for new.
//!
//! What was seen is forgotten when the thread changes anything, does not count when this server has
//! changed the file by another thread, and says nothing about the end of the file: a READ that
//! comes near it asks anew. A program on this machine that takes a right away, and then writes what
//! nobody shall read, can be read by a turn that has begun before, which takes up nothing new after
//! [`TURN_TIME_MAX`](base::limits::TURN_TIME_MAX), and only by calls that had come before.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::attr::Attr;
use crate::host::node::Node;
use crate::host::open::OpenFile;

/// A file as a READ of this turn has seen it, whose caller may read it.
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
struct Now {
    begun: bool,
    /// The file that was read last.
    seen: Option<CachedRead>,
}

thread_local! {
    static NOW: RefCell<Now> = const { RefCell::new(Now { begun: false, seen: None }) };
}

/// A turn of the connection that this thread is at, until it is dropped. Nothing may be received
/// and nothing answered meanwhile.
pub struct ReadBatch(PhantomData<*const ()>);

impl ReadBatch {
    /// Begins with nothing seen.
    #[must_use]
    pub fn begin() -> Self {
        NOW.with_borrow_mut(|now| now.begun = true);
        Self(PhantomData)
    }
}

impl Drop for ReadBatch {
    fn drop(&mut self) {
        NOW.with_borrow_mut(|now| now.begun = false);
        forget();
    }
}

/// Remembers what a READ has seen, in a turn.
pub(crate) fn see(seen: CachedRead) {
    let before = NOW.with_borrow_mut(|now| if now.begun { now.seen.replace(seen) } else { None });
    drop(before);
}

/// Asks `look` about what was seen in this turn, if anything was.
#[inline]
pub(crate) fn seen<T>(look: impl FnOnce(&CachedRead) -> Option<T>) -> Option<T> {
    NOW.with_borrow(|now| now.seen.as_ref().and_then(look))
}

/// Forgets what was seen: this thread has changed something.
pub(crate) fn forget() {
    // Closing a file is not for inside.
    let before = NOW.with_borrow_mut(|now| now.seen.take());
    drop(before);
}

impl Node {
    /// The file has been changed by us: its change attribute must be another one from now on.
    pub fn touched(&self) {
        self.changes.add();
        forget();
    }
}
