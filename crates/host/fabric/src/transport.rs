//! What sends and receives datagrams.

use std::io;
use std::time::Duration;

use crate::mad::{Mad, Route};

/// Destination of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Along a directed route.
    Route(Route),
    /// By local identifier: subnet management.
    Manager(u16),
    /// By local identifier: performance management.
    Performance(u16),
}

/// What was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The kernel's error number; 0: a reply. Otherwise the request comes back.
    pub error: u32,
    /// The datagram, of any length.
    pub bytes: Vec<u8>,
}

/// Sends and receives datagrams at one port of this machine.
pub trait Transport: Send {
    /// Sends a request.
    ///
    /// # Errors
    /// The operating system's.
    fn send(&mut self, target: &Target, mad: &Mad) -> io::Result<()>;

    /// Waits for what is received next, at most this long.
    ///
    /// # Errors
    /// The operating system's.
    fn receive(&mut self, wait: Duration) -> io::Result<Option<Received>>;

    /// Time since an arbitrary start; it never decreases.
    fn now(&self) -> Duration;
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn send(&mut self, target: &Target, mad: &Mad) -> io::Result<()> {
        (**self).send(target, mad)
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Option<Received>> {
        (**self).receive(wait)
    }

    fn now(&self) -> Duration {
        (**self).now()
    }
}
