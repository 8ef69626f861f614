//! A connection over RDMA that carries the calls of a dialect: RPC over RDMA version 1 (RFC 8166).
//!
//! Calls and replies without much data are sent; data of a READ is written by the server into
//! memory of this process (a write chunk), data of a WRITE is read by it from there (a read chunk),
//! and a long reply of the preparation comes by a reply chunk. Never are more calls in flight than
//! the server has granted.
//!
//! - [`memory`]: what the server may read or write; [`credits`]: calls that may be in flight;
//!   [`call`]: operations → messages; [`reply`]: messages → completions.
//!
//! Memory stays registered for the life of the connection, so that none is registered while load is
//! made. It is not offered for remote invalidation, which would end its registration.

mod call;
mod credits;
mod memory;
mod reply;

use super::fill::Slots;
use super::pipe::calls::CallTable;
use super::pipe::inbox::answer;
use super::pipe::judge::Judge;
use super::pipe::{CallChannel, Dialect};
use super::{Checker, ClientError, Completion, Op, Options};
use crate::pattern::Content;
use base::clock::Deadline;
use base::limits::{LAB_RDMA_REGISTERED_MAX, LAB_SILENCE_MAX, RDMA_INLINE};
use call::SingleCall;
use credits::Credits;
use memory::{MemoryPool, PooledMemory};
use std::collections::VecDeque;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use verbs::wait::Waiter;
use verbs::{
    Account, ConnectOptions, Connection, Depth, Established, Purpose, Region, Verbs, VerbsError,
    Work, devices, load,
};
use wire::rpcrdma::PrivateData;
use wire::xdr::{Reader, Writer};

/// Bytes that are made, or checked, at once: they stay in the cache meanwhile.
const PIECE: usize = 64 << 10;

/// The devices of this machine.
pub fn machine() -> Arc<dyn Verbs> {
    load::devices(Account::new(LAB_RDMA_REGISTERED_MAX))
}

/// Why this machine cannot connect over RDMA, if that is known beforehand.
pub fn unavailable() -> Option<String> {
    if devices::list().is_empty() {
        return Some("no RDMA device".to_owned());
    }
    load::check().err().map(|why| why.to_string())
}

/// Bytes of one SEND, each way.
#[derive(Debug, Clone, Copy)]
struct InlineLimits {
    send: usize,
    receive: usize,
}

/// A connection.
pub struct RdmaConnection<D> {
    /// Dropped before what waits for it.
    link: Box<dyn Connection>,
    waiter: Waiter,
    dialect: D,
    judge: Judge,
    content: Content,
    client: u32,
    calls: CallTable,
    queue: VecDeque<(u32, Op)>,
    credits: Credits,
    inline: InlineLimits,
    memory: MemoryPool,
    /// What the server may use for a slot's call.
    lent: Vec<Option<PooledMemory>>,
    /// A call outside the slots.
    single: Option<SingleCall>,
    /// Free regions for messages.
    spare: Vec<Region>,
    next: u64,
    ended: Vec<verbs::Completion>,
    ready: Vec<Completion>,
    message: Vec<u8>,
    piece: Vec<u8>,
}

impl<D: Dialect> RdmaConnection<D> {
    /// Connects to `host:port`.
    ///
    /// # Errors
    /// What is missing on this machine, or why the server cannot be reached.
    pub fn open(
        verbs: &dyn Verbs,
        at: (&str, u16),
        checker: Checker,
        dialect: D,
        options: &Options,
    ) -> Result<Self, ClientError> {
        let credits = Credits::new(options.slots);
        let (link, server) = connected(verbs, at, options, credits.requested())?;
        let waiter = Waiter::new().map_err(ClientError::io("wait for a connection over RDMA"))?;
        let mut made = Self {
            link,
            waiter,
            dialect,
            content: checker.content.clone(),
            judge: Judge::new(checker),
            client: 0,
            calls: CallTable::new(options.slots),
            queue: VecDeque::new(),
            inline: InlineLimits {
                send: server.receive.min(RDMA_INLINE),
                receive: server.send.min(RDMA_INLINE),
            },
            memory: MemoryPool::default(),
            lent: Vec::new(),
            single: None,
            spare: Vec::new(),
            next: 0,
            ended: Vec::new(),
            ready: Vec::new(),
            message: Vec::new(),
            piece: vec![0; PIECE],
            credits,
        };
        for _ in 0..made.credits.requested() {
            let region = made.region()?;
            made.receive(region)?;
        }
        Ok(made)
    }

    /// Memory for one message.
    fn region(&mut self) -> Result<Region, ClientError> {
        match self.spare.pop() {
            Some(region) => Ok(region),
            None => self
                .link
                .register(vec![0; RDMA_INLINE], Purpose::Local)
                .map_err(|(_, why)| failed(why)),
        }
    }

