//! One connection: receive, execute every call, send all replies; the order of a connection over a
//! stream, but that nothing is cut, that calls may have to be read first, and that replies find the
//! chunks of their calls by their numbers.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use base::clock::stamp;
use base::limits::{
    LARGE_RECORD, RDMA_BACK_CREDITS, RDMA_CREDITS_MAX, RDMA_INLINE, SEND_LOOK, SEND_TIME_MAX,
    TURN_OPS_MAX, TURN_TIME_MAX,
};
use probe::op::OpRecord;
use probe::phases::Phase;
use tokio::time::Sleep;
use verbs::{Depth, Region, Request, VerbsError};
use wire::rpcrdma::{Body, Chunks, Header, PrivateData};
use wire::xdr::{Encode, Writer};

use super::super::back::Back;
use super::super::caller::Caller;
use super::super::completion::{Completion, Waiter};
use super::super::core::Core;
use super::super::dispatch::{CallState, ReplyContext, Service};
use super::super::node;
use super::super::pending::{BegunCall, Origin, PendingCall};
use super::super::program::DispatchResult;
use super::super::replay::Parked;
use super::call::{Arrived, Incoming, incoming};
use super::credits::{BackCredits, Credits};
use super::ended::Ended;
use super::permits::Activity;
use super::reply::{Open, Outgoing, outgoing};
use super::room::{BudgetWait, Missing, Shared, Stalls};
use super::send::{Device, Event, Ready, Sent};
use super::stats::RdmaStats;
use engine::exec::{CompletionQueue, Span};
use engine::pool::place::NextSlot;
use engine::transport::buffers::ReplyBuf;

/// Sends, writes and reads that a connection has room for at once; more wait. While this number of
/// replies has not left no further call is executed: a client that reads no replies gets no more of
/// them.
const SENDS: u32 = 256;

/// What a turn left behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReceiveStep {
    /// Every call was executed.
    Finished,
    /// The turn is used up; there is more.
    UsedUp,
    /// A budget is used up; there is more.
    Stalled,
}

struct Conn {
    device: Device,
    core: Rc<Core>,
    stats: Arc<RdmaStats>,
    activity: Arc<Activity>,
    queue: Arc<CompletionQueue<Completion>>,
    /// Calls in the other direction, and those that wait for a credit.
    back: Arc<Back>,
    back_credits: BackCredits,
    calls: VecDeque<Vec<u8>>,
    caller: Caller,
    credits: Credits,
    /// Most bytes of one SEND to the client.
    inline: usize,
    /// Whether the client lets its memory be invalidated.
    invalidates: bool,
    events: Vec<Event>,
    /// Calls of which a part is still to be read, and those to execute; the oldest first.
    unread: VecDeque<Arrived>,
    waiting: VecDeque<Arrived>,
    /// Calls that are with the engine, by their numbers. A client that uses one twice gets the
    /// replies in the order of its calls.
    open: HashMap<u32, VecDeque<Open>>,
    out: ReplyBuf,
    ready: VecDeque<Ready>,
    /// Bytes of those.
    ready_bytes: usize,
    /// Operations that have not ended, in the order of their replies, and the number of those with
    /// a reply in `ready` or with the device.
    spans: VecDeque<Span>,
    replied: usize,
    /// Those that have ended.
    ended: Vec<Span>,
    more: Vec<OpRecord>,
    completions: Vec<Completion>,
    in_flight: usize,
    /// Bytes that those in flight hold, or promise to.
    held: usize,
    closing: bool,
    /// What has found no room in this turn.
    missing: Stalls<Option<Missing>>,
    waits: Stalls<BudgetWait>,
    /// How long the client may do nothing, and the next look whether it does.
    patience: Duration,
    look: Option<Pin<Box<Sleep>>>,
    /// When the last call of this turn had its reply.
    now_ns: u64,
    /// The place on the pool of the call at the front of `waiting`.
    place: NextSlot,
}

/// What a connection has room for.
const DEPTH: Depth = Depth { receives: RDMA_CREDITS_MAX + RDMA_BACK_CREDITS, sends: SENDS };

