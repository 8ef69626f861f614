//! Replies become completions. Small ones are decoded where they lie in the receive buffer; the
//! data of a large READ is checked piece by piece as it comes and never gathered.

use super::Dialect;
use super::judge::Judge;
use super::outbox::Outbox;
use crate::client::{ClientError, Completion, Fault, Op};
use wire::rpc::{Accepted, Framed, Framer, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, Reader, padding};

/// Receive buffer: what a socket usually holds when a busy client looks again, and small enough
/// for the second-level cache.
const BUFFER: usize = 256 << 10;
/// Records above this that are one fragment and a READ's are checked as they stream by.
const STREAM_ABOVE: usize = 48 << 10;
/// All that precedes the data of a READ reply is below this: header with the longest verifier,
/// status, attributes, count, eof, length (RFC 1813 §3.3.6); with NFSv4.1 an empty tag and the
/// results of SEQUENCE and PUTFH, which are shorter than the attributes (RFC 8881 §18.46.2).
const HEAD: usize = 640;

/// The data of a READ that is passing through.
struct Stream {
    slot: u32,
    file: u32,
    offset: u64,
    asked: u32,
    data: usize,
    at: usize,
    /// Bytes of the record after the data.
    rest: usize,
    fault: Option<Fault>,
}

/// Bytes received and not yet understood, and what is needed to understand them.
pub struct Inbox {
    buffer: Vec<u8>,
    have: usize,
    framer: Framer,
    stream: Option<Stream>,
    /// What is expected of the replies.
    pub judge: Judge,
}

impl Inbox {
    /// Empty.
    pub fn new(judge: Judge) -> Self {
        Self { buffer: vec![0; BUFFER], have: 0, framer: Framer::new(), stream: None, judge }
    }

