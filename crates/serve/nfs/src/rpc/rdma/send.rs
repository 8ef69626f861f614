//! The work that a connection has posted to its device: receives, replies, data in flight in either
//! direction.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::clock::stamp;
use base::limits::{RDMA_CONNECTION_BYTES_MAX, RDMA_INLINE};
use verbs::{Completion, Connection, Purpose, Region, VerbsError, Work};

use super::call::{Arrived, piece, pieces};
use super::reply::{Open, Outgoing};
use super::room::{Missing, Shared};
use super::stats::RdmaStats;
use engine::exec::Engine;

/// What some work was for.
enum Job {
    Receive,
    /// A message, and the number of operations that end with it.
    Send(usize),
    /// Data to the client.
    Write,
    /// The rest of a call.
    Read {
        open: Open,
        arrived_ns: u64,
    },
}

/// The result of posted work.
pub(super) enum Event {
    /// A message has arrived, with its length in bytes.
    Received(Region, usize),
    /// A call is whole.
    Complete(Arrived),
    /// A message has left, with all data of the reply: the number of operations that end with it.
    /// Messages leave in the order in which they were sent.
    Left(usize),
}

/// What is sent: bytes, or already where the device sends them from, the first of it.
pub(super) enum Sent {
    Bytes(Vec<u8>),
    Region(Region, usize),
}

/// A reply that is to leave.
pub(super) struct Ready {
    /// Its message, if any of it is written,
    pub(super) message: Vec<u8>,
    /// and what of it.
    pub(super) writes: Vec<wire::rpcrdma::Piece>,
    pub(super) sent: Sent,
    /// The client's key to invalidate.
    pub(super) invalidate: Option<u32>,
    /// Operations that end when it has left.
    pub(super) ends: usize,
}

impl Ready {
    /// Bytes that it holds in addition to what is registered.
    pub(super) fn bytes(&self) -> usize {
        let sent = if let Sent::Bytes(bytes) = &self.sent { bytes.len() } else { 0 };
        self.message.capacity() + sent
    }
}

/// A connection as its device has it.
pub(super) struct Device {
    link: Box<dyn Connection>,
    jobs: HashMap<u64, Job>,
    next: u64,
    /// Regions for messages that are not in use.
    spare: Vec<Region>,
    /// Bytes registered for data, and the limits that they are within.
    data_bytes: usize,
    shared: Shared,
    /// Work in flight that a reply needs.
    leaving: usize,
    /// The same with data that is read: the client has a part in it.
    with_client: usize,
    /// When the client last did its part of some, or had first to.
    moved_ns: u64,
    done: Vec<Completion>,
    engine: Arc<Engine>,
    stats: Arc<RdmaStats>,
}

impl Drop for Device {
    fn drop(&mut self) {
        self.give(self.data_bytes);
    }
}

impl Device {
    pub(super) fn new(
        link: Box<dyn Connection>,
        engine: &Arc<Engine>,
        (stats, shared): (&Arc<RdmaStats>, Shared),
    ) -> Self {
        Self {
            link,
            jobs: HashMap::new(),
            next: 0,
            spare: Vec::new(),
            data_bytes: 0,
            shared,
            leaving: 0,
            with_client: 0,
            moved_ns: 0,
            done: Vec::new(),
            engine: Arc::clone(engine),
            stats: Arc::clone(stats),
        }
    }

    /// Whether all replies have left.
    pub(super) fn is_quiet(&self) -> bool {
        self.leaving == 0
    }

    /// Sends and writes that have not ended.
    pub(super) fn leaving(&self) -> usize {
        self.leaving
    }

    /// The limits that it is within.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Which limit has no room for this number of bytes of data, if one has none, where the
    /// connection holds `others` in addition to what is registered. One call is always let in, as
    /// far as the part of the address goes.
    pub(super) fn missing(&self, others: usize, bytes: usize) -> Option<Missing> {
        let (held, more) = (self.data_bytes + others, others + bytes);
        if held > 0 && held + bytes > RDMA_CONNECTION_BYTES_MAX {
            return Some(Missing::Own);
        }
        (!self.shared.of_address.has_room(more)).then_some(Missing::OfAddress(more))
    }

    /// Bytes that are registered to send this.
    pub(super) fn registers(&self, ready: &Ready) -> usize {
        let is_there = matches!(ready.sent, Sent::Region(..)) || !self.spare.is_empty();
        let inline = if is_there { 0 } else { RDMA_INLINE };
        inline + if ready.writes.is_empty() { 0 } else { ready.message.len() }
    }

