//! An NFSv4.1 client over TCP (RFC 8881): one connection, one session, as many slots as the load
//! has threads, files opened once. Each operation is one compound.
//!
//! - [`session`]: client id and session; [`setup`]: the way to the share, files, cleaning;
//!   [`dialect`]: what each operation looks like; [`compound`]: the others; [`files`]: files of
//!   programs. The connection is a [`Pipe`].

mod compound;
mod dialect;
pub(super) mod files;
mod session;
mod setup;

use super::pipe::Pipe;
use super::pipe::link::Link;
use super::pipe::over_pipe;
use super::target::Nfs4At;
use super::{Checker, Client, ClientError, Completion, FileSet, Op, Options, Transport};
use dialect::V4;
use session::Session;
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::time::Duration;

/// One connection to one share.
pub struct Nfs4Client {
    pipe: Pipe<V4>,
    session: Session,
    asked: u32,
    root: Vec<u8>,
    /// Operations of compounds that were answered one at a time, by name.
    by_name: BTreeMap<&'static str, u64>,
}

impl Nfs4Client {
    /// Connects, makes a session, and walks to the directory.
    ///
    /// # Errors
    /// When the port cannot be reached, or what the server refuses.
    pub fn open(at: &Nfs4At, checker: Checker, options: &Options) -> Result<Self, ClientError> {
        let link = Link::open(&at.host, at.port, options.bind)?;
        let pipe = Pipe::new(link, checker, V4::new(), options.slots);
        let (session, root, by_name) = (Session::default(), Vec::new(), BTreeMap::new());
        let mut client = Self { pipe, session, asked: options.slots, root, by_name };
        client.begin(options.slots)?;
        client.root = client.walk(&at.path)?;
        Ok(client)
    }
}

impl Client for Nfs4Client {
    over_pipe!();

    fn renew(&mut self) -> Result<(), ClientError> {
        self.renew_lease()
    }

    fn granted(&self) -> Option<u32> {
        (self.session.slots < self.asked).then_some(self.session.slots)
    }

    /// Operations of compounds, each counted as the server does: those that it answered.
    fn calls(&self) -> u64 {
        self.pipe.dialect.answered
    }
}

#[cfg(test)]
mod tests;
