//! Streams for data in addition to the control stream: which are accepted, what may come over them,
//! what happens when they cannot come up, break, or are more than were agreed.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::broken::{Breaks, End, HOST, breaks, ends};
use crate::common::{Gardener, Scratch, assert_same, facts, meta, notes, plain};
use base::random::Random;
use sync::destination::{self, ReportTo};
use sync::events::{Carried, Event, Report};
use sync::link::{Link, read_frame, write_now};
use sync::run::pair;
use sync::streams::DataStreams;
use sync::streams::connect::{Caller, Calling, StreamCount};
use sync::streams::listen::Answerer;
use sync::streams::tls::{PeerIdentity, Stream};
use sync::tree::host::HostTree;
use sync::{Counts, Options, Role, SyncError, Why, source};
use wire::dsync::{
    Bytes, Data, Directory, Entries, Entry, Kind, Message, Need, Offer, StreamRequest, frame,
};
use wire::xdr::Seq;

/// How long a stream may stand still here.
const SHORT: Duration = Duration::from_millis(150);

fn open(most: u32) -> (Answerer, Offer) {
    let wanted = StreamRequest { most, low: 0, high: 0 };
    Answerer::open(&wanted, Some(Ipv4Addr::LOCALHOST.into())).expect("a port")
}

/// The reports about streams.
fn recorded_reports() -> (Report, Arc<Mutex<Vec<Carried>>>) {
    let kept: Arc<Mutex<Vec<Carried>>> = Arc::default();
    let keeps = Arc::clone(&kept);
    let report: Report = Arc::new(move |event| {
        if let Event::Carried(carried) = event {
            keeps.lock().expect("events").push(carried);
        }
    });
    (report, kept)
}

/// Links of a source and a destination in this process, with streams from the caller to the offered
/// port.
fn links(
    role: Role,
    (answerer, offer): (Answerer, &Offer),
    (calling, report): (&Calling, &Report),
) -> (Link, Link) {
    let (mut near, mut far) = pair().expect("sockets");
    near.beside = DataStreams::Calls(Caller::new(offer, calling, report).expect("an offer"));
    far.beside = DataStreams::Answers(answerer);
    if role == Role::DESTINATION { (far, near) } else { (near, far) }
}

/// Both sides in this process, with streams from the caller to the offered port.
fn over(
    role: Role,
    ends: (&Path, &Path),
    options: &Options,
    offered: (Answerer, &Offer),
    calling: (&Calling, &Report),
) -> (Result<Counts, Why>, Result<Counts, Why>) {
    go(ends, options, links(role, offered, calling))
}

fn go(
    (from, to): (&Path, &Path),
    options: &Options,
    (reads, writes): (Link, Link),
) -> (Result<Counts, Why>, Result<Counts, Why>) {
    let (tree, wanted) = (HostTree::open(from).expect("a tree"), options.clone());
    let other = std::thread::spawn(move || source::run(tree, &wanted, reads, &notes().0));
    let tree = HostTree::open_for_change(to).expect("a tree");
    let done = destination::run(tree, options, writes, ReportTo::Local(notes().0), true);
    (done, other.join().expect("no panic"))
}

fn grown(scratch: &Scratch, seed: u64) -> (std::path::PathBuf, std::path::PathBuf) {
    let (from, to) = (scratch.join("from"), scratch.join("to"));
    fs::create_dir(&from).expect("a folder");
    let mut gardener = Gardener::new(seed);
    gardener.grow(&from, 3);
    let mut bytes = vec![0; 6 << 20];
    gardener.random.fill(&mut bytes);
    fs::write(from.join("large"), &bytes).expect("a file");
    (from, to)
}

#[test]
fn data_goes_over_as_many_streams_as_were_asked_for() {
    for role in [Role::SOURCE, Role::DESTINATION] {
        let scratch = Scratch::new("streams");
        let (from, to) = grown(&scratch, 1);
        let (report, kept) = recorded_reports();
        let (answerer, offer) = open(4);
        let calling = Calling { wish: StreamCount::Fixed(9), ..Calling::default() };
        let (done, other) =
            over(role, (&from, &to), &plain(), (answerer, &offer), (&calling, &report));
        assert!(done.is_ok() && other.is_ok(), "{done:?} {other:?}");
        assert_same(&from, &to, "streams");
        let kept = kept.lock().expect("events");
        // A short run may be over before the last of them has come up.
        assert!(!kept.is_empty() && kept.len() <= 4, "{kept:?}");
        let good = |c: &Carried| c.streams > 0 && c.why.is_empty() && !c.congestion[0].is_empty();
        assert!(kept.iter().all(good), "{kept:?}");
        assert_eq!(kept[0].congestion[0], kept[0].congestion[1]);
    }
}

