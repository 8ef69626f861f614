//! All connections of a controller: one thread reads from those that have something, by epoll(7),
//! and stamps what it reads. Messages to agents leave at once or wait in a bounded buffer, so an
//! agent that does not read holds up neither the controller nor the other agents.

use crate::agent::clock;
use crate::agent::connection::Connection;
use crate::agent::proto::{self, FromAgent, ProtoError, ToAgent};
use crate::agent::tls;
use base::limits::{LAB_AGENT_UNSENT_MAX, LAB_EVENTS_MAX};
use socket2::Socket;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of one receive call.
const RECEIVE: usize = 64 << 10;
/// Connections with events that one call returns.
const READY: usize = 256;
/// How often the thread notes that it has read all there was, ms.
const TICK_MS: i32 = 100;
/// A beat that comes later than this after the message before it is an event; others only show that
/// the agent lives.
const LATE_NS: u64 = 1_000_000_000;
/// What epoll reports for the end of the controller.
const ENDED: u64 = u64::MAX;

/// What came from an agent, stamped when it was read.
pub struct Event {
    /// Number of the agent.
    pub agent: u32,
    /// Controller's monotonic clock, ns.
    pub at_ns: u64,
    /// How long nothing had come from the agent before it, ns.
    pub silent_ns: u64,
    /// The message; `None` when the connection ended.
    pub message: Option<FromAgent>,
}

/// One connection.
struct Peer {
    number: u32,
    socket: Socket,
    tls: Option<Box<rustls::Connection>>,
    /// Bytes of a message that is not complete.
    received: Vec<u8>,
    /// Bytes that the socket does not take yet.
    unsent: Vec<u8>,
    /// When the last message came, ns.
    heard_ns: u64,
    ended: bool,
}

type Peers = Mutex<BTreeMap<u32, Arc<Mutex<Peer>>>>;

/// All connections of a controller.
pub struct Exchange {
    epoll: Arc<OwnedFd>,
    peers: Arc<Peers>,
    events: Receiver<Event>,
    read_ns: Arc<AtomicU64>,
    /// Its end is the end of the thread.
    _ends: UnixStream,
}

