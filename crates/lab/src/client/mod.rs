//! Clients: one connection, many operations in flight, driven by one thread.
//!
//! The driver fills free slots ([`Client::submit`]), sends everything at once
//! ([`Client::flush`]), takes what came back ([`Client::wait`]), and starts over. A "thread" of a
//! load model is a slot: to the server the two look alike, and slots cost no context switches.
//!
//! - [`nfs3`], [`nfs4`]: NFSv3 and NFSv4.1 over TCP with AUTH_SYS; [`rdma`]: NFSv3 over RDMA.
//! - [`iscsi`]: a logical unit; [`block`]: a block device of this machine; [`layout`]: where files
//!   lie on either.
//! - [`fill`]: files get their content before the load.
//! - [`files`]: files by their paths, for programs.
//! - [`path`]: a directory of this machine.
//! - [`service`]: FTP, SFTP, HTTP and WebDAV, with and without TLS.
//! - [`smb`]: SMB 2.1 to 3.1.1.
//! - [`threads`]: one system thread per slot, for clients that block.
//! - [`null`]: completes at once; measures what the generator itself can do.
//! - [`scratch`]: a folder of a run's own.

pub mod block;
pub mod check;
#[cfg(feature = "test-services")]
pub mod echo;
pub mod files;
mod fill;
mod folder;
mod handles;
pub mod iscsi;
mod layout;
pub mod nfs3;
pub mod nfs4;
pub mod null;
pub mod path;
mod pipe;
pub mod rdma;
pub mod scratch;
pub mod service;
pub mod smb;
pub mod target;
pub mod threads;

use crate::pattern::Content;
use crate::workload::Shape;
use std::fmt;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::time::Duration;
use verbs::{Verbs, VerbsError};

/// The methods of [`Client`] for a client with operations that go through one of its fields, which
/// has `submit`, `push` and `wait`.
macro_rules! operations_through {
    ($field:ident) => {
        #[inline]
        fn submit(&mut self, slot: u32, op: Op) -> Result<(), ClientError> {
            self.$field.submit(slot, op);
            Ok(())
        }

        fn flush(&mut self) -> Result<(), ClientError> {
            self.$field.push()
        }

        fn wait(
            &mut self,
            timeout: Duration,
            done: &mut Vec<Completion>,
        ) -> Result<(), ClientError> {
            self.$field.wait(timeout, done)
        }
    };
}

pub use check::Checker;
use operations_through;
pub use target::Target;

/// One operation of a workload. Files are numbered within the client's own file set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// NULL: a round trip without work.
    Null,
    /// GETATTR of a file.
    Getattr {
        /// Which file.
        file: u32,
    },
    /// LOOKUP of a file by its name, handle and attributes included.
    Lookup {
        /// Which file.
        file: u32,
    },
    /// READ, checked against the expected content.
    Read {
        /// Which file.
        file: u32,
        /// First byte.
        offset: u64,
        /// Bytes asked for; fewer is a fault.
        len: u32,
    },
    /// WRITE of the expected content.
    Write {
        /// Which file.
        file: u32,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u32,
        /// FILE_SYNC instead of UNSTABLE (RFC 1813 §3.3.7).
        stable: bool,
    },
    /// COMMIT of a whole file.
    Commit {
        /// Which file.
        file: u32,
    },
    /// CREATE of an empty file in the client's directory.
    Create {
        /// Number from which the name is made.
        name: u64,
    },
    /// REMOVE of a file that was created.
    Remove {
        /// Number from which the name is made.
        name: u64,
    },
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Getattr { file } => write!(f, "GETATTR of file {file}"),
            Self::Lookup { file } => write!(f, "LOOKUP of file {file}"),
            Self::Read { file, offset, len } => {
                write!(f, "READ of {len} bytes at {offset} of file {file}")
            }
            Self::Write { file, offset, len, stable } => {
                let how = if *stable { "stable WRITE" } else { "WRITE" };
                write!(f, "{how} of {len} bytes at {offset} of file {file}")
            }
            Self::Commit { file } => write!(f, "COMMIT of file {file}"),
            Self::Create { name } => write!(f, "CREATE of file {name}"),
            Self::Remove { name } => write!(f, "REMOVE of file {name}"),
        }
    }
}