    /// Where the next receive goes.
    pub fn space(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.have..).unwrap_or_default()
    }

    /// Takes in `got` bytes that were received into [`Inbox::space`].
    pub fn take<D: Dialect>(
        &mut self,
        got: usize,
        dialect: &mut D,
        calls: &mut Outbox,
        done: &mut Vec<Completion>,
    ) -> Result<(), ClientError> {
        let end = (self.have + got).min(self.buffer.len());
        let buffer = std::mem::take(&mut self.buffer);
        let taken = self.walk(buffer.get(..end).unwrap_or_default(), dialect, calls, done);
        self.buffer = buffer;
        let (used, need) = taken?;
        self.buffer.copy_within(used..end, 0);
        self.have = end - used;
        // A record in many fragments has to lie in one piece; the framer bounds it.
        let need = need.min(Framer::INPUT_MAX);
        if need > self.buffer.len() {
            self.buffer.resize(need, 0);
        }
        Ok(())
    }

    /// Understands as much of `input` as there is; returns what was used and how many bytes the
    /// rest needs.
    fn walk<D: Dialect>(
        &mut self,
        input: &[u8],
        dialect: &mut D,
        calls: &mut Outbox,
        done: &mut Vec<Completion>,
    ) -> Result<(usize, usize), ClientError> {
        let mut used = 0;
        loop {
            let rest = input.get(used..).unwrap_or_default();
            if rest.is_empty() {
                return Ok((used, 0));
            }
            if let Some(mut stream) = self.stream.take() {
                used += self.pass(&mut stream, rest);
                if stream.at < stream.data || stream.rest > 0 {
                    self.stream = Some(stream);
                } else {
                    calls.end(stream.slot);
                    dialect.ended(stream.slot);
                    done.push(finish(&stream));
                }
                continue;
            }
            if let Some(began) = self.begin_stream(rest, dialect, calls)? {
                match began {
                    0 => return Ok((used, HEAD)),
                    head => used += head,
                }
                continue;
            }
            let mut framer = std::mem::take(&mut self.framer);
            let framed = framer.next(rest).map_err(protocol)?;
            let step = match framed {
                Framed::Need(bytes) => Err(bytes),
                Framed::Record { body, consumed } => {
                    self.reply(body, dialect, calls, done)?;
                    Ok(consumed)
                }
            };
            self.framer = framer;
            match step {
                Ok(consumed) => used += consumed,
                Err(need) => return Ok((used, need)),
            }
        }
    }

    /// One whole reply.
    #[inline]
    fn reply<D: Dialect>(
        &mut self,
        body: &[u8],
        dialect: &mut D,
        calls: &mut Outbox,
        done: &mut Vec<Completion>,
    ) -> Result<(), ClientError> {
        let mut r = Reader::new(body);
        let (slot, op) = header(&mut r, calls)?;
        calls.end(slot);
        let outcome = dialect.decode(&mut r, slot, op, &mut self.judge).map_err(protocol)?;
        dialect.ended(slot);
        done.push(Completion { slot, outcome });
        Ok(())
    }

    /// Tries to begin a stream at the start of `rest`: `None` when this is no large READ, 0 when
    /// more bytes are needed to decide, else the bytes that precede the data.
    fn begin_stream<D: Dialect>(
        &mut self,
        rest: &[u8],
        dialect: &mut D,
        calls: &Outbox,
    ) -> Result<Option<usize>, ClientError> {
        let Some((mark, body)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let mark = u32::from_be_bytes(*mark);
        let record = (mark & 0x7fff_ffff) as usize;
        if mark & 0x8000_0000 == 0 || record <= STREAM_ABOVE || record > Framer::INPUT_MAX {
            return Ok(None);
        }
        let Some(head) = body.get(..HEAD - 4) else { return Ok(Some(0)) };
        let mut r = Reader::new(head);
        let (slot, op) = header(&mut r, calls)?;
        let Op::Read { file, offset, len } = op else { return Ok(None) };
        let found = dialect.read_head(&mut r, slot, record).map_err(protocol)?;
        let Some(data) = found else { return Ok(None) };
        let before = head.len() - r.rest().len();
        if before + data + padding(data) > record {
            return Err(ClientError::Protocol("READ data is longer than its record".into()));
        }
        let fault = (data < len as usize).then_some(Fault::Short);
        let rest = record - before - data;
        self.stream = Some(Stream { slot, file, offset, asked: len, data, at: 0, rest, fault });
        Ok(Some(4 + before))
    }

    /// Checks the piece of a stream that is in `rest`; returns the bytes it took.
    fn pass(&self, stream: &mut Stream, rest: &[u8]) -> usize {
        let take = rest.len().min(stream.data - stream.at);
        let part = rest.get(..take).unwrap_or_default();
        let Stream { file, offset, asked, at, .. } = *stream;
        if stream.fault.is_none() && !self.judge.is_right(file, offset, asked, at, part) {
            stream.fault = Some(Fault::Corrupt);
        }
        stream.at += take;
        let tail = (rest.len() - take).min(stream.rest);
        stream.rest -= tail;
        take + tail
    }

    /// Reads one whole record for preparation, `more` bringing further bytes.
    pub fn whole(
        &mut self,
        mut more: impl FnMut(&mut [u8]) -> Result<usize, ClientError>,
    ) -> Result<Vec<u8>, ClientError> {
        loop {
            match self.framer.next(self.buffer.get(..self.have).unwrap_or_default()) {
                Ok(Framed::Record { body, consumed }) => {
                    let body = body.to_vec();
                    self.buffer.copy_within(consumed..self.have, 0);
                    self.have -= consumed;
                    return Ok(body);
                }
                Ok(Framed::Need(bytes)) if bytes > self.buffer.len() => {
                    self.buffer.resize(bytes, 0);
                }
                Ok(Framed::Need(_)) => {}
                Err(error) => return Err(protocol(error)),
            }
            self.have += more(self.buffer.get_mut(self.have..).unwrap_or_default())?;
        }
    }
}

fn finish(stream: &Stream) -> Completion {
    Completion { slot: stream.slot, outcome: stream.fault.map_or(Ok(stream.asked), Err) }
}

/// Header of a reply: the slot and operation that it answers.
#[inline]
fn header(r: &mut Reader<'_>, calls: &Outbox) -> Result<(u32, Op), ClientError> {
    let xid = answer(r)?;
    calls
        .answered(xid)
        .ok_or_else(|| ClientError::Protocol(format!("a reply to no call: xid {xid:08x}")))
}

/// Reads the header of a reply to a call that was carried out by the program; its transaction
/// number.
#[inline]
pub fn answer(r: &mut Reader<'_>) -> Result<u32, ClientError> {
    let header = ReplyHeader::decode(r).map_err(protocol)?;
    match header.body {
        ReplyBody::Accepted { stat: Accepted::Success, .. } => Ok(header.xid),
        other => {
            Err(ClientError::Refused { what: "an RPC call".to_owned(), status: other.to_string() })
        }
    }
}

pub fn protocol(error: impl std::fmt::Display) -> ClientError {
    ClientError::Protocol(error.to_string())
}
