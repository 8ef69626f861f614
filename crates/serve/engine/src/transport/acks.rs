//! Operations of which the reply was handed to a socket and has not arrived.
//!
//! Behind a slow link the kernel has the last byte of a large reply long before the peer has it:
//! what is in flight, and waits in queues of the network, is up to the whole reply. An operation
//! lasts until the peer has acknowledged its last bytes, less the round trip of the idle link, so
//! that distance adds as little to it as to that of a small reply. No event of a socket reports an
//! acknowledgement (a time stamp in its error queue, `SOF_TIMESTAMPING_TX_ACK`, is an error to
//! epoll, for which a connection ends), so the core looks, at the time that the rate of the peer
//! suggests.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

use base::clock::stamp;
use base::limits::{ACK_BATCHES_MAX, ACK_LOOK_BYTES, ACK_LOOK_MAX, ACK_LOOK_MIN, ACK_WAIT_MAX};
use probe::op::OpRecord;
use probe::phases::PhaseClock;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::tcp_info::{self, TcpInfo};

/// An operation: when its request came, what its time went to, and its record without its times.
pub type Operation = (u64, PhaseClock, OpRecord);

/// Operations that have ended, and when.
pub type Ended = (u64, Vec<Operation>);

/// Operations of one batch of replies.
struct Batch {
    /// Bytes that the peer has acknowledged when it has the replies.
    end: u64,
    /// When they were handed to the socket.
    sent_ns: u64,
    operations: Vec<Operation>,
}

/// What is sent on one socket and not acknowledged.
pub struct Acks {
    /// `None` once the socket is closed, or if there is none.
    socket: Cell<Option<RawFd>>,
    /// Bytes handed to it since the last operation.
    sent: Cell<u64>,
    batches: RefCell<VecDeque<Batch>>,
    /// When to look again.
    due_ns: Cell<u64>,
    /// What looks, once something waits.
    watch: RefCell<Option<Rc<AckWatch>>>,
}

/// The last bytes of some replies.
pub struct InFlight {
    end: u64,
    due_ns: u64,
}

impl Acks {
    /// Bytes were handed to the socket.
    pub fn count(&self, bytes: usize) {
        self.sent.set(self.sent.get() + bytes as u64);
    }

    /// What the peer has yet to receive of the replies that were handed to the socket last; `None`
    /// if it has them, or at once.
    pub fn in_flight(&self) -> Option<InFlight> {
        let (sent, waiting) = (self.sent.take(), self.batches.borrow().len());
        if sent < ACK_LOOK_BYTES && waiting == 0 || waiting >= ACK_BATCHES_MAX {
            return None;
        }
        let socket = self.socket.get()?;
        let queued = tcp_info::unacknowledged(socket);
        if queued == 0 {
            return None;
        }
        let info = tcp_info::of(socket)?;
        // Of the last two segments the acknowledgement may be delayed (RFC 9293 §3.8.6.3).
        let rest = queued.saturating_sub(2 * info.segment);
        let time_ns = info.time_ns(rest);
        // The rate may be that of a burst, before anything had to wait in a queue of the link.
        let queued = info.round_trip.saturating_sub(info.round_trip_min);
        let soon = waiting == 0 && queued <= ACK_LOOK_MIN && time_ns <= ACK_LOOK_MIN.as_nanos();
        (rest > 0 && !soon)
            .then(|| InFlight { end: info.acknowledged + rest, due_ns: stamp() + look_ns(time_ns) })
    }

    /// Whether an operation waits.
    pub fn are_awaited(&self) -> bool {
        !self.batches.borrow().is_empty()
    }

    /// Moves what has ended to `ended`; false if nothing waits any more.
    fn look(&self, now_ns: u64, ended: &mut Vec<Ended>) -> bool {
        if self.due_ns.get() > now_ns {
            return self.are_awaited();
        }
        let info = self.socket.get().and_then(tcp_info::of).filter(|info| !info.is_closed);
        let mut batches = self.batches.borrow_mut();
        while let Some(batch) = batches.front() {
            let rest = info.as_ref().map_or(0, |i| batch.end.saturating_sub(i.acknowledged));
            if rest > 0 {
                let time_ns = info.as_ref().map_or(0, |info| info.time_ns(rest));
                self.due_ns.set(now_ns + look_ns(time_ns));
                break;
            }
            // It came after the last look, and the acknowledgement took half of a round trip.
            let late = info.as_ref().map_or(ACK_LOOK_MIN, |info| info.round_trip_min);
            let late_ns = late.max(ACK_LOOK_MIN).as_nanos() as u64;
            if let Some(batch) = batches.pop_front() {
                let done_ns = now_ns.saturating_sub(late_ns).max(batch.sent_ns);
                ended.push((done_ns, batch.operations));
            }
        }
        !batches.is_empty()
    }
}

