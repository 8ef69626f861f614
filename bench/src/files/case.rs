//! What is moved: protocol, direction, size of the files, number of streams.

use lab::client::service::at::Scheme;

use super::Wanted;

/// Bytes of a small file.
pub const SMALL: u64 = 4096;
/// Streams at once.
const STREAMS: [u32; 2] = [1, 8];

/// The protocols, in the order of the table; those with protection use AES-128-GCM where the server
/// has it. HTTP is one kept connection; files are put as WebDAV does.
pub const PROTOCOLS: [Scheme; 5] =
    [Scheme::Ftp, Scheme::Ftps, Scheme::Sftp, Scheme::Http, Scheme::Https];

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// From the server.
    Download,
    /// To the server.
    Upload,
}

impl Work {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Download, Self::Upload];

    /// As tables say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}

/// A case: a group of rows of the table.
#[derive(Debug, Clone)]
pub struct Case {
    /// Over what.
    pub protocol: Scheme,
    /// Which way.
    pub work: Work,
    /// Connections at once, each with files of its own.
    pub streams: u32,
    /// Files at most, all streams together.
    pub files: u32,
    /// Bytes of each.
    pub size: u64,
}

impl Case {
    /// Whether the files are small: files are counted, not bytes.
    pub fn is_small(&self) -> bool {
        self.size == SMALL
    }

    /// Name in the tables, as `ftps upload 4K x8`.
    pub fn name(&self) -> String {
        let size = match (self.size * u64::from(self.files)) >> 20 {
            _ if self.is_small() => "4K".to_owned(),
            mib if mib % 1024 == 0 => format!("{}G", mib / 1024),
            mib => format!("{mib}M"),
        };
        format!("{} {} {size} x{}", self.protocol.name(), self.work.name(), self.streams)
    }
}

/// All cases, in the order of the table.
pub fn all(wanted: &Wanted) -> Vec<Case> {
    let mut all = Vec::new();
    for protocol in PROTOCOLS {
        for work in Work::BOTH {
            for streams in STREAMS {
                let size = (wanted.mib << 20) / u64::from(streams);
                all.push(Case { protocol, work, streams, files: streams, size });
            }
            for streams in STREAMS {
                let files = wanted.files;
                all.push(Case { protocol, work, streams, files, size: SMALL });
            }
        }
    }
    all
}
