//! An operation on its way through the pool and the flush group, back to its connection.

use std::ops::Range;
use std::sync::Arc;

use base::clock::stamp;
use probe::op::{OpRecord, flag};
use vfs::fs::Flush;
use vfs::status::Status;

use super::caller::Caller;
use super::dispatch::{Performed, RESULTS, Service, Sheet, mark_again};
use super::program::{Resume, Settle};
use super::replay::Key;
use crate::pool::Slot;
use crate::transport::buffers::ReplyBuf;
use crate::transport::mailbox::Mailbox;

/// The facts of an operation and when its request came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// What will be written down once the reply has left.
    pub(super) facts: OpRecord,
    /// When the request came.
    pub(super) arrived_ns: u64,
}

impl Span {
    /// An operation that came at `arrived_ns`.
    pub(super) fn new(facts: OpRecord, arrived_ns: u64) -> Self {
        Self { facts, arrived_ns }
    }
}

/// What comes back to a connection; `held` bytes of its budget are free again.
#[derive(Debug)]
pub(super) enum Letter {
    /// A reply to send.
    Reply {
        /// The record, with its marker.
        reply: Vec<u8>,
        /// Its operation.
        span: Span,
        /// Facts of its further operations.
        more: Vec<OpRecord>,
        /// Bytes of the budget.
        held: usize,
    },
    /// A call to the peer.
    Call {
        /// The record, with its marker.
        record: Vec<u8>,
    },
    /// There is no reply: the call that this one repeated came to nothing, or it was given up. The
    /// client will repeat it.
    Nothing {
        /// Bytes of the budget.
        held: usize,
    },
}

impl Letter {
    /// Bytes of the budget that are free again.
    pub(super) fn held(&self) -> usize {
        match self {
            Self::Reply { held, .. } | Self::Nothing { held } => *held,
            Self::Call { .. } => 0,
        }
    }
}

/// Who waits for the end of a call that it repeated.
pub(super) struct Waiter {
    mailbox: Arc<Mailbox<Letter>>,
    span: Span,
}

/// An operation under way outside its connection. Its connection waits for it, and so may others
/// that repeat it: if it is dropped without an answer, they go on without one.
pub(super) struct Later {
    service: Arc<Service>,
    mailbox: Arc<Mailbox<Letter>>,
    caller: Caller,
    span: Span,
    more: Vec<OpRecord>,
    held: usize,
    /// Its key, once it is known as being done.
    key: Option<Key>,
    answered: bool,
}

impl Later {
    /// A call of `caller`, with the facts of the further operations done so far; `held` bytes of
    /// its core's budget are in use for it.
    pub(super) fn new(
        service: Arc<Service>,
        mailbox: &Arc<Mailbox<Letter>>,
        caller: &Caller,
        (span, more): (Span, Vec<OpRecord>),
        held: usize,
    ) -> Self {
        let (mailbox, caller) = (Arc::clone(mailbox), caller.clone());
        Self { service, mailbox, caller, span, more, held, key: None, answered: false }
    }

    /// Someone who waits for an operation of another connection.
    pub(super) fn waiter(mailbox: &Arc<Mailbox<Letter>>, span: Span) -> Waiter {
        Waiter { mailbox: Arc::clone(mailbox), span }
    }

    /// Hands the call at `at` within `record` to the pool: from the start, or to go on.
    pub(super) fn pool(
        mut self,
        slot: Slot,
        key: Option<Key>,
        resume: Option<Box<dyn Resume>>,
        record: Vec<u8>,
        at: Range<usize>,
    ) {
        if !self.begin(key) {
            return;
        }
        self.span.facts.flags |= flag::POOLED;
        let job = move |waited_ns: u64| self.run(waited_ns, resume, record, at);
        slot.run(stamp(), Box::new(job));
    }

