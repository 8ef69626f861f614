//! A relay of TCP between a client and a server: it can cut all connections, refuse new ones, and
//! flip one bit of what clients send.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use socket2::SockRef;

use crate::netns::Namespace;

/// Bytes in a row that are the same in data, and in no header.
const RUN: usize = 512;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 16;

/// What the relay's threads share.
struct Shared {
    server: SocketAddr,
    listener: TcpListener,
    connections: Mutex<Connections>,
    /// It listens again.
    restored: Condvar,
    accepted: AtomicU64,
    /// Bytes from clients until a bit is flipped; negative for none.
    until_flip: AtomicI64,
    flipped: AtomicU64,
}

/// Both ends of what is carried.
#[derive(Default)]
struct Connections {
    open: Vec<TcpStream>,
    is_cut: bool,
}

/// The relay. It ends with the test.
pub struct Relay(Arc<Shared>);

impl Relay {
    /// Listens at `at` within the namespace and carries to `server`.
    ///
    /// # Panics
    /// When it cannot listen there.
    pub fn start(namespace: &Namespace, at: SocketAddr, server: SocketAddr) -> Self {
        // The socket belongs to the namespace, whichever thread uses it.
        let bound = namespace.spawn(move || TcpListener::bind(at)).join().expect("a thread");
        let shared = Arc::new(Shared {
            server,
            listener: bound.unwrap_or_else(|e| panic!("{at}: {e}")),
            connections: Mutex::default(),
            restored: Condvar::new(),
            accepted: AtomicU64::new(0),
            until_flip: AtomicI64::new(-1),
            flipped: AtomicU64::new(0),
        });
        let relay = Arc::clone(&shared);
        // Detached: it ends with the test. In the namespace, where it connects to the server.
        let _thread = namespace.spawn(move || relay.accept());
        Self(shared)
    }

    /// Cuts all connections; new ones are carried.
    pub fn cut(&self) {
        for stream in self.0.connections().open.drain(..) {
            let _gone = stream.shutdown(Shutdown::Both);
        }
    }

    /// From now on the kernel refuses new connections, and those there are are cut; or both are
    /// carried again. To accept a connection and close it would not do: open-iscsi before 2.1.9,
    /// which finds one closed while it hands it over to the kernel, tries to use that one for ever
    /// ("can't bind conn", <https://github.com/open-iscsi/open-iscsi/pull/388>).
    ///
    /// # Panics
    /// When it cannot listen again.
    pub fn set_cut(&self, cut: bool) {
        let listener = SockRef::from(&self.0.listener);
        self.0.connections().is_cut = cut;
        if cut {
            listener.shutdown(Shutdown::Both).expect("it does not listen any more");
            self.cut();
        } else {
            listener.listen(BACKLOG).expect("it listens again");
            self.0.restored.notify_all();
        }
    }

    /// Connections carried so far.
    pub fn carried(&self) -> u64 {
        self.0.accepted.load(SeqCst)
    }

    /// Flips a bit after this number of further bytes from clients, in the midst of bytes that are
    /// all the same: that is data, and not a header.
    pub fn flip_after(&self, bytes: u32) {
        self.0.until_flip.store(bytes.into(), SeqCst);
    }

    /// Bits flipped so far.
    pub fn flipped(&self) -> u64 {
        self.0.flipped.load(SeqCst)
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>) {
        loop {
            match self.listener.accept() {
                // A client that finds no server finds its connection closed.
                Ok((client, _)) => drop(self.carry(client)),
                Err(_) => {
                    let waited = self.restored.wait_while(self.connections(), |all| all.is_cut);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }

    fn carry(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(self.server)?;
        self.accepted.fetch_add(1, SeqCst);
        let both = [client.try_clone()?, server.try_clone()?];
        both.iter().try_for_each(|stream| stream.set_nodelay(true))?;
        let mut connections = self.connections();
        if connections.is_cut {
            return Ok(());
        }
        connections.open.extend(both);
        drop(connections);
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
