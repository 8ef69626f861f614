//! A man in the middle between clients and a server: a relay that can read and change frames.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use wire::smb::frame::PREFIX;

use super::framed;

/// Where a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the server.
    Request,
    /// To the client.
    Response,
}

/// What is forwarded instead of a frame: nothing, the frame itself, or anything else.
pub type Alter = dyn FnMut(Direction, Vec<u8>) -> Vec<Vec<u8>> + Send;

/// A relay for one connection.
pub struct Relay {
    /// Where clients connect.
    pub at: SocketAddr,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    task: Option<JoinHandle<()>>,
}

impl Relay {
    /// Passes the next connection on to `to`.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn new(to: SocketAddr, alter: Box<Alter>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let at = listener.local_addr()?;
        let streams = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&streams);
        let task = std::thread::spawn(move || {
            // A client that waits for a response notices a failure here by the end of the
            // connection.
            let _ = carry(&listener, to, alter, &kept);
        });
        Ok(Self { at, streams, task: Some(task) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Ends the wait for a client, if none has come.
        let _ = TcpStream::connect(self.at);
        for stream in self
            .streams
            .lock()
            .into_iter()
            .flat_map(|all| all.iter().map(TcpStream::try_clone).collect::<Vec<_>>())
            .flatten()
        {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(task) = self.task.take() {
            let _ = task.join();
        }
    }
}

fn carry(
    listener: &TcpListener,
    to: SocketAddr,
    alter: Box<Alter>,
    kept: &Mutex<Vec<TcpStream>>,
) -> io::Result<()> {
    let (client, _) = listener.accept()?;
    let server = TcpStream::connect(to)?;
    if let Ok(mut kept) = kept.lock() {
        kept.extend([client.try_clone()?, server.try_clone()?]);
    }
    let alter = Arc::new(Mutex::new(alter));
    let ways = [
        (Direction::Request, client.try_clone()?, server.try_clone()?),
        (Direction::Response, server, client),
    ];
    std::thread::scope(|scope| {
        for (direction, from, to) in ways {
            let alter = Arc::clone(&alter);
            scope.spawn(move || {
                let (mut from, mut to) = (from, to);
                let _ = pass(direction, &mut from, &mut to, &alter);
                // The end at one side is the end at the other.
                let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            });
        }
    });
    Ok(())
}

fn pass(
    direction: Direction,
    from: &mut TcpStream,
    to: &mut TcpStream,
    alter: &Mutex<Box<Alter>>,
) -> io::Result<()> {
    loop {
        let mut head = [0; PREFIX];
        from.read_exact(&mut head)?;
        let mut frame = vec![0; u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize];
        from.read_exact(&mut frame)?;
        let frames = match alter.lock() {
            Ok(mut alter) => alter(direction, frame),
            Err(_) => return Ok(()),
        };
        for frame in frames {
            to.write_all(&framed(&frame))?;
        }
    }
}
