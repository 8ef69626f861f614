//! Folders of a test's own, removed with it.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{NOBODY, is_root};

/// A file system in memory.
const MEMORY: &str = "/dev/shm";
/// Free space in percent below which a file system is not used: twice what the server reports.
const SPACE_MIN: u64 = 10;

/// Whether users may write more than [`SPACE_MIN`] of a file system.
fn has_space(path: &Path) -> bool {
    let path = CString::new(path.as_os_str().as_bytes()).expect("a path without zeros");
    // SAFETY: plain numbers, which the call fills; the path ends with a zero.
    let (done, found) = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &raw mut found), found)
    };
    assert_eq!(done, 0, "statvfs: {}", std::io::Error::last_os_error());
    found.f_bavail * 100 > found.f_blocks * SPACE_MIN
}

/// A new folder below the system's temporary one. A test that fails leaves it for inspection.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes a folder with `name` in its name.
    ///
    /// # Panics
    /// When the folder cannot be made.
    pub fn new(name: &str) -> Self {
        Self::below(&std::env::temp_dir(), name)
    }

    /// Makes a folder on a file system with free space: the temporary one, or else one in memory.
    /// For tests of a server without problems: a file system that is nearly full is one.
    ///
    /// # Panics
    /// When the folder cannot be made.
    pub fn with_space(name: &str) -> Self {
        let temporary = std::env::temp_dir();
        let place = if has_space(&temporary) { temporary } else { MEMORY.into() };
        Self::below(&place, name)
    }

    /// Makes a folder below `place`, for instance one in memory.
    ///
    /// # Panics
    /// When the folder cannot be made.
    pub fn below(place: &Path, name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-test-{name}-{}-{number}", std::process::id());
        let path = place.join(name);
        fs::create_dir_all(&path).expect("a scratch folder");
        open_to_all(&path);
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder in it, made if missing, that belongs to `uid` when this is root.
    ///
    /// # Panics
    /// When the folder cannot be made.
    pub fn folder(&self, name: &str, uid: Option<u32>) -> PathBuf {
        let path = self.path.join(name);
        make_folder(&path, uid);
        path
    }
}

/// Makes a folder, owned by `uid` when that is given and this is root.
///
/// # Panics
/// When the folder cannot be made or given away.
pub fn make_folder(path: &Path, uid: Option<u32>) {
    fs::create_dir_all(path).expect("a folder");
    open_to_all(path);
    if let (Some(uid), true) = (uid, is_root()) {
        chown(path, Some(uid), Some(NOBODY)).expect("giving the folder away");
    }
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("setting its mode");
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _left = fs::remove_dir_all(&self.path);
        }
    }
}
