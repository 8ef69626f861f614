//! Requests that wait for a lock, and granted locks that the client has not acknowledged yet. Pure.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use base::limits::{NLM_BLOCKED_MAX, NLM_BLOCKED_PER_ADDRESS_MAX, NLM_BLOCKED_PER_HOST_MAX};
use base::peer::network;
use vfs::handle::Handle;
use vfs::locks::{ClientKey, FileKey, Kind, Owner, Range};

use super::hosts::Host;

/// What is waited for; a repeated request is equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct BlockedRequest {
    pub(super) key: FileKey,
    pub(super) owner: Owner,
    pub(super) range: Range,
    pub(super) kind: Kind,
}

/// One that waits, or is granted and not acknowledged.
#[derive(Clone)]
pub(super) struct Block {
    /// Its number, the cookie of calls about it.
    id: u64,
    pub(super) host: Arc<Host>,
    /// The file, as the client knows it.
    pub(super) handle: Handle,
    granted: bool,
}

/// All of them.
#[derive(Default)]
pub(super) struct Blocks {
    by_wanted: HashMap<BlockedRequest, Block>,
    by_id: HashMap<u64, BlockedRequest>,
    /// How many each host has.
    by_host: HashMap<ClientKey, usize>,
    /// How many the hosts of each address have.
    by_address: HashMap<IpAddr, usize>,
    last: u64,
}

fn count_down<K: Eq + Hash>(counts: &mut HashMap<K, usize>, of: &K) {
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

impl Blocks {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Notes that something is waited for; gives its number. One that waits already keeps its own.
    /// `None` if there is no room.
    pub(super) fn enter(
        &mut self,
        wanted: &BlockedRequest,
        host: &Arc<Host>,
        handle: Handle,
    ) -> Option<u64> {
        if let Some(block) = self.by_wanted.get(wanted).filter(|block| !block.granted) {
            return Some(block.id);
        }
        self.remove(wanted);
        let of_host = self.by_host.get(&host.key).copied().unwrap_or(0);
        let address = network(host.address);
        let there = self.by_address.get(&address).copied().unwrap_or(0);
        let is_full = self.len() >= NLM_BLOCKED_MAX
            || of_host >= NLM_BLOCKED_PER_HOST_MAX
            || there >= NLM_BLOCKED_PER_ADDRESS_MAX;
        if is_full {
            return None;
        }
        self.last += 1;
        let id = self.last;
        let block = Block { id, host: Arc::clone(host), handle, granted: false };
        self.by_wanted.insert(wanted.clone(), block);
        self.by_id.insert(id, wanted.clone());
        self.by_host.insert(host.key, of_host + 1);
        self.by_address.insert(address, there + 1);
        Some(id)
    }

    /// The table holds the lock now; false if the request no longer waits.
    pub(super) fn grant(&mut self, id: u64) -> bool {
        let Some(block) = self.by_id.get(&id).and_then(|w| self.by_wanted.get_mut(w)) else {
            return false;
        };
        !std::mem::replace(&mut block.granted, true)
    }

    /// What is granted under this number and not acknowledged.
    pub(super) fn granted(&self, id: u64) -> Option<(BlockedRequest, Block)> {
        let wanted = self.by_id.get(&id)?;
        let block = self.by_wanted.get(wanted).filter(|block| block.granted)?;
        Some((wanted.clone(), block.clone()))
    }

    /// Whether this is granted and not acknowledged.
    pub(super) fn is_granted(&self, wanted: &BlockedRequest) -> bool {
        self.by_wanted.get(wanted).is_some_and(|block| block.granted)
    }

    /// Forgets one; false if there is none.
    pub(super) fn remove(&mut self, wanted: &BlockedRequest) -> bool {
        let Some(block) = self.by_wanted.remove(wanted) else { return false };
        self.by_id.remove(&block.id);
        count_down(&mut self.by_host, &block.host.key);
        count_down(&mut self.by_address, &network(block.host.address));
        true
    }

    /// Removes the request with this number; returns it.
    pub(super) fn remove_id(&mut self, id: u64) -> Option<BlockedRequest> {
        let wanted = self.by_id.get(&id)?.clone();
        self.remove(&wanted);
        Some(wanted)
    }

    /// Forgets the grants of an owner that it has let go of.
    pub(super) fn unlocked(&mut self, key: FileKey, owner: &Owner, range: Range) {
        if self.by_host.contains_key(&owner.client) {
            self.remove_where(|wanted, block| {
                block.granted
                    && wanted.key == key
                    && wanted.owner == *owner
                    && wanted.range.overlaps(&range)
            });
        }
    }

    /// Forgets all of a host.
    pub(super) fn remove_host(&mut self, host: ClientKey) {
        if self.by_host.contains_key(&host) {
            self.remove_where(|_, block| block.host.key == host);
        }
    }

    /// Forgets all of a host on one file.
    pub(super) fn remove_file(&mut self, key: FileKey, host: ClientKey) {
        if self.by_host.contains_key(&host) {
            self.remove_where(|wanted, block| wanted.key == key && block.host.key == host);
        }
    }

    fn remove_where(&mut self, which: impl Fn(&BlockedRequest, &Block) -> bool) {
        let gone: Vec<_> =
            self.by_wanted.iter().filter(|(w, b)| which(w, b)).map(|(w, _)| w.clone()).collect();
        for wanted in &gone {
            self.remove(wanted);
        }
    }
}
