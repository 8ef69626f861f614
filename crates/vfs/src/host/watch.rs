//! Detects changes of files by other programs on this host: inotify(7) on files of which clients
//! may trust the data that they have read, and on directories of which clients wait for changes.
//! Without it clients with a delegation would not notice a program that writes into the share.
//!
//! Operations of the server on such a file have recalled the delegations before.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use base::limits::WATCH_EVENTS_BYTES;

use crate::attr::FileType;
use crate::fs::{Context, Result, Watch};
use crate::handle::Handle;
use crate::host::HostFs;
use crate::host::lock::lock;
use crate::locks::FileKey;
use crate::notice::Changes;
use crate::status::Status;

/// What was changed, by this server or another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// A file, or it is about to be.
    File(FileKey),
    /// Something in a directory.
    Directory(FileKey, Changes),
}

/// Called with what was changed.
pub type OnChange = Box<dyn Fn(Changed) + Send + Sync>;

/// What is a change: of data, of attributes, of the file's last name.
const CHANGES: u32 = libc::IN_MODIFY | libc::IN_ATTRIB | libc::IN_MOVE_SELF | libc::IN_DELETE_SELF;
/// The same of a directory, with what is in it.
const NAMES: u32 = libc::IN_CREATE
    | libc::IN_DELETE
    | libc::IN_MOVED_FROM
    | libc::IN_MOVED_TO
    | libc::IN_MOVE_SELF
    | libc::IN_DELETE_SELF;
const DIRECTORY_CHANGES: u32 = NAMES | libc::IN_MODIFY | libc::IN_ATTRIB;
/// Bytes of `struct inotify_event` before the name, which events in directories have.
const EVENT_LEN: usize = 16;

/// The watched files of one back end.
#[derive(Default)]
pub struct Watcher {
    running: OnceLock<Option<Running>>,
    listener: OnceLock<OnChange>,
    files: Mutex<HashMap<i32, Watched>>,
}

struct Running {
    inotify: OwnedFd,
    /// Closed when the watcher goes, which ends the thread.
    _end: OwnedFd,
}

#[derive(Debug, Clone, Copy)]
struct Watched {
    key: FileKey,
    is_dir: bool,
    /// Watches of this file.
    count: usize,
}

/// A file is watched as long as this lives.
pub struct Guard {
    watcher: Arc<Watcher>,
    wd: i32,
}

impl Watcher {
    /// Reports changes to `listener` from now on. Only the first call has an effect.
    pub fn set_listener(&self, listener: OnChange) {
        // A second receiver is not needed: the first gets all changes.
        let _ = self.listener.set(listener);
    }

    /// Watches the file or directory behind `fd`.
    ///
    /// # Errors
    /// The kernel has no more watches for this process, the file cannot be read, or no receiver is
    /// set.
    pub fn watch(
        self: &Arc<Self>,
        fd: BorrowedFd<'_>,
        (key, is_dir): (FileKey, bool),
    ) -> io::Result<Guard> {
        let refused = || io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        if self.listener.get().is_none() {
            return Err(refused());
        }
        let running = self.running.get_or_init(|| start(Arc::downgrade(self)).ok());
        let inotify = &running.as_ref().ok_or_else(refused)?.inotify;
        let path = CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
        let mask = if is_dir { DIRECTORY_CHANGES | libc::IN_ONLYDIR } else { CHANGES };
        let mut files = lock(&self.files);
        // SAFETY: an open descriptor and a string that ends with NUL.
        let wd = unsafe { libc::inotify_add_watch(inotify.as_raw_fd(), path.as_ptr(), mask) };
        if wd < 0 {
            return Err(io::Error::last_os_error());
        }
        files.entry(wd).or_insert(Watched { key, is_dir, count: 0 }).count += 1;
        Ok(Guard { watcher: Arc::clone(self), wd })
    }

    /// Files that are watched.
    pub fn count(&self) -> usize {
        lock(&self.files).len()
    }

    fn changed(&self, wd: i32, mask: u32) {
        let mut files = lock(&self.files);
        let changed: Vec<_> = match mask & libc::IN_Q_OVERFLOW {
            0 => files.get(&wd).map(|watched| watched.changed(kinds(mask))).into_iter().collect(),
            // Some were lost: it may have been any.
            _ => files.values().map(|watched| watched.changed(Changes::ALL)).collect(),
        };
        if mask & libc::IN_IGNORED != 0 {
            files.remove(&wd);
        }
        drop(files);
        if let Some(listener) = self.listener.get() {
            changed.into_iter().for_each(listener);
        }
    }
}

