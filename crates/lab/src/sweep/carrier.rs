//! The carriers, and what is known of each without measuring.

use crate::client::service::at::Scheme;
use base::limits::{IO_SIZE_MAX, LAB_SFTP_FLIGHT};
use serde::{Deserialize, Serialize};

/// What carries data over the link of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// A block, then nothing until all of it is acknowledged.
    StopAndWait,
    /// TCP with a window that is set.
    Stream,
    /// Sequential reads over NFSv3, one at a time on each connection.
    NfsRead,
    /// Sequential writes over NFSv3, one at a time on each connection.
    NfsWrite,
    /// Whole files over FTP, to a receiver with a fixed window.
    Ftp,
    /// The same with TLS.
    Ftps,
    /// The same over HTTPS.
    Https,
    /// The same over SFTP.
    Sftp,
    /// One large file by dsync to a share, on as many streams as instances.
    Dsync,
}

/// How a carrier carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A block at a time over a connection of its own.
    StopAndWait,
    /// Bytes over a connection of its own.
    Stream,
    /// Reads or writes over NFSv3.
    Nfs,
    /// Whole files, asked for by this scheme.
    Files(Scheme),
    /// A run of dsync.
    Dsync,
}

impl Carrier {
    /// How it carries.
    pub fn kind(self) -> Kind {
        match self {
            Self::StopAndWait => Kind::StopAndWait,
            Self::Stream => Kind::Stream,
            Self::NfsRead | Self::NfsWrite => Kind::Nfs,
            Self::Ftp => Kind::Files(Scheme::Ftp),
            Self::Ftps => Kind::Files(Scheme::Ftps),
            Self::Https => Kind::Files(Scheme::Https),
            Self::Sftp => Kind::Files(Scheme::Sftp),
            Self::Dsync => Kind::Dsync,
        }
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::StopAndWait => "stop-and-wait",
            Self::Stream => "TCP stream",
            Self::NfsRead => "NFSv3 reads",
            Self::NfsWrite => "NFSv3 writes",
            Self::Dsync => "dsync",
            Self::Ftp | Self::Ftps | Self::Https | Self::Sftp => {
                self.service().map_or("", Scheme::title)
            }
        }
    }

    /// Whether each connection sends a block and waits for its acknowledgement; else a window
    /// is kept full.
    pub fn waits(self) -> bool {
        matches!(self, Self::StopAndWait | Self::NfsRead | Self::NfsWrite)
    }

    /// The service by which whole files come, if it is one.
    pub fn service(self) -> Option<Scheme> {
        match self.kind() {
            Kind::Files(scheme) => Some(scheme),
            Kind::StopAndWait | Kind::Stream | Kind::Nfs | Kind::Dsync => None,
        }
    }

    /// Windows that are measured unless others are wanted, bytes. That of dsync is not set, and is
    /// large enough to be no limit.
    pub fn windows(self) -> Vec<u64> {
        match self {
            Self::Dsync => vec![4 << 20],
            _ => vec![64 << 10, 256 << 10, 1 << 20],
        }
    }

    /// The largest block or window that the protocol itself allows in flight, bytes; `None` when it
    /// sets none. Of SFTP half of what its client requests ahead, so that TCP's window is what a
    /// point is about.
    pub fn window_max(self) -> Option<u64> {
        match self {
            Self::NfsRead | Self::NfsWrite => Some(IO_SIZE_MAX.into()),
            Self::Sftp => Some(LAB_SFTP_FLIGHT as u64 / 2),
            _ => None,
        }
    }
}
