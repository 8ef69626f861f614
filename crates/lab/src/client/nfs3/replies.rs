//! Replies become completions. Small ones are decoded where they lie in the receive buffer; the
//! data of a large READ is checked piece by piece as it comes and never gathered.

use super::super::{Checker, ClientError, Completion, Fault, Op};
use super::Files;
use super::calls::Calls;
use wire::nfs3::{
    CommitRes, CreateRes, GetattrRes, Nfsstat3, PostOpAttr, ReadRes, RemoveRes, Res, StableHow,
    WriteRes, Writeverf3,
};
use wire::rpc::{Accepted, Framed, Framer, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, DecodeError, Reader, padding};

/// Receive buffer: what a socket usually holds when a busy client looks again, and small enough
/// for the second-level cache.
const BUFFER: usize = 256 << 10;
/// Records above this that are one fragment and a READ's are checked as they stream by.
const STREAM_ABOVE: usize = 48 << 10;
/// All that precedes the data of a READ reply: header with the longest verifier, status,
/// attributes, count, eof, length (RFC 1813 §3.3.6) is below this.
const HEAD: usize = 640;

/// The data of a READ that is passing through.
struct Stream {
    slot: u32,
    key: u64,
    offset: u64,
    asked: u32,
    data: usize,
    at: usize,
    /// Bytes of the record after the data.
    rest: usize,
    fault: Option<Fault>,
}

/// Bytes received and not yet understood, and what is needed to understand them.
pub struct Replies {
    checker: Checker,
    buffer: Vec<u8>,
    have: usize,
    framer: Framer,
    stream: Option<Stream>,
    /// Write verifiers since the last COMMIT, by file.
    verifiers: Vec<Option<Writeverf3>>,
    /// The client's files.
    pub files: Files,
}

impl Replies {
    pub fn new(checker: Checker) -> Self {
        Self {
            checker,
            buffer: vec![0; BUFFER],
            have: 0,
            framer: Framer::new(),
            stream: None,
            verifiers: Vec::new(),
            files: Files::default(),
        }
    }