#[test]
fn a_failed_connection_is_reported_once_and_data_goes_over_control() {
    for role in [Role::SOURCE, Role::DESTINATION] {
        for wrong in ["port", "certificate", "token"] {
            let scratch = Scratch::new("alone");
            let (from, to) = grown(&scratch, 2);
            let (report, kept) = recorded_reports();
            let (answerer, mut offer) = open(4);
            match wrong {
                "port" => {
                    let free = TcpListener::bind((HOST, 0)).expect("a port");
                    offer.port = free.local_addr().expect("it").port().into();
                }
                "certificate" => offer.fingerprint[3] ^= 1,
                _ => offer.token[31] ^= 1,
            }
            let calling = Calling::default();
            let (done, other) =
                over(role, (&from, &to), &plain(), (answerer, &offer), (&calling, &report));
            assert!(done.is_ok() && other.is_ok(), "{wrong}: {done:?} {other:?}");
            assert_same(&from, &to, wrong);
            let kept = kept.lock().expect("events");
            let said = |c: &Carried| c.streams == 0 && !c.why.is_empty();
            assert!(kept.len() == 1 && said(&kept[0]), "{wrong}: {kept:?}");
        }
    }
}

#[test]
fn streams_that_break_do_not_end_the_run() {
    let (mut broken, mut none_left) = (0, 0);
    for seed in 0..32 {
        let scratch = Scratch::new("lost-streams");
        let (from, to) = grown(&scratch, 200 + seed);
        let mut gardener = Gardener::new(seed);
        let role = if seed % 2 == 0 { Role::SOURCE } else { Role::DESTINATION };
        let (answerer, mut offer) = open(3);
        let ways = [End::Shut, End::Reset, End::Stall, End::Garble];
        let plan = (0..3).map(|_| (gardener.below(3 << 20) as i64, gardener.pick(&ways))).collect();
        let (port, ended) = ends(offer.port, plan);
        offer.port = port;
        let calling = Calling { wish: StreamCount::Fixed(3), ..Calling::default() };
        let (report, _) = recorded_reports();
        let (mut reads, mut writes) = links(role, (answerer, &offer), (&calling, &report));
        (reads.timeout, writes.timeout) = (SHORT, SHORT);
        let lost: Arc<Mutex<Vec<usize>>> = Arc::default();
        let keeps = Arc::clone(&lost);
        let hears: Report = Arc::new(move |event| {
            if let Event::Lost(left) = event {
                keeps.lock().expect("events").push(left);
            }
        });
        let (tree, other) = (HostTree::open(&from).expect("a tree"), hears);
        let other = std::thread::spawn(move || source::run(tree, &plain(), reads, &other));
        let tree = HostTree::open_for_change(&to).expect("a tree");
        let done = destination::run(tree, &plain(), writes, ReportTo::Local(notes().0), true);
        let other = other.join().expect("no panic");
        assert!(done.is_ok() && other.is_ok(), "seed {seed}: {done:?} {other:?}");
        assert_eq!(done.expect("counts").failures, 0, "seed {seed}");
        assert_same(&from, &to, &format!("seed {seed}"));
        let lost = lost.lock().expect("events");
        broken += lost.len();
        none_left += usize::from(lost.contains(&0));
        assert!(lost.len() <= ended.load(Ordering::Relaxed) as usize + 3, "seed {seed}: {lost:?}");
    }
    assert!(broken > 32 && none_left > 4, "{broken} broke, and {none_left} times none was left");
}

