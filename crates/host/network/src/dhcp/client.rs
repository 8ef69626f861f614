//! A client of DHCP as a state machine (RFC 2131, section 4.4), which sends and receives nothing
//! itself: times and messages are given to it.
//!
//! A lease is extended by its own server after T1 and by any server after T2. A refusal (DHCPNAK)
//! ends it at once in each state, and another one is searched for. The client does not probe
//! whether an address is in use, and sends no DHCPDECLINE.

use std::net::{IpAddr, Ipv4Addr};

use base::random::{Random, SeededRandom};

use super::message::{self, Mac, Query, Reply};
use super::{Event, FOR_EVER, Lease};

/// How often a lease is verified and an offer is requested before the search begins again.
const TRIES: u32 = 4;
/// The first wait for an answer; it doubles up to the longest (RFC 2131, section 4.1).
const WAIT_MS: u64 = 4_000;
const WAIT_MS_MAX: u64 = 64_000;
/// Each wait is longer or shorter by up to this much, so that clients do not send all at once.
const SPREAD_MS: u64 = 1_000;
/// The shortest wait for an extension (RFC 2131, section 4.4.5), and that of leases which are
/// shorter than [`SHORT_S`]: a message that is lost would cost them.
const EXTEND_MS: u64 = 60_000;
const EXTEND_SHORT_MS: u64 = 4_000;
const SHORT_S: u32 = 600;
/// How long no server is asked after an offer was refused or of no use.
const REFUSED_MS: u64 = 10_000;

/// A client.
#[derive(Debug)]
pub struct Client {
    mac: Mac,
    random: SeededRandom,
    xid: u32,
    stage: Stage,
    /// Messages of this stage that were sent.
    tries: u32,
    /// When the next turn is, in milliseconds.
    due: u64,
    /// The address of the last lease, which is asked for again.
    last: Option<Ipv4Addr>,
}

#[derive(Debug, Clone)]
enum Stage {
    Verifying(Ipv4Addr),
    Discovering,
    Selecting { server: Ipv4Addr, address: Ipv4Addr },
    Bound(Bound),
    Renewing(Bound),
    Rebinding(Bound),
}

/// A lease with its times, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Bound {
    server: Ipv4Addr,
    address: Ipv4Addr,
    valid_s: u32,
    renew: u64,
    rebind: u64,
    end: u64,
}

/// A message to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The message.
    pub message: Vec<u8>,
    /// The sender's address; unspecified if it has none.
    pub from: Ipv4Addr,
    /// A server, or all of them (the broadcast address).
    pub to: Ipv4Addr,
}

/// What a turn leads to.
#[derive(Debug, Default)]
pub struct Effect {
    /// A message to be sent.
    pub send: Option<Outgoing>,
    /// What happens to the lease.
    pub event: Option<Event>,
}

impl Client {
    /// One that verifies a lease, or searches for one. The time is in milliseconds.
    pub fn new(mac: Mac, seed: u64, lease: Option<&Lease>, now: u64) -> Self {
        let known = lease.and_then(address);
        let stage = known.map_or(Stage::Discovering, Stage::Verifying);
        let mut random = SeededRandom::new(seed);
        let xid = random.next_u64() as u32;
        Self { mac, random, xid, stage, tries: 0, due: now, last: known }
    }

    /// When the next turn is.
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Whether an answer may come.
    pub fn is_waiting(&self) -> bool {
        !matches!(self.stage, Stage::Bound(_))
    }

    /// Does what is due.
    pub fn turn(&mut self, now: u64) -> Effect {
        let mut effect = Effect::default();
        match self.stage.clone() {
            Stage::Verifying(_) if self.tries >= TRIES => {
                self.enter(Stage::Discovering, now);
                effect.event = Some(Event::Searching);
            }
            Stage::Selecting { .. } if self.tries >= TRIES => self.enter(Stage::Discovering, now),
            Stage::Bound(bound) if now >= bound.renew => {
                self.enter(Stage::Renewing(bound), now);
                effect.event = Some(Event::Renewing);
            }
            // An early turn: nothing is due.
            Stage::Bound(bound) => {
                self.due = bound.renew;
                return effect;
            }
            Stage::Renewing(bound) if now >= bound.rebind => {
                self.enter(Stage::Rebinding(bound), now);
                effect.event = Some(Event::Rebinding);
            }
            Stage::Rebinding(bound) if now >= bound.end => {
                self.enter(Stage::Discovering, now);
                effect.event = Some(Event::Ended);
            }
            _ => {}
        }
        effect.send = self.outgoing();
        self.due = now.saturating_add(self.wait(now));
        self.tries += 1;
        effect
    }