    /// Where the next receive goes.
    pub fn space(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.have..).unwrap_or_default()
    }

    /// Takes in `got` bytes that were received into [`Replies::space`].
    pub fn take(
        &mut self,
        got: usize,
        calls: &mut Calls,
        done: &mut Vec<Completion>,
    ) -> Result<(), ClientError> {
        let end = (self.have + got).min(self.buffer.len());
        let buffer = std::mem::take(&mut self.buffer);
        let taken = self.walk(buffer.get(..end).unwrap_or_default(), calls, done);
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
    fn walk(
        &mut self,
        input: &[u8],
        calls: &mut Calls,
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
                    done.push(finish(&stream));
                }
                continue;
            }
            if let Some(began) = self.begin_stream(rest, calls)? {
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
                    self.reply(body, calls, done)?;
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
    fn reply(
        &mut self,
        body: &[u8],
        calls: &mut Calls,
        done: &mut Vec<Completion>,
    ) -> Result<(), ClientError> {
        let mut r = Reader::new(body);
        let (slot, op) = header(&mut r, calls)?;
        calls.end(slot);
        let outcome = self.outcome(&mut r, op).map_err(protocol)?;
        done.push(Completion { slot, outcome });
        Ok(())
    }

    #[inline]
    fn outcome(&mut self, r: &mut Reader<'_>, op: Op) -> Result<Result<u32, Fault>, DecodeError> {
        Ok(match op {
            Op::Null => Ok(0),
            Op::Getattr { .. } => plain(GetattrRes::decode(r)?),
            Op::Create { .. } => plain(CreateRes::decode(r)?),
            Op::Remove { .. } => plain(RemoveRes::decode(r)?),
            Op::Read { file, offset, len } => match ReadRes::decode(r)?.into_result() {
                Err(status) => Err(Fault::Status(status.0)),
                Ok(ok) if ok.data.len() < len as usize => Err(Fault::Short),
                Ok(ok) => {
                    let key = self.files.key(file);
                    let right = self.checker.is_right(key, offset, u64::from(len), 0, ok.data);
                    if right { Ok(len) } else { Err(Fault::Corrupt) }
                }
            },
            Op::Write { file, len, stable, .. } => match WriteRes::decode(r)?.into_result() {
                Err(status) => Err(Fault::Status(status.0)),
                Ok(ok) if ok.count < len => Err(Fault::Short),
                // Asked for FILE_SYNC, a server may not do less (RFC 1813 §3.3.7).
                Ok(ok) if stable && ok.committed != StableHow::FILE_SYNC => {
                    Err(Fault::Status(Nfsstat3::SERVERFAULT.0))
                }
                Ok(ok) => self.seen(file, ok.verf, stable).map(|()| len),
            },
            Op::Commit { file } => match CommitRes::decode(r)?.into_result() {
                Err(status) => Err(Fault::Status(status.0)),
                Ok(ok) => {
                    let same = self.seen(file, ok.verf, false);
                    if let Some(kept) = self.verifiers.get_mut(file as usize) {
                        *kept = None;
                    }
                    same.map(|()| 0)
                }
            },
        })
    }

    /// Compares a write verifier with those before it; another one means that the server may
    /// have lost what was unstable.
    fn seen(&mut self, file: u32, verf: Writeverf3, stable: bool) -> Result<(), Fault> {
        if stable {
            return Ok(());
        }
        if self.verifiers.len() <= file as usize {
            self.verifiers.resize(file as usize + 1, None);
        }
        let Some(kept) = self.verifiers.get_mut(file as usize) else { return Ok(()) };
        let before = kept.replace(verf);
        if before.is_none_or(|b| b == verf) { Ok(()) } else { Err(Fault::VerifierChanged) }
    }

    /// Tries to begin a stream at the start of `rest`: `None` when this is no large READ,
    /// 0 when more bytes are needed to tell, else the bytes that precede the data.
    fn begin_stream(&mut self, rest: &[u8], calls: &Calls) -> Result<Option<usize>, ClientError> {
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
        if !Nfsstat3::decode(&mut r).map_err(protocol)?.is_ok() {
            return Ok(None);
        }
        PostOpAttr::decode(&mut r).map_err(protocol)?;
        r.u32("READ3resok.count").map_err(protocol)?;
        r.bool("READ3resok.eof").map_err(protocol)?;
        let data = r.length(record, "READ3resok.data").map_err(protocol)?;
        let before = head.len() - r.rest().len();
        if before + data + padding(data) > record {
            return Err(ClientError::Protocol("READ data is longer than its record".into()));
        }
        let fault = (data < len as usize).then_some(Fault::Short);
        let rest = record - before - data;
        let key = self.files.key(file);
        self.stream = Some(Stream { slot, key, offset, asked: len, data, at: 0, rest, fault });
        Ok(Some(4 + before))
    }

    /// Checks the piece of a stream that is in `rest`; returns the bytes it took.
    fn pass(&self, stream: &mut Stream, rest: &[u8]) -> usize {
        let take = rest.len().min(stream.data - stream.at);
        let part = rest.get(..take).unwrap_or_default();
        let asked = u64::from(stream.asked);
        if stream.fault.is_none()
            && !self.checker.is_right(stream.key, stream.offset, asked, stream.at as u64, part)
        {
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
fn header(r: &mut Reader<'_>, calls: &Calls) -> Result<(u32, Op), ClientError> {
    let header = ReplyHeader::decode(r).map_err(protocol)?;
    success(&header)?;
    calls
        .answered(header.xid)
        .ok_or_else(|| ClientError::Protocol(format!("a reply to no call: xid {:08x}", header.xid)))
}

/// Whether the call was carried out by the program.
#[inline]
pub fn success(header: &ReplyHeader<'_>) -> Result<(), ClientError> {
    match header.body {
        ReplyBody::Accepted { stat: Accepted::Success, .. } => Ok(()),
        other => Err(ClientError::Refused {
            what: "an RPC call".to_owned(),
            status: format!("{other:?}"),
        }),
    }
}

#[inline]
fn plain<O, F>(res: Res<O, F>) -> Result<u32, Fault> {
    res.into_result().map(|_| 0).map_err(|status| Fault::Status(status.0))
}

pub fn protocol(error: impl std::fmt::Display) -> ClientError {
    ClientError::Protocol(error.to_string())
}
