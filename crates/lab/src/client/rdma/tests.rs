//! The client against a peer that a test controls, on devices within the process: credits are kept
//! to, and replies that are wrong are noticed.

use super::*;
use crate::client::nfs3::dialect::V3;
use crate::client::{Fault, content_key};
use std::thread::JoinHandle;
use verbs::mock::Fabric;
use verbs::{Listener, Piece};
use wire::nfs3::{Fh3, GetattrArgs, Nfsstat3, Proc, ReadRes, ReadResOk};
use wire::rpc::success;
use wire::rpcrdma::{Body, Chunk, Chunks, Header, Refusal, Segment};
use wire::xdr::Encode;

const AT: ([u8; 4], u16) = ([127, 0, 0, 1], 20049);
const TIME: Duration = Duration::from_secs(60);

/// The other end.
struct Peer {
    connection: Box<dyn Connection>,
    waiter: Waiter,
    next: u64,
    came: VecDeque<Vec<u8>>,
}

impl Peer {
    /// Accepts the client that connects, with `receives` posted receives.
    fn accept(mut listener: Box<dyn Listener>, receives: u32) -> Self {
        let (waiter, deadline) = (Waiter::new().unwrap(), Deadline::after(TIME));
        let request = loop {
            let cx = &mut std::task::Context::from_waker(std::task::Waker::noop());
            if let std::task::Poll::Ready(request) = listener.poll_request(cx) {
                break request.unwrap();
            }
            assert!(!deadline.passed(), "nobody connects");
            std::thread::yield_now();
        };
        let said = PrivateData::decode(request.private_data()).expect("it speaks of itself");
        assert!(!said.remote_invalidation, "its memory stays registered");
        let connection = request.open(Depth { receives, sends: 16 }).unwrap();
        let mut peer = Self { connection, waiter, next: 0, came: VecDeque::new() };
        (0..receives).for_each(|_| peer.receive());
        let said = PrivateData { remote_invalidation: true, send: 4096, receive: 4096 };
        peer.connection.accept(&said.encode()).unwrap();
        peer
    }

    fn receive(&mut self) {
        let region = self.connection.register(vec![0; 4096], Purpose::Local).expect("room");
        self.post(Work::Receive(region));
    }

    fn post(&mut self, work: Work) {
        self.next += 1;
        let receive = matches!(work, Work::Receive(_));
        self.connection.post(self.next << 1 | u64::from(!receive), work).expect("connected");
    }

    /// The next call.
    fn call(&mut self) -> Header {
        let deadline = Deadline::after(TIME);
        while self.came.is_empty() {
            assert!(!deadline.passed(), "no call has come");
            let mut done = Vec::new();
            self.waiter.wait(&mut *self.connection, TIME, &mut done).expect("connected");
            let received = done.into_iter().filter(|one| one.id & 1 == 0);
            let bytes = received.map(|one| one.region[..one.outcome.unwrap()].to_vec());
            self.came.extend(bytes);
        }
        Header::open(&self.came.pop_front().unwrap()).expect("a header").0
    }

    /// Writes to the client's memory.
    fn write(&mut self, to: Segment, data: &[u8]) {
        let region = self.connection.register(data.to_vec(), Purpose::Local).expect("room");
        let pieces = vec![Piece { local: 0..data.len(), key: to.handle, address: to.offset }];
        self.post(Work::Write { region, pieces });
    }

    fn send(&mut self, xid: u32, credits: u32, body: Body, message: &[u8]) {
        let mut bytes = Vec::new();
        Header { xid, credits, body }.encode(&mut Writer::new(&mut bytes));
        bytes.extend_from_slice(message);
        let length = bytes.len();
        let region = self.connection.register(bytes, Purpose::Local).expect("room");
        self.post(Work::Send { region, length, invalidate: None });
    }
}

/// A client with `slots` slots, of a peer that runs `script`.
fn connected(
    slots: u32,
    receives: u32,
    script: impl FnOnce(&mut Peer) + Send + 'static,
) -> (RdmaConnection<V3>, JoinHandle<Peer>) {
    let fabric = Fabric::new(1 << 30);
    let listener = fabric.verbs().listen(AT.into()).unwrap();
    let peer = std::thread::spawn(move || {
        let mut peer = Peer::accept(listener, receives);
        script(&mut peer);
        peer
    });
    let checker = Checker::new(Content::new(3), 1);
    let options = Options { bind: None, seed: 3, check_one_in: 1, slots };
    let at = ("127.0.0.1", AT.1);
    let client = RdmaConnection::open(&*fabric.verbs(), at, checker, V3::new(), &options);
    (client.unwrap(), peer)
}

