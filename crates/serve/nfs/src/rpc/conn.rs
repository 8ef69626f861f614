//! One connection: receive, execute every complete call, send all replies at once. The only file of
//! this folder that does I/O.
//!
//! A turn is one receive, its replies and one send. Time is stamped when the data came, after each
//! call, and when the replies left. Operations that must wait go to the pool or to the flush group
//! and come back through the completion queue; NFSv3 requires no order, so later calls do not wait
//! for them.

mod dial;
mod input;
mod secure;

use std::future::{Future as _, poll_fn};
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use base::clock::stamp;
use base::limits::{
    CONNECTION_REQUESTS_MAX, LARGE_RECORD, RECEIVE_BUFFER, RECORD_LOOK, RECORD_TIME_MAX,
    SEND_BATCH_MAX, TURN_OPS_MAX, TURN_TIME_MAX,
};
use probe::op::OpRecord;
use probe::phases::Phase;
use tokio::net::TcpStream;
use tokio::time::Sleep;
use vfs::fs::Extent;
use wire::rpc::{CallError, RecordError, RecordMark};

pub use self::dial::dial;
use self::input::{Input, Next};
use super::back::Back;
use super::caller::Caller;
use super::completion::{Completion, Waiter};
use super::core::Core;
use super::dispatch::{CallState, ReplyContext};
use super::pending::{BegunCall, Origin, PendingCall};
use super::program::DispatchResult;
use super::replay::Parked;
use super::{framing, node};
use engine::exec::{CompletionQueue, Span};
use engine::pool::place::NextSlot;
use engine::transport::budget::{Need, NextRoom};
use engine::transport::buffers::ReplyBuf;
use engine::transport::link::{Link, ReceiveError};
use engine::transport::listener::Accepted;
use engine::transport::send::SendError;
use engine::transport::tls::TlsError;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    /// The peer closed it.
    #[error("closed by the peer")]
    Closed,
    /// The service is ending and every call has its reply.
    #[error("service ends")]
    Drained,
    /// The peer sent what is no RPC.
    #[error("not RPC: {0}")]
    Malformed(#[from] RecordError),
    /// A call's header made no sense.
    #[error("bad call: {0}")]
    BadCall(#[from] CallError),
    /// A record was begun and not finished, or replies were not taken.
    #[error("the peer is too slow")]
    TooSlow,
    /// Reading a call's header panicked.
    #[error("reading a call panicked")]
    Panicked,
    /// Replies could not be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The TLS session was not set up, or ended.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The socket failed.
    #[error("socket: {0}")]
    Io(#[from] io::Error),
}

enum Event {
    Readable,
    Completion,
    Slot,
    Budget,
    Timer,
}

impl From<ReceiveError> for Ended {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Tls(e) => Self::Tls(e),
            ReceiveError::Io(e) => Self::Io(e),
        }
    }
}

/// What a turn left behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BatchOutcome {
    /// Every complete call was executed.
    Finished,
    /// The turn is used up; there is more.
    UsedUp,
    /// A budget is used up; there is more.
    Stalled,
}

/// A connection and what belongs to it.
pub(super) struct Conn {
    link: Link,
    core: Rc<Core>,
    queue: Arc<CompletionQueue<Completion>>,
    /// Calls in the other direction.
    back: Arc<Back>,
    caller: Caller,
    input: Input,
    out: ReplyBuf,
    /// Large replies, sent from where they are.
    large: Vec<Vec<u8>>,
    /// Replies up to their data, and where the data is.
    extents: Vec<(Vec<u8>, Extent)>,
    /// Bytes of that data.
    extent_bytes: usize,
    spans: Vec<Span>,
    /// Bytes of the budget that are given back when the replies at hand have been sent.
    unsent: usize,
    /// Facts of further operations of the call at hand.
    more: Vec<OpRecord>,
    /// The call at the front of `input`, which waits for room on the pool.
    begun: Option<BegunCall>,
    completions: Vec<Completion>,
    in_flight: usize,
    closing: bool,
    /// Whether a call was made on it that is not NULL.
    is_kept: bool,
    /// The reply to a probe is written: TLS comes after it.
    securing: bool,
    timer: Option<Pin<Box<Sleep>>>,
    /// When an unfinished record was first waited for; 0 when there is none.
    begun_ns: u64,
    /// When the last call of this turn had its reply.
    now_ns: u64,
    /// The place on the pool of the call at the front of `input`.
    place: NextSlot,
    /// Room in the budget: for that call, or to receive more.
    room: NextRoom,
    /// Bytes that the call needs.
    wanted: usize,
}

