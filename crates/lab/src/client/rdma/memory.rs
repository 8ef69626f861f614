//! Memory that the server may read or write: registered once, used by one call after the other.

use verbs::{Access, Connection, ExposedMemory, VerbsError};
use wire::rpcrdma::Segment;

/// Least bytes that are registered at once: a page.
const PAGE: usize = 4096;

/// Memory in use by a call.
pub(super) struct PooledMemory {
    pub(super) memory: Box<dyn ExposedMemory>,
    access: Access,
}

impl PooledMemory {
    /// Its first bytes, as the server names them.
    pub(super) fn segment(&self, bytes: u32) -> Segment {
        let Self { memory, .. } = self;
        Segment { handle: memory.key(), length: bytes, offset: memory.address() }
    }
}

/// Memory that no call uses.
#[derive(Default)]
pub(super) struct MemoryPool {
    idle: Vec<PooledMemory>,
}

impl MemoryPool {
    /// At least `bytes` of it.
    ///
    /// # Errors
    /// [`VerbsError::NoRoom`] when no more may be registered.
    pub(super) fn take(
        &mut self,
        link: &mut dyn Connection,
        bytes: usize,
        access: Access,
    ) -> Result<PooledMemory, VerbsError> {
        let fits = |one: &PooledMemory| one.access == access && one.memory.length() >= bytes;
        if let Some(at) = self.idle.iter().position(fits) {
            return Ok(self.idle.swap_remove(at));
        }
        let length = bytes.next_power_of_two().max(PAGE);
        let memory = match link.expose_memory(length, access) {
            Err(VerbsError::NoRoom) if !self.idle.is_empty() => {
                // What is of the wrong kind or too small makes room.
                self.idle.clear();
                link.expose_memory(length, access)
            }
            made => made,
        };
        memory.map(|memory| PooledMemory { memory, access })
    }

    /// A call needs it no more.
    pub(super) fn give(&mut self, lent: PooledMemory) {
        self.idle.push(lent);
    }
}
