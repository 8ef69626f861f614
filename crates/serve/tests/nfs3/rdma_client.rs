//! A client of RPC over RDMA that takes and gives records: it cuts them, moves by chunks what may
//! be, keeps to its credits, and puts replies together again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base::limits::{RDMA_IDLE_MIN, RDMA_INLINE, RDMA_REGISTERED_MAX};
use serve::rpc::{RdmaConfig, RdmaStats};
use verbs::mock::{End, Exposed, Fabric};
use verbs::{Completion, Connection, Purpose, VerbsError, Work};
use wire::nfs3::{self, NFS_PROGRAM, NFS_V3, Proc};
use wire::nfs4::{self, ArgOp, NFS_V4};
use wire::rpc::{Framed, Framer, open_call};
use wire::rpcrdma::ddp::{self, Called};
use wire::rpcrdma::{
    Body, Chunk, Chunks, Header, PrivateData, ReadSegment, Refusal, Segment, reduced,
};
use wire::xdr::{Decode, Encode, Writer, padding};

/// What connects clients and the services at each address.
static FABRICS: Mutex<BTreeMap<SocketAddr, Arc<Fabric>>> = Mutex::new(BTreeMap::new());

/// What connects clients and the service at this address.
pub fn fabric(at: SocketAddr) -> Arc<Fabric> {
    let fabrics = FABRICS.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(fabrics.get(&at).expect("a service was there"))
}

/// A service's part, at the address of its socket.
pub fn config(at: SocketAddr) -> Option<RdmaConfig> {
    config_with(at, RDMA_IDLE_MIN)
}

/// The same, where connections can be evicted after this time without a request.
pub fn config_with(at: SocketAddr, idle_min: Duration) -> Option<RdmaConfig> {
    let fabric = Fabric::new(RDMA_REGISTERED_MAX);
    let (verbs, stats) = (fabric.verbs(), Arc::<RdmaStats>::default());
    FABRICS.lock().unwrap_or_else(PoisonError::into_inner).insert(at, fabric);
    Some(RdmaConfig { verbs, at, stats, idle_min })
}

/// Bytes that the client sends and takes at once: few, so that much goes by chunks.
const INLINE: usize = 1024;
/// Credits that it requests.
const CREDITS: u32 = 128;
/// Most calls of the server that it takes.
const BACK_CREDITS: u32 = 2;
/// Data from which on it offers a write chunk.
const WRITE_CHUNK_MIN: u32 = 256;
/// Room for a reply to a call that may have a long one.
const LONG_REPLY: usize = (1 << 20) + (64 << 10);
/// And to others.
const SHORT_REPLY: usize = 8 << 10;
/// How long others are kept from the client while it waits.
const LOOK: Duration = Duration::from_millis(2);

/// What it counts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Bytes that the server has read and written.
    pub read: usize,
    pub written: usize,
    /// Replies that came in their reply chunk.
    pub long: usize,
    /// What the last reply granted.
    pub granted: u32,
    /// Memory that the server has invalidated.
    pub invalidated: usize,
    /// The highest number of calls in flight.
    pub most: usize,
}

/// A call in flight, and the memory that the server may use for it.
struct Open {
    called: Option<Called>,
    _reads: Vec<Exposed>,
    writes: Vec<Exposed>,
    reply: Option<Exposed>,
}

/// A connection.
pub struct RdmaClient {
    end: Option<End>,
    patience: Duration,
    /// Bytes of records that are not whole yet, and messages that wait for a credit.
    written: Vec<u8>,
    waiting: VecDeque<Vec<u8>>,
    /// Records that have come.
    came: VecDeque<u8>,
    open: HashMap<u32, VecDeque<Open>>,
    in_use: usize,
    pub counts: Counts,
    ended: Option<io::ErrorKind>,
    silent_since: Instant,
}

