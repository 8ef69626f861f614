//! The readers of an interleaved run: a file that is open is read to its end, whatever happens to
//! its name.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;

use base::random::{Random, SeededRandom};
use e2e::http::Http;
use e2e::sftp::Sftp;
use wire::sftp::OpenFlags;

use super::clients::Clients;

/// Largest READ of SFTP.
const READ_MAX: usize = 32_768;

/// How a file is open.
enum Source {
    /// On the server itself.
    Local(File),
    /// A download that has begun.
    Http(Http),
    /// A handle.
    Sftp(Box<Sftp>, Vec<u8>),
}

/// A file that is open, and what it had when it was opened.
pub struct Reader {
    source: Source,
    server: Option<usize>,
    at: usize,
    wanted: Vec<u8>,
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            Source::Local(_) => "a program",
            Source::Http(_) => "HTTP",
            Source::Sftp(..) => "SFTP",
        };
        write!(f, "{source} of {:?}", self.server)
    }
}

impl Reader {
    /// Opens a file that has these bytes, somehow.
    pub fn open(
        clients: &Clients<'_>,
        random: &mut SeededRandom,
        (name, wanted): (&str, Vec<u8>),
    ) -> Self {
        let (server, path) = (random.below(2) as usize, format!("/box/{name}"));
        let source = match random.below(3) {
            0 => Source::Local(File::open(clients.dir.join(name)).expect("a file")),
            1 => {
                let mut http = clients.http(server);
                http.begin(("GET", path.as_bytes()), b"", 0, b"").expect("a request");
                assert_eq!(http.head().expect("an answer").0, 200);
                Source::Http(http)
            }
            _ => {
                let mut sftp = clients.sftp(server);
                let handle = sftp.open(&path, OpenFlags::READ).expect("SFTP").expect("opened");
                Source::Sftp(Box::new(sftp), handle)
            }
        };
        let server = (!matches!(source, Source::Local(_))).then_some(server);
        Self { source, server, at: 0, wanted }
    }

    /// Through which server it reads.
    pub fn server(&self) -> Option<usize> {
        self.server
    }

    /// Reads on; whether it is at the end.
    pub fn read(&mut self, count: usize) -> bool {
        let left = self.wanted.len() - self.at;
        let got = match &mut self.source {
            Source::Local(file) => {
                let mut data = vec![0; count];
                let got = file.read_at(&mut data, self.at as u64).expect("a reader is not cut off");
                data.truncate(got);
                data
            }
            Source::Http(http) => http.read(count.min(left)).expect("a download is not cut off"),
            Source::Sftp(sftp, handle) => {
                let count = count.min(READ_MAX) as u32;
                let got = sftp.read(handle, self.at as u64, count).expect("SFTP");
                got.expect("an open handle reads on")
            }
        };
        let wanted = self.wanted[self.at..].get(..got.len());
        assert!(wanted == Some(&got[..]), "another file at {} for {self}", self.at);
        self.at += got.len();
        assert!(!got.is_empty() || left == 0, "cut off at {} for {self}", self.at);
        got.is_empty()
    }
}
