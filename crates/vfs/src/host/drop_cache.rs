//! The files of a share out of the page cache ([`crate::cache_drop`]): a walk that stays on the
//! file system of the share, follows no symbolic link, and leaves out what the share hides.
//!
//! A file that we hold is written back as COMMIT does it: a failure then reaches the clients of the
//! lost writes, and not only the caller of this.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cache_drop::{CacheDrop, CachedFile};
use crate::fs::{Durable, Result};
use crate::host::acting::CredGuard;
use crate::host::durable::NodeFlush;
use crate::host::flush_state::Waiter;
use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::stream::Stream;
use crate::host::{HostFs, sys};
use crate::mapped::Sending;
use crate::status::Status;

/// Directories on top of each other that are entered: each holds a descriptor and a buffer.
const DEEP_MAX: usize = 256;

impl HostFs {
    /// Drops the files below a directory of the share, as the server. `more` is asked before each
    /// name with what was done so far; true is returned when all was done.
    ///
    /// # Errors
    /// There is no such directory.
    pub fn drop_cache(
        &self,
        below: &Path,
        more: &mut dyn FnMut(&CacheDrop) -> bool,
    ) -> Result<(CacheDrop, bool)> {
        let _server = CredGuard::as_server()?;
        let mut found = CacheDrop::default();
        let mut open = vec![self.begin(below)?];
        while let Some(dir) = open.last_mut() {
            if !more(&found) {
                return Ok((found, false));
            }
            let next = dir.peek().map(|dent| dent.and_then(|dent| CString::new(dent.name).ok()));
            dir.pass();
            match next {
                Ok(Some(name)) if [c".", c".."].contains(&name.as_c_str()) => {}
                Ok(Some(name)) => {
                    let below = self.drop_name(dir.fd(), &name, &mut found);
                    match below {
                        Some(below) if open.len() < DEEP_MAX => open.push(below),
                        Some(below) => found.fail(|| {
                            let name = name_of(below.fd());
                            format!("{name}: more than {DEEP_MAX} directories deep")
                        }),
                        None => {}
                    }
                }
                Ok(None) => drop(open.pop()),
                Err(status) => {
                    found.fail(|| format!("{}: {status}", name_of(dir.fd())));
                    open.pop();
                }
            }
        }
        Ok((found, true))
    }

    /// The directory at which it begins, given relative to the share.
    fn begin(&self, below: &Path) -> Result<Stream> {
        let mut at = sys::same(self.root.fd())?;
        for part in below.components() {
            let name = match part {
                Component::Normal(name) => name,
                Component::RootDir | Component::CurDir => continue,
                _ => return Err(Status::Invalid),
            };
            let name = CString::new(name.as_encoded_bytes()).map_err(|_| Status::Invalid)?;
            let fd = sys::open_at2(at.as_fd(), &name, libc::O_PATH | libc::O_DIRECTORY, RESOLVE)?;
            let st = sys::stat(fd.as_fd())?;
            if st.st_dev != self.dev || self.hidden(st.st_ino) {
                return Err(Status::NotFound);
            }
            at = fd;
        }
        list(at.as_fd())
    }

    /// Drops what a name leads to, if it is a file; a directory is returned, to be entered.
    fn drop_name(
        &self,
        dir: BorrowedFd<'_>,
        name: &CString,
        found: &mut CacheDrop,
    ) -> Option<Stream> {
        let fd = match sys::open_at2(dir, name, libc::O_PATH, RESOLVE) {
            Ok(fd) => fd,
            Err(error) => {
                // It is gone, or another file system is mounted there.
                if !matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EXDEV)) {
                    found.fail(|| format!("{}: {error}", below(dir, name)));
                }
                return None;
            }
        };
        let st = sys::stat(fd.as_fd()).ok()?;
        if st.st_dev != self.dev || self.hidden(st.st_ino) {
            return None;
        }
        match st.st_mode & libc::S_IFMT {
            libc::S_IFDIR => match list(fd.as_fd()) {
                Ok(stream) => Some(stream),
                Err(status) => {
                    found.fail(|| format!("{}: {status}", below(dir, name)));
                    None
                }
            },
            libc::S_IFREG => {
                let size = u64::try_from(st.st_size).unwrap_or(0);
                match open(&fd) {
                    Ok(fd) => self.drop_file(&fd, st.st_ino, size, found),
                    Err(error) => found.fail(|| format!("{}: {error}", below(dir, name))),
                }
                None
            }
            _ => None,
        }
    }

    fn drop_file(&self, fd: &OwnedFd, ino: u64, size: u64, found: &mut CacheDrop) {
        let node = self.nodes.by_ino(ino);
        found.take(&CachedFile {
            fd: fd.as_fd(),
            size,
            unwritten: node.as_ref().is_some_and(|node| node.flush.is_dirty()),
            write_back: &|| match &node {
                Some(node) => self.write_back(node),
                None => sys::sync(fd.as_fd(), true).map_err(|error| {
                    // The writes of a client may be among what is lost: the write verifier changes.
                    self.shared.failures.fetch_add(1, Ordering::Relaxed);
                    Status::from(error)
                }),
            },
            unmap: &|| {
                let mut sending = Sending::default();
                let files = node.iter().flat_map(|node| lock(&node.files).clone());
                files.for_each(|file| sending.join(file.windows.clear()));
                sending
            },
            name: &|| name_of(fd.as_fd()),
        });
    }

    fn write_back(&self, node: &Arc<Node>) -> Result<()> {
        let flush = NodeFlush {
            node: Arc::clone(node),
            fd: None,
            data_only: true,
            // No change of a client waits for this flush.
            waiter: Waiter::Change(0),
            shared: Arc::clone(&self.shared),
        };
        flush.flush()
    }
}

/// No other file system, no symbolic link, nothing above.
const RESOLVE: u64 = sys::NO_XDEV | sys::NO_SYMLINKS | sys::BENEATH;

/// Opens a file for reading, without a trace in its access time where that is permitted.
fn open(fd: &OwnedFd) -> std::io::Result<OwnedFd> {
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
    sys::reopen(fd.as_fd(), flags | libc::O_NOATIME).or_else(|_| sys::reopen(fd.as_fd(), flags))
}

fn list(dir: BorrowedFd<'_>) -> Result<Stream> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY;
    let fd = sys::open_at(dir, c".", flags | libc::O_NOATIME, 0)
        .or_else(|_| sys::open_at(dir, c".", flags, 0))?;
    Ok(Stream::new(fd))
}

/// The path that the kernel knows.
fn name_of(fd: BorrowedFd<'_>) -> String {
    let path = sys::path_of(fd).unwrap_or_default();
    String::from_utf8_lossy(&path).into_owned()
}

fn below(dir: BorrowedFd<'_>, name: &CString) -> String {
    format!("{}/{}", name_of(dir), name.to_string_lossy())
}