/// Nanoseconds until the next look, if what is in flight takes this long.
fn look_ns(time_ns: u128) -> u64 {
    time_ns.clamp(ACK_LOOK_MIN.as_nanos(), ACK_LOOK_MAX.as_nanos()) as u64
}

impl TcpInfo {
    /// Nanoseconds that the peer took for as many bytes lately.
    fn time_ns(&self, bytes: u64) -> u128 {
        u128::from(bytes) * 1_000_000_000 / u128::from(self.delivery_rate.max(1))
    }
}

/// The [`Acks`] of a socket as long as that is open: its operations end with it.
pub struct OpenAcks(Rc<Acks>);

impl OpenAcks {
    /// Those of a socket that is open as long as this lives.
    pub fn new(stream: &TcpStream) -> Self {
        Self::of(Some(stream.as_raw_fd()))
    }

    fn of(socket: Option<RawFd>) -> Self {
        Self(Rc::new(Acks {
            socket: Cell::new(socket),
            sent: Cell::new(0),
            batches: RefCell::default(),
            due_ns: Cell::new(0),
            watch: RefCell::new(None),
        }))
    }

    /// For what ends operations.
    pub fn get(&self) -> &Rc<Acks> {
        &self.0
    }
}

impl Default for OpenAcks {
    /// Those of no socket: every operation ends when its reply is handed over.
    fn default() -> Self {
        Self::of(None)
    }
}

impl Drop for OpenAcks {
    fn drop(&mut self) {
        self.0.socket.set(None);
        let batches = std::mem::take(&mut *self.0.batches.borrow_mut());
        let Some(watch) = self.0.watch.take() else { return };
        let done_ns = stamp();
        watch.ended.borrow_mut().extend(batches.into_iter().map(|b| (done_ns, b.operations)));
        watch.changed.notify_one();
    }
}

/// A connection that has ended but for the acknowledgement of its last bytes.
struct Closing {
    acks: OpenAcks,
    _stream: TcpStream,
    /// What it holds: its permit.
    _held: Box<dyn Any>,
    until_ns: u64,
}

/// Looks for the acknowledgements of a service on one core.
pub struct AckWatch {
    queues: RefCell<Vec<Rc<Acks>>>,
    closing: RefCell<Vec<Closing>>,
    /// Of connections that have ended.
    ended: RefCell<Vec<Ended>>,
    changed: Notify,
    /// How long a connection that has ended waits.
    wait_max: Duration,
}

impl Default for AckWatch {
    fn default() -> Self {
        Self {
            queues: RefCell::default(),
            closing: RefCell::default(),
            ended: RefCell::default(),
            changed: Notify::new(),
            wait_max: ACK_WAIT_MAX,
        }
    }
}

impl AckWatch {
    /// Operations wait until their replies have arrived.
    pub fn wait(self: &Rc<Self>, acks: &Rc<Acks>, last: &InFlight, operations: Vec<Operation>) {
        let batch = Batch { end: last.end, sent_ns: stamp(), operations };
        let is_first = {
            let mut batches = acks.batches.borrow_mut();
            batches.push_back(batch);
            batches.len() == 1
        };
        if is_first {
            acks.due_ns.set(last.due_ns);
            *acks.watch.borrow_mut() = Some(Rc::clone(self));
            self.queues.borrow_mut().push(Rc::clone(acks));
        }
        self.changed.notify_one();
    }

    /// The sending side of a connection is closed: what is in flight is waited for, and then all of
    /// it, with what it holds, ends.
    pub fn close(&self, stream: TcpStream, acks: OpenAcks, held: Box<dyn Any>) {
        if acks.get().are_awaited() {
            let until_ns = stamp() + self.wait_max.as_nanos() as u64;
            let closing = Closing { acks, _stream: stream, _held: held, until_ns };
            self.closing.borrow_mut().push(closing);
        }
    }

    /// Waits until there is something to look at.
    pub async fn due(&self) {
        loop {
            let changed = self.changed.notified();
            let next = self.queues.borrow().iter().map(|acks| acks.due_ns.get()).min();
            if !self.ended.borrow().is_empty() {
                return;
            }
            let Some(next) = next else {
                changed.await;
                continue;
            };
            let left = Duration::from_nanos(next.saturating_sub(stamp()));
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                () = changed => {}
            }
        }
    }

    /// What has ended.
    pub fn look(&self) -> Vec<Ended> {
        let (now_ns, mut ended) = (stamp(), Vec::new());
        self.queues.borrow_mut().retain(|acks| acks.look(now_ns, &mut ended));
        let mut closing = self.closing.borrow_mut();
        closing.retain(|one| one.acks.get().are_awaited() && now_ns < one.until_ns);
        drop(closing);
        ended.append(&mut self.ended.borrow_mut());
        ended
    }
}

#[cfg(test)]
mod tests;