impl RdmaClient {
    /// Connects. A client that is refused finds its connection closed.
    pub fn connect(from: IpAddr, to: SocketAddr, patience: Duration) -> Self {
        static PORT: AtomicU16 = AtomicU16::new(40_000);
        let said = PrivateData { remote_invalidation: true, send: INLINE, receive: INLINE };
        let from = SocketAddr::new(from, PORT.fetch_add(1, Relaxed));
        let mut end = fabric(to).connect(from, to, &said.encode()).ok();
        for id in 0..u64::from(CREDITS + BACK_CREDITS) {
            let Some(end) = &mut end else { break };
            receive(end, id);
        }
        if let Some(server) = end.as_mut().and_then(|end| end.established(patience)) {
            let server = PrivateData::decode(&server).expect("it speaks of itself");
            assert_eq!((server.send, server.receive), (RDMA_INLINE, RDMA_INLINE));
            assert!(server.remote_invalidation);
        } else {
            end = None;
        }
        Self {
            end,
            patience,
            written: Vec::new(),
            waiting: VecDeque::new(),
            came: VecDeque::new(),
            open: HashMap::new(),
            in_use: 0,
            counts: Counts { granted: 1, ..Counts::default() },
            ended: None,
            silent_since: Instant::now(),
        }
    }

    /// From now on nothing is done that the server sends, reads or writes, or all of it again.
    pub fn take_nothing(&self, nothing: bool) {
        let end = self.end.as_ref().expect("a connection");
        if nothing { end.take_nothing() } else { end.take_again() }
    }

    /// What of that is not done.
    pub fn undone(&self) -> usize {
        self.end.as_ref().map_or(0, End::undone)
    }