/// What became of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The server answered with this status (NFS, SMB, SFTP, HTTP; of iSCSI with the sense key in
    /// the upper byte), reply code (FTP) or error number (path, block).
    Status(u32),
    /// What was read is not what was written.
    Corrupt,
    /// Fewer bytes than asked for, within the file.
    Short,
    /// The write verifier changed: what was not committed must be sent again (RFC 1813 §3.3.21).
    VerifierChanged,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(number) => write!(f, "the server returned {number}"),
            Self::Corrupt => f.write_str("what was read is not what was written"),
            Self::Short => f.write_str("short read"),
            Self::VerifierChanged => f.write_str("the server lost uncommitted data"),
        }
    }
}

/// An operation that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The slot it ran in, free again.
    pub slot: u32,
    /// Bytes moved, or the fault.
    pub outcome: Result<u32, Fault>,
}

/// The files of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSet {
    /// Number of the client; names its directory and its content.
    pub client: u32,
    /// How many files.
    pub files: u32,
    /// Size of each, in bytes.
    pub size: u64,
}

impl FileSet {
    /// Name of the client's directory below the target.
    pub fn dir_name(&self) -> String {
        format!("plimsoll-lab.{}", self.client)
    }
    /// Name of a file in it.
    pub fn file_name(&self, file: u32) -> String {
        format!("f{file}.{}", self.size)
    }
    /// Name of a file that the create workload makes.
    pub fn made_name(name: u64) -> String {
        format!("c{name:x}")
    }
    /// The number under which [`Content`] knows the file.
    pub fn content_key(&self, file: u32) -> u64 {
        content_key(self.client, file)
    }
}

/// The number under which [`Content`] knows a file of a client.
#[inline]
pub fn content_key(client: u32, file: u32) -> u64 {
    u64::from(client) << 32 | u64::from(file)
}

/// What a client is made from.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address to connect from, so that each agent is a client of its own to the server.
    pub bind: Option<IpAddr>,
    /// Seed of the content.
    pub seed: u64,
    /// Of reads above 64 KiB, one block in this many is checked; 1 checks all, 0 none.
    pub check_one_in: u32,
    /// Slots that may ever be in flight.
    pub slots: u32,
}

/// TCP statistics of a client's connection (Linux `tcp_info`), cumulative since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Transport {
    /// Smoothed round trip, µs.
    pub rtt_us: u32,
    /// Least round trip seen, µs.
    pub min_rtt_us: u32,
    /// Time with data to send, µs.
    pub busy_us: u64,
    /// Time stalled by the peer's receive window, µs.
    pub rwnd_limited_us: u64,
    /// Time stalled by the own send buffer, µs.
    pub sndbuf_limited_us: u64,
    /// Segments sent again.
    pub retransmits: u32,
    /// Segments sent.
    pub segments_out: u32,
    /// Segments received.
    #[serde(default)]
    pub segments_in: u32,
    /// Bytes sent, those sent again included, without headers of TCP and below.
    #[serde(default)]
    pub bytes_out: u64,
    /// Bytes received, likewise.
    #[serde(default)]
    pub bytes_in: u64,
    /// Bytes waiting in the receive queue now: this side does not read fast enough.
    pub unread_bytes: u32,
    /// Bytes sent and not acknowledged, or not sent yet.
    pub unsent_bytes: u32,
}

