//! The clients of one address that take what they can get.

use std::any::Any;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use e2e::tcp::{address, connect_from};

use super::world::{GREEDY, World};

/// Connections that are opened before it is looked whether they were refused.
const BATCH: usize = 64;
/// How long a connection is tried to be written to that takes no more.
const FULL: Duration = Duration::from_millis(30);

/// What was taken, until it is dropped.
pub(crate) struct Got {
    /// How much that is.
    pub amount: String,
    _held: Box<dyn Any>,
}

impl Got {
    pub(crate) fn new(amount: impl Into<String>, held: impl Any) -> Self {
        Self { amount: amount.into(), _held: Box::new(held) }
    }
}

/// One client, or all of an address.
pub(crate) struct Attack<'a> {
    pub world: &'a Arc<World>,
    /// Their address.
    pub from: IpAddr,
    /// Whether these are all clients of the address.
    pub all: bool,
    is_over: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl<'a> Attack<'a> {
    pub(crate) fn new(world: &'a Arc<World>, all: bool) -> Self {
        // Wrong passwords of one attack are not in the way of the next one.
        let from = address(if all { 4 } else { 2 });
        Self { world, from, all, is_over: Arc::default(), threads: Mutex::default() }
    }

    /// The users: one, or all.
    pub(crate) fn users(&self) -> &'static [&'static str] {
        if self.all { &GREEDY } else { &GREEDY[..1] }
    }

    /// A number for one client, and one for all of an address.
    pub(crate) fn count(&self, one: usize, all: usize) -> usize {
        if self.all { all } else { one }
    }

    /// A name that no other attack uses.
    pub(crate) fn name(&self, what: &str, n: usize) -> String {
        format!("{what}-{}-{n}", self.from)
    }

    pub(crate) fn connect(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        connect_from(self.from, to)
    }

    /// Repeats something in a thread until the other client is done.
    pub(crate) fn repeat(&self, mut act: impl FnMut(&World) + Send + 'static) {
        let (is_over, world) = (Arc::clone(&self.is_over), Arc::clone(self.world));
        let thread = std::thread::spawn(move || {
            while !is_over.load(Relaxed) {
                act(&world);
            }
        });
        self.threads.lock().expect("the threads").push(thread);
    }

    /// Ends what is repeated, once the server has answered what was begun: in these threads.
    pub(crate) fn end(self) -> Vec<JoinHandle<()>> {
        self.is_over.store(true, Relaxed);
        self.threads.into_inner().expect("the threads")
    }

    /// Opens connections that send nothing, until the server closes some of them or `most` exist.
    pub(crate) fn idle(&self, to: SocketAddr, most: usize) -> Got {
        let mut held: Vec<TcpStream> = Vec::new();
        let mut refused = 0;
        while held.len() < most && refused == 0 {
            for _ in 0..BATCH.min(most - held.len()) {
                let Ok(stream) = self.connect(to) else {
                    refused += 1;
                    break;
                };
                stream.set_nonblocking(true).expect("a socket");
                held.push(stream);
            }
            // A permit is given, or not, when the server accepts: it has accepted this batch when
            // it has answered something that was sent after it.
            self.world.api.get("/api/v1/session");
            let before = held.len();
            held.retain_mut(|stream| !has_ended(stream));
            refused += before - held.len();
        }
        Got::new(format!("{} idle connections, {refused} refused", held.len()), held)
    }
}

/// Whether the server has closed a connection.
pub(crate) fn has_ended(mut stream: &TcpStream) -> bool {
    let mut bytes = [0; 256];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(e) => return e.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// Sends what a connection takes now.
pub(crate) fn fill(mut stream: &TcpStream, bytes: &[u8]) {
    stream.set_write_timeout(Some(FULL)).expect("a timeout");
    // That it takes no more is the aim.
    let _ = stream.write_all(bytes);
    stream.set_write_timeout(None).expect("no timeout");
}
