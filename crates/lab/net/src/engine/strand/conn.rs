//! The connections of a thread, under their numbers: several under one number form a queue, of
//! which the first is used.

use super::Accounts;
use crate::count::{ConnCount, Key, TcpAccount};
use crate::engine::Shared;
use crate::engine::lobby::{Arrival, HELLO, hello};
use crate::engine::windows::{Tally, Windows};
use crate::limits::{CONNECTIONS_MAX, HELLO_AGAIN, RECEIVE_MAX, SLICE};
use crate::profile::{Endpoint, Protocol};
use crate::socket;
use socket2::Socket;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Why a call did not do all of its work.
#[derive(Debug)]
pub enum Broken {
    /// The transaction has ended.
    Stopped,
    /// It failed.
    Failed(String),
}

type Call<T> = Result<T, Broken>;

fn failed<T>(what: impl Into<String>) -> Call<T> {
    Err(Broken::Failed(what.into()))
}

/// How long a call may wait.
pub struct Progress<'a> {
    /// The clock.
    pub now: fn() -> u64,
    /// When the transaction ends, ns.
    pub until_ns: u64,
    /// When it is stopped, ns.
    pub stop_ns: &'a AtomicU64,
    /// How long there may be no progress, ns.
    pub timeout_ns: u64,
}

impl Progress<'_> {
    /// Whether the transaction has ended.
    pub fn stopped(&self, now_ns: u64) -> bool {
        now_ns >= self.until_ns || now_ns >= self.stop_ns.load(Ordering::Relaxed)
    }

    /// Called when a slice of time has passed without progress.
    fn idle(&self, since_ns: &mut Option<u64>, what: &str) -> Call<()> {
        let now_ns = (self.now)();
        if self.stopped(now_ns) {
            return Err(Broken::Stopped);
        }
        // The first slice has passed already.
        let since_ns = since_ns.get_or_insert(now_ns.saturating_sub(SLICE.as_nanos() as u64));
        if now_ns.saturating_sub(*since_ns) < self.timeout_ns {
            return Ok(());
        }
        failed(format!("{what} within {}", base::units::time_ns(self.timeout_ns as f64)))
    }
}

/// Where bytes are counted.
type Counted<'a> = (&'a mut Tally, &'a Windows);

/// One connection.
struct Conn {
    socket: Socket,
    protocol: Protocol,
    host: u32,
    sent: u64,
    received: u64,
}

/// All connections of a thread.
pub struct Conns {
    thread: u32,
    open: BTreeMap<u32, VecDeque<Conn>>,
    /// Bytes of this transaction over connections that are closed: sent, received.
    closed: BTreeMap<(u32, u32), (u64, u64)>,
    accounts: BTreeMap<(u32, u32), TcpAccount>,
}