    fn hold(&mut self, bytes: usize) {
        self.data_bytes += bytes;
        self.shared.of_address.take(bytes);
    }

    fn give(&mut self, bytes: usize) {
        let bytes = bytes.min(self.data_bytes);
        self.data_bytes -= bytes;
        self.shared.of_address.give(bytes);
    }

    /// Whether work in flight depends on the client.
    pub(super) fn needs_client(&self) -> bool {
        self.with_client > 0
    }

    /// Whether it has done none of that for so long.
    pub(super) fn stands_still(&self, now_ns: u64, patience: Duration) -> bool {
        let since = Duration::from_nanos(now_ns.saturating_sub(self.moved_ns));
        self.needs_client() && since >= patience
    }

    /// Accepts the client.
    pub(super) fn accept(&mut self, private_data: &[u8]) -> Result<(), VerbsError> {
        self.link.accept(private_data)
    }

    /// Ready when [`Device::events`] has events.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), VerbsError>> {
        self.link.poll(cx, &mut self.done)
    }

    fn post(&mut self, job: Job, work: Work) -> Result<(), VerbsError> {
        let id = self.next;
        self.next += 1;
        self.link.post(id, work)?;
        self.leaving += usize::from(matches!(job, Job::Send(_) | Job::Write));
        if !matches!(job, Job::Receive) {
            if self.with_client == 0 {
                self.moved_ns = stamp();
            }
            self.with_client += 1;
        }
        self.jobs.insert(id, job);
        Ok(())
    }

    /// A region for one message.
    fn message_region(&mut self) -> Result<Region, VerbsError> {
        match self.spare.pop() {
            Some(region) => Ok(region),
            None => {
                self.link.register(vec![0; RDMA_INLINE], Purpose::Local).map_err(|(_, error)| error)
            }
        }
    }

    /// Posts a receive.
    pub(super) fn receive(&mut self) -> Result<(), VerbsError> {
        let region = self.message_region()?;
        self.post(Job::Receive, Work::Receive(region))
    }

    /// Gives up what a call was in: a receive is posted again, anything else is freed.
    pub(super) fn done_with(&mut self, call: Arrived) -> Result<(), VerbsError> {
        if call.received {
            return self.receive_into(call.region);
        }
        let buffer = self.take_buffer(call.region);
        self.engine.large.give(buffer);
        Ok(())
    }

    /// Posts a receive into what another one has brought.
    pub(super) fn receive_into(&mut self, region: Region) -> Result<(), VerbsError> {
        self.post(Job::Receive, Work::Receive(region))
    }

    /// The message of a call, to keep: the buffer that it was read into, or a copy.
    pub(super) fn take_message(
        &mut self,
        call: Arrived,
    ) -> Result<(Vec<u8>, Range<usize>), VerbsError> {
        if !call.received {
            let at = call.at.clone();
            return Ok((self.take_buffer(call.region), at));
        }
        let copy = call.message().to_vec();
        let at = 0..copy.len();
        self.receive_into(call.region)?;
        Ok((copy, at))
    }

    fn take_buffer(&mut self, region: Region) -> Vec<u8> {
        self.give(region.len());
        region.release()
    }

    /// Reads what is missing of a call, which is then an [`Event::Complete`]; the connection holds
    /// `others` in addition to what is registered. It comes back with the limit that has no room
    /// for it now.
    ///
    /// # Errors
    /// When the connection has ended.
    pub(super) fn read(
        &mut self,
        mut call: Arrived,
        others: usize,
    ) -> Result<Option<(Arrived, Missing)>, VerbsError> {
        let Some(layout) = call.unread.take() else { return Ok(None) };
        let length = layout.length;
        // In one step: connections of other threads take their parts at the same time, and beyond
        // the limit none would execute the calls that give their parts back.
        if !self.shared.of_address.try_take_next_to(length, others) {
            call.unread = Some(layout);
            return Ok(Some((call, Missing::OfAddress(others + length))));
        }
        self.data_bytes += length;
        let mut buffer = self.engine.large.take(length);
        buffer.resize(length, 0);
        let mut region = match self.link.register(buffer, Purpose::ReadTarget) {
            Ok(region) => region,
            Err((buffer, VerbsError::NoRoom)) => {
                self.give(length);
                self.engine.large.give(buffer);
                call.unread = Some(layout);
                return Ok(Some((call, Missing::Registered(length))));
            }
            Err((_, why)) => return Err(why),
        };
        layout.place(call.message(), &mut region);
        let pieces = pieces(&layout);
        let bytes = pieces.iter().map(|piece| piece.local.len()).sum();
        RdmaStats::add(&self.stats.read_bytes, bytes);
        let Arrived { open, region: received, arrived_ns, .. } = call;
        self.receive_into(received)?;
        self.post(Job::Read { open, arrived_ns }, Work::Read { region, pieces })?;
        Ok(None)
    }

    /// Puts what is sent of a message where the device sends it from, if that has room.
    ///
    /// # Errors
    /// When the connection has ended.
    pub(super) fn prepare(&mut self, out: &Outgoing, message: &[u8]) -> Result<Sent, VerbsError> {
        let length = out.length();
        match self.message_region() {
            Ok(mut region) => {
                out.put(message, region.get_mut(..length).unwrap_or_default());
                Ok(Sent::Region(region, length))
            }
            Err(VerbsError::NoRoom) => {
                let mut bytes = vec![0; length];
                out.put(message, &mut bytes);
                Ok(Sent::Bytes(bytes))
            }
            Err(why) => Err(why),
        }
    }

    /// Sends a reply. It comes back when it has no room now.
    ///
    /// # Errors
    /// When the connection has ended.
    pub(super) fn reply(&mut self, ready: Ready) -> Result<Option<Ready>, VerbsError> {
        let Ready { message, writes, sent, invalidate, ends } = ready;
        let (region, length) = match sent {
            Sent::Region(region, length) => (region, length),
            Sent::Bytes(bytes) => match self.message_region() {
                Ok(mut region) => {
                    let length = bytes.len();
                    region.get_mut(..length).unwrap_or_default().copy_from_slice(&bytes);
                    (region, length)
                }
                Err(VerbsError::NoRoom) => {
                    let sent = Sent::Bytes(bytes);
                    return Ok(Some(Ready { message, writes, sent, invalidate, ends }));
                }
                Err(why) => return Err(why),
            },
        };
        if !writes.is_empty() {
            match self.own_region(message)? {
                Ok(message) => self.write(message, &writes)?,
                Err(message) => {
                    let sent = Sent::Region(region, length);
                    return Ok(Some(Ready { message, writes, sent, invalidate, ends }));
                }
            }
        }
        RdmaStats::add(&self.stats.inline_bytes, length);
        self.post(Job::Send(ends), Work::Send { region, length, invalidate })?;
        Ok(None)
    }

    /// Registers a buffer; it comes back when there is no room for it now.
    fn own_region(&mut self, buffer: Vec<u8>) -> Result<Result<Region, Vec<u8>>, VerbsError> {
        match self.link.register(buffer, Purpose::Local) {
            Ok(region) => {
                self.hold(region.len());
                Ok(Ok(region))
            }
            Err((buffer, VerbsError::NoRoom)) => Ok(Err(buffer)),
            Err((_, why)) => Err(why),
        }
    }

    fn write(&mut self, region: Region, writes: &[wire::rpcrdma::Piece]) -> Result<(), VerbsError> {
        let pieces: Vec<_> = writes.iter().map(piece).collect();
        let bytes = pieces.iter().map(|piece| piece.local.len()).sum();
        RdmaStats::add(&self.stats.write_bytes, bytes);
        self.post(Job::Write, Work::Write { region, pieces })
    }

    /// The results of work that has ended.
    ///
    /// # Errors
    /// When some has failed.
    pub(super) fn events(&mut self, events: &mut Vec<Event>) -> Result<(), VerbsError> {
        let mut done = std::mem::take(&mut self.done);
        for Completion { id, region, outcome } in done.drain(..) {
            let bytes = outcome?;
            let Some(job) = self.jobs.remove(&id) else { continue };
            self.leaving -= usize::from(matches!(job, Job::Send(_) | Job::Write));
            if !matches!(job, Job::Receive) {
                self.with_client -= 1;
                self.moved_ns = stamp();
            }
            match job {
                Job::Receive => {
                    RdmaStats::add(&self.stats.inline_bytes, bytes);
                    events.push(Event::Received(region, bytes));
                }
                Job::Send(ends) => {
                    self.spare.push(region);
                    events.push(Event::Left(ends));
                }
                Job::Write => {
                    let buffer = self.take_buffer(region);
                    self.engine.large.give(buffer);
                }
                Job::Read { open, arrived_ns } => {
                    let at = 0..region.len();
                    let (unread, received, begun) = (None, false, None);
                    let whole = Arrived { open, region, at, unread, received, begun, arrived_ns };
                    events.push(Event::Complete(whole));
                }
            }
        }
        self.done = done;
        Ok(())
    }
}