/// Serves a client until its connection ends.
pub(super) async fn serve(
    core: Rc<Core>,
    request: Box<dyn Request>,
    (stats, activity, shared): (&Arc<RdmaStats>, &Arc<Activity>, Shared),
) {
    let (peer, local) = (request.peer(), request.local());
    let address = peer.ip().to_canonical();
    let said = PrivateData::decode(request.private_data()).unwrap_or_default();
    let link = match request.open(DEPTH) {
        Ok(link) => link,
        Err(why) => {
            base::debug!(node::NODE.name, "{address} has no connection by RDMA: {why}");
            stats.failures.fetch_add(1, Relaxed);
            return;
        }
    };
    let client = core.engine.hub.clients().intern(address);
    let pace = core.engine.budgets.limits().pace.left();
    let patience = pace.map_or(SEND_TIME_MAX, |pace| pace.min(SEND_TIME_MAX));
    let mut caller = Caller::new((address, peer.port()), client, core.id).by_rdma();
    caller = caller.called_at(Some(local.ip().to_canonical()));
    let queue = core.completion_queue();
    let back = Back::new(caller.connection(), Arc::clone(&queue));
    caller.set_back(Arc::clone(&back));
    let mut conn = Conn {
        device: Device::new(link, &core.engine, (stats, shared)),
        core,
        stats: Arc::clone(stats),
        activity: Arc::clone(activity),
        queue,
        back,
        back_credits: BackCredits::default(),
        calls: VecDeque::new(),
        caller,
        credits: Credits::new(RDMA_CREDITS_MAX),
        inline: said.receive.min(RDMA_INLINE),
        invalidates: said.remote_invalidation,
        events: Vec::new(),
        unread: VecDeque::new(),
        waiting: VecDeque::new(),
        open: HashMap::new(),
        out: ReplyBuf::default(),
        ready: VecDeque::new(),
        ready_bytes: 0,
        spans: VecDeque::new(),
        replied: 0,
        ended: Vec::new(),
        more: Vec::new(),
        completions: Vec::new(),
        in_flight: 0,
        held: 0,
        closing: false,
        missing: Stalls::default(),
        waits: Stalls::default(),
        patience,
        look: None,
        now_ns: 0,
        place: NextSlot::default(),
    };
    base::debug!(node::NODE.name, "{address} has connected by RDMA from port {}", peer.port());
    let ended = conn.run().await.err();
    if let Some(why) = &ended {
        base::debug!(node::NODE.name, "a connection of {address} by RDMA has ended: {why}");
    }
    conn.count(ended.as_ref());
    conn.settle().await;
}

impl Conn {
    /// Posts receives, then accepts the client.
    fn establish(&mut self) -> Result<(), Ended> {
        for _ in 0..RDMA_CREDITS_MAX + RDMA_BACK_CREDITS {
            self.device.receive()?;
        }
        let said =
            PrivateData { remote_invalidation: true, send: RDMA_INLINE, receive: RDMA_INLINE };
        self.device.accept(&said.encode())?;
        self.stats.set_connection_problem(None);
        Ok(())
    }

    async fn run(&mut self) -> Result<(), Ended> {
        self.establish()?;
        let mut turn = ReceiveStep::Finished;
        loop {
            match turn {
                ReceiveStep::UsedUp => tokio::task::yield_now().await,
                ReceiveStep::Finished | ReceiveStep::Stalled => {
                    let nothing = self.in_flight == 0 && self.credits.in_use() == 0;
                    let is_idle = nothing && self.ready.is_empty() && self.device.is_quiet();
                    if self.closing && is_idle {
                        return Err(Ended::Drained);
                    }
                    self.activity.note(is_idle, stamp());
                    self.wait(turn).await?;
                }
            }
            self.take_events()?;
            self.drain_completions()?;
            turn = self.answer()?;
            self.send()?;
            if self.out.is_empty() {
                self.core.buffers.give_reply(std::mem::take(&mut self.out));
            }
        }
    }

