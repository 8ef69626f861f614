//! The requests of a worker to a server, over either version of NFS.

use std::net::SocketAddr;

use wire::nfs3::{CreateHow, Fattr3, Ftype3, Nfstime3, Sattr3, StableHow, Writeverf3};

use super::over4::Over4;
use crate::nfs3::{Client, Failure, Handle};

/// Outcome of a call; the statuses of version 4 bear the same numbers, as far as they are known.
pub type Outcome<T> = Result<T, Failure>;

/// The version of NFS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// NFSv3.
    V3,
    /// NFSv4.2, with a session and every file open that is written.
    V4,
}

impl Over {
    /// Connects for a worker. Under its name it is the same client as before the last crash.
    ///
    /// # Errors
    /// No connection, or what the server refuses.
    pub fn connect(
        self,
        server: SocketAddr,
        user: u32,
        name: &str,
    ) -> Result<Box<dyn Remote>, String> {
        Ok(match self {
            Self::V3 => Box::new(Client::connect(server, user, user).map_err(|e| e.to_string())?),
            Self::V4 => Box::new(Over4::connect(server, user, name)?),
        })
    }
}

/// What is looked at of a file's attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileAttributes {
    /// Its number.
    pub fileid: u64,
    /// Permission bits.
    pub mode: u32,
    /// Whether it is a named pipe.
    pub is_fifo: bool,
    /// When it was changed.
    pub ctime: Nfstime3,
}

impl From<Fattr3> for FileAttributes {
    fn from(attr: Fattr3) -> Self {
        Self {
            fileid: attr.fileid,
            mode: attr.mode & 0o7777,
            is_fifo: attr.ftype == Ftype3::FIFO,
            ctime: attr.ctime,
        }
    }
}

/// What a WRITE came to.
#[derive(Debug, Clone, Copy)]
pub struct Wrote {
    /// Bytes.
    pub count: u32,
    /// How stable they are.
    pub committed: StableHow,
    /// The verifier.
    pub verifier: Writeverf3,
    /// The attributes afterwards.
    pub seen: Option<FileAttributes>,
}

/// A new object.
#[derive(Debug, Clone)]
pub struct Made {
    /// Its handle.
    pub handle: Handle,
    /// Its attributes.
    pub seen: Option<FileAttributes>,
}

/// A server, from a client's end. Every call fails with the status, or a broken connection.
#[allow(missing_docs, reason = "the operations are those of the RFCs")]
#[allow(clippy::missing_errors_doc, reason = "said above, once for all")]
pub trait Remote: Send {
    fn root(&mut self, export: &str) -> Outcome<Handle>;
    fn getattr(&mut self, file: &[u8]) -> Outcome<FileAttributes>;
    fn chmod(&mut self, file: &[u8], bits: u32) -> Outcome<Option<FileAttributes>>;
    fn truncate(&mut self, file: &[u8], size: u64) -> Outcome<()>;
    fn lookup(&mut self, dir: &[u8], name: &str) -> Outcome<Handle>;
    fn read_all(&mut self, file: &[u8]) -> Outcome<Vec<u8>>;
    fn write(&mut self, file: &[u8], offset: u64, data: &[u8], how: StableHow) -> Outcome<Wrote>;
    fn commit(&mut self, file: &[u8]) -> Outcome<Writeverf3>;
    fn create(&mut self, dir: &[u8], name: &str, bits: u32) -> Outcome<Made>;
    /// Closes a file that was created or written; NFSv3 has no opens.
    fn close(&mut self, _file: &[u8]) -> Outcome<()> {
        Ok(())
    }
    fn mkdir(&mut self, dir: &[u8], name: &str, bits: u32) -> Outcome<Made>;
    fn symlink(&mut self, dir: &[u8], name: &str, target: &str) -> Outcome<Made>;
    fn mkfifo(&mut self, dir: &[u8], name: &str, bits: u32) -> Outcome<Made>;
    fn readlink(&mut self, link: &[u8]) -> Outcome<Vec<u8>>;
    fn remove(&mut self, dir: &[u8], name: &str, directory: bool) -> Outcome<()>;
    fn rename(&mut self, from: (&[u8], &str), to: (&[u8], &str)) -> Outcome<()>;
    fn link(&mut self, file: &[u8], dir: &[u8], name: &str) -> Outcome<Option<FileAttributes>>;
    fn names(&mut self, dir: &[u8]) -> Outcome<Vec<String>>;
}

fn mode(bits: u32) -> Sattr3 {
    Sattr3 { mode: Some(bits), ..Sattr3::default() }
}

fn made(made: crate::nfs3::Made) -> Made {
    Made { handle: made.handle, seen: made.attr.map(FileAttributes::from) }
}

impl Remote for Client {
    fn root(&mut self, export: &str) -> Outcome<Handle> {
        self.mnt(export)
    }
    fn getattr(&mut self, file: &[u8]) -> Outcome<FileAttributes> {
        Self::getattr(self, file).map(FileAttributes::from)
    }
    fn chmod(&mut self, file: &[u8], bits: u32) -> Outcome<Option<FileAttributes>> {
        Ok(self.setattr(file, mode(bits))?.map(FileAttributes::from))
    }
    fn truncate(&mut self, file: &[u8], size: u64) -> Outcome<()> {
        let size = Some(size);
        self.setattr(file, Sattr3 { size, ..Sattr3::default() }).map(|_| ())
    }
    fn lookup(&mut self, dir: &[u8], name: &str) -> Outcome<Handle> {
        Self::lookup(self, dir, name).map(|found| found.handle)
    }
    fn read_all(&mut self, file: &[u8]) -> Outcome<Vec<u8>> {
        Self::read_all(self, file)
    }
    fn write(&mut self, file: &[u8], offset: u64, data: &[u8], how: StableHow) -> Outcome<Wrote> {
        let (count, committed, verifier, attr) = Self::write(self, file, offset, data, how)?;
        Ok(Wrote { count, committed, verifier, seen: attr.map(FileAttributes::from) })
    }
    fn commit(&mut self, file: &[u8]) -> Outcome<Writeverf3> {
        Self::commit(self, file)
    }
    fn create(&mut self, dir: &[u8], name: &str, bits: u32) -> Outcome<Made> {
        Self::create(self, dir, name, CreateHow::Guarded(mode(bits))).map(made)
    }
    fn mkdir(&mut self, dir: &[u8], name: &str, bits: u32) -> Outcome<Made> {
        Self::mkdir(self, dir, name, mode(bits)).map(made)
    }
    fn symlink(&mut self, dir: &[u8], name: &str, target: &str) -> Outcome<Made> {
        Self::symlink(self, dir, name, target).map(made)
    }
    fn mkfifo(&mut self, dir: &[u8], name: &str, bits: u32) -> Outcome<Made> {
        Self::mkfifo(self, dir, name, mode(bits)).map(made)
    }
    fn readlink(&mut self, link: &[u8]) -> Outcome<Vec<u8>> {
        Self::readlink(self, link)
    }
    fn remove(&mut self, dir: &[u8], name: &str, directory: bool) -> Outcome<()> {
        Self::remove(self, dir, name, directory)
    }
    fn rename(&mut self, from: (&[u8], &str), to: (&[u8], &str)) -> Outcome<()> {
        Self::rename(self, from, to)
    }
    fn link(&mut self, file: &[u8], dir: &[u8], name: &str) -> Outcome<Option<FileAttributes>> {
        Ok(Self::link(self, file, dir, name)?.map(FileAttributes::from))
    }
    fn names(&mut self, dir: &[u8]) -> Outcome<Vec<String>> {
        Self::names(self, dir)
    }
}