impl Watched {
    const fn changed(&self, kinds: Changes) -> Changed {
        if self.is_dir { Changed::Directory(self.key, kinds) } else { Changed::File(self.key) }
    }
}

/// What an event in a directory is about.
fn kinds(mask: u32) -> Changes {
    [
        (NAMES, Changes::NAMES),
        (libc::IN_ATTRIB, Changes::ATTRIBUTES),
        (libc::IN_MODIFY, Changes::DATA),
    ]
    .into_iter()
    .filter(|(bits, _)| mask & bits != 0)
    .fold(Changes::NONE, |all, (_, kind)| all.with(kind))
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut files = lock(&self.watcher.files);
        let Some(watched) = files.get_mut(&self.wd) else { return };
        watched.count -= 1;
        if watched.count == 0 {
            files.remove(&self.wd);
            if let Some(Some(running)) = self.watcher.running.get() {
                // SAFETY: plain numbers; a watch that is gone is no harm.
                unsafe { libc::inotify_rm_watch(running.inotify.as_raw_fd(), self.wd) };
            }
        }
    }
}

/// Starts the thread that reads the events of the kernel.
fn start(watcher: Weak<Watcher>) -> io::Result<Running> {
    // SAFETY: no memory is involved; the result is checked, and owned here alone.
    let inotify = unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) };
    let inotify = match inotify {
        fd if fd >= 0 => unsafe { OwnedFd::from_raw_fd(fd) },
        _ => return Err(io::Error::last_os_error()),
    };
    let (ends, end) = io::pipe()?;
    let (ends, end) = (OwnedFd::from(ends), OwnedFd::from(end));
    let events = inotify.try_clone()?;
    let read = move || {
        let mut buf = vec![0; WATCH_EVENTS_BYTES];
        while wait(&events, &ends) {
            let Some(watcher) = watcher.upgrade() else { return };
            read_events(&events, &mut buf, &watcher);
        }
    };
    std::thread::Builder::new().name("watch".to_owned()).spawn(read)?;
    Ok(Running { inotify, _end: end })
}

/// Waits for events. False at the end.
fn wait(events: &OwnedFd, ends: &OwnedFd) -> bool {
    let entry =
        |fd: &OwnedFd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut both = [entry(events), entry(ends)];
    loop {
        // SAFETY: two valid entries.
        let ready = unsafe { libc::poll(both.as_mut_ptr(), 2, -1) };
        if ready > 0 {
            return both[1].revents == 0;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
}

fn read_events(events: &OwnedFd, buf: &mut [u8], watcher: &Watcher) {
    // SAFETY: the buffer is ours, and as long as we say.
    let n = unsafe { libc::read(events.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len()) };
    let mut rest = buf.get(..usize::try_from(n).unwrap_or(0)).unwrap_or_default();
    while let Some((head, after)) = rest.split_first_chunk::<EVENT_LEN>() {
        let word = |at: usize| {
            let bytes = head.get(at..at + 4).and_then(|four| four.try_into().ok());
            bytes.map_or(0, u32::from_ne_bytes)
        };
        // wd, mask, cookie, length of the name.
        watcher.changed(word(0) as i32, word(4));
        rest = after.get(word(12) as usize..).unwrap_or_default();
    }
}

impl HostFs {
    /// Reports changes of watched files by anything but this server to `listener`. Only the first
    /// call has an effect.
    pub fn set_change_listener(&self, listener: OnChange) {
        self.watcher.set_listener(listener);
    }

    pub(super) fn watch_file(&self, cx: Context<'_>, file: &Handle) -> Result<Watch> {
        if !cx.may_block {
            return Err(Status::WouldBlock);
        }
        let node = self.node(cx, file)?;
        let key = self.key_of(&node);
        let _server = self.as_server(cx)?;
        // Whatever the reason, it cannot be watched.
        let is_dir = node.kind == FileType::Directory;
        let guard =
            self.watcher.watch(node.fd(), (key, is_dir)).map_err(|_| Status::NotSupported)?;
        Ok(Watch::by(guard))
    }
}

#[cfg(test)]
mod tests;