/// Serves an accepted connection until it ends.
pub(super) async fn serve(core: Rc<Core>, accepted: Accepted) {
    // Held to the end, then given back.
    let _permit = accepted.permit;
    let address: IpAddr = accepted.peer.ip().to_canonical();
    let Ok(stream) = TcpStream::from_std(accepted.stream) else { return };
    let client = core.engine.hub.clients().intern(address);
    // A client that receives callbacks must see the address that it knows.
    let local = stream.local_addr().ok().map(|at| at.ip().to_canonical());
    let mut caller = Caller::new((address, accepted.peer.port()), client, core.id).called_at(local);
    let pace = core.engine.budgets.limits().pace;
    let queue = core.completion_queue();
    let back = Back::new(caller.connection(), Arc::clone(&queue));
    caller.set_back(Arc::clone(&back));
    let mut conn = Conn {
        link: Link::new(stream, pace),
        back,
        caller,
        core,
        queue,
        input: Input::default(),
        out: ReplyBuf::default(),
        large: Vec::new(),
        extents: Vec::new(),
        extent_bytes: 0,
        spans: Vec::new(),
        unsent: 0,
        more: Vec::new(),
        begun: None,
        completions: Vec::new(),
        in_flight: 0,
        closing: false,
        is_kept: false,
        securing: false,
        timer: None,
        begun_ns: 0,
        now_ns: 0,
        place: NextSlot::default(),
        room: NextRoom::default(),
        wanted: 0,
    };
    base::debug!(node::NODE.name, "{address} connected from port {}", accepted.peer.port());
    let ended = conn.run().await.err();
    if let Some(why) = &ended {
        base::debug!(node::NODE.name, "connection of {address} closed: {why}");
    }
    conn.count(ended.as_ref());
    conn.settle().await;
}

impl Conn {
    async fn run(&mut self) -> Result<(), Ended> {
        let mut turn = BatchOutcome::Finished;
        loop {
            match turn {
                BatchOutcome::UsedUp => tokio::task::yield_now().await,
                BatchOutcome::Finished | BatchOutcome::Stalled => {
                    if self.closing && self.in_flight == 0 {
                        return Err(Ended::Drained);
                    }
                    self.rest();
                    match self.wait(turn).await? {
                        Event::Readable => self.receive().await?,
                        Event::Budget if self.may_read(turn) => self.receive().await?,
                        Event::Timer => self.check_receive_timeout()?,
                        Event::Completion | Event::Slot | Event::Budget => {}
                    }
                }
            }
            self.drain_completions();
            turn = self.answer()?;
            if self.input.is_empty() {
                // Sending may have to wait for the peer: others can use the buffer meanwhile.
                self.input.put_back(&self.core);
            }
            if !self.out.is_empty() || !self.large.is_empty() || !self.extents.is_empty() {
                // Sending may have to wait for the peer: others can have the room meanwhile.
                self.room.clear();
            }
            self.send().await?;
            if self.securing {
                self.secure().await?;
            }
        }
    }

    /// Gives the buffers back while there is nothing in them.
    fn rest(&mut self) {
        self.link.rest((&self.core.buffers, &self.core.budget));
        if self.input.is_empty() {
            self.input.put_back(&self.core);
        }
        if !self.has_begun() {
            self.timer = None;
            self.begun_ns = 0;
        }
        if self.out.is_empty() {
            self.core.buffers.give_reply(std::mem::take(&mut self.out));
        }
    }

    /// Whether a part of a record has come.
    fn has_begun(&self) -> bool {
        !self.input.is_empty() || self.link.holds()
    }

    fn may_read(&self, turn: BatchOutcome) -> bool {
        turn == BatchOutcome::Finished && !self.closing && self.in_flight < CONNECTION_REQUESTS_MAX
    }

