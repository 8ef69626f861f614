//! What NFS version 3 and MOUNT version 3 share.

use std::sync::{Arc, Mutex};

use vfs::share::Shares;

use super::mounts::Mounts;

/// What both programs share.
pub(super) struct Service {
    pub(super) shares: Arc<Shares>,
    pub(super) mounts: Mutex<Mounts>,
    /// Verifier of unstable writes: another one after each start.
    pub(super) verifier: [u8; 8],
}
