//! Frames through pipes, strangers, and the rate.

use std::io::{Cursor, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use base::clock::monotonic_ns;
use wire::dsync::{Hello, MAGIC, Message, frame};

use super::*;

/// Keeps what is written.
#[derive(Clone, Default)]
pub(crate) struct Recorder(pub(crate) Arc<Mutex<Vec<u8>>>);

impl Write for Recorder {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn messages_arrive_in_order() {
    let (kept, stop) = (Recorder::default(), Arc::default());
    let (out, thread) =
        Out::start(Box::new(kept.clone()), &RateLimiter::new(0), &stop).expect("a thread");
    for _ in 0..200 {
        out.send(&Message::ScanEnd(())).expect("sent");
        out.send(&Message::Alone(())).expect("sent");
    }
    out.send_last(&Message::ScanEnd(())).expect("sent");
    drop(out);
    thread.join().expect("its end");
    let bytes = lock(&kept.0).clone();
    let mut read = Cursor::new(bytes);
    for _ in 0..200 {
        for wanted in [Message::ScanEnd(()), Message::Alone(())] {
            let body = read_frame(&mut read).expect("a frame").expect("one more");
            assert_eq!(frame::message(&body), Ok(wanted));
        }
    }
    let last = read_frame(&mut read).expect("a frame").expect("the last one");
    assert_eq!(frame::message(&last), Ok(Message::ScanEnd(())));
    assert!(read_frame(&mut read).expect("the end").is_none());
}

#[test]
fn a_frame_that_breaks_off_is_an_end() {
    let mut bytes = Vec::new();
    frame::put(&Message::ScanEnd(()), &mut bytes);
    for length in 1..bytes.len() {
        let read = read_frame(&mut Cursor::new(&bytes[..length]));
        assert!(matches!(read, Err(SyncError::Gone)), "{length}");
    }
    let long = read_frame(&mut Cursor::new([0xff; 8]));
    assert!(matches!(long, Err(SyncError::Message(_))));
}

#[test]
fn strangers_and_other_versions_are_named() {
    let said = |message: &Message<'_>| {
        let mut bytes = Vec::new();
        frame::put(message, &mut bytes);
        greet(&mut Cursor::new(bytes))
    };
    assert!(said(&Message::Hello(HELLO)).is_ok());
    let newer = Message::Hello(Hello { magic: MAGIC, version: 9 });
    assert!(matches!(said(&newer), Err(SyncError::Version { theirs: 9, .. })));
    let hello = greet(&mut Cursor::new(b"Welcome to this machine!\n"));
    assert!(matches!(hello, Err(SyncError::Stranger(text)) if text.starts_with("Welcome")));
    assert!(matches!(greet(&mut Cursor::new(b"")), Err(SyncError::Silent)));
}

/// Takes one write, and no other.
struct Once(bool);

impl Write for Once {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match std::mem::replace(&mut self.0, true) {
            false => Ok(bytes.len()),
            true => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_is_not_accepted_is_reported_after_the_answer() {
    let stop: Arc<Stop> = Arc::default();
    let (write, answered) = Unanswered::new(Box::new(Once(true)));
    let (out, thread) = Out::start(Box::new(write), &RateLimiter::new(0), &stop).expect("a thread");
    out.send(&Message::ScanEnd(())).expect("sent");
    // The answer has the reason for the write error, and takes precedence.
    stop.fail(SyncError::Silent);
    drop(answered);
    drop(out);
    thread.join().expect("its end");
    assert!(matches!(stop.reason().error(), SyncError::Silent));
    // After it the link's own end counts.
    let stop: Arc<Stop> = Arc::default();
    let (write, answered) = Unanswered::new(Box::new(Once(true)));
    let (out, thread) = Out::start(Box::new(write), &RateLimiter::new(0), &stop).expect("a thread");
    drop(answered);
    out.send(&Message::ScanEnd(())).expect("sent");
    thread.join().expect("its end");
    assert!(matches!(stop.reason().error(), SyncError::Gone));
}

/// The two ends of a connection with a peer that has closed it: after it has read all that was sent
/// to it, or not, which resets what it has sent itself.
fn left(unread: bool) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().expect("a connection");
    if unread {
        (&ours).write_all(b"nobody reads this").expect("sent");
    }
    drop(theirs);
    ours
}

/// Sends over a connection, and has `stop` know how that ends.
fn write_to(link: &UnixStream, stop: &Arc<Stop>) {
    let link = link.try_clone().expect("a descriptor");
    let (out, thread) = Out::start(Box::new(link), &RateLimiter::new(0), stop).expect("a thread");
    // The thread may have ended already.
    drop(out.send(&Message::ScanEnd(())));
    drop(out);
    thread.join().expect("its end");
}

/// Takes what comes over a connection, and has `stop` know how that ends.
fn read_from(mut link: &UnixStream, stop: &Arc<Stop>) {
    match read_frame(&mut link) {
        Ok(None) => stop.fail(SyncError::Gone),
        Ok(Some(frame)) => panic!("{frame:?}"),
        Err(error) => stop.fail(error),
    };
}

#[test]
fn the_other_sides_end_is_one_sentence_whichever_call_meets_it() {
    for unread in [false, true] {
        for orders in [[write_to, read_from], [read_from, write_to]] {
            let (link, stop) = (left(unread), Arc::default());
            orders.into_iter().for_each(|call| call(&link, &stop));
            let why = stop.reason();
            assert_eq!(why.to_string(), SyncError::Gone.to_string(), "{unread}: {why:?}");
        }
        let mut link = left(unread);
        let said = write_now(&mut link, &Message::Hello(HELLO)).expect_err("nobody reads");
        assert_eq!(said.to_string(), SyncError::Gone.to_string());
    }
    // From a peer that was reset before it sent anything.
    let greeted = greet(&mut left(true)).expect_err("nothing was said");
    assert!(matches!(greeted, SyncError::Silent), "{greeted:?}");
}

#[test]
fn what_is_sent_after_the_last_message_may_have_no_receiver() {
    let stop: Arc<Stop> = Arc::default();
    let (out, thread) =
        Out::start(Box::new(Once(false)), &RateLimiter::new(0), &stop).expect("a thread");
    let behind = out.clone();
    out.send_last(&Message::ScanEnd(())).expect("the last message has left");
    // The other side has read it, and is gone.
    stop.fail(SyncError::Gone);
    drop(behind.send(&Message::Alone(())));
    drop((out, behind));
    thread.join().expect("its end");
}

#[test]
fn a_rate_is_kept() {
    let (kept, stop) = (Recorder::default(), Arc::default());
    let (out, thread) =
        Out::start(Box::new(kept), &RateLimiter::new(1 << 20), &stop).expect("a thread");
    let began = monotonic_ns();
    for _ in 0..8 {
        out.send_frame(vec![0; 64 << 10]).expect("sent");
    }
    out.send_last(&Message::ScanEnd(())).expect("sent");
    drop(out);
    thread.join().expect("its end");
    // Half a MiB at one MiB a second; the first piece and the last wait for nothing.
    assert!(monotonic_ns() - began > 250_000_000);
}

#[test]
fn waiters_are_woken_by_the_end() {
    let stop: Arc<Stop> = Arc::default();
    let watched = Watched::new(0, &stop);
    let waits = Arc::clone(&watched);
    let thread = std::thread::spawn(move || waits.wait(|n| (*n == 2).then_some(())));
    watched.change(|n| *n = 1);
    stop.fail(SyncError::Gone);
    assert!(thread.join().expect("its end").is_err());
    let queue: Queue<u32> = Queue::new(&stop);
    assert_eq!(queue.next(), None);
}
