//! Frames over a pair of byte streams.
//!
//! What is sent goes through one thread with a bounded queue, so that small messages leave many at
//! a time and a sender waits for no more than room in that queue.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base::clock::{NS_PER_S, monotonic_ns};
use base::limits::{
    DSYNC_GATHER, DSYNC_GATHER_LOOK, DSYNC_PAUSE_NS, DSYNC_SEND_BYTES, DSYNC_SEND_QUEUE,
};
use wire::dsync::frame::{self, HEAD};
use wire::dsync::{Bytes, Hello, MAGIC, Message, VERSION};

use crate::error::{SyncError, Why};
use crate::lends::LocalFdTable;
use crate::stop::{Stop, Watched, lock};
use crate::streams::DataStreams;

#[cfg(test)]
pub(crate) mod tests;

/// The way to the other side.
pub struct Link {
    /// What comes from it.
    pub read: Box<dyn Read + Send>,
    /// What goes to it.
    pub write: Box<dyn Write + Send>,
    /// Lets a blocked `read` or `write` end, as well as that can be done.
    pub close: Box<dyn Fn() + Send + Sync>,
    /// Whether it surely does: then threads are waited for.
    pub closes: bool,
    /// Streams for data in addition to it.
    pub beside: DataStreams,
    /// How long one of them may stand still while others transfer data.
    pub timeout: Duration,
    /// What the sides lend each other, if both are in this process.
    pub lends: Option<Arc<LocalFdTable>>,
}

/// Something that is done every so often, until this is dropped.
pub struct Ticker {
    _end: Sender<()>,
}

impl Ticker {
    /// Has it done.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(
        every: Duration,
        mut work: impl FnMut() + Send + 'static,
    ) -> Result<(Self, JoinHandle<()>), SyncError> {
        let (end, ended) = channel();
        let thread = spawn("tick", move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                work();
            }
        })?;
        Ok((Self { _end: end }, thread))
    }
}

/// Work for several threads.
pub struct Queue<J> {
    state: Arc<Watched<(VecDeque<J>, bool)>>,
}

impl<J> Clone for Queue<J> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<J: Send + 'static> Queue<J> {
    /// An empty one. The callers of [`Queue::push`] keep it bounded.
    pub fn new(stop: &Arc<Stop>) -> Self {
        Self { state: Watched::new((VecDeque::new(), false), stop) }
    }

    /// Adds one.
    pub fn push(&self, job: J) {
        self.state.look(|(jobs, _)| jobs.push_back(job));
        self.state.wake_worker();
    }

    /// There are no more.
    pub fn end(&self) {
        self.state.change(|(_, ended)| *ended = true);
    }

    /// The next one; `None` when there are no more, or the run ends.
    pub fn next(&self) -> Option<J> {
        let next = |(jobs, ended): &mut (VecDeque<J>, bool)| match jobs.pop_front() {
            Some(job) => Some(Some(job)),
            None => ended.then_some(None),
        };
        self.state.wait_for_work(next).ok().flatten()
    }
}

/// A writer to a side that has not replied yet whether it does its part. A write error is returned
/// only after the reply, because the reason for it is in the reply.
pub struct Unanswered {
    write: Box<dyn Write + Send>,
    answered: Receiver<()>,
}

impl Unanswered {
    /// What is sent goes to `write`; the other side has answered when the second is dropped.
    pub fn new(write: Box<dyn Write + Send>) -> (Self, Sender<()>) {
        let (answer, answered) = channel();
        (Self { write, answered }, answer)
    }

    fn wait_on_error<R>(&self, done: std::io::Result<R>) -> std::io::Result<R> {
        if done.as_ref().is_err_and(|e| e.kind() != std::io::ErrorKind::Interrupted) {
            // Nothing is ever sent on it: it ends when the sender is dropped.
            let _answered = self.answered.recv();
        }
        done
    }
}

impl Write for Unanswered {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let done = self.write.write(bytes);
        self.wait_on_error(done)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        let done = self.write.flush();
        self.wait_on_error(done)
    }
}

enum Outgoing {
    Frame(Vec<u8>),
    /// The last one that matters, and where to report that it was given to the link.
    Last(Vec<u8>, SyncSender<()>),
}

/// Sends messages, from any thread.
#[derive(Clone)]
pub struct Out {
    queue: SyncSender<Outgoing>,
    /// Frames that wait in it.
    waits: Arc<AtomicUsize>,
    stop: Arc<Stop>,
}

