//! Files by their paths, one call at a time: what programs in the language of Filebench need of a
//! protocol. Each thread of a program has a connection of its own.

use super::ClientError;

/// Bytes of one READ or WRITE: what servers accept. Longer transfers are several calls.
pub const PIECE_MAX: u64 = 1 << 20;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenHow {
    /// An existing file, to read and write.
    Both,
    /// An existing file, to read.
    Read,
    /// An existing file, to write.
    Write,
    /// A file that does not exist, which is created, to read and write.
    New,
}

/// What a name leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Whether it is a directory.
    pub directory: bool,
    /// Bytes.
    pub size: u64,
}

/// Files of a target. Paths are below its directory, with `/` between names; open files have
/// numbers that the caller chooses.
///
/// A status of the server is [`ClientError::Refused`]; after any other error the connection is not
/// used again.
pub trait Files: Send {
    /// Opens a file at a free number; its size.
    ///
    /// # Errors
    /// The server refuses, or the connection is gone.
    fn open(&mut self, fd: usize, path: &str, how: OpenHow) -> Result<u64, ClientError>;

    /// Closes a file.
    ///
    /// # Errors
    /// As [`Files::open`].
    fn close(&mut self, fd: usize) -> Result<(), ClientError>;

    /// Reads at most [`PIECE_MAX`] bytes; how many, 0 at the end of the file.
    ///
    /// # Errors
    /// As [`Files::open`].
    fn read(&mut self, fd: usize, offset: u64, out: &mut [u8]) -> Result<usize, ClientError>;

    /// Writes at most [`PIECE_MAX`] bytes; how many.
    ///
    /// # Errors
    /// As [`Files::open`].
    fn write(
        &mut self,
        fd: usize,
        offset: u64,
        data: &[u8],
        stable: bool,
    ) -> Result<usize, ClientError>;

    /// Makes stable what was written.
    ///
    /// # Errors
    /// As [`Files::open`], and when the server has lost data that was not stable.
    fn flush(&mut self, fd: usize) -> Result<(), ClientError>;

    /// Size of an open file.
    ///
    /// # Errors
    /// As [`Files::open`].
    fn size(&mut self, fd: usize) -> Result<u64, ClientError>;

    /// Sets the size of an open file.
    ///
    /// # Errors
    /// As [`Files::open`].
    fn truncate(&mut self, fd: usize, size: u64) -> Result<(), ClientError>;

    /// What a path leads to; none if nothing has this name.
    ///
    /// # Errors
    /// As [`Files::open`].
    fn look(&mut self, path: &str) -> Result<Option<Entry>, ClientError>;

    /// Removes a file.
    ///
    /// # Errors
    /// As [`Files::open`].
    fn remove(&mut self, path: &str) -> Result<(), ClientError>;

    /// Makes a directory, which must not exist.
    ///
    /// # Errors
    /// As [`Files::open`].
    fn make_directory(&mut self, path: &str) -> Result<(), ClientError>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// As [`Files::open`].
    fn remove_directory(&mut self, path: &str) -> Result<(), ClientError>;

    /// Passes on the names in a directory, without `.` and `..`.
    ///
    /// # Errors
    /// As [`Files::open`].
    fn list(&mut self, path: &str, each: &mut dyn FnMut(&str)) -> Result<(), ClientError>;

    /// Closes all files and leaves the server.
    ///
    /// # Errors
    /// As [`Files::open`].
    fn leave(&mut self) -> Result<(), ClientError>;

    /// Calls that the server has answered, by its names for them.
    fn counts(&self) -> Vec<(&'static str, u64)>;
}

/// That no file is open at a number, which is a fault of the caller.
pub fn not_open() -> ClientError {
    let (what, status) = ("use a file".to_owned(), "no file is open there".to_owned());
    ClientError::Refused { what, status }
}

/// That the server lost what was not stable yet.
pub fn lost() -> ClientError {
    let status = super::Fault::VerifierChanged.to_string();
    ClientError::Refused { what: "commit".to_owned(), status }
}

/// A path without its last name, and that name.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