    /// Waits for work that has ended, completions, the end of the service, or room.
    async fn wait(&mut self, turn: ReceiveStep) -> Result<(), Ended> {
        if turn == ReceiveStep::Stalled || !self.ready.is_empty() {
            self.core.note_backpressure();
        }
        // What has found no room wakes this connection when it has some.
        self.waits.wait_for(&self.missing, &self.core, self.device.shared());
        if !self.device.needs_client() {
            self.look = None;
        } else if self.look.is_none() {
            self.look = Some(Box::pin(tokio::time::sleep(self.patience.min(SEND_LOOK))));
        }
        let Self { device, queue, look, patience, closing, activity, place, waits, .. } = self;
        poll_fn(|cx| {
            if let Poll::Ready(woken) = queue.poll(cx, *closing) {
                *closing = woken.closing;
                return Poll::Ready(Ok(()));
            }
            if let Poll::Ready(ready) = device.poll(cx) {
                return Poll::Ready(ready.map_err(Ended::Verbs));
            }
            if place.poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if activity.poll_evicted(cx).is_ready() {
                return Poll::Ready(Err(Ended::Evicted));
            }
            if look.as_mut().is_some_and(|look| look.as_mut().poll(cx).is_ready()) {
                *look = None;
                let still = device.stands_still(stamp(), *patience);
                return Poll::Ready(if still { Err(Ended::TooSlow) } else { Ok(()) });
            }
            waits.poll(cx).map(Ok)
        })
        .await
    }

    /// Takes up what has come.
    fn take_events(&mut self) -> Result<(), Ended> {
        let mut events = std::mem::take(&mut self.events);
        self.device.events(&mut events)?;
        let arrived_ns = if events.is_empty() { 0 } else { stamp() };
        let mut ended = 0;
        for event in events.drain(..) {
            match event {
                Event::Left(ends) => ended += ends,
                Event::Received(region, bytes) => self.received(region, bytes, arrived_ns)?,
                Event::Complete(call) => {
                    if !call.has_its_number() {
                        return Err(Ended::Malformed);
                    }
                    self.waiting.push_back(call);
                }
            }
        }
        self.events = events;
        self.finish(ended);
        Ok(())
    }

    /// Records the first operations of those that have not ended.
    fn finish(&mut self, count: usize) {
        let count = count.min(self.spans.len());
        if count > 0 {
            self.replied = self.replied.saturating_sub(count);
            self.ended.extend(self.spans.drain(..count));
            self.core.finish(&mut self.ended);
        }
    }

    /// A message has come.
    fn received(&mut self, region: Region, bytes: usize, arrived_ns: u64) -> Result<(), Ended> {
        let received = region.get(..bytes).unwrap_or_default();
        self.core.budget.count_moved(bytes);
        match incoming(received, self.credits.granted()) {
            // Not taken up: the client sends it again over its next connection.
            Incoming::Call { .. } if self.closing => return Ok(()),
            Incoming::Call { mut open, layout, asked, at } => {
                self.credits.take(asked)?;
                self.stats.credits_in_use.fetch_add(1, Relaxed);
                open.invalidate = open.invalidate.filter(|_| self.invalidates);
                let unread = (!layout.reads.is_empty()).then_some(layout);
                let whole = unread.is_none();
                let (received, begun) = (true, None);
                let call = Arrived { open, region, at, unread, received, begun, arrived_ns };
                if whole && !call.has_its_number() {
                    return Err(Ended::Malformed);
                }
                if whole { &mut self.waiting } else { &mut self.unread }.push_back(call);
                return Ok(());
            }
            Incoming::Answer { at, granted } => {
                self.back_credits.give(granted);
                let message = region.get(at).unwrap_or_default();
                if !self.back.answered(message) {
                    return Err(Ended::Malformed);
                }
            }
            Incoming::Refused { xid, granted } => {
                if self.back.refused(xid) {
                    self.back_credits.give(granted);
                }
            }
            // It has cost the client no credit.
            Incoming::Bad(_) if self.unsent() >= SENDS as usize => return Err(Ended::Credits),
            Incoming::Bad(answer) => self.refuse(answer)?,
            Incoming::Nothing => return Err(Ended::Malformed),
        }
        Ok(self.device.receive_into(region)?)
    }

