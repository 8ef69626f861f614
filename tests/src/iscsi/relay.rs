//! A relay of TCP between a client and a server: it can cut all connections, refuse new ones, and
//! flip one bit of what clients send.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use crate::netns::Namespace;

/// Bytes in a row that are the same in data, and in no header.
const RUN: usize = 512;

/// What the relay's threads share.
struct Shared {
    server: SocketAddr,
    open: Mutex<Vec<TcpStream>>,
    is_cut: AtomicBool,
    accepted: AtomicU64,
    /// Bytes from clients until a bit is flipped; negative for none.
    until_flip: AtomicI64,
    flipped: AtomicU64,
}

/// The relay. It ends with the test.
pub struct Relay(Arc<Shared>);

impl Relay {
    /// Listens at `at` within the namespace and carries to `server`.
    ///
    /// # Panics
    /// When it cannot listen there.
    pub fn start(namespace: &Namespace, at: SocketAddr, server: SocketAddr) -> Self {
        let shared = Arc::new(Shared {
            server,
            open: Mutex::default(),
            is_cut: AtomicBool::new(false),
            accepted: AtomicU64::new(0),
            until_flip: AtomicI64::new(-1),
            flipped: AtomicU64::new(0),
        });
        let relay = Arc::clone(&shared);
        let (bound, is_bound) = mpsc::channel();
        // Detached: it ends with the test.
        let _thread = namespace.spawn(move || {
            let listener = TcpListener::bind(at);
            let _heard = bound.send(listener.as_ref().map(|_| ()).map_err(ToString::to_string));
            for client in listener.iter().flat_map(TcpListener::incoming).map_while(Result::ok) {
                // A client that finds no server finds its connection closed.
                let _refused = relay.carry(client);
            }
        });
        is_bound.recv().expect("a thread").unwrap_or_else(|e| panic!("{at}: {e}"));
        Self(shared)
    }

    /// Cuts all connections; new ones are carried.
    pub fn cut(&self) {
        for stream in self.0.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _gone = stream.shutdown(Shutdown::Both);
        }
    }

    /// From now on refuses new connections, and cuts those there are; or carries them again.
    pub fn set_cut(&self, cut: bool) {
        self.0.is_cut.store(cut, SeqCst);
        if cut {
            self.cut();
        }
    }

    /// Connections carried so far.
    pub fn carried(&self) -> u64 {
        self.0.accepted.load(SeqCst)
    }

    /// Flips a bit once so many more bytes have come from clients, in the midst of bytes that are
    /// all the same: that is data, and no header.
    pub fn flip_after(&self, bytes: u32) {
        self.0.until_flip.store(bytes.into(), SeqCst);
    }

    /// Bits flipped so far.
    pub fn flipped(&self) -> u64 {
        self.0.flipped.load(SeqCst)
    }
}

impl Shared {
    fn carry(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        if self.is_cut.load(SeqCst) {
            return client.shutdown(Shutdown::Both);
        }
        let server = TcpStream::connect(self.server)?;
        self.accepted.fetch_add(1, SeqCst);
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.push(stream.try_clone()?);
        }
        let (from, to) = (client.try_clone()?, server.try_clone()?);
        let relay = Arc::clone(self);
        std::thread::spawn(move || relay.pass(&from, &to, true));
        let relay = Arc::clone(self);
        std::thread::spawn(move || relay.pass(&server, &client, false));
        Ok(())
    }

    fn pass(&self, mut from: &TcpStream, mut to: &TcpStream, may_flip: bool) {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if may_flip {
                self.flip(&mut bytes[..count]);
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _gone = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }

    fn flip(&self, piece: &mut [u8]) {
        if self.until_flip.load(SeqCst) < 0 {
            return;
        }
        let left = self.until_flip.load(SeqCst).saturating_sub(piece.len() as i64).max(0);
        self.until_flip.store(left, SeqCst);
        let is_data = |bytes: &[u8]| bytes.iter().all(|byte| *byte == bytes[0]);
        let found = piece.windows(RUN).position(is_data).filter(|_| left == 0);
        if let Some(start) = found {
            self.until_flip.store(-1, SeqCst);
            piece[start + RUN / 2] ^= 0x10;
            self.flipped.fetch_add(1, SeqCst);
        }
    }
}
