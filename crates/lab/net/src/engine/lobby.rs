//! Connections that arrive: each begins with a message that has the secret of the run and states
//! which connection it is. Others are closed. One thread reads from all, so a peer that sends
//! nothing delays no other.

use crate::count::Key;
use crate::limits::{HELLO_MAX, SLICE, STRANGERS_MAX};
use crate::profile::Protocol;
use crate::socket;
use base::clock::Deadline;
use socket2::Socket;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a connection begins with.
pub const HELLO: usize = 36;
/// The first bytes of it, with its version.
const MAGIC: &[u8; 8] = b"plimnet1";
/// Bytes of the secret of a run.
pub const SECRET: usize = 16;

/// The message of a connection.
pub fn hello(secret: &[u8; SECRET], key: Key) -> [u8; HELLO] {
    let mut out = [0; HELLO];
    out[..8].copy_from_slice(MAGIC);
    out[8..24].copy_from_slice(secret);
    out[24..28].copy_from_slice(&key.host.to_be_bytes());
    out[28..32].copy_from_slice(&key.thread.to_be_bytes());
    out[32..].copy_from_slice(&key.conn.to_be_bytes());
    out
}

/// The connection that a message states, if it has the secret.
fn key_of(message: &[u8], secret: &[u8; SECRET]) -> Option<Key> {
    let message: &[u8; HELLO] = message.try_into().ok()?;
    // All bytes are compared, whatever the first ones are.
    let differs = message[8..24].iter().zip(secret).fold(0, |sum, (a, b)| sum | (a ^ b));
    if &message[..8] != MAGIC || differs != 0 {
        return None;
    }
    let number = |at: usize| message[at..].first_chunk().map(|b| u32::from_be_bytes(*b));
    Some(Key { host: number(24)?, thread: number(28)?, conn: number(32)? })
}

/// A connection that has arrived.
pub struct Arrival {
    /// Which connection of its thread.
    pub key: Key,
    /// Transport.
    pub protocol: Protocol,
    /// It.
    pub socket: Socket,
}

/// The arrivals of one thread.
#[derive(Default)]
struct Mailbox {
    arrivals: Mutex<VecDeque<Arrival>>,
    came: Condvar,
}