    /// Waits for data, completions, the end of the service, or a timeout.
    async fn wait(&mut self, turn: BatchOutcome) -> Result<Event, Ended> {
        let read = self.may_read(turn) && !self.room.waits();
        if turn == BatchOutcome::Stalled {
            self.core.note_backpressure();
            self.wait_for_room();
        } else if self.has_begun() && read && self.timer.is_none() {
            if self.begun_ns == 0 {
                self.begun_ns = stamp();
            }
            self.timer = Some(Box::pin(tokio::time::sleep(RECORD_LOOK)));
        }
        if !read {
            // It is not the fault of the peer that nothing comes: its time begins again.
            (self.timer, self.begun_ns) = (None, 0);
        }
        let Self { link, queue, timer, closing, place, room, .. } = self;
        // While nothing is received the end of the peer shows nowhere else, and what is begun for
        // it must end soon after.
        let mut ended = pin!(async {
            match read {
                true => std::future::pending().await,
                false => link.peer_ended().await,
            }
        });
        poll_fn(|cx| {
            if let Poll::Ready(woken) = queue.poll(cx, *closing) {
                *closing = woken.closing;
                return Poll::Ready(Ok(Event::Completion));
            }
            if read && let Poll::Ready(ready) = link.poll_ready(cx) {
                return Poll::Ready(ready.map(|()| Event::Readable).map_err(Ended::Io));
            }
            if place.poll(cx).is_ready() {
                return Poll::Ready(Ok(Event::Slot));
            }
            if room.poll(cx).is_ready() {
                return Poll::Ready(Ok(Event::Budget));
            }
            if ended.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(Ended::Closed));
            }
            match timer.as_mut().map(|t| t.as_mut().poll(cx)) {
                Some(Poll::Ready(())) => Poll::Ready(Ok(Event::Timer)),
                _ => Poll::Pending,
            }
        })
        .await
    }

    /// A record that has come finds no room: what it waits for wakes it.
    fn wait_for_room(&mut self) {
        // The pool, or a completion, does.
        if self.place.waits() || self.in_flight >= CONNECTION_REQUESTS_MAX {
            self.room.clear();
        } else {
            self.room.wait_for(&self.core.budget, Need::operation(self.wanted));
        }
    }

    /// A record has begun and is not complete: ends the connection when its time is up, or when it
    /// stands still while others wait for the room that it takes.
    fn check_receive_timeout(&mut self) -> Result<(), Ended> {
        self.timer = None;
        let now = stamp();
        let since = |then: u64| Duration::from_nanos(now.saturating_sub(then));
        let still =
            since(self.input.arrived_ns) >= RECORD_LOOK && self.core.under_backpressure(now);
        let over = self.begun_ns > 0 && since(self.begun_ns) >= RECORD_TIME_MAX;
        if still || over { Err(Ended::TooSlow) } else { Ok(()) }
    }

    async fn receive(&mut self) -> Result<(), Ended> {
        let begun = !self.input.is_empty();
        let core = &self.core;
        let has_room =
            self.link.make_room((&core.buffers, &core.budget), begun) && self.input.make_room(core);
        if !has_room {
            // No bytes left in the budget: it stays in the kernel's buffer until there are.
            self.core.note_backpressure();
            // The buffer of TLS is given back meanwhile, if there is nothing in it.
            let gives_back = self.link.is_encrypted() && !self.link.holds();
            let need = match (gives_back, begun) {
                (false, _) => self.input.need(),
                (true, true) => self.input.need().and(RECEIVE_BUFFER),
                (true, false) => Need::bytes(2 * RECEIVE_BUFFER).or_overdrafts(2),
            };
            self.room.wait_for(&self.core.budget, need);
            return Ok(());
        }
        self.room.clear();
        let received = self.input.receive(&mut self.link).await?;
        self.core.budget.count_moved(received);
        Ok(())
    }

    /// Puts what came back from the pool and from flushes among the replies.
    fn drain_completions(&mut self) {
        self.queue.drain(&mut self.completions);
        for completion in self.completions.drain(..) {
            if let Completion::Call { message } = completion {
                framing::append(self.out.vec(), &message);
                continue;
            }
            self.in_flight = self.in_flight.saturating_sub(1);
            self.core.budget.give_request();
            self.unsent += completion.held();
            if let Completion::Reply { mut reply, span, more, .. } = completion {
                span.collect(more, &mut self.spans);
                framing::seal(&mut reply);
                if reply.len() >= LARGE_RECORD {
                    self.large.push(reply);
                } else {
                    self.out.vec().extend_from_slice(&reply);
                }
            }
        }
    }

    /// Executes the calls that are complete, as far as this turn and the budgets reach.
    fn answer(&mut self) -> Result<BatchOutcome, Ended> {
        if self.input.is_empty() {
            return Ok(BatchOutcome::Finished);
        }
        if self.out.capacity() == 0 {
            self.out = self.core.buffers.take_reply();
        }
        // From here on nothing is received, and nothing is sent before it ends.
        let _turn = vfs::turn::ReadBatch::begin();
        self.now_ns = self.input.arrived_ns.max(stamp());
        let until = self.now_ns + TURN_TIME_MAX.as_nanos() as u64;
        for ops in 1.. {
            if self.in_flight >= CONNECTION_REQUESTS_MAX {
                return Ok(BatchOutcome::Stalled);
            }
            match self.input.next()? {
                Next::Partial => return Ok(BatchOutcome::Finished),
                Next::Record => {
                    self.begun_ns = 0;
                    if !self.answer_one()? {
                        return Ok(BatchOutcome::Stalled);
                    }
                    if self.securing {
                        return Ok(BatchOutcome::Finished);
                    }
                }
            }
            let bytes = self.out.len() + self.extent_bytes;
            let full = ops >= TURN_OPS_MAX || bytes >= SEND_BATCH_MAX;
            if full || self.now_ns >= until {
                break;
            }
        }
        Ok(BatchOutcome::UsedUp)
    }

    /// Executes the call that `input` stands at, or hands it over. False when there is no room to
    /// hand it over; it then stays where it is.
    fn answer_one(&mut self) -> Result<bool, Ended> {
        if self.begun.is_some()
            && let Some(begun) = self.begun.take()
        {
            return Ok(self.hand_to_pool(begun));
        }
        let mut span = self.begin();
        let mut call = CallState::default();
        let mark = framing::begin(self.out.vec());
        let (start, service) = (self.out.len(), &self.core.service);
        let attempt = self.core.engine.attempt(|| {
            let (out, facts, more) = (&mut self.out, &mut span.facts, &mut self.more);
            let mut cx = ReplyContext { out, facts, more, call: &mut call };
            service.attempt(self.input.message(), &mut self.caller, &mut cx)
        });
        // The next call begins then.
        self.now_ns = stamp();
        span.clock.spent(Phase::Inline, self.now_ns);
        let result = match attempt {
            Ok(result) => result,
            Err(_) => {
                self.out.truncate(start);
                self.more.clear();
                if !service.fault(self.input.message(), &mut self.out, &mut span.facts) {
                    return Err(Ended::Panicked);
                }
                Ok(DispatchResult::Done)
            }
        };
        self.label_client();
        let result = match result {
            Err(CallError::NotACall { .. }) if self.input.is_answer(&self.back) => {
                self.out.truncate(mark.start());
                return Ok(true);
            }
            result => result.map_err(Ended::BadCall)?,
        };
        Ok(self.take_result(mark, (call, span), result))
    }

    /// What is done with a call by what it came to. False when there is no room to hand it over.
    #[inline]
    fn take_result(
        &mut self,
        mark: RecordMark,
        (call, span): (CallState, Span),
        result: DispatchResult,
    ) -> bool {
        match result {
            DispatchResult::Done if call.starts_tls => self.take_probe(mark, call.xid, span),
            DispatchResult::Done => {
                framing::end(self.out.vec(), mark, 0);
                self.note(span);
            }
            DispatchResult::Extent(extent) => {
                let tail = extent.count + wire::xdr::padding(extent.count);
                framing::end(self.out.vec(), mark, tail);
                self.note(span);
                self.extent_bytes += extent.count;
                self.extents.push((self.out.split_off(mark.start()), extent));
            }
            DispatchResult::Suspended => {
                self.out.truncate(mark.start());
                if self.wait_for_first(&call, span) == Parked::Ended {
                    // The record is tried again, and gets the reply of the call.
                    return true;
                }
            }
            DispatchResult::WouldBlock(resume) => {
                self.out.truncate(mark.start());
                return self.hand_to_pool(BegunCall { span, state: call, resume });
            }
            DispatchResult::Durable(flush, then) => {
                let reply = self.out.split_off(mark.start());
                let held = reply.len();
                self.take_up(held);
                let reply = (reply, Vec::new());
                PendingCall::durable(self.origin(span, call, held), flush, then, reply);
            }
        }
        self.finish();
        true
    }

    /// The record that `input` stands at begins.
    fn begin(&mut self) -> Span {
        let arrived_ns = self.link.arrived(self.input.behind());
        let mut span = Span::new(self.caller.facts(), arrived_ns);
        span.clock.resume(self.now_ns);
        span
    }

    /// Takes note of what a client calls itself.
    fn label_client(&mut self) {
        if let Some((client, machine)) = self.caller.take_name() {
            self.core.engine.hub.clients().label(client, &machine);
        }
    }

    /// Leaves the record of a finished call.
    fn finish(&mut self) {
        self.core.budget.count_taken();
        self.keep();
        self.place.clear();
        self.room.clear();
        self.input.consume();
    }

    /// The connection is in use once a call was made that is not NULL.
    fn keep(&mut self) {
        let is_null = || self.input.message().get(20..24).is_none_or(|proc| proc == [0; 4]);
        if !self.is_kept && !is_null() {
            self.is_kept = true;
            self.core.budget.keep_connection();
        }
    }

    /// The call repeats one in progress: it gets the reply of that. Where too many wait for it the
    /// client retries.
    fn wait_for_first(&mut self, call: &CallState, span: Span) -> Parked {
        let Some(key) = call.key else { return Parked::Full };
        let (queue, headroom) = (Arc::clone(&self.queue), framing::HEADROOM);
        let waiter = Waiter { queue, span, headroom };
        let parked = self.core.service.replays.of(&key).park(&key, waiter);
        if parked == Parked::Waits {
            self.take_up(0);
        }
        parked
    }

    /// Hands the record that `input` stands at to the pool. False when there is no slot; it
    /// continues from where it is when there is one, as its effects must not be repeated.
    fn hand_to_pool(&mut self, begun: BegunCall) -> bool {
        // A buffer that goes along is in the budget already.
        let copied = if self.input.goes_with_buffer() { 0 } else { self.input.message().len() };
        let size = copied + begun.state.reply_max;
        self.wanted = size;
        let Some(slot) = self.core.reserve(&mut self.place, self.caller.queue(), size) else {
            self.begun = Some(begun).filter(|begun| begun.resume.is_some());
            return false;
        };
        let BegunCall { span, state: call, resume } = begun;
        self.keep();
        let request = self.input.take_record(&self.core);
        let held = request.0.capacity() + call.reply_max;
        self.take_up(held);
        PendingCall::pool(self.origin(span, call, held), slot, resume, request);
        self.core.budget.count_taken();
        true
    }

    /// What a call that leaves this connection takes along.
    fn origin(&mut self, span: Span, call: CallState, held: usize) -> Origin<'_> {
        Origin {
            service: &self.core.service,
            queue: &self.queue,
            caller: &self.caller,
            span,
            more: std::mem::take(&mut self.more),
            call,
            headroom: framing::HEADROOM,
            held,
        }
    }

    /// Takes the span of a call, to be recorded once its reply has left.
    #[inline]
    fn note(&mut self, span: Span) {
        if span.facts.protocol != 0 {
            self.spans.push(span);
        }
        if !self.more.is_empty() {
            let spans = self.more.drain(..).map(|facts| span.with(facts));
            self.spans.extend(spans);
        }
    }

    fn take_up(&mut self, bytes: usize) {
        self.in_flight += 1;
        self.core.take_up(bytes);
    }

    /// Sends all replies and writes down the operations that they finish.
    async fn send(&mut self) -> Result<(), Ended> {
        if !self.out.is_empty() {
            self.link.send(self.out.as_slice(), false, &self.core.buffers).await?;
            self.core.budget.count_moved(self.out.len());
            self.out.truncate(0);
        }
        for reply in self.large.drain(..) {
            self.link.send(&reply, false, &self.core.buffers).await?;
            self.core.budget.count_moved(reply.len());
            self.core.engine.large.give(reply);
        }
        for (head, extent) in self.extents.drain(..) {
            let pad = [0; 3].get(..wire::xdr::padding(extent.count)).unwrap_or_default();
            self.link.send(&head, true, &self.core.buffers).await?;
            self.link.send_slice(&extent.data, !pad.is_empty()).await?;
            self.link.send(pad, false, &self.core.buffers).await?;
            self.core.budget.count_moved(head.len() + extent.count + pad.len());
        }
        self.extent_bytes = 0;
        self.give_unsent();
        self.core.sent(&mut self.spans, self.link.acks());
        Ok(())
    }

    fn give_unsent(&mut self) {
        self.core.budget.give_bytes(std::mem::take(&mut self.unsent));
    }

    fn count(&self, ended: Option<&Ended>) {
        let budgets = &self.core.engine.budgets;
        match ended {
            Some(Ended::Malformed(_) | Ended::BadCall(_)) => &budgets.bad_records,
            Some(Ended::TooSlow | Ended::Send(SendError::TooSlow)) => return budgets.give_up(),
            Some(Ended::Tls(e) | Ended::Send(SendError::Tls(e))) => {
                self.note_failure(e);
                &budgets.tls_failures
            }
            _ => return,
        }
        .fetch_add(1, Relaxed);
    }

    /// Releases everything: waits for calls in progress; their replies are discarded.
    async fn settle(mut self) {
        self.back.close();
        self.link.close((&self.core.buffers, &self.core.budget));
        self.link.finish();
        self.input.clear();
        self.begun = None;
        self.place.clear();
        self.room.clear();
        self.rest();
        loop {
            self.drain_completions();
            // What was carried out counts, although its reply is lost.
            self.core.finish(&mut self.spans);
            self.large.clear();
            self.extents.clear();
            self.give_unsent();
            if self.in_flight == 0 {
                return;
            }
            poll_fn(|cx| self.queue.poll(cx, true).map(drop)).await;
        }
    }
}