    /// Takes bytes of records, and calls as far as there are credits.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written.extend_from_slice(bytes);
        let (mut framer, mut start) = (Framer::new(), 0);
        while let Ok(Framed::Record { body, consumed }) = framer.next(&self.written[start..]) {
            self.waiting.push_back(body.to_vec());
            start += consumed;
        }
        self.written.drain(..start);
        self.silent_since = Instant::now();
        self.pump()?;
        Ok(bytes.len())
    }

    /// Gives bytes of records; `None` if there are none yet, 0 at the end.
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        if self.came.is_empty() {
            self.pump()?;
            match self.end.as_mut().map(|end| end.wait(LOOK)) {
                None => return self.at_end(),
                Some(Ok(done)) => done.into_iter().for_each(|one| self.done(one)),
                Some(Err(VerbsError::Closed)) => self.end = None,
                Some(Err(VerbsError::Work("nothing has happened in time"))) => {}
                Some(Err(_)) => {
                    self.ended = Some(io::ErrorKind::ConnectionReset);
                    self.end = None;
                }
            }
            if self.silent_since.elapsed() > self.patience {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        if self.came.is_empty() {
            return Ok(None);
        }
        self.silent_since = Instant::now();
        let count = buf.len().min(self.came.len());
        for (to, byte) in buf.iter_mut().zip(self.came.drain(..count)) {
            *to = byte;
        }
        Ok(Some(count))
    }

    fn at_end(&self) -> io::Result<Option<usize>> {
        self.ended.map_or(Ok(Some(0)), |kind| Err(kind.into()))
    }

    fn pump(&mut self) -> io::Result<()> {
        while let Some(message) = self.waiting.front() {
            let answer = message.get(4..8) == Some(&[0, 0, 0, 1]);
            if !answer && self.in_use >= self.counts.granted as usize {
                break;
            }
            let Some(message) = self.waiting.pop_front() else { break };
            let sent = if answer { self.answer(&message) } else { self.call(&message) };
            if sent.is_err() {
                // What came before is still read.
                self.waiting.clear();
                break;
            }
        }
        Ok(())
    }

    fn send(&mut self, bytes: Vec<u8>) -> Result<(), VerbsError> {
        let end = self.end.as_mut().ok_or(VerbsError::Closed)?;
        let length = bytes.len();
        let region = end.register(bytes, Purpose::Local).map_err(|(_, why)| why)?;
        end.post(u64::MAX, Work::Send { region, length, invalidate: None })
    }

    /// The reply to a call of the server.
    fn answer(&mut self, message: &[u8]) -> Result<(), VerbsError> {
        let body = Body::Message(Chunks::default());
        self.send(encoded(xid(message), BACK_CREDITS, body, message))
    }

    fn call(&mut self, message: &[u8]) -> Result<(), VerbsError> {
        let end = self.end.as_mut().ok_or(VerbsError::Closed)?;
        let (writes, reply) = room(message);
        let writes: Vec<_> = writes.into_iter().map(|n| end.expose(vec![0; n], true)).collect();
        let reply = reply.map(|n| end.expose(vec![0; n], true));
        let mut chunks = Chunks {
            reads: Vec::new(),
            writes: writes.iter().map(|one| chunk(one, one.bytes().len())).collect(),
            reply: reply.as_ref().map(|one| chunk(one, one.bytes().len())),
        };
        let mut reads = Vec::new();
        let mut inline = message.to_vec();
        let fits = |chunks: &Chunks, inline: &[u8]| {
            encoded(0, 0, Body::Message(chunks.clone()), inline).len() <= INLINE
        };
        let mut body: fn(Chunks) -> Body = Body::Message;
        if !fits(&chunks, &inline) {
            // What may be is read by the server; if that does not do, so is the rest.
            let items = ddp::in_call(message);
            inline.clear();
            reduced(message, &items, &mut inline);
            for item in items {
                let source = end.expose(message[item.clone()].to_vec(), false);
                chunks.reads.extend(read_segments(&source, item.start, item.len()));
                self.counts.read += item.len();
                reads.push(source);
            }
            if !fits(&chunks, &inline) {
                let source = end.expose(std::mem::take(&mut inline), false);
                let length = source.bytes().len();
                let mut long = read_segments(&source, 0, length);
                self.counts.read += length;
                long.append(&mut chunks.reads);
                chunks.reads = long;
                reads.push(source);
                body = Body::NoMessage;
            }
        }
        let called = Called::of(message);
        let open = Open { called, _reads: reads, writes, reply };
        self.open.entry(xid(message)).or_default().push_back(open);
        self.in_use += 1;
        self.counts.most = self.counts.most.max(self.in_use);
        self.send(encoded(xid(message), CREDITS, body(chunks), &inline))
    }

    fn done(&mut self, one: Completion) {
        if one.id == u64::MAX {
            return;
        }
        let length = one.outcome.expect("received");
        let message = one.region[..length].to_vec();
        if let Some(end) = &mut self.end {
            // The connection may have ended meanwhile.
            let _ = end.post(one.id, Work::Receive(one.region));
        }
        let (header, inline) = Header::open(&message).expect("a header");
        let whole = match &header.body {
            Body::Message(chunks) if inline.get(4..8) == Some(&[0; 4]) => {
                assert!(chunks.is_empty(), "calls of the server have no chunks");
                inline.to_vec()
            }
            Body::Message(chunks) => self.replied(&header, chunks, inline),
            Body::NoMessage(chunks) => self.replied(&header, chunks, inline),
            Body::Error(refusal) => {
                assert_eq!(*refusal, Refusal::Chunk);
                panic!("a call was refused");
            }
        };
        let mark = whole.len() as u32 | 1 << 31;
        self.came.extend(mark.to_be_bytes());
        self.came.extend(whole);
    }

    /// The whole message of a reply.
    fn replied(&mut self, header: &Header, chunks: &Chunks, inline: &[u8]) -> Vec<u8> {
        let opens = self.open.get_mut(&header.xid).expect("a reply to a call");
        let open = opens.pop_front().expect("a reply to a call");
        if opens.is_empty() {
            self.open.remove(&header.xid);
        }
        self.in_use -= 1;
        assert!(header.credits >= 1 && header.credits <= CREDITS, "{} credits", header.credits);
        self.counts.granted = header.credits;
        let all = open.writes.iter().chain(&open.reply).chain(&open._reads);
        self.counts.invalidated += all.filter(|memory| memory.is_invalidated()).count();
        assert!(chunks.reads.is_empty(), "a reply has no read list");
        let mut message = match &header.body {
            Body::NoMessage(_) => {
                let length = chunks.reply.as_ref().expect("a reply chunk").capacity() as usize;
                self.counts.written += length;
                self.counts.long += 1;
                assert!(inline.is_empty());
                open.reply.as_ref().expect("it was offered").bytes()[..length].to_vec()
            }
            _ => inline.to_vec(),
        };
        assert_eq!(chunks.writes.len(), open.writes.len(), "all are told of");
        for (n, (memory, chunk)) in open.writes.iter().zip(&chunks.writes).enumerate() {
            let length = chunk.capacity() as usize;
            if length > 0 {
                self.counts.written += length;
                let called = open.called.expect("a call");
                message = restored(called, &message, &memory.bytes()[..length], n);
            }
        }
        message
    }
}