/// Why a client cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The target is not one we know.
    #[error("target {0:?}: {1}")]
    Target(String, &'static str),
    /// The operating system refused.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The port that was asked for the handle of a share has no MOUNT.
    #[error(
        "no MOUNT version 3 service on port {port} of {host} to look up {path}: append \
         ?mountport=PORT to the target (rpcinfo -p {host} shows the port)"
    )]
    NoMount {
        /// The server.
        host: String,
        /// The port.
        port: u16,
        /// The share.
        path: String,
    },
    /// The server answered an operation of preparation with a failure.
    #[error("{what}: the server returned {status}")]
    Refused {
        /// What was tried.
        what: String,
        /// Name of the status.
        status: String,
    },
    /// The server requires what the target leaves out.
    #[error("{what}: the server requires {needs}")]
    Required {
        /// What was tried.
        what: String,
        /// What it requires, and how the target has it.
        needs: &'static str,
    },
    /// A program has more files open at once than this process may have.
    #[error(
        "the program has up to {needed} files open at once, and a process of this machine may have \
         {limit}: raise that limit (ulimit -n), use fewer threads, or agents"
    )]
    OpenFiles {
        /// What it takes, directories included.
        needed: u64,
        /// What is permitted.
        limit: u64,
    },
    /// A connection over RDMA was not made, or has ended.
    #[error("{what}")]
    Rdma {
        /// What was tried.
        what: String,
        /// Why not.
        source: VerbsError,
    },
    /// The server sent something that the protocol does not allow.
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// The connection ended with operations in flight.
    #[error("the server closed the connection")]
    Closed,
    /// Nothing came back within the time allowed.
    #[error("no reply to {0} within {1:?}")]
    Silent(&'static str, Duration),
}

impl ClientError {
    /// Wraps an error of the system with what was tried.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// A connection to a target with operations in flight. Not shared between threads.
pub trait Client: Send {
    /// Announces what will be done, before [`Client::prepare`].
    ///
    /// # Errors
    /// [`ClientError::Target`]: the protocol has no operation for it.
    fn begin(&mut self, _shape: &Shape) -> Result<(), ClientError> {
        Ok(())
    }

    /// Whether files go from start to end, so that each slot of a sequential workload needs a file
    /// of its own.
    fn streams(&self) -> bool {
        false
    }

    /// Makes the file set exist with its expected content; what is already right is left alone.
    ///
    /// # Errors
    /// When the target refuses or breaks off.
    fn prepare(&mut self, set: &FileSet) -> Result<(), ClientError>;

    /// Removes what [`Client::prepare`] and the workload made.
    ///
    /// # Errors
    /// When the target refuses or breaks off.
    fn clean(&mut self, set: &FileSet) -> Result<(), ClientError>;

    /// Starts `op` in `slot`, which must be free. It may stay in a buffer until
    /// [`Client::flush`].
    ///
    /// # Errors
    /// When the connection is gone.
    fn submit(&mut self, slot: u32, op: Op) -> Result<(), ClientError>;

    /// Sends everything that was submitted.
    ///
    /// # Errors
    /// When the connection is gone.
    fn flush(&mut self) -> Result<(), ClientError>;

    /// Appends finished operations to `done`; returns after the first receive that finished any,
    /// or after `timeout` with none.
    ///
    /// # Errors
    /// When the connection is gone or the peer breaks the protocol.
    fn wait(&mut self, timeout: Duration, done: &mut Vec<Completion>) -> Result<(), ClientError>;

