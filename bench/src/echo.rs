//! The baseline of small operations over many connections: a server that receives requests of
//! [`HEAD`](crate::bare::HEAD) bytes and replies to each from memory, polling its connections from
//! one thread for each core, one receive and one send for all bytes that have arrived. Its cost is
//! that of the machine's TCP and wake-ups.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base::clock::Deadline;
use lab::agent::clock::mono_ns;

use crate::bare::{Bare, HEAD};
use crate::cpu;
use crate::load::Figure;
use crate::poll::Poll;

/// Threads of either side: the cores of the machine that figures are published for.
const THREADS: usize = 2;
/// Timeout without any data.
const SILENCE: Duration = Duration::from_secs(10);
/// How often a server's thread looks for new connections.
const ACCEPT_EVERY: Duration = Duration::from_millis(20);
/// Bytes of one receive.
const RECEIVE: usize = 128 << 10;

/// Serves for ever; prints its port on the first line.
///
/// # Errors
/// When it cannot listen.
pub fn serve(answer: usize) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("{}", listener.local_addr()?.port());
    io::stdout().flush()?;
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (sender, new) = channel();
            std::thread::spawn(move || echo(&new, answer));
            sender
        })
        .collect();
    for (n, stream) in listener.incoming().enumerate() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        let _ = threads[n % THREADS].send(stream);
    }
    Ok(())
}

/// One thread of the server. A connection that ends is dropped.
fn echo(new: &Receiver<TcpStream>, answer: usize) -> io::Result<()> {
    let poll = Poll::new()?;
    let (mut sockets, mut ready) = (Vec::<Option<(TcpStream, usize)>>::new(), Vec::new());
    let (mut input, mut out) = (vec![0; RECEIVE], Vec::new());
    loop {
        while let Ok(socket) = new.try_recv() {
            poll.add(socket.as_raw_fd(), sockets.len())?;
            sockets.push(Some((socket, 0)));
        }
        poll.wait(&mut ready, ACCEPT_EVERY)?;
        for number in &ready {
            let Some(place) = sockets.get_mut(*number) else { continue };
            let Some((socket, have)) = place else { continue };
            let got = socket.read(&mut input).unwrap_or(0);
            *have += got;
            out.resize(*have / HEAD * answer, 0x5a);
            *have %= HEAD;
            if got == 0 || socket.write_all(&out).is_err() {
                *place = None;
            }
        }
    }
}

/// The bare server in a separate process, and connections to it.
pub struct Echo {
    child: Bare,
    threads: Vec<Vec<TcpStream>>,
    depth: u32,
    answer: usize,
}

impl Echo {
    /// `connections` of `depth` requests in flight, with replies of `answer` bytes.
    ///
    /// # Errors
    /// When it does not start.
    pub fn ready((connections, depth): (u32, u32), answer: usize) -> io::Result<Self> {
        let (child, to) = Bare::start(["bare-echo", &answer.to_string()])?;
        let sockets: io::Result<Vec<_>> =
            (0..connections).map(|_| TcpStream::connect(to)).collect();
        let mut threads: Vec<Vec<TcpStream>> = (0..THREADS).map(|_| Vec::new()).collect();
        for (n, socket) in sockets?.into_iter().enumerate() {
            socket.set_nodelay(true)?;
            threads[n % THREADS].push(socket);
        }
        Ok(Self { child, threads, depth, answer })
    }

    /// One stretch of `time`.
    ///
    /// # Errors
    /// When a connection breaks.
    pub fn run(&self, time: Duration) -> io::Result<Figure> {
        let pid = self.child.0.id();
        let (begin, before, own) = (mono_ns(), cpu::of(pid)?, cpu::own()?);
        let until = Deadline::after(time);
        let ops = drive_all(&self.threads, self.depth, self.answer, until)?.max(1) as f64;
        let (used, own) = (cpu::of(pid)? - before, cpu::own()? - own);
        let wall = (mono_ns() - begin) as f64 / 1e9;
        let bytes = ops * self.answer as f64;
        Ok(Figure {
            ops_s: ops / wall,
            bytes_s: bytes / wall,
            server_us_op: used * 1e6 / ops,
            server_s_gb: used * 1e9 / bytes,
            client_us_op: own * 1e6 / ops,
        })
    }
}

fn drive_all(
    threads: &[Vec<TcpStream>],
    depth: u32,
    answer: usize,
    until: Deadline,
) -> io::Result<u64> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = threads
            .iter()
            .map(|sockets| scope.spawn(move || drive(sockets, depth, answer, until)))
            .collect();
        let panicked = |_| Err(io::Error::other("a driver panicked"));
        workers.into_iter().map(|w| w.join().unwrap_or_else(panicked)).sum()
    })
}

/// A connection of the client.
struct Lane<'a> {
    socket: &'a TcpStream,
    /// Bytes of an incomplete reply.
    have: usize,
    /// Bytes of requests that did not fit the socket's buffer.
    owed: usize,
}

impl Lane<'_> {
    /// Sends as much of what is owed as fits the socket's buffer. The rest is sent after replies
    /// have arrived: a client that only sends until all is sent, and a server that does the same,
    /// deadlock.
    fn send(&mut self, requests: &[u8]) -> io::Result<()> {
        while self.owed > 0 {
            let part = requests.get(..self.owed).unwrap_or(requests);
            match self.socket.write(part) {
                Ok(sent) => self.owed -= sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// How many replies of this length one receive has completed.
    fn receive(&mut self, input: &mut [u8], answer: usize) -> io::Result<usize> {
        match self.socket.read(input) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => self.have += got,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let answers = self.have / answer;
        self.have %= answer;
        Ok(answers)
    }
}

/// Keeps `depth` requests in flight on each socket; returns the number of replies.
fn drive(sockets: &[TcpStream], depth: u32, answer: usize, until: Deadline) -> io::Result<u64> {
    let poll = Poll::new()?;
    let depth = depth as usize;
    let (requests, mut input) = (vec![0x33; HEAD * depth], vec![0; RECEIVE]);
    let mut lanes = Vec::new();
    for (n, socket) in sockets.iter().enumerate() {
        socket.set_nonblocking(true)?;
        poll.add(socket.as_raw_fd(), n)?;
        let mut lane = Lane { socket, have: 0, owed: requests.len() };
        lane.send(&requests)?;
        lanes.push(lane);
    }
    let (mut open, mut done, mut ready) = (sockets.len() * depth, 0, Vec::new());
    while open > 0 {
        poll.wait(&mut ready, SILENCE)?;
        if ready.is_empty() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer on any connection"));
        }
        let more = !until.passed();
        for n in &ready {
            let Some(lane) = lanes.get_mut(*n) else { continue };
            let answers = lane.receive(&mut input, answer)?;
            done += answers as u64;
            match more {
                true => lane.owed += answers * HEAD,
                false => open -= answers,
            }
            lane.send(&requests)?;
        }
    }
    Ok(done)
}
