//! Who has mounted what, as far as MOUNT knows.

use std::collections::VecDeque;
use std::net::IpAddr;

use base::limits::MOUNTS_MAX;

/// Who mounted what, as far as MOUNT knows: clients need not tell when they go. For people only.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    /// Oldest first, at most [`MOUNTS_MAX`].
    pub(super) known: VecDeque<(IpAddr, Vec<u8>)>,
}

impl Mounts {
    pub(super) fn add(&mut self, client: IpAddr, path: &[u8]) {
        self.remove(client, path);
        if self.known.len() >= MOUNTS_MAX {
            self.known.pop_front();
        }
        self.known.push_back((client, path.to_vec()));
    }

    pub(super) fn remove(&mut self, client: IpAddr, path: &[u8]) {
        self.known.retain(|(c, p)| *c != client || p != path);
    }

    pub(super) fn keep(&mut self, is_served: impl Fn(&[u8]) -> bool) {
        self.known.retain(|(_, path)| is_served(path));
    }

    pub(super) fn remove_all(&mut self, client: IpAddr) {
        self.known.retain(|(c, _)| *c != client);
    }
}
