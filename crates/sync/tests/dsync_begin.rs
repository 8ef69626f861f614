//! How many round trips a run takes for little, with one side played by hand; and what goes over
//! the control stream until streams for data come up.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::broken::{Breaks, HOST, held};
use crate::common::{Gardener, Scratch, assert_same, meta, notes, plain};
use base::limits::DSYNC_EARLY;
use base::random::Random;
use sync::destination::{self, ReportTo};
use sync::link::{HELLO, Link, read_frame};
use sync::run::{self, of_socket, pair};
use sync::streams::DataStreams;
use sync::streams::connect::{Caller, Calling, StreamCount};
use sync::streams::listen::Answerer;
use sync::tree::host::HostTree;
use sync::{Counts, Options, Role, source};
use wire::dsync::{
    Begin, Bytes, Data, Directory, DirectoryEnd, End, Entries, Entry, Kind, Message, Meta, Need,
    Offer, Outcome, Ready, SendMode as Asks, Start, StreamRequest, Whole, frame,
};
use wire::xdr::Seq;

/// What no test has to wait for as long, unless it fails.
const LONG: Duration = Duration::from_secs(60);
const CONTENT: &[u8] = b"little";

/// A simulated side: it sends several messages at once, and reads until an expected one arrives.
struct Hand(UnixStream);

impl Hand {
    /// It, and the link of the other side.
    fn new() -> (Self, Link) {
        let (one, other) = UnixStream::pair().expect("sockets");
        one.set_read_timeout(Some(LONG)).expect("a timeout");
        (Self(one), of_socket(other).expect("a link"))
    }

    /// Sends all messages with one write.
    fn send(&mut self, messages: Vec<Message<'_>>) {
        let mut bytes = Vec::new();
        messages.into_iter().for_each(|message| frame::put(&message, &mut bytes));
        self.0.write_all(&bytes).expect("said");
    }

    /// Reads until a message of this kind has arrived, which is returned.
    fn receive<R>(&mut self, mut wanted: impl FnMut(Message<'_>) -> Option<R>) -> R {
        loop {
            let body = read_frame(&mut self.0).expect("a frame in time").expect("one more");
            if let Some(heard) = wanted(frame::message(&body).expect("a message")) {
                return heard;
            }
        }
    }

    fn receive_walk(&mut self) {
        self.receive(|message| matches!(message, Message::ScanEnd(())).then_some(()));
    }

    /// Hears a file to its end: its bytes, and how it ended.
    fn receive_file(&mut self) -> (Vec<u8>, Outcome) {
        let mut bytes = Vec::new();
        let outcome = self.receive(|message| match message {
            Message::Data(data) => {
                bytes.extend_from_slice(data.bytes);
                None
            }
            Message::End(end) => Some(end.outcome),
            Message::Whole(whole) => {
                bytes.extend_from_slice(whole.bytes);
                Some(Outcome::WHOLE)
            }
            _ => None,
        });
        (bytes, outcome)
    }
}

/// The walk over a tree of one file.
fn walk() -> Vec<Message<'static>> {
    let top = Directory { name: Bytes(Vec::new()), meta: Some(meta(Kind::DIRECTORY, 0)) };
    let size = CONTENT.len() as u64;
    let entry = Entry { name: Bytes(b"a".to_vec()), meta: meta(Kind::FILE, size) };
    vec![
        Message::Directory(top),
        Message::Entries(Entries { entries: Seq(vec![entry]) }),
        Message::DirectoryEnd(DirectoryEnd { failed: None }),
        Message::ScanEnd(()),
    ]
}

fn need() -> Message<'static> {
    let (path, wish) = (Bytes(b"a".to_vec()), Asks::SEND);
    Message::Need(Need { id: 1, path, wish, hash: None, basis: None, kept: None })
}

/// What the file is, and its hash.
fn meta_and_hash() -> (Meta, [u8; 32]) {
    let hash = blake3::hash(&[0u64.to_be_bytes().as_slice(), CONTENT].concat());
    (meta(Kind::FILE, CONTENT.len() as u64), *hash.as_bytes())
}