#[test]
fn streams_that_break_end_the_run_with_control_and_the_next_continues() {
    let mut broken = 0;
    for seed in 0..24 {
        let scratch = Scratch::new("broken-streams");
        let (from, to) = grown(&scratch, 100 + seed);
        let mut gardener = Gardener::new(seed);
        let role = if seed % 2 == 0 { Role::SOURCE } else { Role::DESTINATION };
        for _ in 0..3 {
            let (answerer, mut offer) = open(3);
            let bytes = gardener.below(9 << 20) as i64;
            offer.port = breaks(offer.port, bytes, &Arc::default());
            let calling = Calling { wish: StreamCount::Fixed(3), ..Calling::default() };
            let mut both = links(role, (answerer, &offer), (&calling, &recorded_reports().0));
            let (left, sent) = (gardener.below(2 << 20) as usize, Arc::default());
            let write = std::mem::replace(&mut both.0.write, Box::new(io::sink()));
            both.0.write = Box::new(Breaks { write, left, sent });
            let (done, _) = go((&from, &to), &plain(), both);
            broken += u32::from(done.is_err());
            let old = facts(&from);
            for (path, now) in facts(&to) {
                let whole = old.get(&path).is_none_or(|old| old.is_as_whole_as(&now));
                assert!(whole, "seed {seed}: {} is half", String::from_utf8_lossy(&path));
            }
        }
        let (answerer, offer) = open(3);
        let (done, other) = over(
            role,
            (&from, &to),
            &plain(),
            (answerer, &offer),
            (&Calling::default(), &recorded_reports().0),
        );
        assert!(done.is_ok() && other.is_ok(), "seed {seed}: {done:?} {other:?}");
        assert_same(&from, &to, &format!("seed {seed}"));
    }
    assert!(broken > 12, "only {broken} runs broke");
}

/// A destination that waits for streams, and the control stream to it.
fn destination_at(to: &Path, answerer: Answerer) -> (Link, JoinHandle<Result<Counts, Why>>) {
    let (link, mut far) = pair().expect("sockets");
    far.beside = DataStreams::Answers(answerer);
    let to = to.to_owned();
    let done = std::thread::spawn(move || {
        let tree = HostTree::open_for_change(&to)?;
        destination::run(tree, &plain(), far, ReportTo::Local(notes().0), true)
    });
    (link, done)
}

/// Has one file of ten bytes asked for.
fn asked(link: &mut Link) -> Need {
    let name = Bytes(Vec::new());
    let top = Message::Directory(Directory { name, meta: Some(meta(Kind::DIRECTORY, 0)) });
    let entry = Entry { name: Bytes(b"a".to_vec()), meta: meta(Kind::FILE, 10) };
    let entries = Message::Entries(Entries { entries: Seq(vec![entry]) });
    for message in [top, entries] {
        write_now(&mut link.write, &message).expect("said");
    }
    loop {
        let body = read_frame(&mut link.read).expect("a frame").expect("one more");
        if let Message::Need(need) = frame::message(&body).expect("a message") {
            return need;
        }
    }
}

fn connected(offer: &Offer) -> io::Result<Stream> {
    let socket = Arc::new(TcpStream::connect((HOST, offer.port as u16))?);
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    PeerIdentity::new(offer.fingerprint, offer.token).expect("an offer").open(&socket, number)
}

#[test]
fn what_comes_over_a_stream_must_be_data_of_a_file_that_is_asked_for() {
    let data = |id, offset, bytes: &'static [u8]| {
        Message::Data(Data { id, turn: 0, hole: 0, offset, unpacked: 0, bytes })
    };
    // What it is about, what comes over the stream, and whether the file has begun before.
    type Lie<'a> = (&'a str, &'a dyn Fn(u64) -> Vec<Message<'static>>);
    let whole = |id| {
        let (meta, hash) = (meta(Kind::FILE, 1), [0; 32]);
        Message::Whole(wire::dsync::Whole { id, meta, hash, unpacked: 0, bytes: b"x" })
    };
    let lies: [Lie<'_>; 8] = [
        ("a file unasked", &|id| vec![whole(id)]),
        ("a file unasked", &|id| vec![whole(id + 1)]),
        ("data for an unknown file", &|id| vec![data(id + 1, 0, b"x")]),
        ("outside its file", &|id| vec![data(id, 9, b"xx")]),
        ("outside its file", &|id| vec![data(id, u64::MAX, b"xx")]),
        ("overlapping", &|id| vec![data(id, 4, b"xx"), data(id, 2, b"xxx")]),
        ("unexpected message", &|_| vec![Message::ScanEnd(())]),
        ("invalid message", &|_| vec![]),
    ];
    for (named, lie) in lies {
        let scratch = Scratch::new("stream-lies");
        let (answerer, offer) = open(2);
        let (mut link, done) = destination_at(&scratch.join("to"), answerer);
        let id = asked(&mut link).id;
        let begin = Message::Begin(wire::dsync::Begin { id, meta: meta(Kind::FILE, 10) });
        write_now(&mut link.write, &begin).expect("said");
        let mut stream = connected(&offer).expect("a stream");
        for message in lie(id) {
            // It may have had enough already.
            let _refused = write_now(&mut stream, &message);
        }
        if named == "invalid message" {
            stream.write_all(&[0xff; 64]).and_then(|()| stream.flush()).expect("said");
        }
        let why = done.join().expect("no panic").expect_err("refused");
        assert!(why.to_string().contains(named), "{why}, not {named}");
        let left = fs::read_dir(scratch.join("to")).expect("it").count();
        assert_eq!(left, 0, "{named}: nothing half is left");
    }
}

