//! One record for each operation, written when its answer has left; and one for each piece of data,
//! as it flows. Only `conn.rs` and the dispatch of a protocol use it.

use base::clock::stamp;
use probe::names::{NO_SHARE, NO_USER};
use probe::op::{OpRecord, flag};

use super::caller::{Caller, Reached};
use super::core::Core;
use super::node::Node;

/// An operation under way.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    record: OpRecord,
    arrived_ns: u64,
}

impl Span {
    /// Who it is by: known only once he has signed in, which may be the operation itself.
    pub fn by(&mut self, who: &Caller) {
        self.record.client = who.client;
        self.record.user = who.person.cred.uid;
    }

    /// It is on this share.
    pub fn on(&mut self, reached: &Reached) {
        self.record.share = reached.share.id;
    }

    /// It is of this file.
    pub fn of(&mut self, node: &Node) {
        self.on(&node.reached);
        self.record.file = node.file_id();
        self.record.flags |= flag::HAS_FILE;
    }

    /// It asks for so many bytes from `offset` on; `inward` if the client sends them.
    pub fn range(&mut self, offset: u64, size: u64, inward: bool) {
        self.record.offset = offset;
        self.record.size = u32::try_from(size).unwrap_or(u32::MAX);
        self.record.flags |= flag::HAS_RANGE | if inward { flag::INWARD } else { 0 };
    }

    /// It moved so many bytes itself, none of them counted as they flowed.
    pub fn moved(&mut self, bytes: usize) {
        self.record.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// When it came.
    pub fn arrived_ns(&self) -> u64 {
        self.arrived_ns
    }
}

impl Core {
    /// An operation has come from a client: number `op` of the protocol's list in `probe::labels`.
    pub fn begin(&self, client: u32, op: u8) -> Span {
        self.begin_at(client, op, stamp())
    }

    /// As [`Core::begin`], of one that came with others at `arrived_ns`.
    pub fn begin_at(&self, client: u32, op: u8, arrived_ns: u64) -> Span {
        let record = OpRecord {
            client,
            user: NO_USER,
            share: NO_SHARE,
            protocol: self.files.service.protocol() as u8,
            op,
            core: self.id,
            ..OpRecord::default()
        };
        Span { record, arrived_ns }
    }

    /// A piece of an operation's data has been sent, or been written after it was received, since
    /// `since_ns`.
    pub fn flowed(&self, span: &Span, (offset, bytes): (u64, usize), inward: bool, since_ns: u64) {
        let done_ns = stamp();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let inward = if inward { flag::INWARD } else { 0 };
        self.meter.finish(&OpRecord {
            done_ns,
            latency_ns: done_ns.saturating_sub(since_ns),
            offset,
            bytes,
            size: bytes,
            flags: span.record.flags & flag::HAS_FILE | flag::HAS_RANGE | flag::PIECE | inward,
            ..span.record
        });
        self.budget.count_moved(bytes as usize);
    }

    /// An operation that was measured elsewhere has ended.
    pub(crate) fn record(&self, record: &OpRecord) {
        self.meter.finish(record);
        if record.flags & flag::HAS_RANGE != 0 {
            self.budget.count_moved(record.bytes as usize);
        }
        self.budget.count_taken();
    }

    /// An operation's answer has left, with this status of the protocol.
    pub fn done(&self, span: Span, status: u16) {
        let done_ns = stamp();
        let latency_ns = done_ns.saturating_sub(span.arrived_ns);
        self.meter.finish(&OpRecord { done_ns, latency_ns, status, ..span.record });
        self.budget.count_taken();
    }
}
