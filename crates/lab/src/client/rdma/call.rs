//! Operations become messages: data goes with them when it is little, else it stays in memory that
//! the server reads; for data of a READ there is memory that it writes to.

use super::memory::PooledMemory;
use super::{PIECE, RdmaConnection, failed};
use crate::client::pipe::Dialect;
use crate::client::{ClientError, Op, content_key};
use verbs::{Access, VerbsError, Work};
use wire::rpcrdma::{Body, Chunk, Chunks, Header, ReadSegment};
use wire::xdr::{Encode, Writer, padding};

/// A message with data has less than this in addition to it: headers of RPC over RDMA and of RPC
/// with the longest credential, a handle, attributes.
const HEAD: usize = 640;
/// Room for a reply of the preparation: a list of names is what is longest.
const REPLY: u32 = 64 << 10;

/// A call outside the slots.
pub(super) struct SingleCall {
    pub(super) xid: u32,
    /// Where a long reply goes.
    pub(super) lent: PooledMemory,
    /// The reply, once it is there.
    pub(super) reply: Option<Vec<u8>>,
}

/// What an operation moves, of which file's content.
struct ChunkData {
    file: u32,
    offset: u64,
    bytes: u32,
    access: Access,
}

fn data_of(op: Op) -> Option<ChunkData> {
    match op {
        Op::Read { file, offset, len } => {
            Some(ChunkData { file, offset, bytes: len, access: Access::Write })
        }
        Op::Write { file, offset, len, .. } => {
            Some(ChunkData { file, offset, bytes: len, access: Access::Read })
        }
        _ => None,
    }
}

impl<D: Dialect> RdmaConnection<D> {
    /// Sends the call of an operation. False, with nothing done, when there is no memory for its
    /// data until another call has ended.
    pub(super) fn start(&mut self, slot: u32, op: Op) -> Result<bool, ClientError> {
        let data = data_of(op);
        let lent = match data.as_ref().filter(|data| !self.goes_inline(data)) {
            None => None,
            Some(data) => {
                match self.memory.take(&mut *self.link, data.bytes as usize, data.access) {
                    Ok(lent) => Some(lent),
                    Err(VerbsError::NoRoom) if !self.credits.are_all_left() => return Ok(false),
                    Err(why) => return Err(failed(why)),
                }
            }
        };
        let xid = self.calls.begin(slot, op);
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        self.dialect.encode(&mut Writer::new(&mut message), xid, slot, op);
        let (mut chunks, mut lent) = (Chunks::default(), lent);
        match (&data, &mut lent) {
            (Some(ChunkData { bytes, access: Access::Write, .. }), Some(lent)) => {
                chunks.writes.push(Chunk(vec![lent.segment(*bytes)]));
            }
            (Some(data), Some(lent)) => {
                self.fill(data, lent)?;
                // The data's length is the last that was written; the data would follow.
                let position = message.len() as u32;
                chunks.reads.push(ReadSegment { position, target: lent.segment(data.bytes) });
            }
            (Some(ChunkData { file, offset, bytes, access: Access::Read }), None) => {
                let (from, length) = (message.len(), *bytes as usize);
                message.resize(from + length, 0);
                let key = content_key(self.client, *file);
                self.content.fill(key, *offset, message.get_mut(from..).unwrap_or_default());
                message.resize(from + length + padding(length), 0);
            }
            _ => {}
        }
        let sent = self.send(xid, chunks, &message);
        self.message = message;
        sent?;
        if self.lent.len() <= slot as usize {
            self.lent.resize_with(slot as usize + 1, || None);
        }
        if let Some(place) = self.lent.get_mut(slot as usize) {
            *place = lent;
        }
        Ok(true)
    }

    /// Whether data goes with its message.
    fn goes_inline(&self, data: &ChunkData) -> bool {
        let most = match data.access {
            Access::Read => self.inline.send,
            Access::Write => self.inline.receive,
        };
        HEAD + data.bytes as usize <= most
    }

    /// Puts the content of a WRITE where the server reads it.
    fn fill(&mut self, data: &ChunkData, lent: &mut PooledMemory) -> Result<(), ClientError> {
        let (key, mut at) = (content_key(self.client, data.file), 0);
        while at < data.bytes as usize {
            let length = PIECE.min(data.bytes as usize - at);
            let piece = self.piece.get_mut(..length).unwrap_or_default();
            self.content.fill(key, data.offset + at as u64, piece);
            if !lent.memory.write(at, piece) {
                return Err(ClientError::Protocol("data beyond its memory".into()));
            }
            at += length;
        }
        Ok(())
    }

    /// Sends a call outside the slots, written by `write`.
    pub(super) fn start_single(
        &mut self,
        xid: u32,
        write: &dyn Fn(&mut Writer<'_>, u32),
    ) -> Result<(), ClientError> {
        let taken = self.memory.take(&mut *self.link, REPLY as usize, Access::Write);
        let lent = taken.map_err(failed)?;
        let mut message = Vec::new();
        write(&mut Writer::new(&mut message), xid);
        let reply = Some(Chunk(vec![lent.segment(REPLY)]));
        self.send(xid, Chunks { reply, ..Chunks::default() }, &message)?;
        self.single = Some(SingleCall { xid, lent, reply: None });
        Ok(())
    }

    fn send(&mut self, xid: u32, chunks: Chunks, message: &[u8]) -> Result<(), ClientError> {
        let mut bytes = Vec::with_capacity(message.len() + HEAD);
        let credits = self.credits.requested();
        Header { xid, credits, body: Body::Message(chunks) }.encode(&mut Writer::new(&mut bytes));
        bytes.extend_from_slice(message);
        let (length, most) = (bytes.len(), self.inline.send);
        let mut region = self.region()?;
        match region.get_mut(..length).filter(|_| length <= most) {
            Some(room) => room.copy_from_slice(&bytes),
            None => {
                let why = format!("a call of {length} bytes, and the server takes {most}");
                return Err(ClientError::Protocol(why));
            }
        }
        let id = self.number(false);
        self.credits.take();
        self.link.post(id, Work::Send { region, length, invalidate: None }).map_err(failed)
    }
}
