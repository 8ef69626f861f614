//! Which way pieces go before it is known what carries them, and after; that each goes once.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use base::limits::DSYNC_RUN_BYTES;
use wire::dsync::Data;

use super::*;
use crate::link::read_frame;
use crate::link::tests::Recorder;
use crate::stop::lock;
use crate::streams::tls::{PeerIdentity, Shown};

/// Bytes of a piece, so that a handful of them goes early.
const PIECE: usize = 200 << 10;
/// Pieces that go early.
const EARLY: usize = DSYNC_EARLY as usize / PIECE;
/// Pieces of a test: more than wait for a stream.
const PIECES: u64 = 2 * DSYNC_BULK_QUEUE as u64;

/// Nothing waits, and nothing may go early.
fn empty() -> State {
    State::new(0, RunMemory::new(DSYNC_RUN_BYTES).reserve())
}

#[test]
fn so_much_goes_early_and_no_more() {
    let mut state = State { early: 10, ..empty() };
    assert_eq!(state.way(6), Some(Route::Control));
    assert_eq!(state.way(5), None, "more than is left");
    assert_eq!(state.way(4), Some(Route::Control));
    assert_eq!(state.way(1), None);
    state.carrier = Carrier::Control;
    assert_eq!(state.way(1 << 40), Some(Route::Control), "there is no other way");
}

#[test]
fn what_is_early_does_not_count_once_there_are_streams() {
    let mut state = State { early: 10, carrier: Carrier::Streams, ..empty() };
    while state.frames.len() < DSYNC_BULK_QUEUE {
        assert_eq!(state.way(5), Some(Route::Stream));
        state.frames.push_back(Vec::new());
    }
    assert_eq!(state.way(5), None, "no way around those that wait");
    assert_eq!(state.early, 10);
}

#[test]
fn a_run_continues_while_no_stream_comes_up() {
    let (awaited, long) = (DSYNC_AWAITED.as_nanos() as u64, 1 << 60);
    let mut state = State { early: 1, awaited_ns: Some(5), ..empty() };
    state.allow_more(5 + awaited - 1, 10);
    assert_eq!(state.early, 1, "they may come up any moment");
    state.allow_more(5 + awaited, 10);
    assert_eq!((state.way(10), state.way(1)), (Some(Route::Control), None));
    state.carrier = Carrier::Streams;
    state.allow_more(long, 10);
    assert_eq!(state.early, 0, "there are some");
    let mut state = State { early: 1, ..empty() };
    state.allow_more(long, 10);
    assert_eq!(state.early, 1, "the other side has not answered yet");
}

/// Pieces on their way, and what was given to the control stream.
struct Setup {
    bulk: Arc<Bulk>,
    out: Out,
    kept: Recorder,
    stop: Arc<Stop>,
}

impl Setup {
    fn new(rate: u64) -> Self {
        let (kept, stop) = (Recorder::default(), Arc::default());
        let (out, _) =
            Out::start(Box::new(kept.clone()), &RateLimiter::new(0), &stop).expect("a thread");
        let report: Report = Arc::new(|_| {});
        let memory = RunMemory::new(DSYNC_RUN_BYTES);
        let bulk = Bulk::new(&out, &RateLimiter::new(rate), false, &report, (&stop, &memory));
        Self { bulk, out, kept, stop }
    }

    /// Sends all pieces, each of another number.
    fn send(&self) -> JoinHandle<Result<(), Why>> {
        let bulk = Arc::clone(&self.bulk);
        std::thread::spawn(move || {
            (0..PIECES).try_for_each(|id| {
                let (bytes, turn) = (&vec![id as u8; PIECE][..], 0);
                bulk.send(bytes, |unpacked, bytes| {
                    Message::Data(Data { id, turn, hole: 0, offset: 0, unpacked, bytes })
                })
            })
        })
    }

    /// Waits until no further piece can go early.
    fn spent(&self) {
        while self.bulk.state.look(|state| state.early >= PIECE as u64) {
            std::thread::yield_now();
        }
    }

    /// Has a stream come up: its other end, and the thread that serves it.
    fn stream(&self) -> (Stream, JoinHandle<()>) {
        let shown = Shown::new().expect("a certificate");
        let known = PeerIdentity::new(shown.fingerprint, shown.token).expect("what it shows");
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("it")).expect("a connection");
        let (far, _) = listener.accept().expect("it");
        let bulk = Arc::clone(&self.bulk);
        let served = std::thread::spawn(move || {
            let stream = known.open(&Arc::new(near), 0).expect("a stream");
            bulk.serve(stream, &Streams::default()).expect("served");
        });
        (shown.take(&Arc::new(far)).expect("a stream"), served)
    }

    /// The pieces that the control stream was given, once there are `wanted` of them.
    fn control(&self, wanted: usize) -> Vec<u64> {
        loop {
            let ids = self.written();
            if ids.len() >= wanted {
                return ids;
            }
            std::thread::yield_now();
        }
    }

    /// Those that it was given until now.
    fn written(&self) -> Vec<u64> {
        self.out.send_last(&Message::ScanEnd(())).expect("sent");
        let bytes = lock(&self.kept.0).clone();
        let mut read = Cursor::new(bytes);
        let mut ids = Vec::new();
        while let Some(body) = read_frame(&mut read).expect("a frame") {
            if let Message::Data(data) = frame::message(&body).expect("a message") {
                ids.push(data.id);
            }
        }
        ids
    }
}

