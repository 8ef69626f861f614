//! Services that transfer files, as targets: FTP, SFTP, HTTP and WebDAV, each with and without
//! protection. One connection and one system thread per slot.
//!
//! What the protocols can is a [`Session`]: names, whole files read and written as streams, parts
//! where there are ranges. What the lab makes of it is the same for all: [`client`] does the
//! operations of workloads, [`crate::transfer`] compares whole transfers.
//!
//! - [`at`]: URLs; [`tls`], [`socket`]: connections.
//! - [`ftp`], [`http`], [`sftp`]: the protocols.

pub mod at;
pub mod client;
pub mod ftp;
pub mod http;
pub mod sftp;
pub mod socket;
pub mod tls;

use super::{ClientError, Fault};
use crate::client::scratch::Folder;
use at::{Scheme, ServiceAt};
use std::net::{IpAddr, TcpStream};

/// Why something was not done.
#[derive(Debug)]
pub enum Failure {
    /// The server refused; the connection is still usable.
    Answer {
        /// What was tried.
        what: String,
        /// The protocol's number for why.
        code: u32,
        /// The server's words.
        text: String,
    },
    /// The connection is of no use any more.
    Broken(ClientError),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Broken(error)
    }
}

impl From<Failure> for ClientError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Answer { what, code, text } => {
                Self::Refused { what, status: format!("{code} {text}").trim().to_owned() }
            }
            Failure::Broken(error) => error,
        }
    }
}

impl Failure {
    /// As what became of one operation.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn outcome(self) -> Result<Result<u32, Fault>, ClientError> {
        match self {
            Self::Answer { code, .. } => Ok(Err(Fault::Status(code))),
            Self::Broken(error) => Err(error),
        }
    }

    /// Wraps an error of the connection with what was tried.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let wrap = ClientError::io(what);
        move |e| match e.kind() {
            std::io::ErrorKind::ConnectionReset
            | std::io::ErrorKind::BrokenPipe
            | std::io::ErrorKind::UnexpectedEof => Self::Broken(ClientError::Closed),
            _ => Self::Broken(wrap(e)),
        }
    }
}

/// A signed-in connection to a service. Paths begin at the root of the service.
///
/// At most one file is open, for reading or for writing, and nothing else is asked meanwhile.
pub trait Session: Send {
    /// A round trip without work.
    ///
    /// # Errors
    /// As all of these: [`Failure`].
    fn null(&mut self) -> Result<(), Failure>;
    /// Size of a file in bytes; `None` if there is none.
    ///
    /// # Errors
    /// [`Failure`]
    fn size(&mut self, path: &str) -> Result<Option<u64>, Failure>;
    /// Makes a folder; an existing one is as good, unless it must be `new`.
    ///
    /// # Errors
    /// [`Failure`]
    fn make_folder(&mut self, path: &str, new: bool) -> Result<(), Failure>;
    /// Removes a file or an empty folder; one that is not there is gone.
    ///
    /// # Errors
    /// [`Failure`]
    fn remove(&mut self, path: &str, folder: bool) -> Result<(), Failure>;
    /// Names in a folder; `None` if there is none.
    ///
    /// # Errors
    /// [`Failure`]
    fn names(&mut self, path: &str) -> Result<Option<Vec<String>>, Failure>;
    /// Begins to read a file, from `offset`; `len` bytes or to its end.
    ///
    /// # Errors
    /// [`Failure`]
    fn open_read(&mut self, path: &str, offset: u64, len: Option<u64>) -> Result<(), Failure>;
    /// The next bytes; 0 at the end.
    ///
    /// # Errors
    /// [`Failure`]
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Failure>;
    /// Ends reading, also before the end.
    ///
    /// # Errors
    /// [`Failure`]
    fn close_read(&mut self) -> Result<(), Failure>;
    /// Begins to write a file of `size` bytes, which replaces an existing one.
    ///
    /// # Errors
    /// [`Failure`]
    fn open_write(&mut self, path: &str, size: u64) -> Result<(), Failure>;
    /// Writes the next bytes.
    ///
    /// # Errors
    /// [`Failure`]
    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure>;
    /// Ends writing: the server has the whole file.
    ///
    /// # Errors
    /// [`Failure`]
    fn close_write(&mut self) -> Result<(), Failure>;
    /// The connection by which the bytes of an open file come and go; `None` while there is none.
    fn socket(&self) -> Option<&TcpStream>;
    /// What was agreed on; `None` without protection.
    fn cipher(&self) -> Option<String>;
}

/// Signs in.
///
/// # Errors
/// The server cannot be reached, is not the one expected, or does not let the user in.
pub fn open(at: &ServiceAt, bind: Option<IpAddr>) -> Result<Box<dyn Session>, ClientError> {
    Ok(match at.scheme {
        Scheme::Ftp | Scheme::Ftps => Box::new(ftp::FtpSession::open(at, bind)?),
        Scheme::Sftp => Box::new(sftp::SftpSession::open(at, bind)?),
        Scheme::Http | Scheme::Https | Scheme::Webdav | Scheme::Webdavs => {
            Box::new(http::HttpSession::open(at, bind)?)
        }
    })
}

/// A service as what scratch folders are made on. Its handles are paths.
pub(super) struct ScratchFiles {
    session: Box<dyn Session>,
    root: String,
}

impl ScratchFiles {
    /// The folder that the target is.
    pub(super) fn open(at: &ServiceAt) -> Result<Self, ClientError> {
        Ok(Self { session: open(at, None)?, root: at.path.clone() })
    }
}

fn below(dir: &[u8], name: &str) -> String {
    format!("{}/{name}", String::from_utf8_lossy(dir))
}

impl Folder for ScratchFiles {
    fn root(&self) -> Vec<u8> {
        self.root.clone().into_bytes()
    }

    fn make(&mut self, dir: &[u8], name: &str) -> Result<(), ClientError> {
        Ok(self.session.make_folder(&below(dir, name), true)?)
    }

    fn find(&mut self, dir: &[u8], name: &str) -> Result<Option<Vec<u8>>, ClientError> {
        let path = below(dir, name);
        Ok(self.session.names(&path)?.map(|_| path.into_bytes()))
    }

    fn names(&mut self, dir: &[u8]) -> Result<Vec<String>, ClientError> {
        let names = self.session.names(&String::from_utf8_lossy(dir))?;
        Ok(names.unwrap_or_default())
    }

    fn remove(&mut self, dir: &[u8], name: &str, folder: bool) -> Result<(), ClientError> {
        Ok(self.session.remove(&below(dir, name), folder)?)
    }
}

#[cfg(test)]
pub(crate) mod tests;
