//! A file system in memory that forgets, at a crash, everything that was not flushed.
//!
//! What makes what durable, as strictly as POSIX reads:
//! - `fsync(file)`: its data, size and attributes; `fdatasync(file)`: data and size, and of the
//!   attributes only those that it was made with, since an inode is first written as a whole;
//! - a write with `O_DSYNC` or `RWF_DSYNC`: the blocks that it is about, and the size;
//! - `fsync(directory)`: its names, not the content of the files behind them. The name of a file
//!   that was never flushed comes back as an empty file of mode 0600 that belongs to root, as on
//!   ext4 without a journal;
//! - symbolic links and special files have no descriptor to flush: they become durable with the
//!   directory that names them.
//!
//! [`ForgetFs::mount`] serves it through FUSE (root and `/dev/fuse` needed) from threads of this
//! process. The kernel caches neither data nor names, so that every call arrives here.

mod model;
mod serve;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

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
    read_only: AtomicBool,
    stuck: Mutex<bool>,
    answers_again: Condvar,
    epoch: AtomicU64,
    images: Mutex<Images>,
}

/// What is kept of moments of a run.
#[derive(Default)]
struct Images {
    choose: Option<Choose>,
    kept: Vec<Image>,
}

/// Whether to retain the state before a call; the arguments are the number of the call, from 1 on,
/// and whether it is a flush.
pub type Choose = Box<dyn FnMut(u64, bool) -> bool + Send>;

/// What a crash would have left at a moment.
pub struct Image {
    /// The call before which that was, as [`Stats::ops`] counts them.
    pub call: u64,
    /// The file system, not mounted.
    pub left: ForgetFs,
}

impl Shared {
    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn images(&self) -> MutexGuard<'_, Images> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as nothing is answered.
    fn wait_while_stuck(&self) {
        let mut stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        while *stuck {
            stuck = self.answers_again.wait(stuck).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn set_stuck(&self, stuck: bool) {
        *self.stuck.lock().unwrap_or_else(PoisonError::into_inner) = stuck;
        self.answers_again.notify_all();
    }

    /// What writes and flushes fail with, if they do.
    fn refusal(&self, flush: bool) -> Option<i32> {
        let fails = if flush { &self.fail_flushes } else { &self.fail_writes };
        match (self.read_only.load(Relaxed), fails.load(Relaxed)) {
            (true, _) => Some(libc::EROFS),
            (false, true) => Some(libc::EIO),
            (false, false) => None,
        }
    }

    /// What a crash would leave now.
    fn image(&self) -> ForgetFs {
        let mut model = self.model().clone();
        model.crash();
        let shared = Self { model: Mutex::new(model), ..Self::default() };
        ForgetFs { shared: Arc::new(shared) }
    }

    /// Counts a call, before it is done.
    fn arrive(&self, flush: bool) {
        let call = self.counters.ops.fetch_add(1, Relaxed) + 1;
        let mut images = self.images();
        if images.choose.as_mut().is_some_and(|choose| choose(call, flush)) {
            images.kept.push(Image { call, left: self.image() });
        }
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
    /// # Errors The error of the mount: usually this is not root, or that there is no `/dev/fuse`.
    pub fn mount(path: &Path) -> io::Result<Mounted> {
        Self::default().serve(path)
    }

    /// Copies everything in it, with owners and modes, into a folder of another file system.
    /// Special files are left out.
    ///
    /// # Errors
    /// The error of the other file system.
    pub fn copy_to(&self, folder: &Path) -> io::Result<()> {
        copy(&self.shared.model(), model::ROOT, folder)
    }

    /// What is at a path from the root on, without slashes at its ends; `None` if nothing is.
    pub fn look(&self, path: &str) -> Option<Left> {
        let mut model = self.shared.model();
        let mut ino = model::ROOT;
        for name in path.split('/') {
            ino = model.lookup(ino, name.as_bytes()).ok()?.ino;
        }
        let seen = model.see(ino).ok()?;
        let data = model.read(ino, 0, usize::try_from(seen.size).ok()?);
        let data = data.or_else(|_| model.readlink(ino)).unwrap_or_default();
        let (mode, uid, mtime) = (seen.attr.mode, seen.attr.uid, seen.attr.mtime);
        Some(Left { mode, uid, mtime, data })
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

/// What a crash has left at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Type and permission bits, as `st_mode`.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Last change of data.
    pub mtime: SystemTime,
    /// What is in a file, or where a link leads; nothing of what is neither.
    pub data: Vec<u8>,
}

fn copy(model: &Model, dir: u64, to: &Path) -> io::Result<()> {
    let errno = io::Error::from_raw_os_error;
    let mut cookie = 0;
    loop {
        let listed = model.list(dir, cookie).map_err(errno)?;
        let Some((_, _, last)) = listed.last() else { return Ok(()) };
        cookie = *last;
        for (name, seen, _) in &listed {
            let path = to.join(OsStr::from_bytes(name));
            match seen.attr.mode & libc::S_IFMT {
                _ if matches!(&**name, b"." | b"..") => continue,
                libc::S_IFDIR => {
                    fs::create_dir(&path)?;
                    copy(model, seen.ino, &path)?;
                }
                libc::S_IFREG => {
                    let size = usize::try_from(seen.size).map_err(io::Error::other)?;
                    fs::write(&path, model.read(seen.ino, 0, size).map_err(errno)?)?;
                }
                libc::S_IFLNK => {
                    let target = model.readlink(seen.ino).map_err(errno)?;
                    symlink(OsStr::from_bytes(&target), &path)?;
                }
                _ => continue,
            }
            lchown(&path, Some(seen.attr.uid), Some(seen.attr.gid))?;
            if seen.attr.mode & libc::S_IFMT != libc::S_IFLNK {
                fs::set_permissions(&path, fs::Permissions::from_mode(seen.attr.mode & 0o7777))?;
            }
        }
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
    /// stays (and with it the device number); its users must have ended before (a killed server),
    /// and flushes in progress have no effect.
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

    /// What a crash would leave now.
    pub fn image(&self) -> ForgetFs {
        self.shared.image()
    }

    /// From now on keeps what a crash would leave before each call that `choose` picks: one run
    /// gives many crashes.
    pub fn keep_images(&self, choose: Choose) {
        self.shared.images().choose = Some(choose);
    }

    /// The images kept so far, in their order. No more are kept.
    pub fn take_images(&self) -> Vec<Image> {
        std::mem::take(&mut *self.shared.images()).kept
    }

    /// Unmounts in good order and gives back the file system with all its state.
    ///
    /// # Errors The error of the kernel, for instance that it is busy.
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

    /// Makes writes and flushes fail as on a file system that has become read-only under files that
    /// are open (ext4 with `errors=remount-ro`), or work again.
    pub fn set_read_only(&self, read_only: bool) {
        self.shared.read_only.store(read_only, Relaxed);
    }

    /// Holds back the replies to all calls that arrive from now on, or handles calls again. A
    /// process that waits for such a reply cannot even be killed.
    /// cannot even be killed.
    pub fn set_stuck(&self, stuck: bool) {
        self.shared.set_stuck(stuck);
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
        // A process that waits for a reply could never end.
        self.shared.set_stuck(false);
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