/// The number of a piece that comes over a stream, and the bytes of its frame.
fn piece(stream: &mut Stream) -> (u64, u64) {
    let body = read_frame(stream).expect("a frame").expect("one more");
    let Message::Data(data) = frame::message(&body).expect("a message") else { panic!("no data") };
    (data.id, (body.len() + frame::HEAD) as u64)
}

/// Every piece has gone one way, once.
fn assert_each_once(ways: &[&[u64]]) {
    let mut all: BTreeMap<u64, u32> = BTreeMap::new();
    ways.iter().copied().flatten().for_each(|id| *all.entry(*id).or_default() += 1);
    assert!(all.values().all(|times| *times == 1), "{all:?}");
    assert!(all.len() as u64 == PIECES, "{all:?}");
}

#[test]
fn a_stream_takes_over_what_did_not_go_early() {
    let setup = Setup::new(0);
    let sends = setup.send();
    setup.spent();
    let early = setup.control(EARLY);
    assert_eq!(early, (0..EARLY as u64).collect::<Vec<_>>());
    let (mut stream, served) = setup.stream();
    let rest: Vec<u64> = (early.len() as u64..PIECES).map(|_| piece(&mut stream).0).collect();
    sends.join().expect("no panic").expect("all sent");
    setup.bulk.end();
    served.join().expect("its end");
    assert_each_once(&[&early, &rest]);
    assert_eq!(setup.written(), early, "nothing went there after");
}

#[test]
fn a_stream_that_breaks_has_its_rest_sent_over_control_and_nothing_that_was_early() {
    for takes in [0, 1, 7] {
        let setup = Setup::new(0);
        let rest = setup.bulk.start_rest().expect("a thread");
        let sends = setup.send();
        setup.spent();
        let (mut stream, served) = setup.stream();
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for _ in 0..takes {
            let (id, length) = piece(&mut stream);
            taken.push(id);
            bytes += length;
        }
        // The other side has seen its end, and reports it, in whatever state it is here.
        let up = |state: &mut State| state.lines.get(&0).and_then(|l| (l.held() > 0).then_some(()));
        setup.bulk.state.wait(up).expect("no end of the run");
        setup.bulk.taken(&Taken { stream: 0, bytes, ended: true }).expect("settled");
        drop(stream);
        served.join().expect("its end");
        sends.join().expect("no panic").expect("all sent");
        let empty = |state: &mut State| state.frames.is_empty().then_some(());
        setup.bulk.state.wait(empty).expect("no end of the run");
        setup.bulk.end();
        rest.join().expect("its end");
        assert_each_once(&[&setup.written(), &taken]);
    }
}

#[test]
fn where_there_are_no_streams_all_goes_over_control_in_its_order() {
    let setup = Setup::new(0);
    let sends = setup.send();
    setup.spent();
    setup.bulk.alone();
    sends.join().expect("no panic").expect("all sent");
    assert_eq!(setup.written(), (0..PIECES).collect::<Vec<_>>());
}

#[test]
fn a_limited_rate_has_less_go_early() {
    let setup = Setup::new(PIECE as u64 * 3 / 2);
    let sends = setup.send();
    setup.spent();
    assert_eq!(setup.control(1), [0]);
    // A waiting thread is woken by the end of the run.
    setup.stop.fail(SyncError::Gone);
    assert!(sends.join().expect("no panic").is_err(), "what waits is not sent");
}

#[test]
fn what_is_not_acknowledged_waits_for_memory() {
    let memory = RunMemory::new(150);
    let mut state = State::new(0, memory.reserve());
    state.frames.extend([vec![1; DSYNC_SEND_BYTES], vec![2; 100], vec![3; DSYNC_SEND_BYTES]]);
    assert_eq!(state.hold_next(false), None, "there is no memory for it");
    let first = state.hold_next(true).expect("an idle stream is given some all the same");
    assert_eq!((first.len(), state.beyond), (DSYNC_SEND_BYTES, DSYNC_SEND_BYTES as u64));
    assert_eq!(state.hold_next(false).map(|bytes| bytes.len()), Some(100));
    assert_eq!(state.hold_next(false), None, "there is no memory for it");
    assert_eq!(state.frames.len(), 1, "what has to wait is still there");
    state.release(DSYNC_SEND_BYTES as u64 + 100);
    assert_eq!((state.beyond, state.held.used()), (0, 0));
}