fn file(id: u64) -> Vec<Message<'static>> {
    let (meta, hash) = meta_and_hash();
    let (outcome, why) = (Outcome::WHOLE, Bytes(Vec::new()));
    let end = End { id, outcome, hash, pieces: 1, meta: None, why };
    let data = Data { id, turn: 0, hole: 0, offset: 0, unpacked: 0, bytes: CONTENT };
    vec![Message::Begin(Begin { id, meta }), Message::Data(data), Message::End(end)]
}

fn whole(id: u64) -> Vec<Message<'static>> {
    let (meta, hash) = meta_and_hash();
    vec![Message::Whole(Whole { id, meta, hash, unpacked: 0, bytes: CONTENT })]
}

fn counts() -> Counts {
    Counts {
        entries: 1,
        changes: 1,
        files: 1,
        bytes: 0,
        files_done: 1,
        bytes_done: 0,
        bytes_received: 0,
        bytes_cloned: 0,
        bytes_copied: 0,
        devices_skipped: 0,
        set_id_dropped: 0,
        failures: 0,
        scanned: true,
    }
}

fn start(role: Role, place: &Path) -> Vec<Message<'static>> {
    let place = Bytes(place.to_str().expect("text").as_bytes().to_vec());
    let streams = Some(StreamRequest { most: 4, low: 0, high: 0 });
    let start = Start { role, place, options: options(), streams };
    vec![Message::Hello(HELLO), Message::Start(start)]
}

/// Owners of what is played are not to be given.
fn options() -> Options {
    Options { owners: false, ..plain() }
}

/// A port that accepts connections, and never replies.
fn deaf() -> (TcpListener, Offer) {
    let listener = TcpListener::bind((HOST, 0)).expect("a port");
    let port = listener.local_addr().expect("it").port().into();
    let (fingerprint, token) = ([0; 32], [0; 32]);
    (listener, Offer { address: None, port, fingerprint, token, most: 4 })
}

fn calling() -> Calling {
    Calling { hosts: vec![HOST.to_owned()], ..Calling::default() }
}

fn one_file(scratch: &Scratch) -> std::path::PathBuf {
    let from = scratch.join("from");
    fs::create_dir(&from).expect("a folder");
    fs::write(from.join("a"), CONTENT).expect("a file");
    from
}

#[test]
fn a_push_begins_with_the_walk_and_sends_at_the_first_answer() {
    let scratch = Scratch::new("push");
    let from = one_file(&scratch);
    let (mut hand, link) = Hand::new();
    let begun = std::thread::spawn(move || {
        let ends = (from.as_path(), b"there".as_slice());
        run::start(link, Role::SOURCE, ends, &options(), &calling(), &notes().0)
    });
    // There: all that it has, without a word from here.
    hand.receive_walk();
    // And back: that is the first round trip.
    let (_deaf, offer) = deaf();
    let ready = Ready { offer: Some(offer), why: Bytes(Vec::new()) };
    hand.send(vec![Message::Hello(HELLO), Message::Ready(ready), need()]);
    // The second: no stream has come up, nor will.
    assert_eq!(hand.receive_file(), (CONTENT.to_vec(), Outcome::WHOLE));
    hand.send(vec![Message::Done(counts())]);
    let done = begun.join().expect("no panic").expect("a run");
    assert_eq!(done, counts());
}

#[test]
fn a_side_that_writes_asks_and_is_done_in_one_flight_each() {
    is_written(file);
    is_written(whole);
}

fn is_written(file: fn(u64) -> Vec<Message<'static>>) {
    let scratch = Scratch::new("pushed");
    let to = scratch.join("to");
    let (mut hand, link) = Hand::new();
    let answers = std::thread::spawn(move || run::answer(link, None));
    let mut first = start(Role::DESTINATION, &to);
    first.extend(walk());
    hand.send(first);
    let id = hand.receive(|message| match message {
        Message::Need(need) => Some(need.id),
        _ => None,
    });
    hand.send(file(id));
    let done = hand.receive(|message| match message {
        Message::Done(counts) => Some(counts),
        _ => None,
    });
    assert_eq!((done.files_done, done.failures), (1, 0));
    assert_eq!(fs::read(to.join("a")).expect("it"), CONTENT);
    drop(hand);
    answers.join().expect("no panic").expect("a run");
}

