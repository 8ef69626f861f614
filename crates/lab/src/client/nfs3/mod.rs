//! An NFSv3 client over TCP (RFC 1813, RFC 5531).
//!
//! - [`dialect`]: what each operation looks like; [`setup`]: mount, files, cleaning. The
//!   connection is a [`Pipe`](super::pipe::Pipe).

mod dialect;
mod setup;

use super::pipe::Pipe;
use super::pipe::link::Link;
use super::pipe::over_pipe;
use super::target::Nfs3At;
use super::{Checker, Client, ClientError, Completion, FileSet, Op, Options, Transport};
use dialect::V3;
use std::os::fd::RawFd;
use std::time::Duration;

/// A file handle, at most 64 bytes (RFC 1813 §2.5, NFS3_FHSIZE).
pub(crate) type Handle = Vec<u8>;

/// One connection to one share.
pub struct Nfs3Client {
    pipe: Pipe<V3>,
    root: Handle,
}

impl Nfs3Client {
    /// Connects and mounts.
    ///
    /// # Errors
    /// When either port cannot be reached or the mount is refused.
    pub fn open(at: &Nfs3At, checker: Checker, options: &Options) -> Result<Self, ClientError> {
        let root = setup::mount(at, options.bind)?;
        let link = Link::open(&at.host, at.port, options.bind)?;
        Ok(Self { pipe: Pipe::new(link, checker, V3::new(), options.slots), root })
    }
}

impl Client for Nfs3Client {
    over_pipe!();

    fn calls(&self) -> u64 {
        self.pipe.dialect.made
    }
}

#[cfg(test)]
mod tests;
