//! Operations become calls. Content of writes is made in pieces that stay in the cache until they
//! are sent.

use super::Dialect;
use crate::client::{Op, content_key};
use crate::pattern::Content;
use std::collections::VecDeque;
use wire::rpc::{begin_record, end_record, end_record_with_tail};
use wire::xdr::{Writer, padding};

/// Bytes that are gathered for one send: large enough to share its cost among many calls, small
/// enough to be still in the cache when the kernel copies them.
const SEND_BYTES: usize = 128 << 10;
/// Bits of a transaction number that are the slot, at least; `LAB_SLOTS_MAX` fits. The others are
/// a serial number, which must not come around while a server may still replay.
const SLOT_BITS_MIN: u32 = 10;

/// A call under way.
#[derive(Debug, Clone, Copy)]
struct Pending {
    xid: u32,
    op: Op,
}

/// Content of a write of which only the header is in the buffer yet.
struct Payload {
    key: u64,
    offset: u64,
    left: usize,
    pad: usize,
}

/// Calls waiting to be sent and calls waiting for their replies.
pub struct Outbox {
    content: Content,
    out: Vec<u8>,
    sent: usize,
    queue: VecDeque<(u32, Op)>,
    payload: Option<Payload>,
    pending: Vec<Option<Pending>>,
    serial: u32,
    slot_bits: u32,
    /// Number of the client, for the content.
    pub client: u32,
}

impl Outbox {
    /// Empty, for `slots` calls at once; writes carry `content`.
    pub fn new(content: Content, slots: u32) -> Self {
        Self {
            content,
            out: Vec::with_capacity(2 * SEND_BYTES),
            sent: 0,
            queue: VecDeque::new(),
            payload: None,
            pending: Vec::new(),
            // Not the same numbers as the last connection from this address: a server may
            // remember those and replay.
            serial: (base::clock::wall_ns() >> 10) as u32,
            slot_bits: SLOT_BITS_MIN.max(u32::BITS - slots.saturating_sub(1).leading_zeros()),
            client: 0,
        }
    }

    #[inline]
    pub fn queue(&mut self, slot: u32, op: Op) {
        self.queue.push_back((slot, op));
    }

    /// What is to be sent next.
    pub fn bytes(&self) -> &[u8] {
        self.out.get(self.sent..).unwrap_or_default()
    }

    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
    }

    /// The call that `xid` answers, if it is under way.
    #[inline]
    pub fn answered(&self, xid: u32) -> Option<(u32, Op)> {
        let slot = xid & ((1 << self.slot_bits) - 1);
        let pending = self.pending.get(slot as usize).copied().flatten()?;
        (pending.xid == xid).then_some((slot, pending.op))
    }

    /// The slot's call has ended.
    #[inline]
    pub fn end(&mut self, slot: u32) {
        if let Some(pending) = self.pending.get_mut(slot as usize) {
            *pending = None;
        }
    }

    /// Whether a call is waiting to be sent or for its reply.
    pub fn is_busy(&self) -> bool {
        !self.queue.is_empty() || self.pending.iter().any(Option::is_some)
    }

    /// Fills the buffer from what is queued. False when there is nothing to send.
    pub fn encode<D: Dialect>(&mut self, dialect: &mut D) -> bool {
        while self.out.len() < SEND_BYTES {
            if let Some(mut payload) = self.payload.take() {
                self.continue_payload(&mut payload);
                if payload.left > 0 {
                    self.payload = Some(payload);
                }
                continue;
            }
            if !dialect.has_room() {
                break;
            }
            match self.queue.pop_front() {
                Some((slot, op)) => self.encode_call(slot, op, dialect),
                None => break,
            }
        }
        !self.bytes().is_empty()
    }

    fn continue_payload(&mut self, payload: &mut Payload) {
        let start = self.out.len();
        let part = payload.left.min(SEND_BYTES.saturating_sub(start).max(1));
        self.out.resize(start + part, 0);
        if let Some(space) = self.out.get_mut(start..) {
            self.content.fill(payload.key, payload.offset, space);
        }
        payload.offset += part as u64;
        payload.left -= part;
        if payload.left == 0 {
            self.out.resize(start + part + payload.pad, 0);
        }
    }

    /// A transaction number for `slot`, remembered with its operation.
    fn xid(&mut self, slot: u32, op: Op) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        let xid = self.serial << self.slot_bits | slot;
        if self.pending.len() <= slot as usize {
            self.pending.resize(slot as usize + 1, None);
        }
        self.pending[slot as usize] = Some(Pending { xid, op });
        xid
    }

    #[inline]
    fn encode_call<D: Dialect>(&mut self, slot: u32, op: Op, dialect: &mut D) {
        let xid = self.xid(slot, op);
        let mut w = Writer::new(&mut self.out);
        let mark = begin_record(&mut w);
        dialect.encode(&mut w, xid, slot, op);
        let mut tail = 0;
        if let Op::Write { file, offset, len, .. } = op {
            let (left, pad) = (len as usize, padding(len as usize));
            self.payload = Some(Payload { key: content_key(self.client, file), offset, left, pad });
            tail = left + pad;
        }
        end_record_with_tail(&mut w, mark, tail);
    }

    /// Encodes one call outside the slots, for preparation.
    pub fn single(&mut self, write: impl FnOnce(&mut Writer<'_>, u32)) -> (u32, &[u8]) {
        self.serial = self.serial.wrapping_add(1);
        let xid = self.serial << self.slot_bits;
        self.out.clear();
        self.sent = 0;
        let mut w = Writer::new(&mut self.out);
        let mark = begin_record(&mut w);
        write(&mut w, xid);
        end_record(&mut w, mark);
        (xid, &self.out)
    }

    /// The buffer that [`Outbox::single`] filled has been sent.
    pub fn single_sent(&mut self) {
        self.out.clear();
    }
}