#[test]
fn a_side_that_is_read_walks_at_once_and_sends_without_streams() {
    let scratch = Scratch::new("pulled");
    let from = one_file(&scratch);
    let (mut hand, link) = Hand::new();
    let answers = std::thread::spawn(move || run::answer(link, None));
    hand.send(start(Role::SOURCE, &from));
    hand.receive_walk();
    hand.send(vec![need()]);
    assert_eq!(hand.receive_file(), (CONTENT.to_vec(), Outcome::WHOLE));
    hand.send(vec![Message::Done(counts())]);
    drop(hand);
    answers.join().expect("no panic").expect("a run");
}

#[test]
fn what_refuses_is_heard_though_it_takes_nothing() {
    let scratch = Scratch::new("refuses");
    let from = scratch.join("from");
    fs::create_dir(&from).expect("a folder");
    // A walk that does not fit into any buffer on the way.
    for n in 0..3_000 {
        fs::write(from.join(format!("{n:0200}")), "").expect("a file");
    }
    let (mut hand, link) = Hand::new();
    let begun = std::thread::spawn(move || {
        let ends = (from.as_path(), b"there".as_slice());
        run::start(link, Role::SOURCE, ends, &options(), &calling(), &notes().0)
    });
    hand.receive(|message| matches!(message, Message::Start(_)).then_some(()));
    let why = Bytes(b"not here".to_vec());
    let refused = Message::Refused(wire::dsync::Refused { why });
    hand.send(vec![Message::Hello(HELLO), refused]);
    hand.0.shutdown(std::net::Shutdown::Both).expect("closed");
    let why = begun.join().expect("no panic").expect_err("refused");
    assert!(matches!(why.error(), sync::SyncError::Refused(text) if text == "not here"), "{why}");
}

#[test]
fn streams_that_come_up_late_take_over_what_is_left() {
    for role in [Role::SOURCE, Role::DESTINATION] {
        let scratch = Scratch::new("late");
        let (from, to) = (scratch.join("from"), scratch.join("to"));
        fs::create_dir(&from).expect("a folder");
        let mut bytes = vec![0; 6 << 20];
        Gardener::new(9).random.fill(&mut bytes);
        fs::write(from.join("large"), &bytes).expect("a file");
        let wanted = StreamRequest { most: 2, low: 0, high: 0 };
        let here = Some(Ipv4Addr::LOCALHOST.into());
        let (answerer, mut offer) = Answerer::open(&wanted, here).expect("a port");
        let sent: Arc<AtomicU64> = Arc::default();
        let counted = Arc::clone(&sent);
        let early = move || counted.load(Ordering::Relaxed) > DSYNC_EARLY;
        offer.port = held(offer.port, early);
        let calling = Calling { wish: StreamCount::Fixed(2), ..calling() };
        let caller = Caller::new(&offer, &calling, &notes().0).expect("an offer");
        let (mut reads, mut writes) = pair().expect("sockets");
        let (calls, answers) = (DataStreams::Calls(caller), DataStreams::Answers(answerer));
        (reads.beside, writes.beside) =
            if role == Role::SOURCE { (calls, answers) } else { (answers, calls) };
        let write = std::mem::replace(&mut reads.write, Box::new(std::io::sink()));
        reads.write = Box::new(Breaks { write, left: usize::MAX, sent: Arc::clone(&sent) });
        let tree = HostTree::open(&from).expect("a tree");
        let other = std::thread::spawn(move || source::run(tree, &plain(), reads, &notes().0));
        let tree = HostTree::open_for_change(&to).expect("a tree");
        let done = destination::run(tree, &plain(), writes, ReportTo::Local(notes().0), true);
        let (done, other) = (done.expect("a run"), other.join().expect("no panic"));
        assert!(other.is_ok(), "{other:?}");
        assert_eq!((done.failures, done.bytes_received), (0, bytes.len() as u64));
        assert_same(&from, &to, "late");
        // In addition to the data there are few control messages for one file.
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent < DSYNC_EARLY + (64 << 10), "{sent} bytes over the control stream");
    }
}