/// Waits for `count` completions.
fn wait(client: &mut RdmaConnection<V3>, count: usize) -> Result<Vec<Completion>, ClientError> {
    let (mut done, deadline) = (Vec::new(), Deadline::after(TIME));
    while done.len() < count {
        assert!(!deadline.passed(), "{done:?}");
        client.wait(Duration::from_millis(50), &mut done)?;
    }
    Ok(done)
}

fn message(xid: u32, results: &dyn Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes);
    success(&mut w, xid);
    results.encode(&mut w);
    bytes
}

#[test]
fn never_more_calls_than_granted_are_in_flight() {
    const SLOTS: u32 = 20;
    // A call for which no receive is posted ends the connection.
    let (mut client, peer) = connected(SLOTS, 1, |peer| {
        let mut under_way = vec![peer.call()];
        for granted in [3, 2, 4, 12] {
            // One is answered, and with it as many may come as are granted.
            let Header { xid, credits, .. } = under_way.pop().unwrap();
            assert_eq!(credits, SLOTS, "what it asks for");
            let more = (granted as usize).saturating_sub(under_way.len());
            (0..more).for_each(|_| peer.receive());
            peer.send(xid, granted, Body::Message(Chunks::default()), &message(xid, &Nothing));
            under_way.extend((0..more).map(|_| peer.call()));
        }
    });
    for slot in 0..SLOTS {
        client.submit(slot, Op::Null).unwrap();
    }
    client.flush().unwrap();
    assert_eq!(wait(&mut client, 4).unwrap().len(), 4);
    // What the last reply permits is sent now at the latest.
    client.flush().unwrap();
    let _connected = peer.join().expect("no call came too early");
    assert_eq!(client.granted(), Some(12), "fewer than there are slots");
}

/// No results.
struct Nothing;