    /// Replies to a message that is not a call.
    fn refuse(&mut self, answer: Vec<u8>) -> Result<(), Ended> {
        self.stats.refused.fetch_add(1, Relaxed);
        self.core.engine.budgets.bad_records.fetch_add(1, Relaxed);
        let ready = self.bare(answer)?;
        self.enqueue(ready);
        Ok(())
    }

    /// What is sent without any data, and ends no operation.
    fn bare(&mut self, head: Vec<u8>) -> Result<Ready, Ended> {
        let sent = self.device.prepare(&Outgoing::of(head), &[])?;
        let (message, writes) = (Vec::new(), Vec::new());
        Ok(Ready { message, writes, sent, invalidate: None, ends: 0 })
    }

    fn enqueue(&mut self, ready: Ready) {
        self.ready_bytes += ready.bytes();
        self.ready.push_back(ready);
    }

    /// Puts what came back from the pool and from flushes among the replies.
    fn drain_completions(&mut self) -> Result<(), Ended> {
        self.queue.drain(&mut self.completions);
        let mut completions = std::mem::take(&mut self.completions);
        for completion in completions.drain(..) {
            if let Completion::Call { message } = completion {
                self.calls.push_back(message);
                continue;
            }
            self.in_flight = self.in_flight.saturating_sub(1);
            self.core.budget.give_request();
            self.core.budget.give_bytes(completion.held());
            self.held = self.held.saturating_sub(completion.held());
            match completion {
                Completion::Reply { reply, items, span, more, .. } => {
                    span.collect(more, &mut self.spans);
                    let xid = reply.first_chunk().map_or(0, |xid| u32::from_be_bytes(*xid));
                    if let Some(open) = self.close(xid) {
                        self.put(reply, &items, &open)?;
                    }
                }
                Completion::Nothing { xid, .. } => {
                    // No reply: the client will retry over another connection.
                    if self.close(xid).is_some() {
                        self.give_credit();
                    }
                }
                Completion::Call { .. } => {}
            }
        }
        self.completions = completions;
        Ok(())
    }

    fn give_credit(&mut self) {
        self.credits.give();
        self.stats.credits_in_use.fetch_sub(1, Relaxed);
    }

    /// What is known of a call that is with the engine.
    fn close(&mut self, xid: u32) -> Option<Open> {
        let calls = self.open.get_mut(&xid)?;
        let open = calls.pop_front();
        if calls.is_empty() {
            self.open.remove(&xid);
        }
        open
    }

    /// A reply is to leave.
    fn put(&mut self, message: Vec<u8>, items: &[Range<usize>], open: &Open) -> Result<(), Ended> {
        let out = outgoing((&message, items), open, self.credits.granted(), self.inline);
        let sent = self.device.prepare(&out, &message)?;
        self.core.budget.count_moved(message.len());
        let message = match out.writes.is_empty() {
            true => {
                self.core.engine.large.give(message);
                Vec::new()
            }
            false => message,
        };
        self.leave(message, (out, sent), open.invalidate);
        Ok(())
    }

    /// The reply that was just written is to leave: what of it is sent is copied once, to where the
    /// device sends it from.
    fn put_written(&mut self, open: &Open) -> Result<(), Ended> {
        let (items, length) = (self.out.take_items(0), self.out.len());
        let message = (self.out.as_slice(), &items[..]);
        let out = outgoing(message, open, self.credits.granted(), self.inline);
        let sent = self.device.prepare(&out, self.out.as_slice())?;
        self.core.budget.count_moved(length);
        let message = if out.writes.is_empty() { Vec::new() } else { self.take_reply() };
        self.out.truncate(0);
        self.leave(message, (out, sent), open.invalidate);
        Ok(())
    }

    fn leave(&mut self, message: Vec<u8>, (out, sent): (Outgoing, Sent), invalidate: Option<u32>) {
        self.give_credit();
        if out.refused {
            self.stats.refused.fetch_add(1, Relaxed);
        }
        let ends = self.spans.len() - self.replied;
        self.replied = self.spans.len();
        self.enqueue(Ready { message, writes: out.writes, sent, invalidate, ends });
    }

