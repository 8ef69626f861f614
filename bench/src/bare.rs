//! The baseline: the cost of TCP and page cache of the machine without any protocol.
//!
//! A bare server receives requests of [`HEAD`] bytes and replies to each with a megabyte from
//! memory (send), or receives a megabyte, writes it into a file and replies with [`HEAD`] bytes
//! (receive). It runs as a separate process, so that its CPU time is measured alone.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base::clock::Deadline;

/// Bytes of a request or a reply without data; about the size of an NFSv3 header.
pub const HEAD: usize = 128;
/// Bytes of data with each operation.
pub const BLOCK: usize = 1 << 20;
/// Each stream overwrites this many blocks repeatedly, as the NFS load does.
const FILE_BLOCKS: u64 = 64;

/// Files that connections divide among themselves: one to each of the eight streams.
const FILES: usize = 8;

/// Direction of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the server's memory to the client.
    Send,
    /// From the client into the server's page cache.
    Receive,
}

/// A bare server's process; ends with the value.
pub struct Bare(pub Child);

impl Bare {
    /// Starts this program as such a server, which prints its port; returns its address.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start<A: AsRef<OsStr>>(
        args: impl IntoIterator<Item = A>,
    ) -> io::Result<(Self, SocketAddr)> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = Self(command.args(args).stdout(Stdio::piped()).spawn()?);
        let out = child.0.stdout.take().ok_or_else(|| io::Error::other("no stdout"))?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let port: u16 = line.trim().parse().map_err(io::Error::other)?;
        Ok((child, ([127, 0, 0, 1], port).into()))
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves for ever, a thread to each connection; prints its port on the first line.
///
/// # Errors
/// When it cannot listen.
pub fn serve(way: Direction, dir: &Path) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("{}", listener.local_addr()?.port());
    io::stdout().flush()?;
    for (n, stream) in listener.incoming().enumerate() {
        // The warm-up's files are used again: fresh pages cost many times as much as touched ones.
        let (stream, path) = (stream?, dir.join(format!("bare.{}", n % FILES)));
        std::thread::spawn(move || match way {
            Direction::Send => send_loop(stream),
            Direction::Receive => receive_loop(stream, &path),
        });
    }
    Ok(())
}

fn send_loop(mut stream: TcpStream) -> io::Result<()> {
    let mut request = [0; HEAD];
    let answer = vec![0x5a; HEAD + BLOCK];
    loop {
        stream.read_exact(&mut request)?;
        stream.write_all(&answer)?;
    }
}

fn receive_loop(mut stream: TcpStream, path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().create(true).write(true).truncate(false).open(path)?;
    let mut request = vec![0; HEAD + BLOCK];
    for n in 0u64.. {
        stream.read_exact(&mut request)?;
        file.write_all_at(&request[HEAD..], n % FILE_BLOCKS * BLOCK as u64)?;
        stream.write_all(&request[..HEAD])?;
    }
    Ok(())
}

/// Drives the bare server with `streams` connections of `depth` operations in flight for `time`.
/// Returns the number of bytes of data that were transferred.
///
/// # Errors
/// When a connection breaks.
pub fn drive(
    to: SocketAddr,
    way: Direction,
    streams: usize,
    depth: usize,
    time: Duration,
) -> io::Result<u64> {
    let until = Deadline::after(time);
    let workers: Vec<_> =
        (0..streams).map(|_| std::thread::spawn(move || stream(to, way, depth, until))).collect();
    let mut bytes = 0;
    for worker in workers {
        bytes += worker.join().map_err(|_| io::Error::other("a stream panicked"))??;
    }
    Ok(bytes)
}

fn stream(to: SocketAddr, way: Direction, depth: usize, until: Deadline) -> io::Result<u64> {
    let mut socket = TcpStream::connect(to)?;
    socket.set_nodelay(true)?;
    let (ask, answer) = match way {
        Direction::Send => (HEAD, HEAD + BLOCK),
        Direction::Receive => (HEAD + BLOCK, HEAD),
    };
    let (out, mut sink) = (vec![0x33; ask], vec![0; (256 << 10).min(answer)]);
    let mut done = 0;
    (0..depth).try_for_each(|_| socket.write_all(&out))?;
    let mut open = depth;
    while open > 0 {
        let mut left = answer;
        while left > 0 {
            let room = sink.len().min(left);
            left -= socket.read(&mut sink[..room]).and_then(|n| match n {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                n => Ok(n),
            })?;
        }
        done += BLOCK as u64;
        if !until.passed() {
            socket.write_all(&out)?;
        } else {
            open -= 1;
        }
    }
    Ok(done)
}
