//! Who carries, and what is known of each without measuring.

use crate::client::service::at::Scheme;
use base::limits::{IO_SIZE_MAX, LAB_SFTP_FLIGHT};
use serde::{Deserialize, Serialize};

/// Who carries.
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
    /// Whole files over FTP, to a receiver whose window is set.
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

impl Carrier {
    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::StopAndWait => "stop and wait",
            Self::Stream => "TCP stream",
            Self::NfsRead => "NFSv3 reads",
            Self::NfsWrite => "NFSv3 writes",
            Self::Ftp => "FTP",
            Self::Ftps => "FTPS",
            Self::Https => "HTTPS",
            Self::Sftp => "SFTP",
            Self::Dsync => "dsync",
        }
    }

    /// Whether each connection sends a block and waits for its acknowledgement; else a window
    /// is kept full.
    pub fn waits(self) -> bool {
        matches!(self, Self::StopAndWait | Self::NfsRead | Self::NfsWrite)
    }

    /// The service by which whole files come, if it is one.
    pub fn service(self) -> Option<Scheme> {
        match self {
            Self::Ftp => Some(Scheme::Ftp),
            Self::Ftps => Some(Scheme::Ftps),
            Self::Https => Some(Scheme::Https),
            Self::Sftp => Some(Scheme::Sftp),
            Self::StopAndWait | Self::Stream | Self::NfsRead | Self::NfsWrite | Self::Dsync => None,
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

    /// The largest block or window that the protocol itself lets be under way, bytes; `None` when
    /// it sets none. Of SFTP half of what its client asks for ahead, so that TCP's window is
    /// what a point is about.
    pub fn window_max(self) -> Option<u64> {
        match self {
            Self::NfsRead | Self::NfsWrite => Some(IO_SIZE_MAX.into()),
            Self::Sftp => Some(LAB_SFTP_FLIGHT as u64 / 2),
            _ => None,
        }
    }
}
