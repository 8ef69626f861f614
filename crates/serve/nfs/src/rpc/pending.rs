//! A pending call: through the pool and the flush group, back to its connection.

use std::ops::Range;
use std::sync::Arc;

use base::clock::stamp;
use probe::op::{OpRecord, flag};
use probe::phases::PhaseClock;
use vfs::fs::Flush;
use vfs::status::Status;
use wire::rpc::REPLY_SUCCESS_LEN;

use super::caller::Caller;
use super::completion::{Completion, Waiter};
use super::dispatch::{CallState, ReplyContext, Service, results};
use super::program::{OnFlushed, Resume};
use engine::exec::{CompletionQueue, Failure, Operation, Span};
use engine::pool::Slot;
use engine::transport::buffers::ReplyBuf;

/// Of which connection a call is, and what it has come to so far.
pub(super) struct Origin<'a> {
    pub(super) service: &'a Arc<Service>,
    pub(super) queue: &'a Arc<CompletionQueue<Completion>>,
    pub(super) caller: &'a Caller,
    pub(super) span: Span,
    /// Facts of further operations.
    pub(super) more: Vec<OpRecord>,
    pub(super) call: CallState,
    /// Room that the connection's framing wants before the message of a reply.
    pub(super) headroom: usize,
    /// Bytes of its core's budget that are in use for it.
    pub(super) held: usize,
}

/// A call that was begun on its connection's thread, and continues on the pool.
pub(super) struct BegunCall {
    pub(super) span: Span,
    pub(super) state: CallState,
    /// To resume it with; from the start without it.
    pub(super) resume: Option<Box<dyn Resume>>,
}

/// The call's message, until it was done.
struct Request {
    record: Vec<u8>,
    /// Where in `record` the message is.
    at: Range<usize>,
    /// To resume it with; from the start without it.
    resume: Option<Box<dyn Resume>>,
}

/// A call in progress outside its connection. Its connection waits for it, and so may repeats of
/// it: if it is dropped without a completion, they continue without a reply.
pub(super) struct PendingCall {
    service: Arc<Service>,
    queue: Arc<CompletionQueue<Completion>>,
    caller: Caller,
    span: Span,
    more: Vec<OpRecord>,
    call: CallState,
    headroom: usize,
    held: usize,
    request: Option<Request>,
    on_flushed: Option<Box<dyn OnFlushed>>,
    /// The protocol that writes its failure.
    protocol: u8,
    reply: Vec<u8>,
    /// Data in its message that a device may send apart from the rest, in order.
    items: Vec<Range<usize>>,
    answered: bool,
}

impl PendingCall {
    /// A call that leaves its connection. `None` if another connection of the client was faster by
    /// a moment: the client gets its reply there, and this call is dropped.
    fn begin(origin: Origin<'_>, reply: Vec<u8>, items: Vec<Range<usize>>) -> Option<Self> {
        let Origin { service, queue, caller, span, more, mut call, headroom, held } = origin;
        let key = call.key.take();
        let mut pending = Self {
            service: Arc::clone(service),
            queue: Arc::clone(queue),
            caller: caller.clone(),
            span,
            more,
            call,
            headroom,
            held,
            request: None,
            on_flushed: None,
            protocol: span.facts.protocol,
            reply,
            items,
            answered: false,
        };
        let first = key.is_none_or(|key| service.replays.of(&key).begin(key));
        pending.call.key = key.filter(|_| first);
        first.then_some(pending)
    }

    /// Hands the call at `at` within `record` to the pool: from the start, or to be resumed.
    pub(super) fn pool(
        origin: Origin<'_>,
        slot: Slot,
        resume: Option<Box<dyn Resume>>,
        (record, at): (Vec<u8>, Range<usize>),
    ) {
        let Some(mut pending) = Self::begin(origin, Vec::new(), Vec::new()) else { return };
        pending.request = Some(Request { record, at, resume });
        pending.span.facts.flags |= flag::POOLED;
        let engine = Arc::clone(&pending.service.engine);
        engine.submit(slot, pending);
    }

    /// Lets `reply` leave when `flush` is done, with the items that are noted in its message.
    pub(super) fn durable(
        origin: Origin<'_>,
        flush: Flush,
        then: Option<Box<dyn OnFlushed>>,
        (reply, items): (Vec<u8>, Vec<Range<usize>>),
    ) {
        let Some(mut pending) = Self::begin(origin, reply, items) else { return };
        pending.wait_for(then);
        let engine = Arc::clone(&pending.service.engine);
        engine.flush(flush, pending);
    }

    fn wait_for(&mut self, then: Option<Box<dyn OnFlushed>>) {
        self.protocol =
            then.as_ref().map_or(self.span.facts.protocol, |then| then.protocol() as u8);
        self.on_flushed = then;
    }

    /// An empty reply.
    fn blank(&self) -> ReplyBuf {
        let mut out = ReplyBuf::default();
        out.vec().resize(self.headroom, 0);
        out
    }