fn receive(end: &mut End, id: u64) {
    let region = end.register(vec![0; INLINE], Purpose::Local).expect("no limit");
    // A server that refuses has ended the connection already.
    let _ = end.post(id, Work::Receive(region));
}

fn xid(message: &[u8]) -> u32 {
    message.first_chunk().map_or(0, |xid| u32::from_be_bytes(*xid))
}

/// A message as it is sent.
pub fn encoded(xid: u32, credits: u32, body: Body, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header { xid, credits, body }.encode(&mut Writer::new(&mut bytes));
    bytes.extend_from_slice(message);
    bytes
}

/// Memory as a chunk, in segments of several sizes.
fn chunk(memory: &Exposed, length: usize) -> Chunk {
    let (mut segments, mut at) = (Vec::new(), 0);
    while at < length {
        let size = (length - at).min([333, 65_536, 1 << 20][segments.len().min(2)]);
        let offset = memory.address + at as u64;
        segments.push(Segment { handle: memory.key, length: size as u32, offset });
        at += size;
    }
    Chunk(segments)
}

fn read_segments(memory: &Exposed, position: usize, length: usize) -> Vec<ReadSegment> {
    let segments = chunk(memory, length).0.into_iter();
    segments.map(|target| ReadSegment { position: position as u32, target }).collect()
}

/// Room that is offered for data of the reply, and for a long reply.
fn room(message: &[u8]) -> (Vec<usize>, Option<usize>) {
    let none = (Vec::new(), Some(SHORT_REPLY));
    let Ok((header, mut r)) = open_call(message) else { return none };
    let r = &mut r;
    let data =
        |count: u32| vec![count.min(1 << 20) as usize; usize::from(count >= WRITE_CHUNK_MIN)];
    match (header.prog, header.vers, Proc(header.proc)) {
        (NFS_PROGRAM, NFS_V3, Proc::READ) => match nfs3::ReadArgs::decode(r) {
            Ok(args) => (data(args.count), Some(SHORT_REPLY)),
            Err(_) => none,
        },
        (NFS_PROGRAM, NFS_V3, Proc::READLINK) => (vec![4096], None),
        (NFS_PROGRAM, NFS_V3, Proc::READDIR | Proc::READDIRPLUS) => (Vec::new(), Some(LONG_REPLY)),
        (NFS_PROGRAM, NFS_V4, Proc(1)) => (in_compound(r), Some(LONG_REPLY)),
        _ => none,
    }
}

fn in_compound(r: &mut wire::xdr::Reader<'_>) -> Vec<usize> {
    let mut room = Vec::new();
    let Ok(head) = nfs4::CompoundArgs::decode(r) else { return room };
    for _ in 0..head.count.min(64) {
        match ArgOp::decode(r) {
            Ok(ArgOp::Read(args)) => room.push(args.count.min(1 << 20) as usize),
            Ok(ArgOp::Readlink(())) => room.push(4096),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    room.truncate(4);
    room
}

/// The message with data of its write chunk in its place: the only one at which it can be read.
fn restored(called: Called, message: &[u8], data: &[u8], n: usize) -> Vec<u8> {
    let length = (data.len() as u32).to_be_bytes();
    for at in (4..=message.len()).step_by(4).filter(|at| message[at - 4..*at] == length) {
        let pad = vec![0; padding(data.len())];
        let whole = [&message[..at], data, &pad, &message[at..]].concat();
        if ddp::in_reply(called, &whole, n + 1).get(n) == Some(&(at..at + data.len())) {
            return whole;
        }
    }
    panic!("{} bytes of chunk {n} belong nowhere", data.len());
}