    fn outgoing(&self) -> Option<Outgoing> {
        let none = Ipv4Addr::UNSPECIFIED;
        let all = Ipv4Addr::BROADCAST;
        let (ask, from, to) = match &self.stage {
            Stage::Verifying(address) => (Query::Verify(*address), none, all),
            Stage::Discovering => (Query::Discover(self.last), none, all),
            Stage::Selecting { server, address } => {
                (Query::Select { server: *server, address: *address }, none, all)
            }
            Stage::Bound(_) => return None,
            Stage::Renewing(bound) => (Query::Extend(bound.address), bound.address, bound.server),
            Stage::Rebinding(bound) => (Query::Extend(bound.address), bound.address, all),
        };
        Some(Outgoing { message: message::request(ask, self.mac, self.xid), from, to })
    }

    /// How long an answer to the message of this turn is waited for.
    fn wait(&mut self, now: u64) -> u64 {
        match &self.stage {
            Stage::Renewing(bound) => extension(bound, bound.rebind.saturating_sub(now)),
            Stage::Rebinding(bound) => extension(bound, bound.end.saturating_sub(now)),
            _ => {
                let doubled = WAIT_MS.checked_shl(self.tries).unwrap_or(WAIT_MS_MAX);
                let spread = self.random.next_u64() % (2 * SPREAD_MS);
                doubled.min(WAIT_MS_MAX) + spread - SPREAD_MS
            }
        }
    }

    fn enter(&mut self, stage: Stage, due: u64) {
        self.stage = stage;
        self.tries = 0;
        self.due = due;
        // An answer to a message of another stage is late.
        self.xid = self.random.next_u64() as u32;
    }

    /// Takes a message that has come at this time; `wall` is the time in seconds since 1970.
    pub fn receive(&mut self, message: &[u8], now: u64, wall: u64) -> Option<Event> {
        let reply = message::reply(message, self.mac, self.xid)?;
        match (self.stage.clone(), reply) {
            (Stage::Discovering, Reply::Offer { server, address }) if !address.is_unspecified() => {
                self.enter(Stage::Selecting { server, address }, now);
                None
            }
            (Stage::Selecting { server, address: offered }, Reply::Given(lease))
                if lease.server == server && address(&lease) == Some(offered) =>
            {
                self.bind(lease, now, wall)
            }
            (Stage::Selecting { server, .. }, Reply::Refused(by))
                if by.is_none_or(|by| by == server) =>
            {
                self.enter(Stage::Discovering, now + REFUSED_MS);
                None
            }
            (Stage::Verifying(known), Reply::Given(lease)) if address(&lease) == Some(known) => {
                self.bind(lease, now, wall)
            }
            (Stage::Renewing(_) | Stage::Rebinding(_), Reply::Given(lease)) => {
                self.bind(lease, now, wall)
            }
            (Stage::Renewing(bound), Reply::Refused(by))
                if by.is_some_and(|by| by != bound.server) =>
            {
                None
            }
            (Stage::Verifying(_) | Stage::Renewing(_) | Stage::Rebinding(_), Reply::Refused(_)) => {
                self.enter(Stage::Discovering, now);
                Some(Event::Refused)
            }
            _ => None,
        }
    }

    fn bind(&mut self, lease: Lease, now: u64, wall: u64) -> Option<Event> {
        let lease = Lease { obtained: wall, ..lease };
        let Some((lease, address)) = lease.sound().and_then(|l| Some((l.clone(), address(&l)?)))
        else {
            self.enter(Stage::Discovering, now + REFUSED_MS);
            return Some(Event::Failed("a server gives a lease of no use".to_owned()));
        };
        let after = |seconds: u32| {
            if lease.valid_s == FOR_EVER { u64::MAX } else { now + u64::from(seconds) * 1_000 }
        };
        let bound = Bound {
            server: lease.server,
            address,
            valid_s: lease.valid_s,
            renew: after(lease.renew_s),
            rebind: after(lease.rebind_s),
            end: after(lease.valid_s),
        };
        self.last = Some(address);
        self.enter(Stage::Bound(bound), bound.renew);
        Some(Event::Given(lease))
    }

    /// The message that gives the lease back, if there is one.
    pub fn release(&self) -> Option<Outgoing> {
        let (Stage::Bound(bound) | Stage::Renewing(bound) | Stage::Rebinding(bound)) = &self.stage
        else {
            return None;
        };
        let Bound { server, address, .. } = *bound;
        let message = message::request(Query::Release { server, address }, self.mac, self.xid);
        Some(Outgoing { message, from: address, to: server })
    }
}

/// Half of the time that is left, but not less than a minimum, and never more than all of it.
fn extension(bound: &Bound, left: u64) -> u64 {
    let least = if bound.valid_s < SHORT_S { EXTEND_SHORT_MS } else { EXTEND_MS };
    left.min(least.max(left / 2))
}

fn address(lease: &Lease) -> Option<Ipv4Addr> {
    match lease.cidr.address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests;