    /// A number for some work: even ones are receives.
    fn number(&mut self, receive: bool) -> u64 {
        self.next += 1;
        self.next << 1 | u64::from(!receive)
    }

    fn receive(&mut self, region: Region) -> Result<(), ClientError> {
        let id = self.number(true);
        self.link.post(id, Work::Receive(region)).map_err(failed)
    }

    /// Sends what is queued, as far as the server has granted.
    fn push(&mut self) -> Result<(), ClientError> {
        while self.credits.are_left() && self.dialect.has_room() {
            let Some((slot, op)) = self.queue.pop_front() else { break };
            if !self.start(slot, op)? {
                self.queue.push_front((slot, op));
                break;
            }
        }
        Ok(())
    }

    /// Takes in what has come, or comes within `timeout`.
    fn pull(&mut self, timeout: Duration) -> Result<(), ClientError> {
        let mut ended = std::mem::take(&mut self.ended);
        let waited = self.waiter.wait(&mut *self.link, timeout, &mut ended);
        for verbs::Completion { id, region, outcome } in ended.drain(..) {
            let bytes = outcome.map_err(failed)?;
            if id & 1 != 0 {
                self.spare.push(region);
                continue;
            }
            self.received(region.get(..bytes).unwrap_or_default())?;
            self.receive(region)?;
        }
        self.ended = ended;
        waited.map_err(failed)
    }
}

impl<D: Dialect> Slots for RdmaConnection<D> {
    fn submit(&mut self, slot: u32, op: Op) -> Result<(), ClientError> {
        self.queue.push_back((slot, op));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        self.push()
    }

    fn wait(&mut self, timeout: Duration, done: &mut Vec<Completion>) -> Result<(), ClientError> {
        let deadline = Deadline::after(timeout);
        self.push()?;
        while self.ready.is_empty() {
            let left = deadline.left();
            self.pull(left.unwrap_or_default())?;
            if left.is_none() {
                break;
            }
        }
        done.append(&mut self.ready);
        Ok(())
    }
}

impl<D: Dialect> CallChannel<D> for RdmaConnection<D> {
    fn dialect(&self) -> &D {
        &self.dialect
    }

    fn dialect_mut(&mut self) -> &mut D {
        &mut self.dialect
    }

    fn set_client(&mut self, client: u32) {
        self.client = client;
        self.judge.client = client;
    }

    fn exchange(
        &mut self,
        timeout: Duration,
        write: &dyn Fn(&mut Writer<'_>, u32),
    ) -> Result<Vec<u8>, ClientError> {
        let (xid, deadline) = (self.calls.single(), Deadline::after(timeout));
        self.start_single(xid, write)?;
        let record = loop {
            match self.single.take() {
                Some(SingleCall { reply: Some(record), lent, .. }) => {
                    self.memory.give(lent);
                    break record;
                }
                waiting => self.single = waiting,
            }
            let left = deadline.left().ok_or(ClientError::Silent("a call", timeout))?;
            self.pull(left)?;
        };
        match answer(&mut Reader::new(&record))? {
            found if found == xid => Ok(record),
            _ => Err(ClientError::Protocol("a reply to another call".into())),
        }
    }

    fn granted(&self) -> Option<u32> {
        self.credits.fewer()
    }
}

/// A connection to the first address of a host that accepts one, and the server's private data.
fn connected(
    verbs: &dyn Verbs,
    (host, port): (&str, u16),
    options: &Options,
    calls: u32,
) -> Result<(Box<dyn Connection>, PrivateData), ClientError> {
    let private_data =
        PrivateData { remote_invalidation: false, send: RDMA_INLINE, receive: RDMA_INLINE }
            .encode();
    let resolve = format!("find the address of {host}");
    let mut last = ClientError::Target(host.to_owned(), "has no address of the right family");
    for to in (host, port).to_socket_addrs().map_err(ClientError::io(resolve))? {
        if options.bind.is_some_and(|from| from.is_ipv4() != to.is_ipv4()) {
            continue;
        }
        let call = ConnectOptions {
            to,
            from: options.bind,
            private_data: &private_data,
            timeout: LAB_SILENCE_MAX,
        };
        match verbs.connect(&call, Depth { receives: calls, sends: calls }) {
            Ok(Established { connection, private_data }) => {
                let server = PrivateData::decode(&private_data).unwrap_or_default();
                return Ok((connection, server));
            }
            Err(why) => last = not_connected(to, why),
        }
    }
    Err(last)
}

fn not_connected(to: SocketAddr, source: VerbsError) -> ClientError {
    ClientError::Rdma { what: format!("connect to {to} over RDMA"), source }
}

fn failed(why: VerbsError) -> ClientError {
    match why {
        VerbsError::Closed => ClientError::Closed,
        source => ClientError::Rdma { what: "the connection over RDMA has ended".into(), source },
    }
}

#[cfg(test)]
mod tests;
