//! The mounts of each client, as far as MOUNT knows.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use base::limits::MOUNTS_MAX;
use base::peer::network;

/// The mounts of each client, as far as MOUNT knows: clients need not send UMNT. For display only.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    /// Oldest first, at most [`MOUNTS_MAX`].
    pub(super) known: VecDeque<(IpAddr, Vec<u8>)>,
}

impl Mounts {
    pub(super) fn add(&mut self, client: IpAddr, path: &[u8]) {
        self.remove(client, path);
        if self.known.len() >= MOUNTS_MAX {
            self.remove_of_most();
        }
        self.known.push_back((client, path.to_vec()));
    }

    /// Removes one: of the address with most of them the oldest.
    fn remove_of_most(&mut self) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for (client, _) in &self.known {
            *counts.entry(network(*client)).or_default() += 1;
        }
        let most = counts.values().max().copied();
        let is_of_most = |(client, _): &(IpAddr, _)| counts.get(&network(*client)).copied() == most;
        if let Some(at) = self.known.iter().position(is_of_most) {
            self.known.remove(at);
        }
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

#[cfg(test)]
mod tests;
