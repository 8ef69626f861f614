//! Devices within a process, for tests: connections with two ends, a table of registered memory,
//! one-sided operations, and connections that are lost.
//!
//! It is strict where devices may be lenient: a message for which no receive is posted, or that is
//! longer than it, ends the connection at once, and so does a key that is not in the table, or a
//! range beyond its memory.

mod end;
mod wait;

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

pub use end::{End, Exposed};

use self::end::Link;
use crate::{
    Account, ConnectOptions, Connection, Depth, Established, Listener, Request, Verbs, VerbsError,
};

/// What connects listeners and clients.
pub struct Fabric {
    account: Arc<Account>,
    listeners: Mutex<HashMap<SocketAddr, Arc<Mutex<Queue>>>>,
}

/// What has come to a listener.
#[derive(Default)]
struct Queue {
    requests: VecDeque<ConnectRequest>,
    waker: Option<Waker>,
    removed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fabric {
    /// A fabric on which servers may register at most `registered_max` bytes.
    pub fn new(registered_max: usize) -> Arc<Self> {
        Arc::new(Self { account: Account::new(registered_max), listeners: Mutex::default() })
    }

    /// The same, to a service.
    pub fn verbs(self: &Arc<Self>) -> Arc<dyn Verbs> {
        Arc::new(MockVerbs(Arc::clone(self)))
    }

    /// What is registered by servers. Clients have no limit.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Requests a connection, with this private data. The end exists at once; [`End::established`]
    /// waits for the server to accept or refuse it.
    ///
    /// # Errors
    /// [`VerbsError::Closed`] when the address has no listener.
    pub fn connect(
        &self,
        from: SocketAddr,
        to: SocketAddr,
        private_data: &[u8],
    ) -> Result<End, VerbsError> {
        let queue = lock(&self.listeners).get(&to).cloned().ok_or(VerbsError::Closed)?;
        let link = Arc::new(Mutex::new(Link::default()));
        let end = End::new(Arc::clone(&link), 0, Account::new(usize::MAX));
        let server = End::new(link, 1, Arc::clone(&self.account));
        let private_data = private_data.to_vec();
        let request = ConnectRequest { peer: from, local: to, private_data, end: Some(server) };
        let waker = {
            let mut queue = lock(&queue);
            if queue.removed {
                return Err(VerbsError::Closed);
            }
            queue.requests.push_back(request);
            queue.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
        Ok(end)
    }

    /// Removes the device that is listened on: the listener ends. Its connections do not.
    pub fn remove_device(&self, at: SocketAddr) {
        let Some(queue) = lock(&self.listeners).remove(&at) else { return };
        let waker = {
            let mut queue = lock(&queue);
            queue.removed = true;
            queue.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

struct MockVerbs(Arc<Fabric>);

impl Verbs for MockVerbs {
    fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, VerbsError> {
        let queue = Arc::<Mutex<Queue>>::default();
        let mut listeners = lock(&self.0.listeners);
        if listeners.contains_key(&at) {
            let source = std::io::ErrorKind::AddrInUse.into();
            return Err(VerbsError::System { what: "listen", source });
        }
        listeners.insert(at, Arc::clone(&queue));
        Ok(Box::new(MockListener { fabric: Arc::clone(&self.0), at, queue }))
    }

    fn connect(&self, call: &ConnectOptions<'_>, _: Depth) -> Result<Established, VerbsError> {
        static PORT: AtomicU16 = AtomicU16::new(50_000);
        let from = call.from.unwrap_or(Ipv4Addr::LOCALHOST.into());
        let from = SocketAddr::new(from, PORT.fetch_add(1, Relaxed));
        let connected = self.0.connect(from, call.to, call.private_data);
        let mut end = connected.map_err(|_| VerbsError::Refused)?;
        let private_data = end.established(call.timeout).ok_or(VerbsError::Refused)?;
        Ok(Established { connection: Box::new(end), private_data })
    }

    fn account(&self) -> &Arc<Account> {
        &self.0.account
    }
}

struct MockListener {
    fabric: Arc<Fabric>,
    at: SocketAddr,
    queue: Arc<Mutex<Queue>>,
}

impl Listener for MockListener {
    fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<Result<Box<dyn Request>, VerbsError>> {
        let mut queue = lock(&self.queue);
        match queue.requests.pop_front() {
            Some(request) => Poll::Ready(Ok(Box::new(request))),
            None if queue.removed => Poll::Ready(Err(VerbsError::DeviceRemoved)),
            None => {
                queue.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn local_addr(&self) -> SocketAddr {
        self.at
    }
}

impl Drop for MockListener {
    fn drop(&mut self) {
        let mut listeners = lock(&self.fabric.listeners);
        if listeners.get(&self.at).is_some_and(|queue| Arc::ptr_eq(queue, &self.queue)) {
            listeners.remove(&self.at);
        }
    }
}

/// A connection request of a client. Dropping its end closes the client's.
struct ConnectRequest {
    peer: SocketAddr,
    local: SocketAddr,
    private_data: Vec<u8>,
    end: Option<End>,
}

impl Request for ConnectRequest {
    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn local(&self) -> SocketAddr {
        self.local
    }

    fn private_data(&self) -> &[u8] {
        &self.private_data
    }

    fn open(mut self: Box<Self>, _: Depth) -> Result<Box<dyn Connection>, VerbsError> {
        let end = self.end.take().ok_or(VerbsError::Closed)?;
        Ok(Box::new(end))
    }
}

#[cfg(test)]
mod tests;
