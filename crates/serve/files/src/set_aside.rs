//! Names under which something is for a while that replaces another thing, or is replaced by it.
//!
//! No listing shows one as long as the change is under way. What a change that was broken off has
//! left is shown like everything else, and never removed by us: it may be all there is.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::random::{Random, SystemRandom};
use base::text::hex;

/// Begins such names.
const PREFIX: &[u8] = b".plimsoll-replaced-";

/// Those of changes under way.
static LIVE: Mutex<BTreeSet<Vec<u8>>> = Mutex::new(BTreeSet::new());

fn live() -> MutexGuard<'static, BTreeSet<Vec<u8>>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Such a name, hidden until this is dropped.
#[derive(Debug)]
pub struct SetAside {
    /// The name.
    pub name: Vec<u8>,
}

impl SetAside {
    /// A name that nothing else has.
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        let mut random = [0; 16];
        SystemRandom.fill(&mut random);
        let name = [PREFIX, hex(&random).as_bytes()].concat();
        live().insert(name.clone());
        Self { name }
    }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        live().remove(&self.name);
    }
}

/// Whether it is the name of what a change under way has set aside.
pub fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(PREFIX) && live().contains(name)
}
