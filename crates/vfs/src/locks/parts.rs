//! How much the clients of each address hold, so that one address leaves something of every limit
//! to the others, and one client something to the others of its address.
//!
//! Of what the other addresses leave of a limit an address takes three quarters at most
//! ([`LOCK_PART_LEFT`]), and of what the other clients of an address leave of that, one client
//! three quarters: however many come, the next one from another address finds room. A change costs
//! one lock of a part of the account, whatever there is.

use core::net::IpAddr;
use std::collections::HashMap;

use base::limits::{LOCK_PART_LEFT, LOCK_PART_SHARDS};
use base::lock_order::{OrderedGuard, OrderedMutex, ranks};

use super::{ClientKey, Owner};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Opens.
    Open,
    /// Byte-range locks.
    Lock,
    /// Requests that wait for one.
    Waiting,
    /// Leases.
    Lease,
}

/// A limit, and how much of it is in use.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// The limit.
    pub most: u64,
    /// The number in use.
    pub used: u64,
}

/// What one address, and one client of it, have of a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartOf {
    /// All clients of the address.
    pub address: u64,
    /// The client.
    pub client: u64,
}

/// Most of it: what is left for others is not in it.
const fn most_of(left: u64) -> u64 {
    left - left / LOCK_PART_LEFT
}

impl Limit {
    /// Whether a client that has `own` may have so much more.
    pub const fn permits(self, own: PartOf, more: u64) -> bool {
        if self.used.saturating_add(more) > self.most {
            return false;
        }
        let of_others = self.used.saturating_sub(own.address);
        let room = most_of(self.most.saturating_sub(of_others));
        let beside = own.address.saturating_sub(own.client);
        let own_room = most_of(room.saturating_sub(beside));
        own.address.saturating_add(more) <= room && own.client.saturating_add(more) <= own_room
    }

    /// Whether one that nothing is known of may have so much more, because so little is in use.
    pub const fn is_ample(self, more: u64) -> bool {
        self.permits(PartOf { address: self.used, client: self.used }, more)
    }
}

type Tally = [u64; 4];

#[derive(Default)]
struct AddressPart {
    all: Tally,
    clients: HashMap<ClientKey, Tally>,
}

type Shard = HashMap<IpAddr, AddressPart>;

/// The account.
pub(super) struct LimitAccount {
    shards: Box<[OrderedMutex<Shard>]>,
}

impl Default for LimitAccount {
    fn default() -> Self {
        let shard = |_| OrderedMutex::new(ranks::LOCK_PARTS, Shard::default());
        Self { shards: (0..LOCK_PART_SHARDS).map(shard).collect() }
    }
}

impl LimitAccount {
    fn shard(&self, address: IpAddr) -> OrderedGuard<'_, Shard> {
        let bits = match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let mixed = ((bits >> 64) as u64 ^ bits as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.shards[mixed as usize % self.shards.len()].lock()
    }

    /// What an owner's client and address have. The server itself has no address, and no part.
    pub(super) fn of(&self, owner: &Owner, what: Counted) -> PartOf {
        let Some(address) = owner.address() else { return PartOf::default() };
        let shard = self.shard(address);
        let Some(part) = shard.get(&address) else { return PartOf::default() };
        let own = part.clients.get(&owner.client).copied().unwrap_or_default();
        PartOf { address: part.all[what as usize], client: own[what as usize] }
    }

    /// What all clients of an address have.
    pub(super) fn at(&self, address: IpAddr, what: Counted) -> u64 {
        self.shard(address).get(&address).map_or(0, |part| part.all[what as usize])
    }

    /// So much more is an owner's.
    pub(super) fn add(&self, owner: &Owner, what: Counted, more: u64) {
        let Some(address) = owner.address().filter(|_| more > 0) else { return };
        let mut shard = self.shard(address);
        let part = shard.entry(address).or_default();
        part.all[what as usize] += more;
        part.clients.entry(owner.client).or_default()[what as usize] += more;
    }

    /// So much is not an owner's any more.
    pub(super) fn remove(&self, owner: &Owner, what: Counted, less: u64) {
        let Some(address) = owner.address().filter(|_| less > 0) else { return };
        let mut shard = self.shard(address);
        let Some(part) = shard.get_mut(&address) else { return };
        let all = &mut part.all[what as usize];
        *all = all.saturating_sub(less);
        if let Some(own) = part.clients.get_mut(&owner.client) {
            own[what as usize] = own[what as usize].saturating_sub(less);
            if *own == Tally::default() {
                part.clients.remove(&owner.client);
            }
        }
        if part.clients.is_empty() {
            shard.remove(&address);
        }
    }

    /// How many addresses hold anything.
    #[cfg(test)]
    pub(super) fn addresses(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }
}

#[cfg(test)]
mod tests;