    /// Forgets the call, which has not begun, unless a repeat of it waits for its reply.
    fn withdraw(&self) -> bool {
        self.call.key.is_none_or(|key| self.service.replays.of(&key).withdraw(&key))
    }

    /// The changes may be lost: the reply that reports success is not sent.
    fn fail(&mut self, status: Status) {
        let mut out = self.blank();
        let to = (&mut out, &mut self.span.facts);
        self.service.failure(self.call.xid, status, self.protocol, to);
        self.reply = out.into_vec();
        self.items.clear();
    }

    /// The results are sent to the repeats that arrived meanwhile, and retained for later ones.
    fn settle_repeats(&mut self) {
        let Some(key) = self.call.key.take() else { return };
        let message = self.reply.get(self.headroom..).unwrap_or_default();
        let waiters = match results(message) {
            Some(results) => self.service.replays.of(&key).finish(key, results, stamp()),
            None => self.service.replays.of(&key).abandon(&key),
        };
        for Waiter { queue, mut span, headroom } in waiters {
            span.facts = OpRecord { flags: self.span.facts.flags | flag::REPLAY, ..span.facts };
            let mut reply = vec![0; headroom];
            reply.extend_from_slice(self.reply.get(self.headroom..).unwrap_or_default());
            let items = self.items.clone();
            queue.push(Completion::Reply { reply, items, span, more: Vec::new(), held: 0 });
        }
    }
}

impl Operation for PendingCall {
    fn run(&mut self) -> Option<Flush> {
        let mut out = self.blank();
        let Self { service, caller, span, more, call, request, .. } = self;
        let Request { record, at, resume } = request.as_mut()?;
        let message = record.get(at.clone()).unwrap_or_default();
        // It is known already, by the key it has begun with.
        let mut call = CallState { key: None, ..*call };
        let mut cx = ReplyContext { out: &mut out, facts: &mut span.facts, more, call: &mut call };
        let durable = service.perform(message, resume.take(), caller, &mut cx);
        service.engine.large.give(std::mem::take(record));
        self.request = None;
        self.items = out.take_items(self.headroom);
        self.reply = out.into_vec();
        let (flush, then) = durable?;
        self.wait_for(then);
        Some(flush)
    }

    fn clock(&mut self) -> &mut PhaseClock {
        &mut self.span.clock
    }

    fn flushed(&mut self, outcome: Result<(), Status>) {
        match (self.on_flushed.take(), outcome) {
            (Some(then), outcome) => {
                let at = (self.headroom + REPLY_SUCCESS_LEN).min(self.reply.len());
                let mut results = self.reply.split_off(at);
                then.flushed(outcome, &mut results, &mut self.more);
                self.reply.append(&mut results);
                // What has failed has no data.
                let end = self.reply.len().saturating_sub(self.headroom);
                self.items.retain(|item| item.end <= end);
            }
            (None, Ok(())) => {}
            (None, Err(status)) => self.fail(status),
        }
    }

    /// A call that still waits when its connection ends does not begin, as if it had been lost on
    /// the way: its client makes it again over the next connection. One that has changed something
    /// before, or that was made again already, is carried out.
    fn begins(&self) -> bool {
        let resume = self.request.as_ref().and_then(|request| request.resume.as_ref());
        let can_stop = || resume.is_none_or(|resume| resume.can_stop());
        !(self.caller.has_left() && can_stop() && self.withdraw())
    }

    fn failed(&mut self, why: Failure) {
        if why == Failure::Cancelled {
            // Withdrawn: a call that has its key now is another one.
            self.call.key = None;
            if let Some(Request { record, resume, .. }) = self.request.take() {
                self.service.engine.large.give(record);
                if let Some(resume) = resume {
                    resume.abandon();
                }
            }
            return;
        }
        let Some(Request { record, at, .. }) = self.request.take() else {
            return self.fail(Status::Fault);
        };
        let mut out = self.blank();
        self.more.clear();
        self.items.clear();
        let message = record.get(at).unwrap_or_default();
        let answers = self.service.fault(message, &mut out, &mut self.span.facts);
        self.reply = if answers { out.into_vec() } else { Vec::new() };
        self.service.engine.large.give(record);
    }

    fn complete(mut self) {
        if self.reply.len() <= self.headroom {
            // It was cancelled, or its header was what panicked: there is no reply.
            return;
        }
        debug_assert!(
            self.reply.len() <= self.held + self.headroom,
            "a program promises fewer bytes than it answers"
        );
        self.settle_repeats();
        self.answered = true;
        let (reply, more) = (std::mem::take(&mut self.reply), std::mem::take(&mut self.more));
        let (items, span) = (std::mem::take(&mut self.items), self.span);
        self.queue.push(Completion::Reply { reply, items, span, more, held: self.held });
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let xid = self.call.xid;
        if let Some(key) = self.call.key.take() {
            let waiters = self.service.replays.of(&key).abandon(&key);
            waiters.into_iter().for_each(|w| w.queue.push(Completion::Nothing { xid, held: 0 }));
        }
        self.queue.push(Completion::Nothing { xid, held: self.held });
    }
}
