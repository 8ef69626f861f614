//! Room `verbs`: remote direct memory access as far as a server and a client of it need it:
//! connections are listened for and made, messages sent and received, memory of the peer is read
//! and written, and memory is exposed to the peer.
//!
//! Memory that a device may access is a [`Region`]: posting work moves it to the connection, and
//! the completion returns it, so that memory that changes is never borrowed. The interface is the
//! trait [`Verbs`] and what it leads to. [`load::devices`] returns the implementation for devices,
//! with libraries that are looked for when it is used; [`mock`] is one within a process, for tests.
//!
//! *Layout*: [`region`], [`error`], [`limit`], [`account`], [`wait`] are common; `sys`, [`load`],
//! `channel`, `cm`, `connect`, `exposed`, `opened` and `qp` are the devices' and hold all unsafe
//! code but that of [`region`]; [`devices`] lists what the machine has.

pub mod account;
mod channel;
mod cm;
mod connect;
pub mod devices;
pub mod error;
mod exposed;
pub mod limit;
pub mod load;
pub mod mock;
mod opened;
mod qp;
pub mod region;
mod sys;
pub mod wait;

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

pub use account::Account;
pub use error::VerbsError;
pub use region::Region;

/// A way to devices.
pub trait Verbs: Send + Sync {
    /// Listens at this address, on all devices that have it.
    ///
    /// # Errors
    /// The address is not available, or the kernel has no support.
    fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, VerbsError>;

    /// Connects to a server, which blocks until it has answered. Nothing is received yet: receives
    /// are posted before the first message is sent.
    ///
    /// # Errors
    /// What is missing here ([`VerbsError::NoDevice`] among others), or why the server cannot be
    /// reached.
    fn connect(&self, call: &ConnectOptions<'_>, depth: Depth) -> Result<Established, VerbsError>;

    /// What is registered, over all connections.
    fn account(&self) -> &Arc<Account>;

    /// Looks for devices that are gone without a removal event, and ends their connections and
    /// listeners. To be called every few seconds while there is a listener.
    fn look(&self) {}
}

/// Options of a connection request.
#[derive(Debug, Clone, Copy)]
pub struct ConnectOptions<'a> {
    /// The server.
    pub to: SocketAddr,
    /// The address to connect from; else the route decides.
    pub from: Option<IpAddr>,
    /// The client's private data.
    pub private_data: &'a [u8],
    /// How long each step may take: finding the device, the route, the server's answer.
    pub timeout: Duration,
}

/// A server that has accepted.
pub struct Established {
    /// The connection.
    pub connection: Box<dyn Connection>,
    /// The server's private data; a connection manager may have padded it.
    pub private_data: Vec<u8>,
}

/// Takes connections.
pub trait Listener: Send {
    /// The next connection request.
    ///
    /// # Errors
    /// When it has ended: [`VerbsError::DeviceRemoved`] among others. It is of no use then.
    fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<Result<Box<dyn Request>, VerbsError>>;

    /// Where it listens.
    fn local_addr(&self) -> SocketAddr;
}

/// A connection request of a client. It is refused when dropped.
pub trait Request: Send {
    /// The address of the client.
    fn peer(&self) -> SocketAddr;

    /// At which of our addresses.
    fn local(&self) -> SocketAddr;

    /// The client's private data; a connection manager may have padded it.
    fn private_data(&self) -> &[u8];

    /// Makes a connection with room for so much work. Receives are posted to it before it is
    /// accepted.
    ///
    /// # Errors
    /// When the device has no room, or has gone.
    fn open(self: Box<Self>, depth: Depth) -> Result<Box<dyn Connection>, VerbsError>;
}

/// How much work a connection has room for. More may be posted, and waits.
#[derive(Debug, Clone, Copy)]
pub struct Depth {
    /// Receives.
    pub receives: u32,
    /// Sends, reads and writes.
    pub sends: u32,
}

/// What a region is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Messages, both ways, and the source of writes to the peer's memory.
    Local,
    /// The destination of reads of the peer's memory. With iWARP the peer must be able to write to
    /// it, so that such a region is not used again.
    ReadTarget,
}

/// What a peer may do with memory that is exposed to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read it.
    Read,
    /// Write to it.
    Write,
}

/// Memory that the peer may access until this is dropped. The peer may change it at any time, so
/// that it is only copied from and to, and never borrowed.
pub trait ExposedMemory: Send {
    /// The key by which the peer names it.
    fn key(&self) -> u32;

    /// Where it begins, as the peer names it.
    fn address(&self) -> u64;

    /// Bytes.
    fn length(&self) -> usize;

    /// Copies from `at` on; false if that is beyond its end.
    #[must_use]
    fn read(&self, at: usize, into: &mut [u8]) -> bool;

    /// Copies to `at` and on; false if that is beyond its end.
    #[must_use]
    fn write(&mut self, at: usize, from: &[u8]) -> bool;
}

/// A part of a region, and of the peer's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Bytes of the region.
    pub local: Range<usize>,
    /// The peer's key.
    pub key: u32,
    /// Where in its memory.
    pub address: u64,
}

/// Something to do.
#[derive(Debug)]
pub enum Work {
    /// Takes one message.
    Receive(Region),
    /// Sends a message, after all that was posted before.
    Send {
        /// The message is at its front.
        region: Region,
        /// Bytes of it.
        length: usize,
        /// A key of the peer that it then need not invalidate itself.
        invalidate: Option<u32>,
    },
    /// Writes to the peer's memory.
    Write {
        /// From where.
        region: Region,
        /// What goes where; not empty.
        pieces: Vec<Piece>,
    },
    /// Reads the peer's memory.
    Read {
        /// Into this.
        region: Region,
        /// What comes from where; not empty.
        pieces: Vec<Piece>,
    },
}

/// Work that has ended.
#[derive(Debug)]
pub struct Completion {
    /// As it was posted.
    pub id: u64,
    /// Its region.
    pub region: Region,
    /// Bytes that were received; 0 for other work.
    ///
    /// An error: it was not done, and the connection has ended.
    pub outcome: Result<usize, VerbsError>,
}

/// A connection. Dropping it closes it; work in flight is abandoned.
pub trait Connection: Send {
    /// Accepts the client's request, with this private data. The connection is established when the
    /// first message arrives.
    ///
    /// # Errors
    /// When the client has gone.
    fn accept(&mut self, private_data: &[u8]) -> Result<(), VerbsError>;

    /// Registers memory.
    ///
    /// # Errors
    /// When the account is used up ([`VerbsError::NoRoom`]), or the system does not let so much be
    /// locked. The buffer comes back.
    fn register(
        &mut self,
        buffer: Vec<u8>,
        purpose: Purpose,
    ) -> Result<Region, (Vec<u8>, VerbsError)>;

    /// Exposes new memory of this many bytes to the peer.
    ///
    /// # Errors
    /// As [`Connection::register`].
    fn expose_memory(
        &mut self,
        bytes: usize,
        access: Access,
    ) -> Result<Box<dyn ExposedMemory>, VerbsError>;

    /// Begins some work. It ends by a completion with the same id, unless the connection ends.
    ///
    /// # Errors
    /// When the connection has ended.
    fn post(&mut self, id: u64, work: Work) -> Result<(), VerbsError>;

    /// Ready when some work has ended, which is appended to `done`, or the connection has.
    ///
    /// # Errors
    /// Why it has ended: [`VerbsError::Closed`] when the peer has closed it.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        done: &mut Vec<Completion>,
    ) -> Poll<Result<(), VerbsError>>;
}