/// The arrivals of an end.
pub struct Lobby {
    mailboxes: Vec<Mailbox>,
    secret: [u8; SECRET],
    /// Where the listeners are.
    pub tcp: u16,
    /// The same of datagrams.
    pub udp: u16,
    /// Its end is the end of the thread.
    _ends: UnixStream,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lobby {
    /// Listens for the connections of these threads.
    ///
    /// # Errors
    /// There is no port or thread.
    pub fn open(
        (tcp, udp): (TcpListener, UdpSocket),
        threads: u32,
        secret: [u8; SECRET],
    ) -> io::Result<Arc<Self>> {
        let (ends, end) = UnixStream::pair()?;
        tcp.set_nonblocking(true)?;
        udp.set_nonblocking(true)?;
        let lobby = Arc::new(Self {
            mailboxes: (0..threads).map(|_| Mailbox::default()).collect(),
            secret,
            tcp: tcp.local_addr()?.port(),
            udp: udp.local_addr()?.port(),
            _ends: ends,
        });
        let mailboxes = Arc::downgrade(&lobby);
        let mut listeners =
            Listeners { tcp, udp, end, pending: Vec::new(), datagrams: HashMap::new() };
        std::thread::Builder::new().name("net-accept".into()).spawn(move || {
            while let Some(lobby) = mailboxes.upgrade() {
                let more = listeners.serve(&lobby);
                drop(lobby);
                if !more || listeners.wait().is_err() {
                    return;
                }
            }
        })?;
        Ok(lobby)
    }

    /// The next arrival of a thread for one of its connections, within this time.
    pub fn take(&self, thread: u32, conn: u32, within: Duration) -> Option<Arrival> {
        let mailbox = self.mailboxes.get(thread as usize)?;
        let deadline = Deadline::after(within);
        let mut arrivals = lock(&mailbox.arrivals);
        loop {
            if let Some(at) = arrivals.iter().position(|a| a.key.conn == conn) {
                return arrivals.remove(at);
            }
            let left = deadline.left()?;
            let waited = mailbox.came.wait_timeout(arrivals, left);
            arrivals = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn put(&self, arrival: Arrival) {
        // A number that no thread has: closed.
        let Some(mailbox) = self.mailboxes.get(arrival.key.thread as usize) else { return };
        let mut arrivals = lock(&mailbox.arrivals);
        if arrivals.len() < crate::limits::CONNECTIONS_MAX as usize {
            arrivals.push_back(arrival);
            mailbox.came.notify_all();
        }
    }
}

/// A connection that has not stated yet which it is.
struct Pending {
    socket: Socket,
    message: Vec<u8>,
    deadline: Deadline,
}

/// The sockets that are listened on.
struct Listeners {
    tcp: TcpListener,
    udp: UdpSocket,
    end: UnixStream,
    pending: Vec<Pending>,
    /// Sockets of datagram connections by the address of their peer, for messages that come twice.
    datagrams: HashMap<SocketAddr, Socket>,
}

impl Listeners {
    /// Waits until something comes; an error at the end of the lobby.
    fn wait(&self) -> io::Result<()> {
        // Nothing more is accepted as long as all places are taken; a negative one is left out.
        let full = self.pending.len() >= STRANGERS_MAX;
        let tcp = if full { -1 } else { self.tcp.as_raw_fd() };
        let fds = [self.end.as_raw_fd(), tcp, self.udp.as_raw_fd()];
        let pending = self.pending.iter().map(|pending| pending.socket.as_raw_fd());
        let mut polled: Vec<libc::pollfd> = fds
            .into_iter()
            .chain(pending)
            .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
            .collect();
        let ms = SLICE.as_millis() as i32;
        // SAFETY: a valid slice of its own length.
        let _ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, ms) };
        match polled.first() {
            Some(end) if end.revents != 0 => Err(io::ErrorKind::BrokenPipe.into()),
            _ => Ok(()),
        }
    }

    /// Takes what has come; whether the listener is still good.
    fn serve(&mut self, lobby: &Lobby) -> bool {
        // Those that have been accepted first: so they do not grow beyond their limit.
        self.pending.retain_mut(|pending| match pending.read(lobby) {
            Ok(Some(key)) => {
                if let Ok(socket) = pending.socket.try_clone()
                    && socket.set_nonblocking(false).is_ok()
                    && socket::slice(&socket).is_ok()
                {
                    lobby.put(Arrival { key, protocol: Protocol::Tcp, socket });
                }
                false
            }
            Ok(None) => !pending.deadline.passed(),
            Err(_) => false,
        });
        while self.pending.len() < STRANGERS_MAX {
            match self.tcp.accept() {
                Ok((stream, _)) => {
                    let socket = Socket::from(stream);
                    if socket.set_nonblocking(true).is_ok() {
                        let deadline = Deadline::after(HELLO_MAX);
                        self.pending.push(Pending { socket, message: Vec::new(), deadline });
                    }
                }
                // The connection stays in the queue of the kernel until there are descriptors.
                Err(e) if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    std::thread::sleep(SLICE);
                    break;
                }
                // None is there, or a peer that has gone already: the next turn shows.
                Err(_) => break,
            }
        }
        self.datagrams(lobby);
        true
    }

    fn datagrams(&mut self, lobby: &Lobby) {
        let mut message = [0; HELLO + 1];
        while let Ok((len, from)) = self.udp.recv_from(&mut message) {
            let Some(key) = key_of(&message[..len], &lobby.secret) else { continue };
            if let Some(socket) = self.datagrams.get(&from) {
                // The reply was lost. If this one is lost as well, the peer sends its request
                // again.
                let _lost = socket.send(&message[..len]);
                continue;
            }
            let Ok(socket) = self.datagram_socket(from) else { continue };
            let _lost = socket.send(&message[..len]);
            if self.datagrams.len() >= STRANGERS_MAX {
                self.datagrams.clear();
            }
            if let Ok(again) = socket.try_clone() {
                self.datagrams.insert(from, again);
            }
            lobby.put(Arrival { key, protocol: Protocol::Udp, socket });
        }
    }

    /// A socket for the datagrams of one peer, from the address that it has sent to.
    fn datagram_socket(&self, from: SocketAddr) -> io::Result<Socket> {
        let at = SocketAddr::new(self.udp.local_addr()?.ip(), 0);
        let socket = UdpSocket::bind(at)?;
        socket.connect(from)?;
        let socket = Socket::from(socket);
        socket::slice(&socket)?;
        Ok(socket)
    }
}

impl Pending {
    /// Reads what has come; the connection once its message is complete.
    fn read(&mut self, lobby: &Lobby) -> io::Result<Option<Key>> {
        let mut buffer = [0; HELLO];
        // No byte of what follows the message is taken.
        let left = HELLO - self.message.len();
        match self.socket.read(&mut buffer[..left]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.message.extend_from_slice(&buffer[..read]);
                if self.message.len() < HELLO {
                    return Ok(None);
                }
                let none = || io::Error::from(io::ErrorKind::PermissionDenied);
                key_of(&self.message, &lobby.secret).ok_or_else(none).map(Some)
            }
            Err(e)
                if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
            {
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }
}

#[cfg(test)]
mod tests;
