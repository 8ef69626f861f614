//! The one span: an operation's facts and when it came. Its record is stamped and written once its
//! reply has left; a piece of its data is recorded as it flows. Only connections and dispatch use
//! this, no handler.

use std::rc::Rc;

use base::clock::stamp;
use base::limits::CORE_BURST_OPS;
use probe::names::{NO_SHARE, NO_USER};
use probe::op::{OpRecord, Protocol, flag};
use probe::phases::PhaseClock;

use super::Core;
use crate::transport::acks::Acks;

/// An operation in progress.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// What will be recorded, but for the time.
    pub facts: OpRecord,
    /// When its request came.
    pub arrived_ns: u64,
    /// What its time went to so far.
    pub clock: PhaseClock,
}

impl Span {
    /// An operation that came at `arrived_ns`.
    #[inline]
    pub fn new(facts: OpRecord, arrived_ns: u64) -> Self {
        Self { facts, arrived_ns, clock: PhaseClock::new(arrived_ns) }
    }

    /// Of another operation of the same call.
    pub fn with(&self, facts: OpRecord) -> Self {
        Self { facts, ..*self }
    }

    /// Appends a call's span, unless it has none of its own, and those of what it held.
    pub fn collect(self, more: Vec<OpRecord>, into: &mut impl Extend<Self>) {
        if self.facts.protocol != 0 {
            into.extend([self]);
        }
        into.extend(more.into_iter().map(|facts| self.with(facts)));
    }

    /// It requests `size` bytes from `offset` on; `inward` if the client sends them.
    pub fn range(&mut self, offset: u64, size: u64, inward: bool) {
        self.facts.offset = offset;
        self.facts.size = u32::try_from(size).unwrap_or(u32::MAX);
        self.facts.flags |= flag::HAS_RANGE | if inward { flag::INWARD } else { 0 };
    }

    /// It moved `bytes` bytes, none of them counted as they flowed.
    pub fn moved(&mut self, bytes: usize) {
        self.facts.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// Its record, if its reply left at `done_ns`.
    #[inline]
    fn record(&self, done_ns: u64) -> OpRecord {
        let latency_ns = done_ns.saturating_sub(self.arrived_ns);
        let phases = self.clock.parts(latency_ns, done_ns);
        OpRecord { done_ns, latency_ns, phases, ..self.facts }
    }
}

impl Core {
    /// An operation of `client` has come at `arrived_ns`: number `op` of the protocol's list in
    /// `probe::labels`.
    pub fn begin(&self, protocol: Protocol, client: u32, op: u8, arrived_ns: u64) -> Span {
        let facts = OpRecord {
            client,
            user: NO_USER,
            share: NO_SHARE,
            protocol: protocol as u8,
            op,
            core: self.id,
            ..OpRecord::default()
        };
        Span::new(facts, arrived_ns)
    }

    /// Records operations after their replies were handed to a socket: once the peer has received
    /// them, as far as that takes longer than the server can measure.
    pub fn sent(&self, spans: &mut Vec<Span>, acks: &Rc<Acks>) {
        self.finish_sent(spans.drain(..), Some(acks));
    }

    /// The same of operations that end with a status of their protocol, over a socket or not.
    pub fn all_sent<All>(&self, spans: All, acks: Option<&Rc<Acks>>)
    where
        All: IntoIterator<Item = (Span, u16), IntoIter: ExactSizeIterator>,
    {
        let with_status = |(span, status): (Span, u16)| {
            self.budget.count_taken();
            Span { facts: OpRecord { status, ..span.facts }, ..span }
        };
        self.finish_sent(spans.into_iter().map(with_status), acks);
    }

    fn finish_sent(&self, spans: impl ExactSizeIterator<Item = Span>, acks: Option<&Rc<Acks>>) {
        if spans.len() == 0 {
            return;
        }
        match acks.and_then(|acks| Some((acks, acks.in_flight()?))) {
            None => self.finish_at(stamp(), spans),
            Some((acks, last)) => {
                let operations = spans.map(|span| (span.arrived_ns, span.clock, span.facts));
                self.acks.wait(acks, &last, operations.collect());
            }
        }
    }

    /// Records operations of which the peer has received the replies by now.
    pub(super) fn finish_arrived(&self) {
        for (done_ns, operations) in self.acks.look() {
            let spans = operations.into_iter();
            let spans = spans.map(|(arrived_ns, clock, facts)| Span { facts, arrived_ns, clock });
            self.finish_at(done_ns, spans);
        }
    }

    /// Records operations as they end.
    pub fn finish(&self, spans: &mut Vec<Span>) {
        self.finish_at(stamp(), spans.drain(..));
    }

    fn finish_at(&self, done_ns: u64, spans: impl ExactSizeIterator<Item = Span>) {
        let mut probe = self.meter.probe();
        let count = spans.len();
        for span in spans {
            if span.facts.flags & flag::REPLAY != 0 {
                self.budget.count_replay();
            }
            probe.finish(&span.record(done_ns));
        }
        self.stir();
        let mut since = self.since_idle.get() + count;
        while since >= CORE_BURST_OPS {
            since -= CORE_BURST_OPS;
            probe.idle(done_ns);
        }
        self.since_idle.set(since);
    }

    /// An operation's answer has left, with this status of the protocol.
    pub fn done(&self, mut span: Span, status: u16) {
        span.facts.status = status;
        self.stir();
        self.meter.finish(&span.record(stamp()));
        self.budget.count_taken();
    }

    /// A piece of an operation's data has been sent, or been written after it was received, since
    /// `since_ns`.
    pub fn flowed(&self, span: &Span, (offset, bytes): (u64, usize), inward: bool, since_ns: u64) {
        let mut piece = Span::new(span.facts, since_ns);
        piece.facts.flags = span.facts.flags & flag::HAS_FILE | flag::PIECE;
        piece.range(offset, bytes as u64, inward);
        piece.moved(bytes);
        self.stir();
        self.meter.finish(&piece.record(stamp()));
        self.budget.count_moved(piece.facts.bytes as usize);
    }

    /// An operation that was measured on a thread of its own has ended.
    pub fn record(&self, record: &OpRecord) {
        if record.flags & flag::HAS_RANGE != 0 {
            self.budget.count_moved(record.bytes as usize);
        }
        self.record_message(record);
    }

    /// The same where the connection has counted its bytes.
    pub fn record_message(&self, record: &OpRecord) {
        self.stir();
        self.meter.finish(record);
        self.budget.count_taken();
    }
}