impl Exchange {
    /// Starts the thread.
    ///
    /// # Errors
    /// There are no descriptors or threads.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given this descriptor to us alone.
        let epoll = Arc::new(unsafe { OwnedFd::from_raw_fd(fd) });
        let (ends, end) = UnixStream::pair()?;
        control(&epoll, libc::EPOLL_CTL_ADD, end.as_raw_fd(), ENDED, libc::EPOLLIN)?;
        let peers: Arc<Peers> = Arc::default();
        let (sender, events) = sync_channel(LAB_EVENTS_MAX);
        let (poll, all) = (Arc::clone(&epoll), Arc::clone(&peers));
        let read_ns = Arc::new(AtomicU64::new(clock::mono_ns()));
        let noted = Arc::clone(&read_ns);
        let builder = std::thread::Builder::new().name("lab-exchange".into());
        builder.spawn(move || {
            let _held = end;
            read_all(&poll, &all, &sender, &noted);
        })?;
        Ok(Self { epoll, peers, events, read_ns, _ends: ends })
    }

    /// Adds the connection of an agent, of which no other part is used any more.
    ///
    /// # Errors
    /// There is no descriptor for it.
    pub fn add(&self, number: u32, connection: Connection) -> io::Result<()> {
        let shared = || io::Error::other("the connection is in use");
        let (socket, tls, received) = match connection {
            Connection::Inherited(stream) => {
                let stream = Arc::into_inner(stream).ok_or_else(shared)?;
                (Socket::from(OwnedFd::from(stream)), None, Vec::new())
            }
            Connection::Tls(channel) => {
                let channel = Arc::into_inner(channel).ok_or_else(shared)?;
                let (stream, tls, plain) = channel.into_parts();
                (Socket::from(OwnedFd::from(stream)), Some(Box::new(tls)), plain)
            }
        };
        socket.set_nonblocking(true)?;
        let fd = socket.as_raw_fd();
        let (unsent, heard_ns) = (Vec::new(), clock::mono_ns());
        let peer = Peer { number, socket, tls, received, unsent, heard_ns, ended: false };
        lock(&self.peers).insert(number, Arc::new(Mutex::new(peer)));
        // There is room at once: so what has come with the greeting is taken.
        let events = libc::EPOLLIN | libc::EPOLLOUT;
        control(&self.epoll, libc::EPOLL_CTL_ADD, fd, number.into(), events)
    }

    /// Sends a message, or as much of it as the socket takes; the rest follows.
    ///
    /// # Errors
    /// The connection has ended, or its agent does not read.
    pub fn send(&self, number: u32, message: &ToAgent) -> Result<(), ProtoError> {
        let peer = lock(&self.peers).get(&number).cloned().ok_or(ProtoError::Ended)?;
        let mut peer = lock(&peer);
        let mut frame = Vec::new();
        proto::send(&mut frame, message)?;
        peer.put(&frame)?;
        peer.write()?;
        peer.watch(&self.epoll)?;
        Ok(())
    }

    /// Disconnects an agent.
    pub fn shutdown(&self, number: u32) {
        let peer = lock(&self.peers).get(&number).cloned();
        if let Some(peer) = peer {
            // One that is disconnected already is as good.
            let _gone = lock(&peer).socket.shutdown(Shutdown::Both);
        }
    }

    /// For how long nothing has come from an agent, ns, up to the moment until which everything was
    /// read: a controller that was busy or paused mistakes no agent for a silent one.
    pub fn silent_ns(&self, number: u32) -> u64 {
        let read_ns = self.read_ns.load(Ordering::SeqCst);
        let peer = lock(&self.peers).get(&number).cloned();
        peer.map_or(0, |peer| read_ns.saturating_sub(lock(&peer).heard_ns))
    }

    /// The next event, or `None` after `timeout`.
    pub fn next(&self, timeout: Duration) -> Option<Event> {
        self.events.recv_timeout(timeout).ok()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn control(epoll: &OwnedFd, what: i32, fd: i32, number: u64, events: i32) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: number };
    // SAFETY: a valid event, which the kernel copies; both descriptors are open.
    let done = unsafe { libc::epoll_ctl(epoll.as_raw_fd(), what, fd, &raw mut event) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Numbers of the connections that have something, or room for something.
fn ready(epoll: &OwnedFd) -> io::Result<Vec<(u64, u32)>> {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; READY];
    let most = READY as i32;
    // SAFETY: the kernel writes at most as many events as there is space for.
    let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), most, TICK_MS) };
    match usize::try_from(count) {
        Ok(count) => Ok(events.iter().take(count).map(|event| (event.u64, event.events)).collect()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Reads from all connections until the controller has ended.
fn read_all(epoll: &OwnedFd, peers: &Peers, sender: &SyncSender<Event>, read_ns: &AtomicU64) {
    let mut buffer = vec![0; RECEIVE];
    let mut events = Vec::new();
    loop {
        let begun_ns = clock::mono_ns();
        let ready = match ready(epoll) {
            Ok(ready) => ready,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let all = ready.len() < READY;
        for (number, flags) in ready {
            let Ok(number) = u32::try_from(number) else { return };
            let Some(peer) = lock(peers).get(&number).cloned() else { continue };
            lock(&peer).turn(epoll, flags, &mut buffer, &mut events);
            // Without its lock: the controller may send to it while it has not taken these.
            for event in events.drain(..) {
                if sender.send(event).is_err() {
                    return;
                }
            }
        }
        if all {
            read_ns.store(begun_ns, Ordering::SeqCst);
        }
    }
}

impl Peer {
    /// Writes and reads what is possible without waiting.
    fn turn(&mut self, epoll: &OwnedFd, flags: u32, buffer: &mut [u8], events: &mut Vec<Event>) {
        if self.ended {
            return;
        }
        let mut done = Ok(true);
        if flags & libc::EPOLLOUT as u32 != 0 {
            done = self.write().and_then(|()| self.watch(epoll)).map(|()| true);
        }
        if flags & !(libc::EPOLLOUT as u32) != 0 {
            done = done.and_then(|_| self.read(buffer));
        }
        // What has come before the end counts.
        let messages = self.messages(events);
        if !matches!(done, Ok(true)) || messages.is_err() {
            self.end(epoll, events);
        }
    }

    /// Reads once; whether the connection is still open.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let read = match self.socket.read(buffer) {
            Ok(0) => return Ok(false),
            Ok(read) => &buffer[..read],
            Err(error) if is_early(&error) => return Ok(true),
            Err(error) => return Err(error),
        };
        match &mut self.tls {
            Some(tls) => tls::feed(tls, read, &mut self.received),
            None => {
                self.received.extend_from_slice(read);
                Ok(true)
            }
        }
    }

    /// Takes the complete messages.
    fn messages(&mut self, events: &mut Vec<Event>) -> Result<(), ProtoError> {
        let at_ns = clock::mono_ns();
        let mut taken = 0;
        while let Some(len) = proto::frame(&self.received[taken..])? {
            let mut frame = &self.received[taken..taken + len];
            let message = proto::receive::<FromAgent>(&mut frame)?;
            taken += len;
            let silent_ns = at_ns.saturating_sub(self.heard_ns);
            self.heard_ns = at_ns;
            if !matches!(message, FromAgent::Beat { .. }) || silent_ns > LATE_NS {
                events.push(Event { agent: self.number, at_ns, silent_ns, message: Some(message) });
            }
        }
        self.received.drain(..taken);
        if self.received.is_empty() {
            // A large message leaves no memory behind.
            self.received.shrink_to(RECEIVE);
        }
        Ok(())
    }

    fn end(&mut self, epoll: &OwnedFd, events: &mut Vec<Event>) {
        self.ended = true;
        // Neither is of interest if it is gone already.
        let _gone = control(epoll, libc::EPOLL_CTL_DEL, self.socket.as_raw_fd(), 0, 0);
        let _gone = self.socket.shutdown(Shutdown::Both);
        let at_ns = clock::mono_ns();
        let silent_ns = at_ns.saturating_sub(self.heard_ns);
        events.push(Event { agent: self.number, at_ns, silent_ns, message: None });
    }

    /// Adds bytes to those that are to be sent.
    fn put(&mut self, frame: &[u8]) -> Result<(), ProtoError> {
        if self.ended {
            return Err(ProtoError::Ended);
        }
        if self.unsent.len() + frame.len() > LAB_AGENT_UNSENT_MAX {
            return Err(io::Error::new(ErrorKind::TimedOut, "the agent does not read").into());
        }
        let Some(tls) = &mut self.tls else {
            self.unsent.extend_from_slice(frame);
            return Ok(());
        };
        let mut rest = frame;
        while !rest.is_empty() {
            let taken = tls.writer().write(rest)?;
            rest = &rest[taken..];
            self.unsent.extend(tls::records(tls)?);
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if is_early(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for room in the socket if there is something to send.
    fn watch(&self, epoll: &OwnedFd) -> io::Result<()> {
        let events = match self.unsent.is_empty() {
            true => libc::EPOLLIN,
            false => libc::EPOLLIN | libc::EPOLLOUT,
        };
        let fd = self.socket.as_raw_fd();
        control(epoll, libc::EPOLL_CTL_MOD, fd, self.number.into(), events)
    }
}

fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
