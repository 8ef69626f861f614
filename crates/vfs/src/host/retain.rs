//! Retained files: a client has them open by a protocol with open state, so their handles stay
//! valid when their last name is removed, as a descriptor keeps a removed file accessible to a
//! local program ([`crate::fs::FileSystem::retain`]).
//!
//! The node is what is retained; its O_PATH descriptor keeps the inode. The sweeping thread
//! releases a removed file that is not retained any more: closing its last descriptor frees its
//! space, which takes long for a large file, and the caller of the release must not wait for that.

use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use base::clock::Deadline;
use base::limits::RETAIN_TRIES;

use crate::fs::{Context, Result, Retained};
use crate::handle::Handle;
use crate::host::ids::Ident;
use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::{HostFs, sys};
use crate::status::Status;

/// Removed files that are not retained any more, for the sweeping thread.
#[derive(Default)]
pub struct Released {
    state: Mutex<Waiting>,
    wake: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// Each was retained, so there are no more than may be.
    nodes: Vec<Arc<Node>>,
    ending: bool,
}

impl Released {
    /// A removed file has been released.
    pub fn add(&self, node: &Arc<Node>) {
        lock(&self.state).nodes.push(Arc::clone(node));
        self.wake.notify_one();
    }

    /// Takes all that there are.
    pub fn take(&self) -> Vec<Arc<Node>> {
        std::mem::take(&mut lock(&self.state).nodes)
    }

    /// The thread that waits is to end.
    pub fn end(&self) {
        lock(&self.state).ending = true;
        self.wake.notify_one();
    }

    /// Waits until some were released, or until `due`; `None` at the end.
    pub fn wait(&self, due: Deadline) -> Option<Vec<Arc<Node>>> {
        let mut state = lock(&self.state);
        loop {
            if state.ending {
                return None;
            }
            let left = match due.left() {
                Some(left) if state.nodes.is_empty() => left,
                _ => return Some(std::mem::take(&mut state.nodes)),
            };
            let waited = self.wake.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl HostFs {
    pub(super) fn retain_file(&self, cx: Context<'_>, file: &Handle) -> Result<Retained> {
        for _ in 0..RETAIN_TRIES {
            let node = self.node(cx, file)?;
            if let Some(guard) = self.nodes.retain(&node)? {
                return Ok(Retained::by(guard));
            }
            // Released just now: the next lookup of its handle shows whether it still exists.
        }
        Err(Status::Busy)
    }

    /// The removed file that is still retained, by another handle than that of its node.
    pub(super) fn retained(&self, ident: &Ident) -> Option<Arc<Node>> {
        let ino = match ident {
            Ident::Inode { ino, .. } => *ino,
            Ident::Kernel(kernel) => {
                let mount = self.mount.as_fd();
                let fd = sys::open_by_handle(mount, kernel, libc::O_PATH).ok()?;
                sys::stat(fd.as_fd()).ok()?.st_ino
            }
        };
        self.nodes.by_ino(ino).filter(|node| node.ident == *ident && node.is_retained())
    }
}
