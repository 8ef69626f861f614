//! Requests and their replies: several in flight, each with a timeout and retries. What is received
//! and belongs to no request is ignored and counted.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::mad::{Class, Mad, Method};
use crate::transport::{Received, Target, Transport};

/// Requests in flight: management agents of switches have few buffers (OpenSM sends 4 to 8).
pub const IN_FLIGHT_MAX: usize = 8;
/// How long a reply may take: a hop takes microseconds, a busy agent tens of milliseconds.
pub const TIMEOUT: Duration = Duration::from_millis(300);
/// Attempts for each request: datagrams are lost, and nothing repeats them.
pub const ATTEMPTS: u32 = 3;

/// A request for an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Destination.
    pub target: Target,
    /// Number of the attribute.
    pub attribute: u16,
    /// Its modifier.
    pub modifier: u32,
    /// Data of the request; empty: zeros.
    pub data: Vec<u8>,
}

/// Why there is no reply to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// No attempt had a reply.
    #[error("no reply to {ATTEMPTS} requests")]
    Timeout,
    /// The reply has a status that is not success.
    #[error("a reply with the status {0:#06x}")]
    Status(u16),
    /// The time for all requests is over.
    #[error("the time for this pass is over")]
    Late,
}

/// What was received and ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Not a datagram of a class and method that replies have here.
    pub malformed: u64,
    /// Of a transaction that is not in flight.
    pub foreign: u64,
    /// Of a transaction in flight, but with another class, attribute or modifier.
    pub mismatched: u64,
}

impl Ignored {
    /// All of them.
    pub fn all(&self) -> u64 {
        self.malformed + self.foreign + self.mismatched
    }
}

/// Makes requests and takes their results.
pub trait Work {
    /// What a request is for.
    type Tag;
    /// The next request; `None`: none until another reply.
    fn next(&mut self) -> Option<(Self::Tag, Query)>;
    /// The end of a request: the data of its reply, or why there is none.
    fn end(&mut self, tag: Self::Tag, result: Result<&[u8], QueryError>);
}

struct Pending<G> {
    tag: G,
    target: Target,
    mad: Mad,
    deadline: Duration,
    attempts: u32,
}

/// Sends requests over a transport.
pub struct Exchange<T> {
    transport: T,
    transaction: u32,
    ignored: Ignored,
}

type InFlight<G> = BTreeMap<u32, Pending<G>>;

impl<T: Transport> Exchange<T> {
    /// Over this transport.
    pub fn new(transport: T) -> Self {
        Self { transport, transaction: 0, ignored: Ignored::default() }
    }

    /// The transport.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// What was ignored so far.
    pub fn ignored(&self) -> Ignored {
        self.ignored
    }

    /// Does work until it has no more requests, or `limit` is over.
    ///
    /// # Errors
    /// The transport's; requests in flight are dropped then.
    pub fn run<W: Work>(&mut self, work: &mut W, limit: Duration) -> io::Result<()> {
        let end = self.transport.now() + limit;
        let mut pending = InFlight::new();
        loop {
            while pending.len() < IN_FLIGHT_MAX {
                let Some((tag, query)) = work.next() else { break };
                let (target, mad) = request(query);
                self.send(&mut pending, Pending { tag, target, mad, deadline: end, attempts: 0 })?;
            }
            if pending.is_empty() {
                return Ok(());
            }
            let now = self.transport.now();
            if now >= end {
                pending.into_values().for_each(|one| work.end(one.tag, Err(QueryError::Late)));
                while let Some((tag, _)) = work.next() {
                    work.end(tag, Err(QueryError::Late));
                }
                return Ok(());
            }
            let first = pending.values().map(|one| one.deadline).min().unwrap_or(end);
            // At least a moment: a wait of less than a millisecond would be a busy loop.
            let wait = first.min(end).saturating_sub(now).max(Duration::from_millis(1));
            if let Some(received) = self.transport.receive(wait)? {
                self.received(work, &mut pending, &received);
            }
            self.expire(work, &mut pending)?;
        }
    }

    /// Sends a request in a transaction of its own: the kernel refuses one that is in flight.
    fn send<G>(&mut self, pending: &mut InFlight<G>, mut one: Pending<G>) -> io::Result<()> {
        self.transaction = self.transaction.wrapping_add(1);
        one.mad.transaction = self.transaction.into();
        self.transport.send(&one.target, &one.mad)?;
        one.attempts += 1;
        one.deadline = self.transport.now() + TIMEOUT;
        pending.insert(self.transaction, one);
        Ok(())
    }

    fn received<W: Work>(
        &mut self,
        work: &mut W,
        pending: &mut InFlight<W::Tag>,
        received: &Received,
    ) {
        if received.error != 0 {
            // The kernel's timeout for a request that has its own here.
            return;
        }
        let reply = match Mad::decode(&received.bytes) {
            Ok(mad) if mad.method == Method::GetResponse => mad,
            _ => {
                self.ignored.malformed += 1;
                return;
            }
        };
        // The kernel uses the upper half.
        let transaction = reply.transaction as u32;
        let Some(one) = pending.remove(&transaction) else {
            self.ignored.foreign += 1;
            return;
        };
        let request = &one.mad;
        let is_reply = (reply.class, reply.attribute, reply.modifier)
            == (request.class, request.attribute, request.modifier);
        if !is_reply {
            self.ignored.mismatched += 1;
            pending.insert(transaction, one);
            return;
        }
        let result = match reply.status {
            0 => Ok(reply.data.as_slice()),
            status => Err(QueryError::Status(status)),
        };
        work.end(one.tag, result);
    }

    /// Sends what had no reply again, or ends it.
    fn expire<W: Work>(&mut self, work: &mut W, pending: &mut InFlight<W::Tag>) -> io::Result<()> {
        let now = self.transport.now();
        let is_over = |(_, one): &(&u32, &Pending<W::Tag>)| one.deadline <= now;
        let over: Vec<u32> = pending.iter().filter(is_over).map(|(n, _)| *n).collect();
        for transaction in over {
            match pending.remove(&transaction) {
                Some(one) if one.attempts < ATTEMPTS => self.send(pending, one)?,
                Some(one) => work.end(one.tag, Err(QueryError::Timeout)),
                None => {}
            }
        }
        Ok(())
    }
}

fn request(query: Query) -> (Target, Mad) {
    let class = match query.target {
        Target::Route(_) => Class::SubnetByRoute,
        Target::Manager(_) => Class::SubnetByLid,
        Target::Performance(_) => Class::Performance,
    };
    let mut mad = Mad::get(class, query.attribute, query.modifier);
    if let Target::Route(route) = &query.target {
        mad.route = route.clone();
    }
    if !query.data.is_empty() {
        mad.data = query.data;
    }
    (query.target, mad)
}

#[cfg(test)]
mod tests;