fn early(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl Conns {
    /// None.
    pub fn new(thread: u32) -> Self {
        Self { thread, open: BTreeMap::new(), closed: BTreeMap::new(), accounts: BTreeMap::new() }
    }

    /// The host of the connection under this number.
    pub fn host_of(&self, conn: u32) -> Option<u32> {
        self.open.get(&conn)?.front().map(|conn| conn.host)
    }

    #[inline]
    fn first(&mut self, conn: u32) -> Call<&mut Conn> {
        match self.open.get_mut(&conn).and_then(VecDeque::front_mut) {
            Some(conn) => Ok(conn),
            None => failed("the connection is not open"),
        }
    }

    fn add(&mut self, number: u32, conn: Conn) -> Call<u32> {
        let queue = self.open.entry(number).or_default();
        if queue.len() >= CONNECTIONS_MAX as usize {
            return failed(format!("more than {CONNECTIONS_MAX} connections are open"));
        }
        queue.push_back(conn);
        Ok(0)
    }

    /// Sends bytes.
    #[inline]
    pub fn send(
        &mut self,
        conn: u32,
        content: &[u8],
        bytes: u32,
        progress: &Progress<'_>,
        counted: Counted<'_>,
    ) -> Call<u32> {
        let conn = self.first(conn)?;
        conn.send_by(bytes, progress, counted, |socket, left| {
            (&*socket).write(content.get(..left).unwrap_or(content))
        })
    }

    /// Sends bytes of a file.
    pub fn send_file(
        &mut self,
        conn: u32,
        file: &File,
        bytes: u32,
        progress: &Progress<'_>,
        counted: Counted<'_>,
    ) -> Call<u32> {
        let conn = self.first(conn)?;
        conn.send_by(bytes, progress, counted, |socket, left| {
            socket::send_file(socket, file, u64::from(bytes) - left as u64, left)
        })
    }

    /// Receives bytes; of datagrams one, whatever its size.
    #[inline]
    pub fn receive(
        &mut self,
        conn: u32,
        buffer: &mut [u8],
        bytes: u32,
        progress: &Progress<'_>,
        counted: Counted<'_>,
    ) -> Call<u32> {
        let conn = self.first(conn)?;
        let (mut left, mut since, (tally, windows)) = (bytes as usize, None, counted);
        while left > 0 {
            let most = left.min(buffer.len());
            match conn.take(&mut buffer[..most]) {
                Ok(0) if conn.protocol == Protocol::Tcp => {
                    return failed("the other end has closed the connection");
                }
                Ok(read) => {
                    tally.at((progress.now)(), windows).received += read as u64;
                    if conn.protocol == Protocol::Udp {
                        return Ok(read as u32);
                    }
                    (left, since) = (left - read, None);
                }
                Err(e) if early(&e) => progress.idle(&mut since, "the other end sent nothing")?,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return failed(e.to_string()),
            }
        }
        Ok(bytes)
    }

    /// Receives the rest of what was sent in the transaction, from connections that are open or
    /// have arrived and were not taken. What does not come is missing in the counts.
    pub fn drain(
        &mut self,
        (host, number): (u32, u32),
        expected: u64,
        buffer: &mut Vec<u8>,
        shared: &Shared,
        progress: &Progress<'_>,
    ) {
        buffer.resize(RECEIVE_MAX as usize, 0);
        while let Some(arrival) = shared.lobby.take(self.thread, number, Duration::ZERO) {
            let conn = Conn::arrived(arrival);
            // Beyond the limit it is closed.
            let _full = self.add(number, conn);
        }
        let closed = self.closed.get(&(host, number)).map_or(0, |bytes| bytes.1);
        let Some(queue) = self.open.get_mut(&number) else { return };
        let had: u64 = queue.iter().filter(|c| c.host == host).map(|c| c.received).sum();
        let mut left = expected.saturating_sub(closed + had);
        for conn in queue.iter_mut().filter(|conn| conn.host == host) {
            let mut since = None;
            while left > 0 {
                let most = left.min(buffer.len() as u64) as usize;
                match conn.take(&mut buffer[..most]) {
                    Ok(0) => break,
                    Ok(read) => (left, since) = (left - read as u64, None),
                    // A datagram that has not come by now is lost.
                    Err(e) if early(&e) && conn.protocol == Protocol::Udp => break,
                    Err(e) if early(&e) => {
                        if progress.idle(&mut since, "").is_err() {
                            break;
                        }
                    }
                    Err(_) => break,
                }
            }
        }
    }

    /// Opens a connection.
    pub fn open(
        &mut self,
        number: u32,
        (host, endpoint): (u32, &Endpoint),
        shared: &Shared,
        progress: &Progress<'_>,
    ) -> Call<u32> {
        let Some(to) = shared.address(host, endpoint.protocol) else {
            return failed(format!("{}: the other end is not known", endpoint.host));
        };
        let message = hello(&shared.secret, Key { host, thread: self.thread, conn: number });
        let socket =
            connected(to, endpoint, &message, progress).map_err(|broken| match broken {
                Broken::Failed(what) => {
                    Broken::Failed(format!("{} at {to}: {what}", endpoint.host))
                }
                Broken::Stopped => Broken::Stopped,
            })?;
        let conn = Conn { socket, protocol: endpoint.protocol, host, sent: 0, received: 0 };
        self.add(number, conn)
    }

    /// Takes a connection that the other end opens.
    pub fn accept(
        &mut self,
        number: u32,
        (host, endpoint): (u32, &Endpoint),
        shared: &Shared,
        progress: &Progress<'_>,
    ) -> Call<u32> {
        let mut since = None;
        let arrival = loop {
            match shared.lobby.take(self.thread, number, SLICE) {
                Some(arrival) if arrival.key.host == host => break arrival,
                Some(_) => {}
                None => progress.idle(&mut since, "the other end did not connect")?,
            }
        };
        if let Err(e) = socket::set(&arrival.socket, endpoint) {
            return failed(e.to_string());
        }
        self.add(number, Conn::arrived(arrival))
    }

    /// Closes the first connection under a number.
    pub fn close(&mut self, number: u32) -> Call<u32> {
        let Some(conn) = self.open.get_mut(&number).and_then(VecDeque::pop_front) else {
            return failed("the connection is not open");
        };
        self.account(number, &conn);
        Ok(0)
    }

    fn account(&mut self, number: u32, conn: &Conn) {
        let bytes = self.closed.entry((conn.host, number)).or_default();
        *bytes = (bytes.0 + conn.sent, bytes.1 + conn.received);
        if let Some(account) = conn.account() {
            self.accounts.entry((conn.host, number)).or_default().add(&account);
        }
    }

    /// Closes all connections. Returns the TCP statistics of all connections so far.
    pub fn close_all(&mut self) -> Accounts {
        for (number, queue) in std::mem::take(&mut self.open) {
            for conn in queue {
                self.account(number, &conn);
            }
        }
        let key = |(host, conn)| Key { host, thread: self.thread, conn };
        std::mem::take(&mut self.accounts).into_iter().map(|(at, a)| (key(at), a)).collect()
    }

    /// Bytes of this transaction by connection.
    pub fn counts(&self) -> Vec<ConnCount> {
        let mut all = self.closed.clone();
        for (number, conn) in self.open.iter().flat_map(|(n, q)| q.iter().map(move |c| (n, c))) {
            let bytes = all.entry((conn.host, *number)).or_default();
            *bytes = (bytes.0 + conn.sent, bytes.1 + conn.received);
        }
        let count = |((host, conn), (sent, received))| ConnCount {
            key: Key { host, thread: self.thread, conn },
            sent,
            received,
        };
        all.into_iter().map(count).collect()
    }

    /// Begins to count again.
    pub fn next_transaction(&mut self) {
        self.closed.clear();
        for conn in self.open.values_mut().flatten() {
            (conn.sent, conn.received) = (0, 0);
        }
    }
}

/// A socket that is connected to this address and has begun with its message.
fn connected(
    to: SocketAddr,
    endpoint: &Endpoint,
    message: &[u8; HELLO],
    progress: &Progress<'_>,
) -> Call<Socket> {
    let fail = |e: io::Error| Broken::Failed(e.to_string());
    let socket = socket::outgoing(to, endpoint).map_err(fail)?;
    match endpoint.protocol {
        Protocol::Tcp => {
            let within = Duration::from_nanos(progress.timeout_ns);
            socket::connect(&socket, to, within).map_err(fail)?;
            (&socket).write_all(message).map_err(fail)?;
        }
        Protocol::Udp => greet(&socket, to, message, progress)?,
    }
    Ok(socket)
}

/// Opens a connection of datagrams: the reply comes from the socket that serves it.
fn greet(
    socket: &Socket,
    to: SocketAddr,
    message: &[u8; HELLO],
    progress: &Progress<'_>,
) -> Call<()> {
    let fail = |e: io::Error| Broken::Failed(e.to_string());
    socket.set_read_timeout(Some(HELLO_AGAIN)).map_err(fail)?;
    let mut since = None;
    loop {
        socket.send_to(message, &to.into()).map_err(fail)?;
        let mut reply = [MaybeUninit::uninit(); HELLO];
        match socket.recv_from(&mut reply) {
            Ok((HELLO, from)) => {
                // SAFETY: all bytes of it were received.
                let reply = reply.map(|byte| unsafe { byte.assume_init() });
                if reply == *message {
                    socket.connect(&from).map_err(fail)?;
                    return socket::slice(socket).map_err(fail);
                }
            }
            Ok(_) => {}
            Err(e) if early(&e) => progress.idle(&mut since, "the other end did not reply")?,
            Err(e) => return Err(fail(e)),
        }
    }
}

impl Conn {
    fn arrived(arrival: Arrival) -> Self {
        let Arrival { key, protocol, socket } = arrival;
        Self { socket, protocol, host: key.host, sent: 0, received: 0 }
    }

    #[inline]
    fn send_by(
        &mut self,
        bytes: u32,
        progress: &Progress<'_>,
        counted: Counted<'_>,
        send: impl Fn(&Socket, usize) -> io::Result<usize>,
    ) -> Call<u32> {
        let (mut left, mut since, (tally, windows)) = (bytes as usize, None, counted);
        while left > 0 {
            match send(&self.socket, left) {
                Ok(0) => return failed("the kernel takes no bytes"),
                Ok(sent) => {
                    (left, since) = (left - sent, None);
                    self.sent += sent as u64;
                    tally.at((progress.now)(), windows).sent += sent as u64;
                }
                Err(e) if early(&e) => progress.idle(&mut since, "the other end read nothing")?,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return failed(e.to_string()),
            }
        }
        Ok(bytes)
    }

    #[inline]
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&self.socket).read(buffer)?;
        self.received += read as u64;
        Ok(read)
    }

    fn account(&self) -> Option<TcpAccount> {
        (self.protocol == Protocol::Tcp).then(|| socket::account(&self.socket)).flatten()
    }
}
