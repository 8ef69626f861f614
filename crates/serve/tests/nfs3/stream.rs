//! A client's connection as a stream of records, over TCP or, in test programs with a name in
//! `_rdma`, over RDMA: the same tests run on both.

#![allow(dead_code, reason = "each program that includes it uses a part")]

#[path = "rdma_client.rs"]
pub mod rdma;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::rdma::RdmaClient;

/// Whether clients of this program speak RDMA.
pub fn by_rdma() -> bool {
    env!("CARGO_CRATE_NAME").ends_with("_rdma")
}

/// A stream of records.
pub enum Stream {
    Tcp(TcpStream),
    Rdma(Arc<Mutex<RdmaClient>>),
}

fn lock(client: &Mutex<RdmaClient>) -> MutexGuard<'_, RdmaClient> {
    client.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    /// Connects to a service; a reply may take this long.
    pub fn connect(addr: SocketAddr, patience: Duration) -> Self {
        match by_rdma() {
            true => Self::connect_rdma(addr, patience),
            false => Self::connect_tcp(addr, patience),
        }
    }

    pub fn connect_tcp(addr: SocketAddr, patience: Duration) -> Self {
        Self::over(TcpStream::connect(addr).expect("connect"), patience)
    }

    pub fn connect_rdma(addr: SocketAddr, patience: Duration) -> Self {
        Self::connect_rdma_from([127, 0, 0, 1].into(), addr, patience)
    }

    pub fn connect_rdma_from(from: std::net::IpAddr, to: SocketAddr, patience: Duration) -> Self {
        Self::Rdma(Arc::new(Mutex::new(RdmaClient::connect(from, to, patience))))
    }

    /// An existing connection.
    pub fn over(stream: TcpStream, patience: Duration) -> Self {
        stream.set_read_timeout(Some(patience)).unwrap();
        stream.set_write_timeout(Some(patience)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self::Tcp(stream)
    }

    pub fn tcp(self) -> TcpStream {
        match self {
            Self::Tcp(stream) => stream,
            Self::Rdma(_) => panic!("a test of TCP"),
        }
    }

    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Rdma(_) => panic!("a test of TCP"),
        }
    }

    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Rdma(client) => Ok(Self::Rdma(Arc::clone(client))),
        }
    }

    /// What the client over RDMA counts.
    pub fn counts(&self) -> rdma::Counts {
        match self {
            Self::Tcp(_) => panic!("a test of RDMA"),
            Self::Rdma(client) => lock(client).counts,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buf),
            Self::Rdma(client) => loop {
                // Others may write meanwhile.
                if let Some(read) = lock(client).read(buf)? {
                    return Ok(read);
                }
            },
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(buf),
            Self::Rdma(client) => lock(client).write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
