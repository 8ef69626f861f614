//! A client of SMB 2.1 to 3.1.1 (MS-SMB2) over TCP: one connection, one session, one tree, as many
//! requests in flight as the server grants credits for, files opened once.
//!
//! Operations are requests of one credit for each 64 KiB; what is about a name is a compound of
//! CREATE and CLOSE, as clients do it. All of them count as the server counts them: each request
//! separately.
//!
//! - [`at`]: URLs; `setup`: how the session begins; `files`: files, cleaning; `program`: files of
//!   programs; `session`: requests;
//!   `outstanding`: their responses; `protection`: signatures and encryption; `stream`: frames.

pub mod at;
mod files;
mod outstanding;
pub(super) mod program;
mod protection;
mod session;
mod setup;
mod stream;

use super::{
    Checker, Client, ClientError, Completion, FileSet, Op, Options, Transport, operations_through,
};
use crate::workload::{Kind, Shape};
use at::SmbAt;
use session::{Session, charge};
use std::os::fd::RawFd;
use std::time::Duration;
use wire::smb::header::Command;
use wire::smb::session::Empty;

/// One connection to one share.
pub struct SmbClient {
    session: Session,
    /// The folder of the target, as a path in the share.
    root: String,
    /// Most bytes of a READ and of a WRITE.
    io_max: (u32, u32),
    asked: u32,
    block: u32,
}

impl SmbClient {
    /// Connects, signs in, and connects to the share.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub fn open(at: &SmbAt, checker: Checker, options: &Options) -> Result<Self, ClientError> {
        let setup::Opened { session, io_max } = setup::open(at, checker, options)?;
        let root = at.path.replace('/', "\\");
        Ok(Self { session, root, io_max, asked: options.slots, block: 1 })
    }
}

impl Client for SmbClient {
    fn begin(&mut self, shape: &Shape) -> Result<(), ClientError> {
        let most = match shape.kind {
            Kind::SeqWrite | Kind::SyncWrite => self.io_max.1,
            Kind::SeqRead | Kind::RandRead => self.io_max.0,
            _ => u32::MAX,
        };
        self.block = shape.block;
        match shape.block <= most {
            true => Ok(()),
            false => {
                let why = "has blocks that are larger than the server takes";
                Err(ClientError::Target(shape.kind.name().to_owned(), why))
            }
        }
    }

    fn prepare(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.prepare_files(set)
    }

    fn clean(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.remove_files(set)
    }

    operations_through!(session);

    /// Requests that credits pay for.
    fn granted(&self) -> Option<u32> {
        let each = u32::from(charge(self.block)).max(1);
        let granted = self.session.outstanding.credits / each;
        (granted < self.asked).then_some(granted)
    }

    fn renew(&mut self) -> Result<(), ClientError> {
        let echo = |out: &mut Vec<u8>, _| Empty { reserved: 0 }.put_body(out);
        self.session.exchange(Command::ECHO, echo)?.done("say that we are there").map(drop)
    }

    fn calls(&self) -> u64 {
        self.session.outstanding.answered
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.session.descriptor())
    }

    fn transport(&self) -> Option<Transport> {
        self.session.transport()
    }
}
