//! Temporary names of files that are replaced or that replace others.
//!
//! Listings hide such a name while the change is in progress. A file that an interrupted change has
//! left is listed like any other, and Plimsoll never removes it: it may be the only copy.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::random::{Random, SystemRandom};
use base::text::hex;

/// Begins such names.
const PREFIX: &[u8] = b".plimsoll-replaced-";

/// Names of changes in progress.
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

/// Whether the name is that of a file which a change in progress has renamed.
pub fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(PREFIX) && live().contains(name)
}
