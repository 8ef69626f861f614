//! Hosts that hold locks, by address and by what they call themselves. Pure.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use base::limits::{NLM_FILES_PER_HOST_MAX, NLM_HOSTS_MAX, NLM_HOSTS_PER_ADDRESS_MAX};
use base::lock_order::{OrderedMutex, ranks};
use base::peer::network;
use vfs::handle::Handle;
use vfs::locks::{ClientKey, FileKey, Owner, Protocol};
use vfs::recovery::ClientId;

use super::RECORDED_AS;

/// A host.
pub(super) struct Host {
    /// What the lock table knows it by.
    pub(super) key: ClientKey,
    /// What it calls itself.
    pub(super) name: Vec<u8>,
    /// Where it is.
    pub(super) address: IpAddr,
    /// Held while something is done for it; never while a disk or a peer is waited for.
    pub(super) gate: OrderedMutex<Gate>,
    /// How it is called back.
    pub(super) line: OrderedMutex<Line>,
}

/// What changes about a host.
#[derive(Default)]
pub(super) struct Gate {
    /// It is on record, and will be notified of the next restart.
    pub(super) recorded: bool,
    /// Something was done for it since it was last looked at.
    pub(super) used: bool,
    /// It has been removed from the table: look it up again.
    pub(super) gone: bool,
    /// Files that it has locks on, by the handles that it knows: it must be able to let go of a
    /// lock on a file that is no more.
    pub(super) files: HashMap<Handle, HeldFile>,
}

/// The state number (NSM) for calls of a host that have none.
pub(super) const STATE_UNKNOWN: u32 = 0;

/// A file that a host has locks on.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldFile {
    pub(super) key: FileKey,
    /// The state number (NSM) of the host when it took the first lock there.
    pub(super) state: u32,
}

impl Gate {
    /// Remembers which file a handle is, on which a lock is taken in this state of the host.
    pub(super) fn remember(&mut self, handle: Handle, key: FileKey, state: u32) {
        if self.files.len() < NLM_FILES_PER_HOST_MAX {
            self.files.entry(handle).or_insert(HeldFile { key, state }).key = key;
        }
    }

    /// Whether it has locks in this state, and all that it has is known by its files.
    pub(super) fn holds_in(&self, state: u32) -> bool {
        let is_known = state != STATE_UNKNOWN && self.files.len() < NLM_FILES_PER_HOST_MAX;
        is_known && self.files.values().any(|file| file.state == state)
    }
}

/// Where a program of a client listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) udp: bool,
    pub(super) number: u16,
}

/// How to call a host.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    /// Where its lock manager listens, once it is known.
    pub(super) port: Option<Port>,
    /// The address of this server that it uses: it accepts no calls from others.
    pub(super) local: Option<IpAddr>,
}

impl Host {
    /// Its record.
    pub(super) fn record(&self) -> ClientId {
        record(self.address, &self.name)
    }

    /// One of its owners; `None` if what it calls it is too long.
    pub(super) fn owner(&self, svid: u32, oh: &[u8]) -> Option<Owner> {
        owner(self.key, svid, oh).map(|owner| owner.at(self.address))
    }
}

/// The key of a host that is not in the table: it holds nothing.
pub(super) const STRANGER: ClientKey = ClientKey { protocol: Protocol::Nlm, id: 0 };

/// An owner: the number of the process, and then what the client makes of it.
pub(super) fn owner(host: ClientKey, svid: u32, oh: &[u8]) -> Option<Owner> {
    let mut id = Vec::with_capacity(4 + oh.len());
    id.extend(svid.to_be_bytes());
    id.extend(oh);
    Owner::new(host, &id)
}

/// What [`owner`] was made of. Owners of other protocols are process 0.
pub(super) fn owner_parts(owner: &Owner) -> (u32, &[u8]) {
    match owner.id().split_first_chunk() {
        Some((svid, oh)) if owner.client.protocol == Protocol::Nlm => {
            (u32::from_be_bytes(*svid), oh)
        }
        _ => (0, owner.id()),
    }
}

/// The record of a host.
pub(super) fn record(address: IpAddr, name: &[u8]) -> ClientId {
    let principal = address.to_string().into_bytes();
    ClientId { protocol: RECORDED_AS, owner: name.to_vec(), principal }
}

/// The host that a record is of; `None` for one that is of no host.
pub(super) fn recorded(client: &ClientId) -> Option<(IpAddr, Vec<u8>)> {
    let address = std::str::from_utf8(&client.principal).ok()?.parse().ok()?;
    (client.protocol == RECORDED_AS && !client.owner.is_empty())
        .then(|| (address, client.owner.clone()))
}

/// All hosts.
#[derive(Default)]
pub(super) struct Hosts {
    by_name: HashMap<(IpAddr, Vec<u8>), Arc<Host>>,
    /// How many there are at each address.
    at: HashMap<IpAddr, usize>,
    last: u64,
}

impl Hosts {
    /// The host, made if it is new; `None` if there is no room, or it has no name.
    pub(super) fn find_or_add(&mut self, address: IpAddr, name: &[u8]) -> Option<Arc<Host>> {
        if let Some(host) = self.find(address, name) {
            return Some(host);
        }
        let here = self.at.get(&network(address)).copied().unwrap_or(0);
        let full = self.by_name.len() >= NLM_HOSTS_MAX || here >= NLM_HOSTS_PER_ADDRESS_MAX;
        if full || name.is_empty() {
            return None;
        }
        self.at.insert(network(address), here + 1);
        self.last += 1;
        let host = Arc::new(Host {
            key: ClientKey { protocol: Protocol::Nlm, id: self.last },
            name: name.to_vec(),
            address,
            gate: OrderedMutex::new(ranks::NLM_HOST, Gate::default()),
            line: OrderedMutex::new(ranks::NLM_CALLBACK, Line::default()),
        });
        self.by_name.insert((address, name.to_vec()), Arc::clone(&host));
        Some(host)
    }

    /// The host, if it is known.
    pub(super) fn find(&self, address: IpAddr, name: &[u8]) -> Option<Arc<Host>> {
        self.by_name.get(&(address, name.to_vec())).map(Arc::clone)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Host>> {
        self.by_name.values()
    }

    /// Forgets one.
    pub(super) fn remove(&mut self, host: &Host) {
        if self.by_name.remove(&(host.address, host.name.clone())).is_none() {
            return;
        }
        match self.at.get_mut(&network(host.address)) {
            Some(here) if *here > 1 => *here -= 1,
            _ => drop(self.at.remove(&network(host.address))),
        }
    }
}

/// Whether two names are of the same host: one may have a domain, and case is ignored.
pub(super) fn same_name(one: &[u8], other: &[u8]) -> bool {
    fn first(name: &[u8]) -> &[u8] {
        name.split(|b| *b == b'.').next().unwrap_or_default()
    }
    one.eq_ignore_ascii_case(other) || first(one).eq_ignore_ascii_case(first(other))
}