impl Out {
    /// Sends to `write`, as fast as `pace` lets it. The thread ends when the last of the senders is
    /// gone.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(
        write: Box<dyn Write + Send>,
        pace: &Arc<RateLimiter>,
        stop: &Arc<Stop>,
    ) -> Result<(Self, JoinHandle<()>), SyncError> {
        let (queue, frames) = sync_channel(DSYNC_SEND_QUEUE);
        let (ends, pace) = (Arc::clone(stop), Arc::clone(pace));
        let waits: Arc<AtomicUsize> = Arc::default();
        let left = Arc::clone(&waits);
        let thread = spawn("send", move || {
            if let Err(e) = send_all(write, &frames, &left, &pace) {
                ends.fail(SyncError::of_link(e));
            }
        })?;
        Ok((Self { queue, waits, stop: Arc::clone(stop) }, thread))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Why the run ends.
    pub fn send(&self, message: &Message<'_>) -> Result<(), Why> {
        let mut bytes = Vec::new();
        frame::put(message, &mut bytes);
        self.send_frame(bytes)
    }

    /// Sends what was written by [`frame::put`].
    ///
    /// # Errors
    /// As [`Out::send`].
    pub fn send_frame(&self, bytes: Vec<u8>) -> Result<(), Why> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.queue.send(Outgoing::Frame(bytes)).map_err(|_| self.stop.reason())
    }

    /// How many messages wait for the link.
    pub fn waiting(&self) -> usize {
        self.waits.load(Ordering::Relaxed)
    }

    /// Sends the message after which the other side may exit, and waits until it was given to the
    /// link. What other threads send behind it may fail, which is no matter.
    ///
    /// # Errors
    /// As [`Out::send`].
    pub fn send_last(&self, message: &Message<'_>) -> Result<(), Why> {
        let mut bytes = Vec::new();
        frame::put(message, &mut bytes);
        let (done, wait) = sync_channel(1);
        self.queue.send(Outgoing::Last(bytes, done)).map_err(|_| self.stop.reason())?;
        wait.recv().map_err(|_| self.stop.reason())
    }
}

/// Starts a thread of a run.
///
/// # Errors
/// [`SyncError::Machine`].
pub fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, SyncError> {
    let named = thread::Builder::new().name(format!("dsync-{name}"));
    named.spawn(work).map_err(SyncError::Machine)
}

/// Waits a moment after the last write, so that messages about many small files leave together:
/// each write costs a turn of ssh's on both machines, and a packet.
fn gather(waits: &AtomicUsize, sent_ns: u64) {
    let gather = DSYNC_GATHER.as_nanos() as u64;
    while monotonic_ns().saturating_sub(sent_ns) < gather
        && waits.load(Ordering::Relaxed) < DSYNC_SEND_QUEUE / 2
    {
        thread::sleep(DSYNC_GATHER_LOOK);
    }
}

fn send_all(
    mut write: Box<dyn Write + Send>,
    frames: &Receiver<Outgoing>,
    waits: &AtomicUsize,
    pace: &RateLimiter,
) -> std::io::Result<()> {
    let (mut bytes, mut sent_ns) = (Vec::new(), 0);
    while let Ok(first) = frames.recv() {
        gather(waits, sent_ns);
        let (mut next, mut flushed) = (Some(first), None);
        while let Some(outgoing) = next.take() {
            match outgoing {
                Outgoing::Frame(frame) => {
                    waits.fetch_sub(1, Ordering::Relaxed);
                    bytes.extend_from_slice(&frame);
                }
                Outgoing::Last(frame, done) => {
                    bytes.extend_from_slice(&frame);
                    flushed = Some(done);
                    break;
                }
            }
            next = if bytes.len() < DSYNC_SEND_BYTES { frames.try_recv().ok() } else { None };
        }
        pace.write(&mut *write, &bytes)?;
        bytes.clear();
        sent_ns = monotonic_ns();
        if let Some(done) = flushed {
            // The thread that waited for it may be gone.
            let _gone = done.send(());
        }
    }
    Ok(())
}

/// Keeps bytes below a rate, over all streams of a run.
pub struct RateLimiter {
    /// Bytes per second; 0 is no limit.
    rate: u64,
    /// When what has passed is used up.
    free_at: Mutex<u64>,
    paused_ns: AtomicU64,
}

impl RateLimiter {
    /// A limit of `rate` bytes per second; none for 0.
    pub fn new(rate: u64) -> Arc<Self> {
        let (free_at, paused_ns) = (Mutex::new(monotonic_ns()), AtomicU64::new(0));
        Arc::new(Self { rate, free_at, paused_ns })
    }