#[test]
fn a_piece_does_not_wait_for_a_file_that_ends_without_a_begin() {
    let gone = |id| {
        let (outcome, why) = (wire::dsync::Outcome::FAILED, Bytes(Vec::new()));
        Message::End(wire::dsync::End { id, outcome, hash: [0; 32], pieces: 0, meta: None, why })
    };
    let whole = |id| {
        let (meta, hash) = (meta(Kind::FILE, 1), [0; 32]);
        Message::Whole(wire::dsync::Whole { id, meta, hash, unpacked: 0, bytes: b"x" })
    };
    for ends in [&gone as &dyn Fn(u64) -> Message<'static>, &whole] {
        let scratch = Scratch::new("in-vain");
        let (answerer, offer) = open(1);
        let (mut link, done) = destination_at(&scratch.join("to"), answerer);
        let id = asked(&mut link).id;
        let mut stream = connected(&offer).expect("a stream");
        let bytes = b"x";
        let data = Data { id, turn: 0, hole: 0, offset: 0, unpacked: 0, bytes };
        write_now(&mut stream, &Message::Data(data)).expect("said");
        write_now(&mut link.write, &ends(id)).expect("said");
        let why = done.join().expect("no panic").expect_err("refused");
        assert!(why.to_string().contains("data for an unknown file"), "{why}");
    }
}

#[test]
fn a_piece_may_come_before_its_file_begins() {
    let scratch = Scratch::new("early");
    let (answerer, offer) = open(1);
    let (mut link, done) = destination_at(&scratch.join("to"), answerer);
    let id = asked(&mut link).id;
    let mut stream = connected(&offer).expect("a stream");
    let data =
        |turn, offset, bytes| Message::Data(Data { id, turn, hole: 0, offset, unpacked: 0, bytes });
    for message in [data(0, 0, b"old"), data(1, 5, b"56789"), data(1, 0, b"01234")] {
        write_now(&mut stream, &message).expect("said");
    }
    let mut digest = [0u8; 32];
    let mut carry = 0;
    let hash = |offset: u64, bytes: &[u8]| {
        *blake3::hash(&[offset.to_be_bytes().as_slice(), bytes].concat()).as_bytes()
    };
    for ((sum, a), b) in digest.iter_mut().zip(hash(0, b"01234")).zip(hash(5, b"56789")) {
        carry += u32::from(a) + u32::from(b);
        (*sum, carry) = (carry as u8, carry >> 8);
    }
    let begin = || Message::Begin(wire::dsync::Begin { id, meta: meta(Kind::FILE, 10) });
    let end = Message::End(wire::dsync::End {
        id,
        outcome: wire::dsync::Outcome::WHOLE,
        hash: digest,
        pieces: 3,
        meta: None,
        why: Bytes(Vec::new()),
    });
    let ended = Message::DirectoryEnd(wire::dsync::DirectoryEnd { failed: None });
    for message in [begin(), begin(), end, ended, Message::ScanEnd(())] {
        write_now(&mut link.write, &message).expect("said");
    }
    loop {
        let body = read_frame(&mut link.read).expect("a frame").expect("one more");
        if let Message::Done(counts) = frame::message(&body).expect("a message") {
            assert_eq!((counts.failures, counts.bytes_received), (0, 13));
            break;
        }
    }
    (link.close)();
    assert!(done.join().expect("no panic").is_ok());
    assert_eq!(fs::read(scratch.join("to/a")).expect("it"), b"0123456789");
}

