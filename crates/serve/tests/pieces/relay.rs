//! Between a client and a server: passes bytes on in pieces of any size, each in a packet of its
//! own, and ends both connections after a number of them.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread::JoinHandle;

use base::random::SeededRandom;

use crate::Dice;

/// Longest piece.
const PIECE: u32 = 300;

/// A relay of one connection.
pub struct Relay {
    /// Where the client connects.
    pub at: SocketAddr,
    shared: Arc<Shared>,
    runs: Option<JoinHandle<()>>,
}

struct Shared {
    /// Bytes that may still pass, in both directions.
    left: AtomicU32,
    was_cut: AtomicBool,
}

impl Relay {
    /// Passes on to `to` up to `bytes` bytes, in pieces from these seeds.
    pub fn start(to: SocketAddr, bytes: u32, seeds: [u32; 2]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("an address");
        let shared =
            Arc::new(Shared { left: AtomicU32::new(bytes), was_cut: AtomicBool::default() });
        let of_task = Arc::clone(&shared);
        let runs = std::thread::spawn(move || {
            let (client, _) = listener.accept().expect("a client");
            drop(listener);
            let server = TcpStream::connect(to).expect("a server");
            let dice = seeds.map(|seed| Dice(SeededRandom::new(seed.into())));
            let [there, back] = dice;
            let ends = || {
                let clone = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
                (clone(&client), clone(&server))
            };
            let ((from, to), (into, of)) = (ends(), ends());
            let other = Arc::clone(&of_task);
            let backward = std::thread::spawn(move || pass(&other, of, into, back));
            pass(&of_task, from, to, there);
            backward.join().expect("it passes bytes");
        });
        Self { at, shared, runs: Some(runs) }
    }

    /// Waits for its end; whether it has cut the connection. The client has ended.
    pub fn end(mut self) -> bool {
        self.runs.take().expect("it runs").join().expect("it passes bytes");
        self.shared.was_cut.load(SeqCst)
    }
}

fn pass(shared: &Shared, mut from: TcpStream, mut to: TcpStream, mut dice: Dice) {
    let _ = to.set_nodelay(true);
    let mut buffer = [0; PIECE as usize];
    loop {
        let most = 1 + dice.below(PIECE) as usize;
        let Ok(count @ 1..) = from.read(&mut buffer[..most]) else { break };
        let left = shared.left.fetch_update(SeqCst, SeqCst, |left| {
            Some(if left == u32::MAX { left } else { left.saturating_sub(count as u32) })
        });
        let left = left.unwrap_or_default() as usize;
        if to.write_all(&buffer[..count.min(left)]).is_err() {
            break;
        }
        if left <= count {
            shared.was_cut.store(true, SeqCst);
            let _ = from.shutdown(Shutdown::Both);
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