    /// Bytes per second, if there is a limit.
    pub fn rate(&self) -> Option<u64> {
        (self.rate > 0).then_some(self.rate)
    }

    /// How long bytes have waited, over all streams, in nanoseconds.
    pub fn paused_ns(&self) -> u64 {
        self.paused_ns.load(Ordering::Relaxed)
    }

    /// Writes all bytes, and has them leave.
    ///
    /// # Errors
    /// A write error.
    pub fn write(&self, write: &mut (impl Write + ?Sized), bytes: &[u8]) -> std::io::Result<()> {
        for piece in bytes.chunks(self.piece()) {
            self.pass(piece.len() as u64);
            write.write_all(piece)?;
        }
        write.flush()
    }

    /// Bytes that may go at once.
    fn piece(&self) -> usize {
        match self.rate {
            0 => usize::MAX,
            rate => {
                let piece = u128::from(rate) * u128::from(DSYNC_PAUSE_NS) / u128::from(NS_PER_S);
                usize::try_from(piece).unwrap_or(usize::MAX).max(1)
            }
        }
    }

    /// Waits until this many bytes may go. What was not used in a pause is not made up for.
    fn pass(&self, bytes: u64) {
        if self.rate == 0 {
            return;
        }
        let takes = u128::from(bytes) * u128::from(NS_PER_S) / u128::from(self.rate);
        let takes = u64::try_from(takes).unwrap_or(u64::MAX);
        let now = monotonic_ns();
        let wait = {
            // The next caller waits behind this one, without the lock.
            let mut free_at = lock(&self.free_at);
            let wait = free_at.saturating_sub(now);
            *free_at = (*free_at).max(now).saturating_add(takes);
            wait
        };
        if wait > 0 {
            self.paused_ns.fetch_add(wait, Ordering::Relaxed);
            thread::sleep(Duration::from_nanos(wait));
        }
    }
}

/// The next message without its head; `None` at the end of the stream between two frames.
///
/// # Errors
/// The link fails or ends in a frame, or the frame is longer than any.
pub fn read_frame(read: &mut impl Read) -> Result<Option<Vec<u8>>, SyncError> {
    let mut head = [0; HEAD];
    let mut got = 0;
    while got < HEAD {
        match read.read(&mut head[got..]) {
            Ok(0) if got == 0 => return Ok(None),
            Ok(0) => return Err(SyncError::Gone),
            Ok(n) => got += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(SyncError::of_link(e)),
        }
    }
    let mut body = vec![0; frame::length(head)?];
    read.read_exact(&mut body).map_err(SyncError::of_link)?;
    Ok(Some(body))
}

/// Sends one message before there is a thread for it.
///
/// # Errors
/// The link fails.
pub fn write_now(write: &mut impl Write, message: &Message<'_>) -> Result<(), SyncError> {
    let mut bytes = Vec::new();
    frame::put(message, &mut bytes);
    write.write_all(&bytes).and_then(|()| write.flush()).map_err(SyncError::of_link)
}

/// The first message of this side.
pub const HELLO: Hello = Hello { magic: MAGIC, version: VERSION };

/// Takes the other side's first message.
///
/// # Errors
/// There is none, it is none, or of another version.
pub fn greet(read: &mut impl Read) -> Result<(), SyncError> {
    let mut ours = Vec::new();
    frame::put(&Message::Hello(HELLO), &mut ours);
    let mut theirs = Vec::new();
    let mut limited = read.take(ours.len() as u64);
    match limited.read_to_end(&mut theirs).map_err(SyncError::of_link) {
        Ok(_) | Err(SyncError::Gone) if theirs.is_empty() => return Err(SyncError::Silent),
        Ok(_) => {}
        Err(error) => return Err(error),
    }
    match theirs.get(HEAD..).map(frame::message) {
        Some(Ok(Message::Hello(Hello { magic: MAGIC, version }))) if version == VERSION => Ok(()),
        Some(Ok(Message::Hello(Hello { magic: MAGIC, version }))) => {
            Err(SyncError::Version { theirs: version, ours: VERSION })
        }
        _ => Err(SyncError::Stranger(String::from_utf8_lossy(&theirs).into_owned())),
    }
}

/// A sentence that fits into a message.
pub fn sentence<const MAX: usize>(text: &str) -> Bytes<MAX> {
    let mut end = text.len().min(MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Bytes(text.as_bytes()[..end].to_vec())
}
