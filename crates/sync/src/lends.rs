//! Files that a source lends to a destination of the same process, so that the kernel copies what
//! is in them, or shares it between both.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use crate::stop::lock;

/// What is lent, by the numbers of the questions for it.
#[derive(Default)]
pub struct LocalFdTable(Mutex<HashMap<u64, Arc<OwnedFd>>>);

/// How a range was taken over from another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Both files share it until one of them is changed.
    Cloned,
    /// The kernel has copied it.
    Copied,
}

impl LocalFdTable {
    /// Lends a file.
    pub fn lend(&self, id: u64, file: OwnedFd) {
        lock(&self.0).insert(id, Arc::new(file));
    }

    /// What is lent.
    pub fn get(&self, id: u64) -> Option<Arc<OwnedFd>> {
        lock(&self.0).get(&id).map(Arc::clone)
    }

    /// It is lent no longer.
    pub fn take_back(&self, id: u64) {
        lock(&self.0).remove(&id);
    }
}