    /// Renews what the server would forget of a client that is silent for long: its lease.
    ///
    /// # Errors
    /// When the connection is gone or the server refuses.
    fn renew(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    /// How many operations the server allows at once, if that is fewer than were asked for.
    fn granted(&self) -> Option<u32> {
        None
    }

    /// Calls made to the service since the connection was opened, preparation included; what the
    /// server should have counted for this client. Of NFSv4, operations of compounds that were
    /// answered.
    fn calls(&self) -> u64 {
        0
    }

    /// What to poll, among others, for [`Client::wait`] to have something.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// TCP statistics, if the client uses TCP.
    fn transport(&self) -> Option<Transport> {
        None
    }
}

/// Blocks of disks, unless a disk has larger ones.
const DISK_BLOCK: u32 = 512;

/// Why a target does not support the load of a job, as far as its protocol alone determines that.
pub fn unsupported(target: &Target, shape: &Shape) -> Option<String> {
    match target {
        Target::Service(at) => service::client::refusal(at.scheme, shape.kind).map(str::to_owned),
        Target::Iscsi(_) | Target::Block(_) => {
            layout::check(shape, DISK_BLOCK).err().map(|error| match error {
                ClientError::Target(kind, why) => format!("{kind} {why}"),
                other => other.to_string(),
            })
        }
        _ => None,
    }
}

/// Why the files of a target cannot be used by their paths, and what to use instead; `None` if they
/// can.
pub fn lacks_files(target: &Target) -> Option<&'static str> {
    match target {
        Target::Null | Target::Path(_) | Target::Nfs3(_) | Target::Nfs4(_) | Target::Smb(_) => None,
        Target::Service(_) => Some(
            "its protocol transfers whole files: use nfs3, nfs4 or smb, or mount the share and use \
             path:/MOUNTPOINT",
        ),
        Target::Iscsi(_) | Target::Block(_) => Some(
            "a disk has no names of files: make a file system on it and use path:/MOUNTPOINT, or \
             use `lab run` with a job",
        ),
        #[cfg(feature = "test-services")]
        Target::Echo(_) => Some("the test service has no files"),
    }
}

/// Connects to the files of `target`; `None` if it has none by path, or is no server.
///
/// # Errors
/// When the target cannot be reached or refuses.
pub fn open_files(
    target: &Target,
    options: &Options,
) -> Result<Option<Box<dyn files::Files>>, ClientError> {
    let checker = || Checker::new(Content::new(options.seed), options.check_one_in);
    Ok(match target {
        Target::Smb(at) => {
            let client = smb::SmbClient::open(at, checker(), options)?;
            Some(Box::new(smb::program::SmbFiles::new(client)))
        }
        Target::Nfs4(at) => {
            let client = nfs4::Nfs4Client::open(at, checker(), options)?;
            Some(Box::new(nfs4::files::Nfs4Files::new(client)))
        }
        Target::Nfs3(at) if at.rdma => {
            let machine = rdma::machine();
            let client = nfs3::Nfs3Client::open_rdma(at, checker(), options, &*machine)?;
            Some(Box::new(nfs3::files::Nfs3Files::new(client)))
        }
        Target::Nfs3(at) => {
            let client = nfs3::Nfs3Client::open(at, checker(), options)?;
            Some(Box::new(nfs3::files::Nfs3Files::new(client)))
        }
        _ => None,
    })
}

/// Opens a client of `target`.
///
/// # Errors
/// When the target cannot be reached or refuses the mount.
pub fn open(target: &Target, options: &Options) -> Result<Box<dyn Client>, ClientError> {
    open_by(target, options, &*rdma::machine())
}

/// The same with other devices of RDMA than this machine's.
///
/// # Errors
/// As [`open`].
pub fn open_by(
    target: &Target,
    options: &Options,
    verbs: &dyn Verbs,
) -> Result<Box<dyn Client>, ClientError> {
    let checker = Checker::new(Content::new(options.seed), options.check_one_in);
    Ok(match target {
        Target::Null => Box::new(null::NullClient::new()),
        Target::Path(dir) => Box::new(path::PathClient::open(dir, checker)?),
        Target::Block(path) => Box::new(block::BlockClient::open(path, checker)?),
        Target::Iscsi(at) => Box::new(iscsi::IscsiClient::open(at, checker, options)?),
        Target::Service(at) => {
            Box::new(service::client::ServiceClient::open(at, checker, options.bind)?)
        }
        Target::Smb(at) => Box::new(smb::SmbClient::open(at, checker, options)?),
        Target::Nfs4(at) => Box::new(nfs4::Nfs4Client::open(at, checker, options)?),
        Target::Nfs3(at) if at.rdma => {
            Box::new(nfs3::Nfs3Client::open_rdma(at, checker, options, verbs)?)
        }
        Target::Nfs3(at) => Box::new(nfs3::Nfs3Client::open(at, checker, options)?),
        #[cfg(feature = "test-services")]
        Target::Echo(at) => Box::new(echo::EchoClient::open(at, options.bind)?),
    })
}
