//! What a tree of files can do for a side of a run. Paths are those of `wire::dsync`: names joined
//! by `/`, from the top; the caller has checked them with [`is_path`].

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use base::limits::DSYNC_NAME_OVERHEAD;
use wire::dsync::{FileId, Kind, Meta};

use crate::index;
use crate::lends::How;
use crate::memory::{Reserved, RunMemory};

pub mod aside;
pub mod entry;
pub mod host;
pub mod path;

pub use entry::{ScannedEntry, Stamp};
pub use path::{is_name, is_path, join, split};

/// What a tree can do. Nothing of it follows a symbolic link or leads out of the tree.
pub trait Tree: Send + Sync + 'static {
    /// A directory that was opened.
    type Dir: Send + Sync;
    /// A file that was opened.
    type File: Send + Sync;

    /// The run has ended, and another may begin; a thread of this one that tries an address which
    /// is not needed any more may still hold the tree.
    fn end(&self) {}

    /// How long its disk was waited for, over all threads, in nanoseconds.
    fn waited_ns(&self) -> u64 {
        0
    }

    /// What is kept of it from one run to the next.
    fn index(&self) -> Option<&index::Side> {
        None
    }

    /// What a run may hold in memory.
    fn memory(&self) -> &Arc<RunMemory>;

    /// The finest difference of times of change that is kept in a directory, in nanoseconds: a time
    /// that was given may be so much earlier when it is looked at.
    fn time_step_ns(&self, _dir: &Self::Dir) -> u64 {
        1
    }

    /// Opens a directory.
    fn dir(&self, path: &[u8]) -> io::Result<Self::Dir>;
    /// The names in a directory, by their bytes, without `.` and `..`, and the memory that they
    /// take; an error if there are more than may be held.
    fn names(&self, dir: &Self::Dir) -> io::Result<(Vec<Vec<u8>>, Reserved)>;
    /// What an entry is; of the directory itself for the empty name.
    fn look(&self, dir: &Self::Dir, name: &[u8]) -> io::Result<ScannedEntry>;

    /// Opens a regular file for reading.
    fn open(&self, dir: &Self::Dir, name: &[u8]) -> io::Result<Self::File>;
    /// What an open file is now.
    fn look_open(&self, file: &Self::File) -> io::Result<ScannedEntry>;
    /// What shows whether an open file is as it was.
    fn stamp(&self, file: &Self::File) -> io::Result<Stamp> {
        Ok(self.look_open(file)?.stamp())
    }
    /// Where the next data is from `offset` on: its begin and end. `None` after the last.
    fn next_data(&self, file: &Self::File, offset: u64) -> io::Result<Option<(u64, u64)>>;
    /// Reads some bytes; 0 at the end.
    fn read(&self, file: &Self::File, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Bytes that this process may still write in a directory.
    fn room(&self, dir: &Self::Dir) -> io::Result<u64>;
    /// Makes an empty file for writing. The name must be new.
    fn create(&self, dir: &Self::Dir, name: &[u8]) -> io::Result<Self::File>;
    /// Opens what [`Tree::create`] has made in a run that broke off, for reading and writing; an
    /// error if another user could have made it, or could change it.
    fn take_up(&self, dir: &Self::Dir, name: &[u8]) -> io::Result<Self::File>;
    /// Opens a file of one name for reading and writing, if it is still this one.
    fn open_in_place(&self, dir: &Self::Dir, name: &[u8], file: &FileId) -> io::Result<Self::File>;
    /// Takes rights off a file that its new content may not have.
    fn restrict(&self, file: &Self::File, mode: u32) -> io::Result<()>;
    /// Makes a file so long, with what it has of that, and a hole behind the first `kept` bytes.
    fn cut(&self, file: &Self::File, kept: u64, size: u64) -> io::Result<()>;
    /// Makes a file so long, with nothing but holes where nothing was written.
    fn set_size(&self, file: &Self::File, size: u64) -> io::Result<()> {
        self.cut(file, 0, size)
    }
    /// Writes all bytes.
    fn write(&self, file: &Self::File, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes a hole of a range within a file; an error where that cannot be.
    fn punch(&self, _file: &Self::File, _offset: u64, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// An open file, for a destination in this process; nothing if files of this tree cannot be
    /// lent.
    fn lend(&self, _file: &Self::File) -> io::Result<Option<OwnedFd>> {
        Ok(None)
    }
    /// Has the kernel take a range over from a file that is lent, at its place there; nothing if it
    /// cannot.
    fn borrow(
        &self,
        _from: &OwnedFd,
        _to: &Self::File,
        _offset: u64,
        _length: u64,
    ) -> io::Result<Option<How>> {
        Ok(None)
    }
    /// Lets a range of a file share its place with one of another, from and to the given offsets;
    /// whether that was possible.
    fn share(&self, _from: (&Self::File, u64), _to: (&Self::File, u64), _length: u64) -> bool {
        false
    }
    /// Sets the metadata of an open file to `wanted`, owners and extended attributes if `keep` has
    /// them.
    fn set_open(&self, file: &Self::File, wanted: &Meta, keep: Keep) -> io::Result<()>;

    /// As [`Tree::set_open`], for an entry (the directory itself for the empty name).
    fn set(&self, dir: &Self::Dir, name: &[u8], wanted: &Meta, keep: Keep) -> io::Result<()>;
    /// Lets this process work in a directory, if it lies with its owner to do that. Whether that
    /// has changed its mode, which is then to be set again.
    fn enable(&self, dir: &Self::Dir, name: &[u8]) -> io::Result<bool>;
    /// Makes a directory that only its owner may enter yet.
    fn make_dir(&self, dir: &Self::Dir, name: &[u8]) -> io::Result<()>;
    /// Makes a symbolic link, FIFO, socket or device.
    fn make_node(&self, dir: &Self::Dir, name: &[u8], meta: &Meta) -> io::Result<()>;
    /// Gives a file another name, which must be new.
    fn link(&self, file: (&Self::Dir, &[u8]), to: (&Self::Dir, &[u8])) -> io::Result<()>;
    /// Renames an entry within its directory, and replaces what had the name.
    fn rename(&self, dir: &Self::Dir, from: &[u8], to: &[u8]) -> io::Result<()>;
    /// Takes an entry away; a directory must be empty.
    fn remove(&self, dir: &Self::Dir, name: &[u8], kind: Kind) -> io::Result<()>;
    /// Brings everything to the disk.
    fn flush(&self) -> io::Result<()>;
    /// Whether the top is not there, or was made for this run.
    fn is_new(&self) -> bool;
    /// Whether this process may give files away.
    fn may_own(&self) -> bool;
    /// What a user, or a group, of this number is called here.
    fn owner_name(&self, group: bool, number: u32) -> Option<Vec<u8>>;
    /// The number of a user, or of a group, of this name.
    fn owner_number(&self, group: bool, name: &[u8]) -> Option<u32>;
    /// Takes out of `meta` the extended attributes that this tree cannot hold.
    fn prune(&self, meta: &mut Meta);
}

/// The names of a directory while it is read: as many as a run holds.
#[derive(Debug)]
pub struct Names {
    names: Vec<Vec<u8>>,
    held: Reserved,
}

impl Names {
    /// None yet.
    pub fn new(memory: &Arc<RunMemory>) -> Self {
        Self { names: Vec::new(), held: memory.reserve() }
    }

    /// One more.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn push(&mut self, name: &[u8]) -> io::Result<()> {
        self.held
            .grow(name.len() as u64 + DSYNC_NAME_OVERHEAD)
            .map_err(|full| io::Error::other(format!("too many names in the directory: {full}")))?;
        self.names.push(name.to_vec());
        Ok(())
    }

    /// All of them, by their bytes.
    pub fn sorted(mut self) -> (Vec<Vec<u8>>, Reserved) {
        self.names.sort_unstable();
        (self.names, self.held)
    }
}

/// What is kept of a file's metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Owner and group.
    pub owners: bool,
    /// Extended attributes.
    pub xattrs: bool,
}

/// Reads until there is no room or nothing more: how much that was, and whether an error ended it.
pub fn fill<T: Tree>(
    tree: &T,
    file: &T::File,
    bytes: &mut [u8],
    offset: u64,
) -> (usize, io::Result<()>) {
    let mut done = 0;
    while done < bytes.len() {
        let Some(at) = offset.checked_add(done as u64) else {
            return (done, Err(io::ErrorKind::InvalidInput.into()));
        };
        match tree.read(file, &mut bytes[done..], at) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) => return (done, Err(e)),
        }
    }
    (done, Ok(()))
}

#[cfg(test)]
mod tests;
