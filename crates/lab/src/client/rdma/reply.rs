//! Messages become completions: a reply is read with the data that the server has written.

use super::memory::PooledMemory;
use super::{PIECE, RdmaConnection};
use crate::client::pipe::inbox::{answer, protocol};
use crate::client::pipe::{Dialect, Outcome};
use crate::client::{ClientError, Completion, Fault, Op};
use std::borrow::Cow;
use wire::rpcrdma::{Body, Chunks, Header, Refusal};
use wire::xdr::Reader;

/// A READ of which the data is in memory that the server has written to.
struct PlacedRead<'a> {
    slot: u32,
    op: Op,
    lent: &'a PooledMemory,
    /// Bytes that the server reports as written.
    written: u64,
}

impl<D: Dialect> RdmaConnection<D> {
    /// A message has come.
    pub(super) fn received(&mut self, received: &[u8]) -> Result<(), ClientError> {
        let (header, inline) = Header::open(received).map_err(protocol)?;
        if !self.credits.give(header.credits) {
            return Err(ClientError::Protocol("a reply grants no credits".into()));
        }
        let (chunks, message) = match header.body {
            Body::Error(refusal) => return Err(refused(refusal)),
            Body::Message(chunks) => (chunks, Cow::Borrowed(inline)),
            Body::NoMessage(chunks) => {
                let long = self.long_reply(header.xid, &chunks)?;
                (chunks, Cow::Owned(long))
            }
        };
        if let Some((slot, op)) = self.calls.answered(header.xid) {
            return self.reply(slot, op, &chunks, &message);
        }
        match self.single.as_mut().filter(|single| single.xid == header.xid) {
            Some(single) => single.reply = Some(message.into_owned()),
            None => {
                let why = format!("a reply to no call: xid {:08x}", header.xid);
                return Err(ClientError::Protocol(why));
            }
        }
        Ok(())
    }

    /// A reply that came by its reply chunk.
    fn long_reply(&self, xid: u32, chunks: &Chunks) -> Result<Vec<u8>, ClientError> {
        let length = chunks.reply.as_ref().map_or(0, |chunk| chunk.capacity());
        let single = self.single.as_ref().filter(|single| single.xid == xid);
        let lent = single.map(|single| &single.lent);
        let fits = lent.filter(|lent| length <= lent.memory.length() as u64);
        let lent = fits.ok_or_else(|| {
            ClientError::Protocol("a long reply without room for it was offered".into())
        })?;
        let mut message = vec![0; length as usize];
        let _within = lent.memory.read(0, &mut message);
        Ok(message)
    }

    /// One whole reply to a slot's call.
    fn reply(
        &mut self,
        slot: u32,
        op: Op,
        chunks: &Chunks,
        message: &[u8],
    ) -> Result<(), ClientError> {
        self.calls.end(slot);
        let lent = self.lent.get_mut(slot as usize).and_then(Option::take);
        let outcome = match (&lent, op) {
            (Some(lent), Op::Read { .. }) => {
                let written = chunks.writes.first().map_or(0, |chunk| chunk.capacity());
                self.read_placed(&PlacedRead { slot, op, lent, written }, message)?
            }
            _ => self.decoded(slot, op, message)?,
        };
        self.dialect.ended(slot);
        lent.into_iter().for_each(|lent| self.memory.give(lent));
        self.ready.push(Completion { slot, outcome });
        Ok(())
    }

    fn decoded(&mut self, slot: u32, op: Op, message: &[u8]) -> Result<Outcome, ClientError> {
        let mut r = Reader::new(message);
        answer(&mut r)?;
        self.dialect.decode(&mut r, slot, op, &mut self.judge).map_err(protocol)
    }

    /// The reply to a READ with its data in a write chunk.
    fn read_placed(
        &mut self,
        placed: &PlacedRead<'_>,
        message: &[u8],
    ) -> Result<Outcome, ClientError> {
        let PlacedRead { slot, op, lent, written } = *placed;
        let Op::Read { file, offset, len } = op else { return Ok(Ok(0)) };
        let mut r = Reader::new(message);
        answer(&mut r)?;
        let room = lent.memory.length();
        let head = self.dialect.read_head(&mut r, slot, room).map_err(protocol)?;
        let Some(data) = head else { return self.decoded(slot, op, message) };
        if data as u64 != written || data > len as usize {
            let why = format!("{data} bytes of a READ, and {written} in its write chunk");
            return Err(ClientError::Protocol(why));
        }
        if data < len as usize {
            return Ok(Err(Fault::Short));
        }
        for at in (0..data).step_by(PIECE) {
            let piece = self.piece.get_mut(..PIECE.min(data - at)).unwrap_or_default();
            let within = lent.memory.read(at, piece);
            if !within || !self.judge.is_right(file, offset, len, at, piece) {
                return Ok(Err(Fault::Corrupt));
            }
        }
        Ok(Ok(len))
    }
}

fn refused(refusal: Refusal) -> ClientError {
    let status = match refusal {
        Refusal::Version { low, high } => format!("ERR_VERS, versions {low} to {high}"),
        Refusal::Chunk => "ERR_CHUNK".to_owned(),
    };
    ClientError::Refused { what: "a call over RDMA".into(), status }
}