    /// Reads and executes the calls that have arrived, as far as this turn and the budgets reach.
    fn answer(&mut self) -> Result<ReceiveStep, Ended> {
        loop {
            let all_read = self.read_calls()?;
            let none_waits = self.waiting.is_empty();
            match self.answer_calls()? {
                ReceiveStep::Finished if all_read => return Ok(ReceiveStep::Finished),
                ReceiveStep::Finished if none_waits => return Ok(ReceiveStep::Stalled),
                // Executed calls have left room for another one.
                ReceiveStep::Finished => {}
                turn => return Ok(turn),
            }
        }
    }

    /// Begins to read calls as far as there is room; whether there was room for all. Complete calls
    /// do not wait for them: they hold the room.
    fn read_calls(&mut self) -> Result<bool, Ended> {
        self.missing.reads = None;
        while let Some(call) = self.unread.pop_front() {
            let length = call.unread.as_ref().map_or(0, |layout| layout.length);
            let back = match self.missing_to_read(length) {
                Some(missing) => Some((call, missing)),
                None => self.device.read(call, self.unregistered())?,
            };
            if let Some((call, missing)) = back {
                self.missing.reads = Some(missing);
                self.unread.push_front(call);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Executes the complete calls.
    fn answer_calls(&mut self) -> Result<ReceiveStep, Ended> {
        self.missing.answers = None;
        if self.waiting.is_empty() {
            return Ok(ReceiveStep::Finished);
        }
        if self.out.capacity() == 0 {
            self.out = self.core.buffers.take_reply();
        }
        // From here on nothing is received, and nothing is sent before it ends.
        let _turn = vfs::turn::ReadBatch::begin();
        self.now_ns = stamp();
        let until = self.now_ns + TURN_TIME_MAX.as_nanos() as u64;
        for ops in 1.. {
            let Some(call) = self.waiting.pop_front() else { return Ok(ReceiveStep::Finished) };
            self.missing.answers = self.missing_to_answer();
            let may_answer = self.missing.answers.is_none();
            let back = if may_answer { self.answer_one(call)? } else { Some(call) };
            if let Some(call) = back {
                self.waiting.push_front(call);
                return Ok(ReceiveStep::Stalled);
            }
            if ops >= TURN_OPS_MAX || self.now_ns >= until {
                break;
            }
        }
        Ok(ReceiveStep::UsedUp)
    }

    fn missing_to_read(&self, bytes: usize) -> Option<Missing> {
        let has_room = || self.core.budget.has_room(bytes);
        let missing = self.device.missing(self.unregistered(), bytes);
        missing.or_else(|| (!has_room()).then_some(Missing::Operation(bytes)))
    }

    /// Bytes that it holds in addition to registered ones.
    fn unregistered(&self) -> usize {
        self.ready_bytes + self.held
    }

    /// Replies, and what goes with them, that have not left.
    fn unsent(&self) -> usize {
        self.ready.len() + self.device.leaving()
    }

    /// What has no room, if no further call may be executed.
    fn missing_to_answer(&self) -> Option<Missing> {
        if self.unsent() >= SENDS as usize {
            return Some(Missing::Own);
        }
        self.device.missing(self.unregistered(), 0)
    }

    /// Executes a call, or hands it over; it is returned when there is no room for that.
    fn answer_one(&mut self, mut call: Arrived) -> Result<Option<Arrived>, Ended> {
        if let Some(begun) = call.begun.take() {
            return self.hand_to_pool(call, *begun);
        }
        let mut span = Span::new(self.caller.facts(), call.arrived_ns);
        span.clock.resume(self.now_ns);
        let mut state = CallState::default();
        let service = Arc::clone(&self.core.service);
        let attempt = self.core.engine.attempt(|| {
            let (out, facts, more) = (&mut self.out, &mut span.facts, &mut self.more);
            let mut cx = ReplyContext { out, facts, more, call: &mut state };
            service.attempt(call.message(), &mut self.caller, &mut cx)
        });
        // The next call begins then.
        self.now_ns = stamp();
        span.clock.spent(Phase::Inline, self.now_ns);
        let result = match attempt {
            Ok(result) => result?,
            Err(_) => {
                self.out.truncate(0);
                self.more.clear();
                if !service.fault(call.message(), &mut self.out, &mut span.facts) {
                    return Err(Ended::Panicked);
                }
                DispatchResult::Done
            }
        };
        if let Some((client, machine)) = self.caller.take_name() {
            self.core.engine.hub.clients().label(client, &machine);
        }
        self.take_result(call, span, state, result)
    }

    /// What is done with a call by what it came to.
    fn take_result(
        &mut self,
        mut call: Arrived,
        span: Span,
        state: CallState,
        result: DispatchResult,
    ) -> Result<Option<Arrived>, Ended> {
        match result {
            DispatchResult::Done => {
                if state.starts_tls {
                    // There is no TLS over RDMA.
                    self.out.truncate(0);
                    Service::refuse_probe(state.xid, &mut self.out);
                }
                self.note(span);
                self.put_written(&call.open)?;
            }
            DispatchResult::Suspended => {
                self.out.truncate(0);
                if self.wait_for_first(&mut call, &state, span) == Parked::Ended {
                    // It is tried again next, and gets the reply of the call.
                    self.waiting.push_front(call);
                    return Ok(None);
                }
            }
            DispatchResult::WouldBlock(resume) => {
                self.out.truncate(0);
                return self.hand_to_pool(call, BegunCall { span, state, resume });
            }
            DispatchResult::Durable(flush, then) => {
                let items = self.out.take_items(0);
                let reply = self.take_reply();
                let held = reply.len();
                self.take_up(held);
                self.keep(&mut call);
                let reply = (reply, items);
                PendingCall::durable(self.origin(span, state, held), flush, then, reply);
            }
            // What is sent by a device is never left in the file.
            DispatchResult::Extent(_) => return Err(Ended::Malformed),
        }
        self.core.budget.count_taken();
        self.place.clear();
        self.device.done_with(call)?;
        Ok(None)
    }

    /// The reply that was written: a large one in the buffer that it is in.
    fn take_reply(&mut self) -> Vec<u8> {
        // Not in one that is much larger: so much would be held until it has left.
        if self.out.len() >= LARGE_RECORD.max(self.out.capacity() / 2) {
            let out = std::mem::replace(&mut self.out, self.core.buffers.take_reply());
            return out.into_vec();
        }
        self.out.split_off(0)
    }

    /// A call goes to the engine: its reply will need this entry.
    fn keep(&mut self, call: &mut Arrived) {
        let open = std::mem::take(&mut call.open);
        self.open.entry(open.xid).or_default().push_back(open);
    }

    /// The call repeats one in progress: it gets the reply of that. Where too many wait for it the
    /// client retries.
    fn wait_for_first(&mut self, call: &mut Arrived, state: &CallState, span: Span) -> Parked {
        let Some(key) = state.key else { return Parked::Full };
        let waiter = Waiter { queue: Arc::clone(&self.queue), span, headroom: 0 };
        let parked = self.core.service.replays.of(&key).park(&key, waiter);
        match parked {
            Parked::Waits => {
                self.take_up(0);
                self.keep(call);
            }
            Parked::Full => self.give_credit(),
            Parked::Ended => {}
        }
        parked
    }

    /// Hands a call to the pool; it is returned when there is no room, to continue from where it
    /// is.
    fn hand_to_pool(
        &mut self,
        mut call: Arrived,
        begun: BegunCall,
    ) -> Result<Option<Arrived>, Ended> {
        let size = call.message().len() + begun.state.reply_max;
        let Some(slot) = self.core.reserve(&mut self.place, self.caller.queue(), size) else {
            let missing = if self.place.waits() { Missing::Own } else { Missing::Operation(size) };
            self.missing.answers = Some(missing);
            call.begun = Some(begun).filter(|begun| begun.resume.is_some()).map(Box::new);
            return Ok(Some(call));
        };
        let BegunCall { span, state, resume } = begun;
        self.keep(&mut call);
        let request = self.device.take_message(call)?;
        let held = request.0.capacity() + state.reply_max;
        self.take_up(held);
        PendingCall::pool(self.origin(span, state, held), slot, resume, request);
        self.core.budget.count_taken();
        Ok(None)
    }

    fn take_up(&mut self, bytes: usize) {
        self.in_flight += 1;
        self.held += bytes;
        self.core.take_up(bytes);
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
            headroom: 0,
            held,
        }
    }

    /// Takes up what a call has done, to be recorded once its reply has left, which is put next.
    fn note(&mut self, span: Span) {
        if span.facts.protocol != 0 {
            self.spans.push_back(span);
        }
        let spans = self.more.drain(..).map(|facts| span.with(facts));
        self.spans.extend(spans);
    }

    /// Sends all replies for which there is room, and calls of this server for which there are
    /// credits.
    fn send(&mut self) -> Result<(), Ended> {
        self.missing.replies = None;
        while let Some(ready) = self.ready.pop_front() {
            self.ready_bytes = self.ready_bytes.saturating_sub(ready.bytes());
            if let Some(ready) = self.device.reply(ready)? {
                self.missing.replies = Some(Missing::Registered(self.device.registers(&ready)));
                self.ready_bytes += ready.bytes();
                self.ready.push_front(ready);
                break;
            }
        }
        while !self.calls.is_empty() && self.back_credits.take() {
            let Some(message) = self.calls.pop_front() else { break };
            let xid = message.first_chunk().map_or(0, |xid| u32::from_be_bytes(*xid));
            let mut sent = Vec::new();
            let body = Body::Message(Chunks::default());
            let header = Header { xid, credits: RDMA_BACK_CREDITS, body };
            header.encode(&mut Writer::new(&mut sent));
            sent.extend_from_slice(&message);
            if sent.len() > self.inline {
                // No client has chunks for calls of this server (RFC 8167 §5.1).
                self.back_credits.give(1);
                self.back.refused(xid);
                continue;
            }
            let ready = self.bare(sent)?;
            if let Some(ready) = self.device.reply(ready)? {
                let bytes = self.device.registers(&ready);
                self.missing.replies.get_or_insert(Missing::Registered(bytes));
                self.enqueue(ready);
            }
        }
        Ok(())
    }

    fn count(&self, ended: Option<&Ended>) {
        match ended {
            Some(Ended::Malformed | Ended::BadCall(_) | Ended::Credits) => {
                self.core.engine.budgets.bad_records.fetch_add(1, Relaxed);
            }
            Some(Ended::Verbs(VerbsError::Closed) | Ended::Drained | Ended::Evicted) | None => {
                return;
            }
            Some(Ended::Verbs(why @ VerbsError::NotLocked { .. })) => {
                self.stats.set_connection_problem(Some(why.to_string()));
            }
            Some(Ended::TooSlow) => self.core.engine.budgets.give_up(),
            Some(Ended::Verbs(_) | Ended::Panicked) => {}
        }
        self.stats.failures.fetch_add(1, Relaxed);
    }

    /// Releases everything: waits for calls in progress; their replies are discarded.
    async fn settle(mut self) {
        // What was carried out counts, although its reply is lost.
        self.finish(usize::MAX);
        // Others can have what it waited for.
        (self.waits, self.place) = (Stalls::default(), NextSlot::default());
        let Self { device, unread, waiting, core, stats, queue, back, credits, .. } = self;
        let mut in_flight = self.in_flight;
        back.close();
        drop((device, unread, waiting));
        stats.credits_in_use.fetch_sub(i64::from(credits.in_use()), Relaxed);
        let mut completions = Vec::new();
        loop {
            queue.drain(&mut completions);
            for completion in completions.drain(..) {
                if !matches!(completion, Completion::Call { .. }) {
                    in_flight = in_flight.saturating_sub(1);
                    core.budget.give_request();
                    core.budget.give_bytes(completion.held());
                }
            }
            if in_flight == 0 {
                return;
            }
            poll_fn(|cx| queue.poll(cx, true).map(drop)).await;
        }
    }
}