impl Encode for Nothing {
    fn encode(&self, _: &mut Writer<'_>) {}
}

const LENGTH: u32 = 100_000;

/// The reply to a READ with data in the write chunk, as far as it is in the message.
fn read_head(xid: u32, length: u32) -> Vec<u8> {
    let data = &[];
    let ok = ReadRes::Ok(ReadResOk { file_attributes: None, count: length, eof: false, data });
    let mut head = message(xid, &ok);
    let at = head.len() - 4;
    head[at..].copy_from_slice(&length.to_be_bytes());
    head
}

/// The outcome of a READ with this data, of which the server reports `written` bytes as written.
fn read(
    data: Vec<u8>,
    written: u32,
    credits: u32,
    answer: impl Fn(u32, Chunks) -> (Body, Vec<u8>) + Send + 'static,
) -> Result<Result<u32, Fault>, ClientError> {
    let (mut client, peer) = connected(1, 1, move |peer| {
        let Header { xid, body, .. } = peer.call();
        let Body::Message(Chunks { writes, .. }) = body else { panic!("{body:?}") };
        let [Chunk(segments)] = &writes[..] else { panic!("{writes:?}") };
        let [target] = segments[..] else { panic!("{segments:?}") };
        assert_eq!(target.length, LENGTH);
        peer.write(target, &data);
        let filled = Chunk(vec![Segment { length: written, ..target }]);
        let (body, message) = answer(xid, Chunks { writes: vec![filled], ..Chunks::default() });
        peer.send(xid, credits, body, &message);
    });
    client.submit(0, Op::Read { file: 0, offset: 8, len: LENGTH }).unwrap();
    client.flush().unwrap();
    let done = wait(&mut client, 1);
    let _connected = peer.join().expect("the peer");
    done.map(|done| done[0].outcome)
}

fn content() -> Vec<u8> {
    let mut data = vec![0; LENGTH as usize];
    Content::new(3).fill(content_key(0, 0), 8, &mut data);
    data
}

#[test]
fn data_of_a_read_is_checked_where_the_server_wrote_it() {
    let good = |xid, chunks| (Body::Message(chunks), read_head(xid, LENGTH));
    assert_eq!(read(content(), LENGTH, 1, good).unwrap(), Ok(LENGTH));
    for at in [0, 65_535, 65_536, LENGTH as usize - 1] {
        let mut data = content();
        data[at] ^= 1;
        assert_eq!(read(data, LENGTH, 1, good).unwrap(), Err(Fault::Corrupt), "{at}");
    }
    let short = |xid, chunks| (Body::Message(chunks), read_head(xid, 9));
    assert_eq!(read(content(), 9, 1, short).unwrap(), Err(Fault::Short));
    let failed =
        |xid, chunks| (Body::Message(chunks), message(xid, &ReadRes::Fail(Nfsstat3::IO, None)));
    let status = Err(Fault::Status(Nfsstat3::IO.0));
    assert_eq!(read(Vec::new(), 0, 1, failed).unwrap(), status);
}

#[test]
fn a_peer_that_breaks_the_protocol_is_reported() {
    let good = |xid, chunks| (Body::Message(chunks), read_head(xid, LENGTH));
    let said = |outcome: Result<Result<u32, Fault>, ClientError>| {
        base::failure::chain(&outcome.expect_err("it is wrong"))
    };
    let why = said(read(content(), LENGTH - 4, 1, good));
    assert!(why.contains("100000 bytes of a READ, and 99996 in its write chunk"), "{why}");
    let why = said(read(content(), LENGTH, 0, good));
    assert!(why.contains("grants no credits"), "{why}");
    let refused = |_, _| (Body::Error(Refusal::Chunk), Vec::new());
    let why = said(read(Vec::new(), 0, 1, refused));
    assert_eq!(why, "a call over RDMA: the server returned ERR_CHUNK");
    let version = |_, _| (Body::Error(Refusal::Version { low: 2, high: 2 }), Vec::new());
    let why = said(read(Vec::new(), 0, 1, version));
    assert!(why.ends_with("ERR_VERS, versions 2 to 2"), "{why}");
    let long = |_, chunks: Chunks| {
        let reply = chunks.writes.first().cloned();
        (Body::NoMessage(Chunks { reply, ..chunks }), Vec::new())
    };
    let why = said(read(content(), LENGTH, 1, long));
    assert!(why.contains("a long reply without room"), "{why}");
    let other = |xid: u32, chunks| (Body::Message(chunks), read_head(xid + 1, LENGTH));
    let mut outcome = read(content(), LENGTH, 1, other);
    // The number of the header is what counts; that within belongs to it.
    assert_eq!(outcome.as_mut().ok().copied(), Some(Ok(LENGTH)));
}

/// A call outside the slots with a reply of `length` bytes, which comes by its reply chunk.
fn long_reply(length: usize, told: u32) -> Result<Vec<u8>, ClientError> {
    let (mut client, peer) = connected(1, 1, move |peer| {
        let Header { xid, body, .. } = peer.call();
        let Body::Message(Chunks { reply: Some(Chunk(room)), .. }) = body else {
            panic!("{body:?}")
        };
        let mut text = message(xid, &Nothing);
        text.resize(length, 7);
        peer.write(room[0], &text);
        let reply = Some(Chunk(vec![Segment { length: told, ..room[0] }]));
        peer.send(xid, 1, Body::NoMessage(Chunks { reply, ..Chunks::default() }), &[]);
    });
    let record = client.exchange(TIME, &|w, xid| {
        let object = Fh3(b"handle");
        let mut call = Vec::new();
        V3::new().call(&mut Writer::new(&mut call), xid, Proc::READDIR, &GetattrArgs { object });
        w.raw(&call);
    });
    let _connected = peer.join().expect("the peer");
    record
}

#[test]
fn a_long_reply_comes_by_its_reply_chunk() {
    for length in [24, 5000, 65_536] {
        let record = long_reply(length, length as u32).unwrap();
        assert_eq!(record.len(), length);
        assert!(record[24..].iter().all(|byte| *byte == 7), "{length}");
    }
    let why = long_reply(100, 70_000).expect_err("it is beyond the memory").to_string();
    assert!(why.contains("a long reply without room"), "{why}");
}

#[test]
fn a_peer_that_closes_the_connection_is_noticed() {
    let (mut client, peer) = connected(1, 1, |peer| {
        peer.call();
    });
    client.submit(0, Op::Null).unwrap();
    client.flush().unwrap();
    drop(peer.join().expect("the peer"));
    assert!(matches!(wait(&mut client, 1), Err(ClientError::Closed)));
}