#[test]
fn strangers_are_closed_and_more_streams_than_agreed_end_the_run() {
    let scratch = Scratch::new("strangers");
    let (answerer, offer) = open(2);
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, offer.port as u16));
    let (mut link, done) = destination_at(&scratch.join("to"), answerer);
    asked(&mut link);
    // One sends nothing, one invalid data, one another token; none of them is accepted.
    let silent = TcpStream::connect(at).expect("a connection");
    let mut odd = TcpStream::connect(at).expect("a connection");
    odd.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("said");
    let mut other = offer.clone();
    other.token[0] ^= 1;
    assert!(connected(&other).is_err(), "another token");
    let _kept = [connected(&offer).expect("a stream"), connected(&offer).expect("a stream")];
    for mut stranger in [silent, odd] {
        // At most a TLS alert, and then its end, without waiting for more than the timeout.
        let mut said = Vec::new();
        let _reset = stranger.read_to_end(&mut said);
        assert!(said.len() < 100, "{said:?}");
    }
    assert!(!done.is_finished(), "strangers end no run");
    let _third = connected(&offer);
    let why = done.join().expect("no panic").expect_err("refused");
    assert!(matches!(why.error(), SyncError::Broken("more streams than were agreed")), "{why}");
}

#[test]
fn wishes_that_cannot_be_meant_are_refused() {
    for (most, low, high) in [(0, 0, 0), (1, 2, 1), (1, 70_000, 70_001), (1, 1, 1 << 20)] {
        let refused = Answerer::open(&StreamRequest { most, low, high }, None).err();
        assert!(matches!(refused, Some(SyncError::Broken(_))), "{most} {low} {high}");
    }
    let taken = TcpListener::bind((HOST, 0)).expect("a port");
    let port = u32::from(taken.local_addr().expect("it").port());
    let here = Some(Ipv4Addr::LOCALHOST.into());
    let none = Answerer::open(&StreamRequest { most: 1, low: port, high: port }, here).err();
    assert!(matches!(none, Some(SyncError::Machine(_))), "a port that is taken");
    let (_, offer) =
        Answerer::open(&StreamRequest { most: 1_000, low: 0, high: 0 }, None).expect("one");
    assert!(offer.most <= 64 && offer.address.is_none());
}

/// Sends no faster than a slow link.
fn slow() -> Options {
    Options { bandwidth: 4_000_000, ..plain() }
}

#[test]
fn what_shrinks_goes_packed_where_the_link_is_the_limit() {
    for streams in [0, 2] {
        let scratch = Scratch::new("packed");
        let (from, to) = (scratch.join("from"), scratch.join("to"));
        fs::create_dir(&from).expect("a folder");
        let text: Vec<u8> =
            (0..600_000u32).flat_map(|n| format!("{n:08}\n").into_bytes()).collect();
        fs::write(from.join("text"), &text).expect("a file");
        let mut noise = vec![0; 2 << 20];
        Gardener::new(3).random.fill(&mut noise);
        fs::write(from.join("noise"), &noise).expect("a file");
        for pack in [true, false] {
            let (answerer, offer) = open(2);
            let calling = Calling { wish: StreamCount::Fixed(2), ..Calling::default() };
            let options = Options { pack, ..slow() };
            let to = to.join(pack.to_string());
            fs::create_dir_all(&to).expect("a folder");
            let report = recorded_reports().0;
            let both = match streams {
                0 => pair().expect("sockets"),
                _ => links(Role::SOURCE, (answerer, &offer), (&calling, &report)),
            };
            let (done, other) = go((&from, &to), &options, both);
            assert!(other.is_ok(), "{other:?}");
            let counts = done.expect("a run");
            assert_same(&from, &to, "packed");
            let all = (text.len() + noise.len()) as u64;
            assert_eq!(counts.bytes_done, all);
            match pack {
                true => assert!(counts.bytes_received < all * 3 / 4, "{}", counts.bytes_received),
                false => assert_eq!(counts.bytes_received, all),
            }
        }
    }
}
