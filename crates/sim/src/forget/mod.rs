//! A file system in memory that forgets, at a crash, everything that was not flushed.
//!
//! What makes what durable, as strictly as POSIX reads:
//! - `fsync(file)`: its data, size and attributes; `fdatasync(file)`: data and size, and of the
//!   attributes only those that it was made with, since an inode is first written as a whole;
//! - `fsync(directory)`: its names, not the content of the files behind them. A name whose file was
//!   never flushed comes back as an empty file of mode 0600 that belongs to root, as on ext4
//!   without a journal;
//! - symbolic links and special files have no descriptor to flush: they become durable with the
//!   directory that names them.
//!
//! [`ForgetFs::mount`] serves it through FUSE (root and `/dev/fuse` needed) from threads of this
//! process. The kernel caches neither data nor names, so that every call arrives here.

mod model;
mod serve;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fuser::{BackgroundSession, Config, INodeNo, MountOption, SessionACL};

use model::Model;

/// Threads that answer the kernel: enough that a slow operation does not hold back the others.
const THREADS: usize = 8;

/// What happened so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Calls that arrived, flushes included.
    pub ops: u64,
    /// WRITE calls.
    pub writes: u64,
    /// Flushes of files (`fsync` and `fdatasync`).
    pub file_flushes: u64,
    /// Flushes of directories.
    pub dir_flushes: u64,
    /// Crashes.
    pub crashes: u64,
}

#[derive(Default)]
struct Counters {
    ops: AtomicU64,
    writes: AtomicU64,
    file_flushes: AtomicU64,
    dir_flushes: AtomicU64,
    crashes: AtomicU64,
}

/// State that the FUSE threads and the handle share.
#[derive(Default)]
struct Shared {
    model: Mutex<Model>,
    counters: Counters,
    op_delay_ns: AtomicU64,
    flush_delay_ns: AtomicU64,
    fail_flushes: AtomicBool,
    fail_writes: AtomicBool,
    epoch: AtomicU64,
}

impl Shared {
    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file system, not yet mounted.
#[derive(Default)]
pub struct ForgetFs {
    shared: Arc<Shared>,
}

impl ForgetFs {
    /// Mounts a new, empty file system at `path`, which must be an existing directory.
    ///
    /// # Errors
    /// What the mount says: usually that this is not root, or that there is no `/dev/fuse`.
    pub fn mount(path: &Path) -> io::Result<Mounted> {
        Self::default().serve(path)
    }

    /// Mounts this file system, as a crash left it.
    ///
    /// # Errors
    /// As [`ForgetFs::mount`].
    pub fn serve(self, path: &Path) -> io::Result<Mounted> {
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("forget".to_owned()),
            MountOption::DefaultPermissions,
            MountOption::Dev,
            MountOption::Suid,
        ];
        config.acl = SessionACL::All;
        config.n_threads = Some(THREADS);
        let session = fuser::spawn_mount(serve::Fuse::new(self.shared.clone()), path, &config)?;
        Ok(Mounted { shared: self.shared, path: path.to_owned(), session: Some(session) })
    }
}

/// A mounted [`ForgetFs`]. Dropping it unmounts.
pub struct Mounted {
    shared: Arc<Shared>,
    path: PathBuf,
    session: Option<BackgroundSession>,
}

impl Mounted {
    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Drops everything that was not flushed, and what the kernel remembers of names. The mount
    /// stays (and with it the device number); whoever used it must be gone before (a killed
    /// server), and flushes still under way come to nothing.
    pub fn crash(&self) {
        self.shared.epoch.fetch_add(1, Relaxed);
        let names = self.shared.model().names();
        self.shared.model().crash();
        if let Some(session) = &self.session {
            let notifier = session.notifier();
            for (dir, name) in names {
                // Names that the kernel never met are none of its business.
                let _unknown = notifier.inval_entry(INodeNo(dir), OsStr::from_bytes(&name));
            }
        }
        self.shared.counters.crashes.fetch_add(1, Relaxed);
    }

    /// Unmounts in good order and gives back the file system with all its state.
    ///
    /// # Errors
    /// What the kernel says, for instance that it is busy.
    pub fn unmount(mut self) -> io::Result<ForgetFs> {
        if let Some(session) = self.session.take() {
            session.umount_and_join()?;
        }
        Ok(ForgetFs { shared: self.shared.clone() })
    }

    /// Makes each call take at least `delay`: a slow back end. Calls overlap, up to the number of
    /// threads.
    pub fn set_op_delay(&self, delay: Duration) {
        self.shared.op_delay_ns.store(delay.as_nanos() as u64, Relaxed);
    }

    /// Makes each flush take at least `delay` more, before anything becomes durable.
    pub fn set_flush_delay(&self, delay: Duration) {
        self.shared.flush_delay_ns.store(delay.as_nanos() as u64, Relaxed);
    }

    /// Makes flushes fail with an I/O error and make nothing durable, or work again.
    pub fn set_flush_failure(&self, fail: bool) {
        self.shared.fail_flushes.store(fail, Relaxed);
    }

    /// Makes writes and flushes fail with an I/O error, or work again: between a crash and the next
    /// start, what uses the file system from below another one must not write to it any more.
    pub fn set_write_failure(&self, fail: bool) {
        self.shared.fail_writes.store(fail, Relaxed);
        self.shared.fail_flushes.store(fail, Relaxed);
    }

    /// What happened so far.
    pub fn stats(&self) -> Stats {
        let c = &self.shared.counters;
        Stats {
            ops: c.ops.load(Relaxed),
            writes: c.writes.load(Relaxed),
            file_flushes: c.file_flushes.load(Relaxed),
            dir_flushes: c.dir_flushes.load(Relaxed),
            crashes: c.crashes.load(Relaxed),
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.session.is_some()
            && let Ok(path) = std::ffi::CString::new(self.path.as_os_str().as_encoded_bytes())
        {
            // A failed test may leave users behind: detach, so that the mount goes with them.
            // SAFETY: `path` is a valid string for the length of the call.
            unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
        }
    }
}

/// Whether this process may mount here; otherwise why not, for a SKIP line.
///
/// # Errors
/// The reason.
pub fn available() -> Result<(), String> {
    // SAFETY: no arguments, cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Err("mounting FUSE needs root".to_owned());
    }
    let open = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
    open.map(|_| ()).map_err(|e| format!("/dev/fuse: {e}"))
}

#[cfg(test)]
mod tests;
