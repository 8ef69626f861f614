//! Periodic release of what keeps files without need: files that were removed outside the server,
//! with space that would never be freed, and descriptors that are not used any more. A thread of
//! the back end does it, a part of the table at a time.

use std::sync::Arc;
use std::thread::JoinHandle;

use base::clock::Deadline;
use base::limits::{NODE_SHARDS, SWEEP_ALL_MAX, SWEEP_EVERY};

use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::nodes::Nodes;
use crate::host::open_files::OpenFiles;
use crate::host::sys;

/// Permission bits of an owner with read and write access.
const OWNER_BITS: u32 = 0o600;

/// The thread; it ends when this is dropped.
pub struct Sweeper {
    nodes: Arc<Nodes>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    /// Sweeps `nodes`; with `privileged` a closed descriptor can always be opened again.
    pub fn start(nodes: Arc<Nodes>, privileged: bool) -> std::io::Result<Self> {
        let swept = Arc::clone(&nodes);
        let thread = std::thread::Builder::new().name("sweep".into()).spawn(move || {
            let mut next = 0;
            loop {
                // All at once where there are few: each part's turn comes as often.
                let count = if swept.len() <= SWEEP_ALL_MAX { NODE_SHARDS } else { 1 };
                let due = Deadline::after(SWEEP_EVERY * count as u32);
                while !due.passed() {
                    let Some(released) = swept.released.wait(due) else { return };
                    released.iter().for_each(|node| let_go(&swept, node));
                }
                for shard in next..next + count {
                    sweep(&swept, shard, privileged);
                }
                next = (next + count) % NODE_SHARDS;
            }
        })?;
        Ok(Self { nodes, thread: Some(thread) })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.nodes.released.end();
        if let Some(thread) = self.thread.take() {
            // Nothing depends on what a sweeper that panicked has left undone.
            let _ = thread.join();
        }
    }
}

/// Lets go of a file that was retained, if it is removed.
fn let_go(nodes: &Nodes, node: &Arc<Node>) {
    if sys::stat(node.fd()).is_ok_and(|st| st.st_nlink == 0) {
        nodes.forget(node);
    }
}

/// Sweeps one part of the table. Returns how many files were let go.
pub fn sweep(nodes: &Nodes, shard: usize, privileged: bool) -> usize {
    let mut gone = 0;
    for node in nodes.of_shard(shard) {
        let Ok(st) = sys::stat(node.fd()) else { continue };
        if st.st_nlink == 0 {
            gone += usize::from(nodes.forget(&node));
        } else if privileged || st.st_mode & OWNER_BITS == OWNER_BITS {
            OpenFiles::give_up_idle(&node);
        }
        // A listing that was not continued holds a descriptor and a buffer.
        lock(&node.streams).retain_mut(|stream| !std::mem::replace(&mut stream.idle, true));
    }
    gone
}
