//! Operations become calls. Content of writes is made in pieces that stay in the cache until they
//! are sent.

use super::Dialect;
use super::calls::CallTable;
use crate::client::{Op, content_key};
use crate::pattern::Content;
use std::collections::VecDeque;
use wire::rpc::{begin_record, end_record, end_record_with_tail};
use wire::xdr::{Writer, padding};

/// Bytes that are gathered for one send: large enough to share its cost among many calls, small
/// enough to be still in the cache when the kernel copies them.
const SEND_BYTES: usize = 128 << 10;

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
    calls: CallTable,
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
            calls: CallTable::new(slots),
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

    /// The call that the reply with `xid` belongs to, if it is outstanding.
    #[inline]
    pub fn answered(&self, xid: u32) -> Option<(u32, Op)> {
        self.calls.answered(xid)
    }

    /// The slot's call has ended.
    #[inline]
    pub fn end(&mut self, slot: u32) {
        self.calls.end(slot);
    }

    /// Whether a call is waiting to be sent or for its reply.
    pub fn is_busy(&self) -> bool {
        !self.queue.is_empty() || self.calls.any()
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

    #[inline]
    fn encode_call<D: Dialect>(&mut self, slot: u32, op: Op, dialect: &mut D) {
        let xid = self.calls.begin(slot, op);
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
        let xid = self.calls.single();
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