    /// Lets `reply` leave when `flush` is done.
    pub(super) fn durable(
        mut self,
        flush: Flush,
        settle: Option<Box<dyn Settle>>,
        key: Option<Key>,
        reply: Vec<u8>,
    ) {
        if self.begin(key) {
            self.flush(flush, settle, reply);
        }
    }

    /// Notes that the call is being done. If another connection of the client was faster by a
    /// moment, the client gets its answer there, and this one comes to nothing.
    fn begin(&mut self, key: Option<Key>) -> bool {
        let first = key.is_none_or(|key| self.service.replays.of(&key).begin(key));
        self.key = key.filter(|_| first);
        first
    }

    fn run(
        mut self,
        waited_ns: u64,
        resume: Option<Box<dyn Resume>>,
        record: Vec<u8>,
        at: Range<usize>,
    ) {
        self.span.facts.queue_ns = u32::try_from(waited_ns).unwrap_or(u32::MAX);
        let message = record.get(at).unwrap_or_default();
        let mut out = ReplyBuf::default();
        let service = Arc::clone(&self.service);
        let performed = service.budgets.contain(|| {
            let (out, facts, more) = (&mut out, &mut self.span.facts, &mut self.more);
            let mut sheet = Sheet { out, facts, more };
            service.perform(message, resume, &mut self.caller, &mut sheet)
        });
        match performed {
            Ok(Performed::Done) => self.answer(out.into_vec()),
            Ok(Performed::Durable(flush, settle)) => self.flush(flush, settle, out.into_vec()),
            Err(_) => {
                out.truncate(0);
                self.more.clear();
                if service.fault(message, &mut out, &mut self.span.facts) {
                    self.answer(out.into_vec());
                }
            }
        }
        service.large.give(record);
    }

    fn flush(mut self, flush: Flush, settle: Option<Box<dyn Settle>>, mut reply: Vec<u8>) {
        let group = Arc::clone(&self.service.flush);
        let done = move |outcome: Result<(), Status>| match (settle, outcome) {
            (Some(settle), outcome) => {
                let protocol = settle.protocol() as u8;
                let mut results = reply.split_off(RESULTS.min(reply.len()));
                let budgets = Arc::clone(&self.service.budgets);
                let settled = budgets.contain(|| {
                    settle.settle(outcome, &mut results, &mut self.more);
                });
                if let Err(status) = settled {
                    return self.fail(status, protocol, &reply);
                }
                reply.append(&mut results);
                mark_again(&mut reply);
                self.answer(reply);
            }
            (None, Ok(())) => self.answer(reply),
            (None, Err(status)) => {
                let protocol = self.span.facts.protocol;
                self.fail(status, protocol, &reply);
            }
        };
        group.submit(flush, Box::new(done));
    }

    /// What was changed may be lost: the reply that said otherwise is not sent.
    fn fail(mut self, status: Status, protocol: u8, reply: &[u8]) {
        let failure = self.service.failure(reply, status, protocol, &mut self.span.facts);
        self.answer(failure);
    }

    fn answer(mut self, reply: Vec<u8>) {
        debug_assert!(reply.len() <= self.held, "a program promises fewer bytes than it answers");
        if let Some(key) = self.key.take() {
            let waiters = self.service.replays.of(&key).finish(key, &reply, stamp());
            for Waiter { mailbox, mut span } in waiters {
                span.facts = OpRecord { flags: self.span.facts.flags | flag::REPLAY, ..span.facts };
                mailbox.put(Letter::Reply {
                    reply: reply.clone(),
                    span,
                    more: Vec::new(),
                    held: 0,
                });
            }
        }
        self.answered = true;
        let (span, more, held) = (self.span, std::mem::take(&mut self.more), self.held);
        self.mailbox.put(Letter::Reply { reply, span, more, held });
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        if let Some(key) = self.key.take() {
            let waiters = self.service.replays.of(&key).abandon(&key);
            waiters.into_iter().for_each(|w| w.mailbox.put(Letter::Nothing { held: 0 }));
        }
        self.mailbox.put(Letter::Nothing { held: self.held });
    }
}
