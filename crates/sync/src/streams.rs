//! Streams for data in addition to the one for control: TLS 1.3 over TCP, connected by the side
//! that started the run to a port that the answering side has opened for it. What that side sends
//! through the control stream, which ssh protects, is what both trust: the fingerprint of a
//! certificate that lives as long as the run, and a token that each stream begins with.
//!
//! - [`tls`]: a stream, and how each side knows the other.
//! - [`listen`], [`connect`]: the two ends coming together.
//! - [`grow`]: how many streams there should be.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

use socket2::SockRef;
use wire::dsync::Load;

use crate::error::SyncError;
use crate::load::sys::tcp;
use crate::stop::{Stop, lock};

pub mod connect;
pub mod grow;
pub mod listen;
pub mod tls;

use tls::Stream;

/// Where the streams of a run come from.
#[derive(Default)]
pub enum DataStreams {
    /// There are none: the control stream carries all.
    #[default]
    Nothing,
    /// This side connects them.
    Calls(connect::Caller),
    /// This side is connected to.
    Answers(listen::Answerer),
}

/// What a thread of a stream does.
type Work = Box<dyn Fn(Stream, &Streams) + Send + Sync>;

/// What a side does with its streams.
pub struct Hooks {
    /// Takes a stream that has come up, and works with it until it ends. Called in a thread of the
    /// stream's own.
    pub stream: Work,
    /// There will be none.
    pub alone: Box<dyn Fn() + Send + Sync>,
}

/// The streams of a run.
#[derive(Default)]
pub struct Streams {
    sockets: Mutex<Sockets>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// How many have come up.
    pub up: AtomicUsize,
}

#[derive(Default)]
struct Sockets {
    closed: bool,
    list: Vec<Weak<TcpStream>>,
    listener: Option<Arc<TcpListener>>,
    /// Dropped when there are to be no more streams.
    end: Option<Sender<()>>,
}

impl Streams {
    /// Has them come up.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(
        beside: DataStreams,
        hooks: Hooks,
        stop: &Arc<Stop>,
    ) -> Result<Arc<Self>, SyncError> {
        let streams: Arc<Self> = Arc::default();
        let weak = Arc::downgrade(&streams);
        stop.on_fail(Box::new(move || {
            if let Some(streams) = weak.upgrade() {
                streams.close();
            }
        }));
        match beside {
            DataStreams::Nothing => (hooks.alone)(),
            DataStreams::Calls(caller) => caller.start(&streams, Arc::new(hooks), stop)?,
            DataStreams::Answers(answerer) => answerer.start(&streams, Arc::new(hooks), stop)?,
        }
        Ok(streams)
    }

    /// Has a socket closed when the run ends; at once, if it has.
    fn watch(&self, socket: &Arc<TcpStream>) {
        let mut sockets = lock(&self.sockets);
        sockets.list.retain(|socket| socket.strong_count() > 0);
        sockets.list.push(Arc::downgrade(socket));
        if sockets.closed {
            shut(socket);
        }
    }

    /// Keeps what wakes the thread that waits for connections, or makes them.
    fn wakes(&self, listener: Option<Arc<TcpListener>>, end: Option<Sender<()>>) {
        let mut sockets = lock(&self.sockets);
        (sockets.listener, sockets.end) = (listener, end);
        let closed = sockets.closed;
        drop(sockets);
        if closed {
            self.close();
        }
    }

    /// Whether the run has ended: how a stream ends does not matter any more.
    pub fn closed(&self) -> bool {
        lock(&self.sockets).closed
    }

    /// Keeps a thread, to be waited for.
    fn keep(&self, thread: JoinHandle<()>) {
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Closes all: what was sent and did not arrive is not needed any more.
    pub fn close(&self) {
        let mut sockets = lock(&self.sockets);
        sockets.closed = true;
        sockets.end = None;
        if let Some(listener) = sockets.listener.take() {
            // This wakes a thread that waits for a connection.
            let _closed = SockRef::from(&*listener).shutdown(Shutdown::Both);
        }
        sockets.list.iter().filter_map(Weak::upgrade).for_each(|socket| shut(&socket));
    }

    /// Waits for the end of all threads, after [`Streams::close`].
    pub fn join(&self) {
        loop {
            // One that ends may just have started another.
            let Some(thread) = lock(&self.threads).pop() else { return };
            // A thread that panicked has printed that already.
            let _panicked = thread.join();
        }
    }

    /// Waits for those, and for other threads of the run.
    pub fn join_with(&self, threads: Vec<JoinHandle<()>>) {
        self.join();
        for thread in threads {
            // As above.
            let _panicked = thread.join();
        }
    }

    /// Adds the TCP statistics of the streams that are up.
    pub fn weigh(&self, load: &mut Load) {
        for socket in lock(&self.sockets).list.iter().filter_map(Weak::upgrade) {
            let tcp = tcp(&socket);
            load.streams += 1;
            load.busy_ns += tcp.busy_us.saturating_mul(1_000);
            load.rwnd_ns += tcp.rwnd_us.saturating_mul(1_000);
            load.sndbuf_ns += tcp.sndbuf_us.saturating_mul(1_000);
        }
    }

    /// Bytes that were acknowledged over those that are up (what a program has written, or TCP
    /// holds, is not counted yet), and whether a queue stands before the link: most streams'
    /// packets take longer than they did, which only a sender can measure.
    fn seen(&self) -> (u64, bool) {
        let sockets = lock(&self.sockets);
        let all: Vec<_> = sockets.list.iter().filter_map(Weak::upgrade).collect();
        drop(sockets);
        let said: Vec<_> = all.iter().map(|socket| tcp(socket)).collect();
        let queued = said.iter().filter(|tcp| tcp.is_queued()).count();
        (said.iter().map(|tcp| tcp.arrived).sum(), queued * 2 > said.len())
    }

    /// A stream has come up; how many have.
    fn came_up(&self) -> usize {
        self.up.fetch_add(1, Ordering::AcqRel) + 1
    }
}

/// Ends what goes over a socket, at both sides as far as that can be.
pub fn shut(socket: &TcpStream) {
    // One that is closed already is as good.
    let _closed = socket.shutdown(Shutdown::Both);
}
